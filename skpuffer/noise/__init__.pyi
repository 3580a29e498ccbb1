from ._base import Noise, Shift, ShiftCurve
from ._correlated_gaussian import CorrelatedGaussianNoise
from ._degenerate_gaussian import DegenerateGaussianNoise
from ._discrete_laplace import DiscreteLaplaceNoise
from ._gaussian import GaussianNoise
from ._l2_laplace import L2LaplaceNoise
from ._laplace import LaplaceNoise
from ._selection import ExponentialNoise, GumbelNoise
from .generalized_cauchy import GeneralizedCauchyNoise
from .generalized_gaussian import GeneralizedGaussianNoise

__all__ = [
    "CorrelatedGaussianNoise",
    "DegenerateGaussianNoise",
    "DiscreteLaplaceNoise",
    "ExponentialNoise",
    "GaussianNoise",
    "GeneralizedCauchyNoise",
    "GeneralizedGaussianNoise",
    "GumbelNoise",
    "L2LaplaceNoise",
    "LaplaceNoise",
    "Noise",
    "Shift",
    "ShiftCurve",
]
