"""Private statistics of a table, and a scaler made of them."""

from ._mean import PrivateMean
from ._private_statistic import PrivateStatistic
from ._scaler import PrivateStandardScaler
from ._summary import PrivateSummary

__all__ = ["PrivateMean", "PrivateStandardScaler", "PrivateStatistic", "PrivateSummary"]
