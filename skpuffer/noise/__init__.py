"""Noise families: sampling, privacy curves against a shift, and calibration.

A family knows nothing of data, secrets or estimators. Of the pair "noise shifted by a
displacement" and "noise" it tells the Rényi divergence, the hockey-stick divergence,
and the smallest scale that keeps either below a target.

Every statement is about real arithmetic. The noise is drawn in double precision, whose
low bits can give a value away (Mironov, 2012); round a release to a public grid where
that matters.
"""

from ._base import Noise, Shift, ShiftCurve
from ._correlated_gaussian import CorrelatedGaussianNoise
from ._degenerate_gaussian import DegenerateGaussianNoise
from ._discrete_laplace import DiscreteLaplaceNoise
from ._gaussian import GaussianNoise
from ._l2_laplace import L2LaplaceNoise
from ._laplace import LaplaceNoise
from .generalized_cauchy import GeneralizedCauchyNoise
from .generalized_gaussian import GeneralizedGaussianNoise

__all__ = [
    "CorrelatedGaussianNoise",
    "DegenerateGaussianNoise",
    "DiscreteLaplaceNoise",
    "GaussianNoise",
    "GeneralizedCauchyNoise",
    "GeneralizedGaussianNoise",
    "L2LaplaceNoise",
    "LaplaceNoise",
    "Noise",
    "Shift",
    "ShiftCurve",
]
