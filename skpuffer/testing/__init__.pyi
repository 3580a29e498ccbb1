from ._accountant_checks import accountant_checks, check_accountant
from ._discovery import EstimatorEntry, all_estimators
from ._estimator_checks import check_private_estimator, privacy_checks
from ._noise_checks import check_noise, noise_checks
from ._scenario_checks import check_scenario, scenario_checks
from ._suite import parametrize_checks

__all__ = [
    "EstimatorEntry",
    "accountant_checks",
    "all_estimators",
    "check_accountant",
    "check_noise",
    "check_private_estimator",
    "check_scenario",
    "noise_checks",
    "parametrize_checks",
    "privacy_checks",
    "scenario_checks",
]
