"""A fit begins from nothing, and leaves nothing where it fails."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from sklearn.base import BaseEstimator

from skpuffer.exceptions import Statement
from skpuffer.utils._sklearn import SETTINGS

__all__ = ["RELEASED", "all_or_nothing", "forget"]

#: Attributes that hold the parameters an earlier fit released, for a warm start.
RELEASED = ("_released",)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


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
    # parameters are the user's, and settings such as callbacks outlive any one fit
    keep = {*keep, *SETTINGS, *estimator.get_params(deep=False)}
    for name in list(vars(estimator)):
        if (name.startswith("_") or name.endswith("_")) and name not in keep:
            del vars(estimator)[name]


def all_or_nothing(
    fit: Callable[Parameters, Result],
) -> Callable[Parameters, Result]:
    """Decorate a method that fits to begin from nothing, and leave nothing on failure.

    What an earlier fit has set is removed first, except what it released, in
    `RELEASED`. A fit that raises, by an interrupt too, leaves nothing fitted, and so
    does one that a forked process goes on with. The decorator goes around all that
    calls callbacks, which may raise when the fit is done.

    Parameters
    ----------
    fit : method

    Returns
    -------
    method
    """

    @functools.wraps(fit)
    def fit_or_forget(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        estimator, process = args[0], os.getpid()
        try:
            # before the first check: a call that is refused must not leave the
            # certificate of an earlier one beside parameters it was not made for
            forget(estimator, keep=RELEASED)
            fitted = fit(*args, **kwargs)
            # one entry of a ledger, and one stream of noise, are for one release
            if os.getpid() != process:
                raise RuntimeError(Statement("release.process_forked_during_fit"))
            return fitted
        # an interrupt as well: some attributes may be set by then, and the others not
        except BaseException:
            forget(estimator)
            raise

    return fit_or_forget
