"""The private names of scikit-learn that skpuffer relies on, in one file.

Every contributed package needs these; when scikit-learn moves them, this is the only
file to change.
"""

from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
)
from sklearn.utils._repr_html.estimator import _VisualBlock as VisualBlock

__all__ = [
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "VisualBlock",
    "fit_context",
]
