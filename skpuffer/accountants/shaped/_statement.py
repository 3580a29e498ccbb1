"""What a certificate of shaped noise says besides its numbers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from skpuffer.utils._types import Booleans, Floats

from ._moves import OutputMoves
from ._programme import LARGEST_GAP, least_shape

__all__ = ["Told", "statements"]

#: Directions of least noise that are named, and how much more than the least they have.
_NAMED = 3
_NEAR = 2.0

#: Coordinates of a direction that are named, and the least share of its length.
_PARTS = 4
_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class Told:
    """What is known of a noise and of what it covers, in the units of the release.

    Parameters
    ----------
    covariance : ndarray of shape (dim, dim)
    mu : float
        That the promise is for.
    nominal : float
        The same for the priors themselves.
    outputs : OutputMoves
    moves : ndarray of shape (n_moves, dim)
        Of the couplings, without the room.
    radius : float
        Of a ball around all moves, as the general Wasserstein mechanism would cover.
    slack : float or None
    floor : float or None
        Where the noise was made by a floor, or by none.
    room : float
        Slack, and the tolerance of the release.
    alpha : float or None
    event : float
    record : float or None
        Sensitivity to one arbitrary record.
    names : sequence of str or None
        Of the coordinates.
    """

    covariance: Floats = field(repr=False)
    mu: float
    nominal: float
    outputs: OutputMoves
    moves: Floats = field(repr=False)
    radius: float
    slack: float | None
    floor: float | None
    room: float
    alpha: float | None
    event: float
    record: float | None
    names: Sequence[str] | None = None

    @property
    def trace(self) -> float:
        """Total variance for a length of one: of the shape, whatever the budget."""
        return float(np.trace(self.covariance)) * self.mu**2


def statements(told: Told) -> tuple[str, ...]:
    """Return what the certificate says, in sentences.

    Parameters
    ----------
    told : Told

    Returns
    -------
    tuple of str
    """
    return tuple(_statements(told))


def _statements(told: Told) -> Iterator[str]:
    values, axes = np.linalg.eigh(told.covariance)
    rounding = 1e-13 * max(values[-1], 0.0)
    bare = values <= rounding
    yield (
        "the noise is shaped by the moves that the priors allow, and protects little "
        "else: a belief that allows others is promised far less than under round noise"
    )
    if np.any(bare):
        yield (
            f"{int(bare.sum())} of {len(values)} directions are without noise: the "
            "release shows them exactly, to whatever the priors say of them"
        )
        yield (
            "what rounding moves along them, taken as up to 2^-43 of a move of the "
            "output, is not hidden either: the promise is for outputs as real numbers"
        )
    yield from _directions(told, values, axes, ~bare)
    yield from _shift(told)
    yield from _robustness(told, values[0] if not bare[0] else 0.0)
    yield from _comparison(told)
    yield from _group(told, 0.0 if bare[0] else float(values[0]))
    if told.outputs.n_secrets > 2:
        yield (
            "an attacker who guesses one of more than two secrets is right more often "
            "than under round noise of the same epsilon, as every pair is driven to "
            "the bound"
        )


def _directions(
    told: Told, values: Floats, axes: Floats, noisy: Booleans
) -> Iterator[str]:
    """Name the directions of least noise."""
    if not np.any(noisy):
        return
    least = values[noisy][0]
    condition = values[-1] / least
    # of one value any axes are as good as those found
    equal = noisy & (values <= least * (1 + 1e-6))
    if equal.sum() > 1:
        named = f"{math.sqrt(least):.4g} along {_space(axes, equal, told.names)}"
    else:
        at = np.flatnonzero(noisy & (values <= _NEAR * least))[:_NAMED]
        named = " and ".join(
            f"{math.sqrt(values[i]):.4g} along {_direction(axes[:, i], told.names)}"
            for i in at
        )
    yield (
        f"least noise, as standard deviation in the units of the release: {named}; "
        f"least variance {least:.4g}, condition {condition:.3g}"
    )


def _space(axes: Floats, inside: Booleans, names: Sequence[str] | None) -> str:
    """Axes of one and the same noise, by those at right angles to them if few."""
    n_inside, others = int(inside.sum()), axes[:, ~inside].T
    if not len(others):
        return "all directions"
    if len(others) > _NAMED:
        return f"each direction of a space of {n_inside} of {len(axes)} dimensions"
    across = " and ".join(_direction(axis, names) for axis in others)
    return f"each direction at right angles to {across}"


def _direction(axis: Floats, names: Sequence[str] | None) -> str:
    """A direction by the coordinates that make most of it."""
    order = np.argsort(-np.abs(axis), kind="stable")
    parts = [i for i in order[:_PARTS] if abs(axis[i]) >= _SHARE]
    # one orientation: a direction has none
    sign = 1.0 if axis[parts[0]] > 0 else -1.0
    terms = []
    for i in parts:
        name = f"coordinate {i}" if names is None else names[i]
        terms.append(f"{sign * axis[i]:+.2f} {name}")
    return " ".join(terms)


def _shift(told: Told) -> Iterator[str]:
    """Tell a shift beyond W_inf from it."""
    if not len(told.moves):
        return
    tolerance = told.room - (told.slack or 0.0)
    longest = float(np.linalg.norm(told.moves, axis=1).max()) + tolerance
    if longest > told.radius * (1 + 1e-9):
        yield (
            f"the shift covered is the longest l2 move, {longest:.6g}, of the coupling "
            "that is best in the norm of the noise: W_inf in l2 gives "
            f"{told.radius:.6g}"
        )


def _robustness(told: Told, least: float) -> Iterator[str]:
    """For which other priors the promise is kept, and at what price."""
    if told.slack is not None:
        yield (
            f"the promise holds for every prior whose outputs given each secret are "
            f"within W_inf {told.slack / 2:.6g} (l2, in units) of a declared one: "
            f"slack {told.slack:.6g}"
        )
    elif told.floor:
        yield (
            f"the promise is for the declared priors; every direction has a floor of "
            f"{told.floor:.3g} of the mean variance, which no slack was asked for"
        )
    if least <= 0:
        yield "priors that are any bit off, in directions without noise, void it"
        return
    rate = 1 / math.sqrt(least)
    doubled = (math.sqrt(2) - 1) * told.nominal / rate
    if told.alpha is None:
        formula = f"mu(t) = {told.nominal:.4g} + {rate:.4g} t"
    else:
        root = math.sqrt(told.alpha / 2)
        formula = f"epsilon(t) = ({root * told.nominal:.4g} + {root * rate:.4g} t)²"
    yield (
        f"priors within W_inf t / 2 given each secret keep {formula}: the Rényi cost "
        f"doubles at t = {doubled:.4g}, which is {doubled / told.radius:.3g} of the "
        "longest move"
    )


def _comparison(told: Told) -> Iterator[str]:
    """Total variance beside that of other shapes, and how near the least it is."""
    dim = told.outputs.dim
    widest = dim * (told.radius + (told.slack or 0.0)) ** 2
    # the room of others is no part of this comparison but in the round shape
    moves = told.moves[np.any(told.moves != 0, axis=1)]
    if not len(moves) or widest == 0:
        return
    diagonal = least_shape(moves, diagonal=True, gap=1e-6, enough=100)
    room = math.sqrt(dim) * told.room
    # for these couplings; round noise is diagonal as well, by its own
    best_diagonal = min((math.sqrt(diagonal.trace) + room) ** 2, widest)
    yield (
        f"total variance in units: {told.trace / widest:.6g} of that of the general "
        f"Wasserstein mechanism for the same; the best diagonal shape "
        f"{best_diagonal / widest:.6g}"
    )
    exact = told.outputs.least and not told.event
    least = least_shape(moves, gap=LARGEST_GAP if exact else 1e-3, enough=100)
    if exact:
        if told.room:
            return
        gap = max(told.trace / least.dual - 1, 0.0)
        if gap <= 2 * LARGEST_GAP:
            yield (
                "it is the least total variance of any Gaussian noise that keeps this "
                f"promise, within a dual gap of {max(gap, least.gap):.1e}"
            )
        else:
            yield (
                f"the least total variance without a floor is {1 / (1 + gap):.4g} of "
                f"it, within a dual gap of {least.gap:.1e}"
            )
        return
    lower = 0.0
    if not told.event:
        lower = float(np.sum(told.outputs.farthest**2))
        if np.any(told.outputs.means):
            lower = max(lower, least_shape(told.outputs.means, gap=1e-3).dual)
    yield (
        "no more variance than the general Wasserstein mechanism, and a partial "
        f"optimum: couplings and shape were found in turn (dual gap {least.gap:.1e} "
        f"for these couplings); no noise of this kind has less than "
        f"{lower / told.trace:.4g} of it"
    )


def _group(told: Told, least: float) -> Iterator[str]:
    """Plain group privacy that the least variance alone gives."""
    if told.record is None or not 0 < told.record < math.inf:
        return
    count = math.floor(math.sqrt(least) * told.mu / told.record * (1 - 1e-9))
    if count >= 1:
        yield (
            f"by its least variance it is plain group privacy of {count} replaced "
            "records as well, at the same numbers"
        )
