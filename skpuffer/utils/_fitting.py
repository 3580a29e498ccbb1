"""A fit that fails, wherever it does, leaves nothing behind."""

import functools

from ._sklearn import SETTINGS

__all__ = ["all_or_nothing", "forget"]


def forget(estimator, keep=()):
    """Remove everything a fit has set.

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


def all_or_nothing(fit):
    """Decorate a method that fits: what raises, an interrupt too, unfits.

    It goes around all that calls callbacks, which may raise when the fit is done.

    Parameters
    ----------
    fit : method

    Returns
    -------
    method
    """

    @functools.wraps(fit)
    def fit_or_forget(estimator, *args, **kwargs):
        try:
            return fit(estimator, *args, **kwargs)
        except BaseException:
            forget(estimator)
            raise

    return fit_or_forget
