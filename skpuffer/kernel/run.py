"""How noise is drawn: who pays is told first, and what leaves is on a public grid."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from skpuffer.exceptions import Statement, UncertifiedError, value_error
from skpuffer.kernel.draws import (
    Ahead,
    Draw,
    exact_exponential,
    exact_normal,
    is_secret,
    rounded_multiple,
)
from skpuffer.kernel.laplace import DiscreteLaplaceNoise, LaplaceNoise
from skpuffer.kernel.noise import GaussianNoise, Noise
from skpuffer.kernel.numbers import Floats, Indices, check_count

if TYPE_CHECKING:
    from skpuffer.kernel.certificates import Certificate
    from skpuffer.kernel.queries import QueryRelease
    from skpuffer.kernel.releases import Release


#: What an execution returns.
Output = TypeVar("Output")


#: Generator of the run at hand, how many magnitudes are expected, and those ahead.
_AHEAD: ContextVar[tuple[np.random.Generator, int, list[Ahead]] | None] = ContextVar(
    "ahead", default=None
)


def _magnitudes(
    draw: Draw, n: int, rng: np.random.Generator
) -> tuple[Indices, np.ndarray]:
    """Draw magnitudes, or take those that were drawn for this run."""
    held = _AHEAD.get()
    if held is None:
        return draw(n, rng)
    of_run, expected, ahead = held
    if not ahead:
        ahead.append(Ahead(of_run, expected))
    return ahead[0].take(draw, n, rng)


def run(
    certificate: "Certificate",
    noise: Noise,
    release: "Release",
    execute: Callable[[Noise, np.random.Generator], Output],
    rng: np.random.Generator,
    tell: Callable[[], None],
) -> Output:
    """Draw what a certificate is of, once whoever pays for it was told.

    Parameters
    ----------
    certificate : Certificate
        Certificate of this release.
    noise : Noise
        That it certifies.
    execute : callable
        Computes from the rows, and draws. Takes the noise and the generator.
    tell : callable
        Tells whoever pays for it, and raises if somebody refuses.

    Returns
    -------
    object
        All that leaves.
    """
    if certificate.release != release.name or certificate.n_releases != 1:
        raise UncertifiedError(
            Statement("proof.other_release", release=release.name, other=certificate)
        )
    tell()
    # of several sums in turn it is public how many numbers there are
    stages: Iterable[Any] = getattr(release, "stages", ())
    expected = 0
    for stage in stages:
        expected += stage.dim * stage.times
    ahead: list[Ahead] = []
    token = _AHEAD.set((rng, expected, ahead))
    try:
        return execute(noise, rng)
    finally:
        _AHEAD.reset(token)
        for drawn in ahead:
            drawn.wipe()


def noisy_value(
    release: "QueryRelease",
    X: object,
    y: object,
    noise: Noise,
    rng: np.random.Generator,
) -> Floats:
    """Compute the exact value of a release, which nobody sees, and add noise.

    Parameters
    ----------
    X, y : array-like
        The private rows.

    Returns
    -------
    ndarray of shape (dim,)
    """
    exact = release.run(X, y)
    if not np.all(np.isfinite(exact)):
        raise value_error("release.value_not_finite", name=release.name)
    return add_noise(
        exact, noise, rng, n_records=release.n_records, integer=release.is_integer
    )


def noisy_scores(scores: Floats, noise: Noise, rng: np.random.Generator) -> Floats:
    """Add noise to scores that are in units of its scale.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates,)

    Returns
    -------
    ndarray of shape (n_candidates,)
        Of which no number leaves: only which is the largest.
    """
    drawn: Floats = noise.sample(scores.shape, rng) / noise.scale
    return scores + drawn


# So many numbers of noise are drawn at once: enough to pay for the call.
_NOISE_BLOCK = 2**13


def noise_rows(
    noise: Noise, dim: int, n_rows: int, rng: np.random.Generator
) -> Iterator[Floats]:
    """Yield independent draws of noise, several small ones made at a time."""
    # by the number of parameters, which is public
    at_once = max(1, _NOISE_BLOCK // dim)
    for start in range(0, n_rows, at_once):
        yield from noise.sample((min(at_once, n_rows - start), dim), rng)


#: Steps of a grid in one unit of scale, as a power of two: of small tables, and at
#: least.
_BITS, _LEAST_BITS = 30, 10

#: Records, as a power of two, from which on a grid becomes coarser with their number:
#: so much rounding may add to a sum of them.
_FEW_RECORDS = 16

#: What the grid may add to noise; beyond, nothing is rounded.
MOST_ROOM = 2.0**-7

#: Largest scale over grid of which products are rounded in double precision.
_LARGEST_RATIO = 2.0**40


# By the very type: a subclass may have another distribution.
_MAGNITUDES: dict[type[Noise], Draw] = {
    GaussianNoise: exact_normal,
    LaplaceNoise: exact_exponential,
}


def noise_grid(noise: Noise, n_records: int, *, integer: bool = False) -> Floats | None:
    """Return the public grid of what is released with some noise.

    Parameters
    ----------
    n_records : int
        Public: rounding errors grow with it.
    integer : bool, default=False
        Whether exact values are integers, which are multiples of the grid then.

    Returns
    -------
    ndarray of shape () or (dim,), or None
        A power of two for each coordinate, in the unit of the output. None if the noise
        has no exact draws, or none on some coordinate.
    """
    if type(noise) is DiscreteLaplaceNoise:
        return np.asarray(1.0) if noise.scale else None
    scale = np.asarray(noise.scale, dtype=float)
    if type(noise) not in _MAGNITUDES or not np.all((scale > 0) & np.isfinite(scale)):
        return None
    large = max(0, math.ceil(math.log2(max(n_records, 1))) - _FEW_RECORDS)
    exponent = np.floor(np.log2(scale)) - max(_BITS - large, _LEAST_BITS)
    grid: Floats = np.exp2(np.minimum(exponent, 0.0) if integer else exponent)
    return grid if np.all(scale / grid <= _LARGEST_RATIO) else None


def add_noise(
    exact: Floats,
    noise: Noise,
    rng: np.random.Generator,
    *,
    n_records: int,
    integer: bool = False,
) -> Floats:
    """Add noise to exact values, on a grid where it is drawn exactly.

    Let x be a multiple of the grid g, and N noise as theorems have it, a real number.
    Then ``x + g round(N / g)`` is ``x + N`` rounded to the grid: it is made of ``x +
    N`` alone, and keeps every promise that ``x + N`` does. The same numbers can be
    reached from two tables, whose last digits could else tell them apart (Mironov 2012,
    On significance of the least significant bits for differential privacy).

    Parameters
    ----------
    exact : ndarray
        Its last axis is the coordinates.
    integer : bool, default=False
        As of `noise_grid`.
    """
    grid = None
    if draws_exactly(noise, rng):
        grid = noise_grid(noise, n_records, integer=integer)
    if grid is None:
        return exact + noise.sample(exact.shape, rng)
    # rounded as floats are, the sum is still made of the exact sum alone
    return to_grid(exact, grid) + sample_on_grid(noise, grid, exact.shape, rng)


def draws_exactly(noise: Noise, rng: np.random.Generator) -> bool:
    """Whether noise of this kind is drawn exactly, by a generator of secret bits.

    Noise drawn from a seed can be drawn again, digits and all.
    """
    kind = type(noise)
    return is_secret(rng) and (kind in _MAGNITUDES or kind is DiscreteLaplaceNoise)


def to_grid(values: Floats, grid: Floats | float) -> Floats:
    """Round to multiples of a power of two; exact, as floats go.

    Beyond 2**53 steps every float is a multiple already.
    """
    rounded: Floats = np.rint(values / grid) * grid
    return rounded


def sample_on_grid(
    noise: Noise, grid: Floats, shape: tuple[int, ...], rng: np.random.Generator
) -> Floats:
    """Draw noise rounded to the nearest multiples of a grid, exactly.

    Parameters
    ----------
    noise : Noise
        Noise of which `noise_grid` knows a grid.
    grid : ndarray
        That grid.
    shape : tuple of int
        Its last axis is the coordinates.

    Returns
    -------
    ndarray of the shape asked for
    """
    shape = tuple(check_count(least=0, shape=n) for n in shape)
    n = math.prod(shape)
    if type(noise) is DiscreteLaplaceNoise:
        # The integer part of an exponential number of mean rho is geometric.
        first, second = (
            rounded_multiple(
                noise.scale, *_magnitudes(exact_exponential, n, rng), rng, down=True
            )
            for _ in range(2)
        )
        return (first - second).astype(float).reshape(shape)
    ratio = np.broadcast_to(np.asarray(noise.scale) / grid, shape).ravel()
    magnitudes = _magnitudes(_MAGNITUDES[type(noise)], n, rng)
    steps = rounded_multiple(ratio, *magnitudes, rng)
    signs = 1 - 2 * rng.integers(0, 2, n)
    return (signs * steps).reshape(shape) * grid


class Covered(NamedTuple):
    """What noise on a grid has to cover.

    Parameters
    ----------
    n_records : int
    sensitivity : float or None
        In `units`.
    norm : float
        Norm of the sensitivity.
    dim : int or None
    units : float or ndarray of shape (dim,), default=1.0
    moved : float, default=0.0
        How much further records may move the exact value than the sensitivity says, as
        a share of it: they may have been rounded one by one.
    """

    n_records: int
    sensitivity: float | None
    norm: float
    dim: int | None
    units: Floats | float = 1.0
    moved: float = 0.0


def with_room_for_grid(
    noise: Noise, covered: Covered, most: float = MOST_ROOM
) -> Noise | None:
    """Return noise that covers a sensitivity and the rounding to its grid.

    The exact value is rounded to the grid, and taken to be computed to half a step of
    it: in each of two tables it is off by one step at most, and moves by two steps
    more. A cost that grows with the ratio of sensitivity to scale alone is kept if the
    scale grows as the sensitivity does.

    Parameters
    ----------
    noise : Noise
        Calibrated for the sensitivity.
    most : float, default=2**-7
        Share of the scale that may be added.

    Returns
    -------
    Noise or None
        None where that would take more.
    """
    # of the largest scale that may come of it: its grid is no finer
    widest = _widened(noise, MOST_ROOM)
    share = _share(widest, covered)
    return _widened(noise, share) if share <= most else None


def _share(noise: Noise, covered: Covered) -> float:
    """How much further the exact value moves on the grid of a noise, as a share."""
    grid, sensitivity = noise_grid(noise, covered.n_records), covered.sensitivity
    dim, norms = covered.dim, {covered.norm, noise.norm}
    if grid is None or not dim or not sensitivity or not 0 < sensitivity < math.inf:
        return math.inf
    # a sensitivity that one coordinate has alone counts in the norm of the noise
    steps = np.broadcast_to(2 * grid / covered.units, (dim,))
    rounded = max(float(np.linalg.norm(steps, p)) for p in norms)
    return rounded / sensitivity + covered.moved


def _widened(noise: Noise, share: float) -> Noise:
    """Noise of a scale that is larger by some share, rounded up."""
    return noise.with_scale(np.asarray(noise.scale) * ((1 + share) * (1 + 2.0**-50)))


#: What a certificate says of any noise, which theorems take for a real number.
FLOATING_POINT = Statement("assume.noise_in_floating_point")


#: What a certificate says of noise that is drawn exactly, in whole steps of a grid.
ON_GRID = Statement("assume.noise_exact_on_grid")


#: The same of sums of gradients, of which there are too many for exact draws.
SUMS_ON_GRID = Statement("assume.gradient_sums_on_grid")


#: The same of a choice by noisy scores, of which no number leaves.
CHOSEN_ON_GRID = Statement("assume.choice_on_grid")


#: What the grid rests on, where noise pays for it.
ROUNDED_SUMS = Statement("assume.rounding_below_half_step")


#: The same where what it would cost is not known.
NO_ROOM = Statement("assume.rounding_not_counted")


#: The same where noise does not cover how far a record is rounded.
ROUNDED_ELSEWHERE = Statement("assume.engine_rounding_not_counted")


#: Parameters of a model of which a certificate says that rounding is covered.
_MANY_PARAMETERS = 2**20


def on_grid(
    noise: Noise,
    certificate: "Certificate",
    release: "Release",
    rng: np.random.Generator,
    rounding: Floats | None = None,
    any_records: bool = False,
    by_sensitivity: bool = False,
) -> tuple[Noise, tuple[Statement, ...]]:
    """Make room for the grid that a release is rounded to, where that can be shown.

    Parameters
    ----------
    certificate : Certificate
        Certificate of that noise.
    rng : numpy.random.Generator
        Generator of the noise.
    rounding : ndarray of shape (dim,), default=None
        How far each coordinate of one record's contribution was rounded.
    any_records : bool, default=False
        Whether the sensitivity is that of records that become any others.
    by_sensitivity : bool, default=False
        Whether a larger sensitivity takes noise that is larger in proportion.

    Returns
    -------
    noise : Noise
        Larger by next to nothing.
    statements : tuple of Statement
        Statements on the last digits of the release.
    """
    # by the very type: another kind of release is executed in its own way
    code = vars(type(release)).get("last_digits")
    statement = None if code is None else Statement(code)
    if code == CHOSEN_ON_GRID.code:
        if getattr(release, "on_grid", False) and is_secret(rng):
            return noise, (CHOSEN_ON_GRID,)
        statement = None
    uncovered: tuple[Statement, ...] = ()
    if rounding is not None and np.any(rounding):
        uncovered = (ROUNDED_ELSEWHERE,)
    if statement is None:
        return noise, (FLOATING_POINT, *uncovered)
    covered = _to_cover(noise, certificate, release, rounding, any_records)
    if not draws_exactly(noise, rng):
        return noise, (FLOATING_POINT, *uncovered)
    # of updates, what the noise is added to is made of the table and of the iterate
    if getattr(release, "noise_position", None) == "update":
        return noise, (FLOATING_POINT,)
    if noise_grid(noise, release.n_records, integer=release.is_integer) is None:
        return noise, (FLOATING_POINT, *uncovered)
    # integers are on the grid already
    if release.is_integer:
        return noise, (statement,)
    # The engine makes the room in a run, as it knows how many parameters there are.
    trained = _is_trained(release)
    larger = None
    if by_sensitivity and certificate.sensitivity:
        # pairs of records that nearly agree have so much room, and others any
        most = getattr(certificate.curve, "most_room", MOST_ROOM)
        larger = with_room_for_grid(noise, covered, most)
    if larger is None:
        return noise, (statement, NO_ROOM, *uncovered)
    if not trained:
        noise = larger
    # what an engine rounded is not in the room that a run makes
    return noise, (statement, ROUNDED_SUMS, *(uncovered if trained else ()))


def without_room(
    noise: Noise,
    certificate: "Certificate",
    release: "Release",
    rounding: Floats | None = None,
    any_records: bool = False,
) -> Noise:
    """Return what is left of a noise beside the room that its grid takes.

    The rest covers the rounding of the exact value, and hides no secret.

    Parameters
    ----------
    noise : Noise
        That is drawn.
    certificate : Certificate
        Certificate of the sensitivity.
    release, rounding, any_records : optional
        As for :func:`on_grid`.
    """
    covered = _to_cover(noise, certificate, release, rounding, any_records)
    return noise.with_scale(np.asarray(noise.scale) / (1 + _share(noise, covered)))


def _is_trained(release: Any) -> bool:
    """Whether there are many sums, in which the engine makes the room."""
    return bool(vars(type(release)).get("last_digits") == SUMS_ON_GRID.code)


def _to_cover(
    noise: Noise,
    certificate: "Certificate",
    release: Any,
    rounding: Floats | None,
    any_records: bool,
) -> Covered:
    """Return what the room for a grid is made for.

    Parameters
    ----------
    certificate : Certificate
        Certificate of the sensitivity.
    release, rounding, any_records : optional
        As for :func:`on_grid`.
    """
    trained = _is_trained(release)
    return Covered(
        release.n_records,
        certificate.sensitivity,
        noise.norm if certificate.norm is None else certificate.norm,
        _MANY_PARAMETERS if trained else release.dim,
        1.0 if release.units is None else np.asarray(release.units),
        0.0
        if rounding is None or trained
        else _rounded_share(release, certificate, noise.norm, rounding, any_records),
    )


def _rounded_share(
    release: Any,
    certificate: "Certificate",
    noise_norm: float,
    rounding: Floats,
    any_records: bool,
) -> float:
    """How much further rounded records move a sum, as a share of its sensitivity."""
    norm = noise_norm if certificate.norm is None else certificate.norm
    # a record that is replaced was rounded once before and once after
    moved: float = 2 * abs(release.factor)
    moved *= max(float(np.linalg.norm(rounding, p)) for p in (norm, noise_norm))
    if not any_records:
        # it is not known how many records are moved a little: as if all were
        n_records: int = release.n_records
        return moved * n_records / float(certificate.sensitivity or 0.0)
    # of each record that changes the sensitivity has a share as large as this
    least: float = min(
        release.sensitivity.value(relation, norm, release.dim)
        for relation in ("add_remove", "replace")
    )
    return moved / least if least > 0 else float("inf")
