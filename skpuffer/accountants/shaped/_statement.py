"""What a certificate of shaped noise says besides its numbers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Booleans, Floats

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


def statements(told: Told) -> tuple[Statement, ...]:
    """Return what the certificate says, in sentences.

    Parameters
    ----------
    told : Told

    Returns
    -------
    tuple of Statement
    """
    return tuple(_statements(told))


def _statements(told: Told) -> Iterator[Statement]:
    values, axes = np.linalg.eigh(told.covariance)
    rounding = 1e-13 * max(values[-1], 0.0)
    bare = values <= rounding
    yield (Statement("assume.shape_protects_little_else"))
    if np.any(bare):
        yield (
            Statement(
                "assume.directions_without_noise",
                n_bare=int(bare.sum()),
                n_directions=len(values),
            )
        )
        yield (Statement("assume.rounding_not_hidden"))
    yield from _directions(told, values, axes, ~bare)
    yield from _shift(told)
    yield from _robustness(told, values[0] if not bare[0] else 0.0)
    yield from _comparison(told)
    yield from _group(told, 0.0 if bare[0] else float(values[0]))
    if told.outputs.n_secrets > 2:
        yield (Statement("assume.guess_more_often_right"))


def _directions(
    told: Told, values: Floats, axes: Floats, noisy: Booleans
) -> Iterator[Statement]:
    """Name the directions of least noise."""
    if not np.any(noisy):
        return
    least = values[noisy][0]
    condition = values[-1] / least
    # of one value any axes are as good as those found
    equal = noisy & (values <= least * (1 + 1e-6))
    if equal.sum() > 1:
        named: tuple[Statement, ...] = (
            Statement(
                "shaped.deviation_along",
                deviation=math.sqrt(least),
                direction=_space(axes, equal, told.names),
            ),
        )
    else:
        at = np.flatnonzero(noisy & (values <= _NEAR * least))[:_NAMED]
        named = tuple(
            Statement(
                "shaped.deviation_along",
                deviation=math.sqrt(values[i]),
                direction=_direction(axes[:, i], told.names),
            )
            for i in at
        )
    yield (
        Statement(
            "assume.least_noise_by_direction",
            named=named,
            least=least,
            condition=condition,
        )
    )


def _space(axes: Floats, inside: Booleans, names: Sequence[str] | None) -> Statement:
    """Axes of one and the same noise, by those at right angles to them if few."""
    n_inside, others = int(inside.sum()), axes[:, ~inside].T
    if not len(others):
        return Statement("shaped.all_directions")
    if len(others) > _NAMED:
        return Statement(
            "shaped.each_direction_of_space", n_inside=n_inside, n_axes=len(axes)
        )
    across = tuple(_direction(axis, names) for axis in others)
    return Statement("shaped.directions_at_right_angles", across=across)


def _direction(axis: Floats, names: Sequence[str] | None) -> Statement:
    """A direction by the coordinates that make most of it."""
    order = np.argsort(-np.abs(axis), kind="stable")
    parts = [i for i in order[:_PARTS] if abs(axis[i]) >= _SHARE]
    # one orientation: a direction has none
    sign = 1.0 if axis[parts[0]] > 0 else -1.0
    terms = []
    for i in parts:
        unnamed = Statement("shaped.coordinate", index=int(i))
        name = unnamed if names is None else names[i]
        terms.append(
            Statement("shaped.part_of_axis", part=float(sign * axis[i]), name=name)
        )
    return Statement("shaped.direction", parts=tuple(terms))


def _shift(told: Told) -> Iterator[Statement]:
    """Tell a shift beyond W_inf from it."""
    if not len(told.moves):
        return
    tolerance = told.room - (told.slack or 0.0)
    longest = float(np.linalg.norm(told.moves, axis=1).max()) + tolerance
    if longest > told.radius * (1 + 1e-9):
        yield (
            Statement(
                "assume.shift_covered_longest_move", longest=longest, radius=told.radius
            )
        )


def _robustness(told: Told, least: float) -> Iterator[Statement]:
    """For which other priors the promise is kept, and at what price."""
    if told.slack is not None:
        yield (
            Statement(
                "assume.slack_around_priors", distance=told.slack / 2, slack=told.slack
            )
        )
    elif told.floor:
        yield (Statement("assume.declared_priors_with_floor", floor=told.floor))
    if least <= 0:
        yield Statement("assume.priors_off_void_promise")
        return
    rate = 1 / math.sqrt(least)
    doubled = (math.sqrt(2) - 1) * told.nominal / rate
    if told.alpha is None:
        formula = Statement("shaped.formula_mu_of_t", nominal=told.nominal, rate=rate)
    else:
        root = math.sqrt(told.alpha / 2)
        formula = Statement(
            "shaped.formula_epsilon_of_t", nominal=root * told.nominal, rate=root * rate
        )
    yield (
        Statement(
            "assume.priors_within_t_keep",
            formula=formula,
            doubled=doubled,
            share=doubled / told.radius,
        )
    )


def _comparison(told: Told) -> Iterator[Statement]:
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
        Statement(
            "assume.variance_against_general",
            trace=told.trace / widest,
            best_diagonal=best_diagonal / widest,
        )
    )
    exact = told.outputs.least and not told.event
    least = least_shape(moves, gap=LARGEST_GAP if exact else 1e-3, enough=100)
    if exact:
        if told.room:
            return
        gap = max(told.trace / least.dual - 1, 0.0)
        if gap <= 2 * LARGEST_GAP:
            yield (
                Statement("assume.least_variance_certified", gap=max(gap, least.gap))
            )
        else:
            yield (
                Statement(
                    "assume.least_variance_without_floor",
                    share=1 / (1 + gap),
                    gap=least.gap,
                )
            )
        return
    lower = 0.0
    if not told.event:
        lower = float(np.sum(told.outputs.farthest**2))
        if np.any(told.outputs.means):
            lower = max(lower, least_shape(told.outputs.means, gap=1e-3).dual)
    yield (
        Statement(
            "assume.partial_optimum_in_turn", gap=least.gap, lower=lower / told.trace
        )
    )


def _group(told: Told, least: float) -> Iterator[Statement]:
    """Plain group privacy that the least variance alone gives."""
    if told.record is None or not 0 < told.record < math.inf:
        return
    count = math.floor(math.sqrt(least) * told.mu / told.record * (1 - 1e-9))
    if count >= 1:
        yield (Statement("assume.plain_group_privacy_too", count=count))
