"""Parts of the template of private fits, one concept each."""

#: Classes of estimators whose fits release with a certificate of their own.
RELEASING: list[type] = []
