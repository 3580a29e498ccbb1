"""Small Bayesian networks over records, or over what governs the columns."""

from ._scenario import BayesianNetworkScenario

__all__ = ["BayesianNetworkScenario"]
