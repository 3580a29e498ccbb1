from skpuffer.kernel.laplace import DiscreteLaplaceNoise as DiscreteLaplaceNoise
from skpuffer.kernel.laplace import ExponentialNoise as ExponentialNoise
from skpuffer.kernel.laplace import GumbelNoise as GumbelNoise
from skpuffer.kernel.laplace import LaplaceNoise as LaplaceNoise
from skpuffer.kernel.noise import GaussianNoise as GaussianNoise
from skpuffer.kernel.noise import MagnitudeNoise as MagnitudeNoise
from skpuffer.kernel.noise import Noise as Noise
from skpuffer.kernel.noise import Shift as Shift
from skpuffer.kernel.noise import ShiftCurve as ShiftCurve

from ._correlated_gaussian import CorrelatedGaussianNoise, DegenerateGaussianNoise
from ._l2_laplace import L2LaplaceNoise as L2LaplaceNoise
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
    "MagnitudeNoise",
    "Noise",
    "Shift",
    "ShiftCurve",
]
