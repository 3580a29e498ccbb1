"""Records that form a Markov chain."""

from ._scenario import MarkovChainScenario

__all__ = ["MarkovChainScenario"]
