"""Generalised Gaussian noise: from Laplace to Gaussian noise and beyond."""

from ._noise import GeneralizedGaussianNoise

__all__ = ["GeneralizedGaussianNoise"]
