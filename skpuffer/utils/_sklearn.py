"""The private names of scikit-learn that skpuffer relies on, in one file.

Every contributed package needs these; when scikit-learn moves them, this is the only
file to change.
"""

# under public names here, so that a search for the private ones finds this file alone
from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
)
from sklearn.utils._repr_html.estimator import _VisualBlock as VisualBlock
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition

#: What scikit-learn keeps on an estimator besides parameters and what a fit has set: a
#: user's settings, and where the estimator stands in a fit that goes on around it.
SETTINGS = (
    "_metadata_request",
    "_parent_callback_ctx",
    "_skl_callbacks",
    "_sklearn_output_config",
)

__all__ = [
    "SETTINGS",
    "BaseComposition",
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "VisualBlock",
    "fit_context",
    "safe_indexing",
]
