from ._cdf import PrivateCDF
from ._mean import PrivateMean
from ._private_bounds import PrivateBounds
from ._private_statistic import PrivateStatistic
from ._quantile import PrivateQuantile
from ._scaler import PrivateStandardScaler
from ._summary import PrivateSummary

__all__ = [
    "PrivateBounds",
    "PrivateCDF",
    "PrivateMean",
    "PrivateQuantile",
    "PrivateStandardScaler",
    "PrivateStatistic",
    "PrivateSummary",
]
