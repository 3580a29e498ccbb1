"""Generalised Cauchy noise: heavy tails, and still a pure-epsilon cost."""

from ._noise import GeneralizedCauchyNoise

__all__ = ["GeneralizedCauchyNoise"]
