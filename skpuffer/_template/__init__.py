"""Parts of the template of private fits, one concept each."""
