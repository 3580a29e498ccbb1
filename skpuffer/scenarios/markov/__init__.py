"""Records that follow one another as a Markov chain."""

from ._scenario import MarkovChainScenario

__all__ = ["MarkovChainScenario"]
