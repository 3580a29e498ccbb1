"""Parameters of parameters, by scikit-learn's names with two underscores."""

from typing import Any, Self

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
                    f"The parameter {name!r} of {type(self).__name__} holds a "
                    f"{type(value).__name__}, which has no parameters of its own, so "
                    f"{key!r} cannot be set. Set {name!r} as a whole: in a search, "
                    f"give a list of all the values it is to take."
                )
        changed: Self = super().set_params(**params)  # type: ignore[misc]
        return changed
