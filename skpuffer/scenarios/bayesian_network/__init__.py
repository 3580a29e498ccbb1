"""Records or column parameters that form a Bayesian network."""

from ._scenario import BayesianNetworkScenario

__all__ = ["BayesianNetworkScenario"]
