"""Parameters of parameters, by scikit-learn's names with two underscores."""

from typing import Any, Self

from skpuffer.exceptions import Statement

__all__ = ["NestedParametersMixin"]


class NestedParametersMixin:
    """Mixin that says what is wrong where a parameter has no parameters of its own."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters, nested ones too.

        Parameters
        ----------
        **params : dict
            As in scikit-learn.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter is unknown, or one that is named within another, as
            ``prior__w`` is, whose value (a list, say) has none.
        """
        held = self.get_params(deep=False)  # type: ignore[attr-defined]
        for key in params:
            name, nested, _ = key.partition("__")
            value = params.get(name, held.get(name))
            if nested and name in held and not hasattr(value, "set_params"):
                raise ValueError(
                    Statement(
                        "parameter.nested_not_settable",
                        name=name,
                        owner=type(self).__name__,
                        value_type=type(value).__name__,
                        key=key,
                    )
                )
        changed: Self = super().set_params(**params)  # type: ignore[misc]
        return changed
