"""How long the moves of the output are in the norm of a Gaussian noise."""

import math
from dataclasses import dataclass, field

import numpy as np

from skpuffer.kernel.numbers import Floats
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    DegenerateGaussianNoise,
    GaussianNoise,
    Noise,
)

from ._moves import Image, OutputMoves
from ._slack import longest_within

__all__ = ["GAUSSIAN", "Cover", "covariance_in_units", "cover"]

#: Gaussian noises, by exact type: another one may mean something else by its fields.
GAUSSIAN = (GaussianNoise, CorrelatedGaussianNoise, DegenerateGaussianNoise)

_EPS = float(np.finfo(float).eps)

#: Lengths are rounded up by this, and by what solving for them may have lost.
_ROUND_UP = 1e-12

# Least variance over the largest of a direction, for couplings: where there is no noise
# a coupling is sought that needs none.
_LEAST = 1e-16


@dataclass(frozen=True, eq=False)
class Cover:
    """Moves of one coupling for each pair, and their length in the norm of a noise.

    Parameters
    ----------
    moves : ndarray of shape (n_moves, dim)
        In the units of the release.
    nominal : float
        Largest length of a move in standard deviations of the noise, rounded up.
    mu : float
        The same of all that is within the room of a move.
    """

    moves: Floats = field(repr=False)
    nominal: float
    mu: float

    @property
    def radius(self) -> float:
        """Largest length of a move in l2."""
        return float(np.linalg.norm(self.moves, axis=1).max())


def cover(
    noise: Noise, outputs: OutputMoves, units: Floats, event: float, room: float
) -> Cover:
    """Couple the outputs so that the longest move is shortest in the norm of a noise.

    Parameters
    ----------
    noise : Noise
        One of `GAUSSIAN`.
    outputs : OutputMoves
        Complete.
    units : ndarray of shape (dim,)
    event : float
        Mass of each pair that may be left out.
    room : float
        How far off each move may be, in l2 and in units.

    Returns
    -------
    Cover
        Read off the noise, by the factor that it is sampled with.
    """
    image = _image(noise, units)
    # of all that is within a room of them the longest may be another move's
    few = room > 0
    moves = np.concatenate([pair.kept(image, event, few) for pair in outputs.pairs])
    nominal = float(_lengths(noise, moves * units).max()) * _rounding(noise, units)
    mu = nominal
    if room:
        covariance = covariance_in_units(noise, units)
        within = float(longest_within(moves, covariance, room).max())
        mu = max(nominal, within * (1 + _ROUND_UP))
    return Cover(moves, nominal, mu)


def covariance_in_units(noise: Noise, units: Floats) -> Floats:
    """Covariance of a Gaussian noise in the units of the release."""
    assert isinstance(noise, GaussianNoise)
    return noise.covariance_matrix(len(units)) / np.outer(units, units)


def _lengths(noise: Noise, moves: Floats) -> Floats:
    """Lengths of moves, in the units of the output, in standard deviations."""
    assert isinstance(noise, GaussianNoise)
    with np.errstate(divide="ignore", invalid="ignore"):
        whitened = noise.whitened(moves)
    # no noise, and no move that it would have to hide; else the loss has no bound
    still = np.all(moves == 0, axis=1)
    lengths = np.linalg.norm(np.where(np.isnan(whitened), 0.0, whitened), axis=1)
    return np.where(still, 0.0, lengths)


def _image(noise: Noise, units: Floats) -> Image:
    """Map in whose l2 norm couplings are sought; any gives a coupling."""
    values, axes = np.linalg.eigh(covariance_in_units(noise, units))
    if values[-1] <= 0:
        return lambda moves: moves
    # directions without noise are far too long, but finite
    weights = 1 / np.sqrt(np.maximum(values / values[-1], _LEAST))
    if values[0] > values[-1] * 1e-13 and type(noise) is not DegenerateGaussianNoise:
        deviation = math.sqrt(values[-1])
        return lambda moves: deviation * _whitened(noise, moves * units)
    return lambda moves: moves @ axes * weights


def _whitened(noise: Noise, moves: Floats) -> Floats:
    assert isinstance(noise, GaussianNoise)
    return noise.whitened(moves)


def _rounding(noise: Noise, units: Floats) -> float:
    """Factor by which lengths are rounded up, for what solving may have lost."""
    if type(noise) is not CorrelatedGaussianNoise:
        return 1 + _ROUND_UP
    # triangular systems lose no more than the condition of the factor (Higham 2002,
    # Accuracy and stability of numerical algorithms, Theorem 8.5)
    covariance = np.asarray(noise.covariance)
    deviations = np.sqrt(np.diag(covariance))
    values = np.linalg.eigvalsh(covariance / np.outer(deviations, deviations))
    condition = math.sqrt(values[-1] / max(values[0], _LEAST))
    return 1 + _ROUND_UP + 8 * len(values) * _EPS * condition
