"""A fit begins from nothing, and one that fails leaves nothing behind."""

import functools
from collections.abc import Callable, Iterable
from typing import Concatenate, ParamSpec, TypeVar

from sklearn.base import BaseEstimator

from ._sklearn import SETTINGS

__all__ = ["all_or_nothing", "forget"]

Estimator = TypeVar("Estimator", bound=BaseEstimator)
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

#: Where a fit finds the parameters that the one before has released, to go on from.
RELEASED = ("_released",)


def forget(estimator: BaseEstimator, keep: Iterable[str] = ()) -> None:
    """Remove every attribute that a fit has set.

    That is what has an underscore before or after its name, unless it is a parameter or
    a setting of scikit-learn's. So nobody has to list what fits set.

    Parameters
    ----------
    estimator : estimator
    keep : iterable of str, default=()
        Names that stay.
    """
    keep = {*keep, *SETTINGS, *estimator.get_params(deep=False)}
    for name in list(vars(estimator)):
        if (name.startswith("_") or name.endswith("_")) and name not in keep:
            del vars(estimator)[name]


def all_or_nothing(
    fit: Callable[Concatenate[Estimator, Parameters], Result],
) -> Callable[Concatenate[Estimator, Parameters], Result]:
    """Decorate a method that fits to begin from nothing, and leave nothing on failure.

    What the fit before has set is removed first, but for what was released, in
    `RELEASED`. What raises, an interrupt included, leaves nothing fitted. It goes
    around all that calls callbacks, which may raise when the fit is done.

    Parameters
    ----------
    fit : method

    Returns
    -------
    method
    """

    @functools.wraps(fit)
    def fit_or_forget(
        estimator: Estimator, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        try:
            forget(estimator, keep=RELEASED)
            return fit(estimator, *args, **kwargs)
        except BaseException:
            forget(estimator)
            raise

    return fit_or_forget
