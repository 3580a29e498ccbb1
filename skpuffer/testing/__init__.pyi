from ._discovery import EstimatorEntry, all_estimators
from ._estimator_checks import check_private_estimator, privacy_checks

__all__ = [
    "EstimatorEntry",
    "all_estimators",
    "check_private_estimator",
    "privacy_checks",
]
