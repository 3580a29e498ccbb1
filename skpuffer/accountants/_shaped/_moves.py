"""Moves of the output between the secrets of each pair, as far as a fact tells them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch

import numpy as np

from skpuffer.distributions import Discrete, Distribution, Gaussian, PointMass, Support
from skpuffer.distributions._distributions import cached_distribution_distance
from skpuffer.distributions._lattice_sum import on_one_lattice
from skpuffer.exceptions import type_error
from skpuffer.kernel.curves import GaussianCurve
from skpuffer.kernel.facts import Fact
from skpuffer.kernel.numbers import Floats
from skpuffer.kernel.plain import Plain
from skpuffer.noise import Noise, Shift
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import CoupledSamples, OutputDistributions
from skpuffer.transport import near_plan_in_image, transport_plan, wasserstein_distance

#: Linear map of moves, one a row, into coordinates whose l2 norm is their length.
Image = Callable[[Floats], Floats]

#: Pairs of atoms beyond which two distributions are known by their distance alone.
_CELLS = 1_000_000

#: Pairs of atoms beyond which any coupling of the shortest longest move will do.
_REFINED = 250_000

#: Power of the length that a plan pays, so that long moves are few.
_POWER = 8


@dataclass(frozen=True, eq=False)
class FixedMoves:
    """Moves of a pair whose coupling is given.

    Parameters
    ----------
    steps : ndarray of shape (n_moves, dim)
        In the units of the release.
    masses : ndarray of shape (n_moves,) or None
        None where any of them may have all the mass.
    """

    steps: Floats = field(repr=False)
    masses: Floats | None = field(default=None, repr=False)

    def kept(self, image: Image, event: float, few: bool = True) -> Floats:
        """Return the moves, except the longest ones of a mass of `event`."""
        if self.masses is None or event == 0:
            return self.steps
        order = np.argsort(np.linalg.norm(image(self.steps), axis=1))
        # rounded so that no more than the event is left out
        within = np.cumsum(self.masses[order]) < 1 - event + 1e-12
        last = min(int(within.sum()) + 1, len(order))
        return self.steps[order[:last]]


@dataclass(frozen=True, eq=False)
class OpenPair:
    """Two discrete distributions whose best coupling depends on the shape.

    Parameters
    ----------
    u, v : ndarray of shape (n, dim) and (m, dim)
        Atoms, as they are: far from zero, rounded multiples of them would differ by
        something else.
    factor : ndarray of shape (dim,)
        Factor that makes a difference of two atoms a move.
    u_weights, v_weights : ndarray of shape (n,) and (m,), or None
    """

    u: Floats = field(repr=False)
    v: Floats = field(repr=False)
    factor: Floats = field(repr=False)
    u_weights: Floats | None = field(default=None, repr=False)
    v_weights: Floats | None = field(default=None, repr=False)

    def kept(self, image: Image, event: float, few: bool = True) -> Floats:
        """Return the moves of a coupling whose longest one is shortest in an image.

        A mass `event` may be left out; otherwise `few` asks for few long moves.
        """
        sides = self.u, self.v
        weights = self.u_weights, self.v_weights

        def seen(displacements: Floats) -> Floats:
            return image(self.factor * displacements)

        plan = near_plan_in_image(*sides, seen, *weights, event)
        found = self.factor * plan.displacements
        if event or not few or len(self.u) * len(self.v) > _REFINED:
            return found
        longest = float(np.linalg.norm(image(found), axis=1).max())
        if longest == 0 or not math.isfinite(longest):
            return found

        def cost(displacements: Floats) -> Floats:
            flat = displacements.reshape(-1, displacements.shape[-1])
            lengths = np.linalg.norm(seen(flat), axis=1) / longest
            # one pair too long costs more than all others together
            paid = np.where(lengths <= 1 + 1e-12, lengths**_POWER, 4.0 * flat.size)
            return np.asarray(paid.reshape(displacements.shape[:-1]))

        # any coupling is valid; this one only has better moves to shape noise by
        better = transport_plan(*sides, *weights, cost=cost)
        refined = self.factor * better.displacements
        if np.linalg.norm(image(refined), axis=1).max() > longest * (1 + 1e-12):
            return found
        return refined

    def shortest(self) -> Floats:
        """Return the moves of a coupling that is optimal for W_2."""
        # near one atom, so that units take no digits
        u, v = (self.factor * (atoms - self.u[0]) for atoms in (self.u, self.v))
        return transport_plan(u, v, self.u_weights, self.v_weights).displacements


@dataclass(frozen=True, eq=False)
class OutputMoves:
    """Moves of the output between the secrets of all pairs, under all priors.

    Parameters
    ----------
    means : ndarray of shape (k, dim)
        Differences of means, which no coupling can avoid.
    farthest : ndarray of shape (dim,)
        Largest distance of the marginals of each coordinate: no coupling moves less.
    least : bool
        Whether the moves are all there is to the distributions: point masses, to which
        other records add nothing of their own.
    complete : bool
        Whether each pair is told by moves. If not, a ball around all of them is all
        that is known.
    """

    pairs: tuple[FixedMoves | OpenPair, ...] = field(repr=False)
    dim: int
    means: Floats = field(repr=False)
    farthest: Floats = field(repr=False)
    least: bool = False
    complete: bool = True
    n_secrets: int = 2

    @property
    def is_open(self) -> bool:
        """Whether the best couplings depend on the shape."""
        return any(isinstance(pair, OpenPair) for pair in self.pairs)


@singledispatch
def moves_of(fact: Fact, release: QueryRelease) -> OutputMoves:
    """Return the moves of the output that a fact tells."""
    raise type_error("shaped.moves_unknown", fact_type=type(fact).__name__)


@moves_of.register
def _(fact: CoupledSamples, release: QueryRelease) -> OutputMoves:
    steps = [(u - v) / release.unit_array for *_, u, v in fact.draws]
    pairs = [FixedMoves(each, np.full(len(each), 1 / len(each))) for each in steps]
    means = np.array([each.mean(axis=0) for each in steps])
    return OutputMoves(
        _merged(pairs),
        means.shape[1],
        means,
        np.abs(means).max(axis=0),
        n_secrets=len(fact.secrets),
    )


@moves_of.register
def _(fact: OutputDistributions, release: QueryRelease) -> OutputMoves:
    laws = [(u, v) for *_, u, v in fact.pairs_of_distributions()]
    dim = laws[0][0].dim
    factor = np.broadcast_to(fact.scale / release.unit_array, (dim,))
    made = [_pair(u, v, factor) for u, v in laws]
    told = [each for each in made if each is not None]
    steps = [each.steps for each in told if isinstance(each, FixedMoves)]
    steps = [each for each in steps if len(each) == 1]
    means = [_mean_move(u, v, factor) for u, v in laws]
    return OutputMoves(
        _merged(told),
        dim,
        np.concatenate([np.zeros((1, dim)), *(m for m in means if m is not None)]),
        np.max([_marginals(u, v, factor) for u, v in laws], axis=0),
        # what other records add may be noise of its own
        least=not fact.common_part_removed
        and all(isinstance(one, PointMass) for pair in laws for one in pair),
        complete=len(told) == len(made),
        n_secrets=len(fact.secrets),
    )


def _pair(
    u: Distribution, v: Distribution, factor: Floats
) -> FixedMoves | OpenPair | None:
    """Moves between two distributions; None if only their distance is known."""
    if isinstance(u, Gaussian) and isinstance(v, Gaussian):
        # of one covariance the best coupling moves the mean and nothing else, whatever
        # the norm; of two there is none
        distance = cached_distribution_distance(u, v, 2.0, None, math.inf)
        if math.isinf(distance):
            return None
        return FixedMoves((factor * (u.mean - v.mean))[None, :])
    if u.dim == 1 or on_one_lattice([(u, v)]):
        # on a line the longest move is one and the same in every norm
        distance = cached_distribution_distance(u, v, 2.0, None, math.inf)
        if math.isinf(distance):
            return None
        direction = getattr(u, "direction", np.ones(1))
        unit = direction / np.linalg.norm(direction)
        return FixedMoves((factor * distance * unit)[None, :])
    if not (isinstance(u, Discrete) and isinstance(v, Discrete)):
        return None
    if len(u.points) * len(v.points) > _CELLS:
        return None
    x, y = u.points, v.points
    if isinstance(u, Support) or isinstance(v, Support):
        # of any distributions on them, so of any coupling
        return FixedMoves(factor * _differences(x, y))
    if len(x) == 1 or len(y) == 1:
        # there is but one coupling with a point mass
        return FixedMoves(
            factor * _differences(x, y),
            np.multiply.outer(u.masses, v.masses).ravel(),
        )
    return OpenPair(x, y, factor, u.weights, v.weights)


def _differences(x: Floats, y: Floats) -> Floats:
    return np.asarray((x[:, None] - y).reshape(-1, x.shape[1]))


def _mean_move(u: Distribution, v: Distribution, factor: Floats) -> Floats | None:
    """Difference of means; None where the masses, or their means, are not known."""
    if isinstance(u, Support) or isinstance(v, Support):
        return None
    if isinstance(u, Discrete | Gaussian) and isinstance(v, Discrete | Gaussian):
        return np.asarray(factor * (u.mean - v.mean))[None, :]
    return None


def _marginals(u: Distribution, v: Distribution, factor: Floats) -> Floats:
    """W_inf of each coordinate's marginals, or less."""
    if isinstance(u, Support) or isinstance(v, Support):
        return np.zeros(len(factor))
    if isinstance(u, Discrete) and isinstance(v, Discrete):
        distances = [
            wasserstein_distance(u.points[:, j], v.points[:, j], u.weights, v.weights)
            for j in range(u.dim)
        ]
        return np.abs(factor) * distances
    move = _mean_move(u, v, factor)
    return np.zeros(len(factor)) if move is None else np.abs(move[0])


def _merged(
    pairs: Sequence[FixedMoves | OpenPair],
) -> tuple[FixedMoves | OpenPair, ...]:
    """The same pairs, with those of one move each as one."""
    alone = [p.steps for p in pairs if isinstance(p, FixedMoves) and p.masses is None]
    # a move of all the mass cannot be left out
    sure = [p.steps for p in pairs if isinstance(p, FixedMoves) and _is_sure(p)]
    rest = [
        p
        for p in pairs
        if isinstance(p, OpenPair) or not (_is_sure(p) or p.masses is None)
    ]
    whole = alone + sure
    if not whole:
        return tuple(rest)
    # one orientation of each: a move and its reverse cost the same
    steps = np.concatenate(whole)
    first = (steps != 0).argmax(axis=1)
    signs = np.sign(steps[np.arange(len(steps)), first])
    steps = np.unique(steps * np.where(signs < 0, -1.0, 1.0)[:, None], axis=0)
    return (FixedMoves(steps), *rest)


def _is_sure(pair: FixedMoves) -> bool:
    return pair.masses is not None and len(pair.masses) == 1


# -- privacy curve of Gaussian noise against moves of known length in its own norm -----


@dataclass(frozen=True)
class EllipsoidCurve(Plain, kind="ellipsoid"):
    """Privacy curve of Gaussian noise where all moves lie in an ellipsoid of its shape.

    Parameters
    ----------
    noise : Noise
        Gaussian, of any covariance.
    shift : Shift
        An l2 ball that no move leaves, in the units of the release.
    mu : float
        Largest length of a move in standard deviations of the noise: with it the
        mechanism is mu-Gaussian private.
    room : float
        How far each move may be off besides, with `mu` still as it is.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Theorem 3.3, in the norm of the
    noise.
    """

    noise: Noise
    shift: Shift
    mu: float
    room: float = 0.0

    @property
    def gaussian_mu(self) -> float:
        """The mu of mu-Gaussian privacy."""
        return self.mu

    def renyi(self, alpha: float) -> float:
        """Return the Rényi cost in nats."""
        return self._curve.renyi(alpha)

    def delta(self, epsilon: float) -> float:
        """Return the hockey-stick divergence."""
        return self._curve.delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon >= 0 that goes with delta, rounded up."""
        # no event is left out: the loss of Gaussian noise has no bound
        if delta == 0:
            return 0.0 if self.mu == 0 else math.inf
        return self._curve.epsilon(delta)

    def widened(self, distance: float) -> "EllipsoidCurve":
        """Return the curve with all moves off by at most a distance, in units."""
        shift = replace(self.shift, radius=self.shift.radius + distance)
        if distance <= self.room:
            return replace(self, shift=shift, room=self.room - distance)
        # triangle inequality in the norm of the noise, for what the room does not hold
        beyond = replace(self.shift, radius=distance - self.room)
        mu = self.mu + self.noise.curve(beyond).magnitude
        return replace(self, shift=shift, mu=mu, room=0.0)

    @property
    def _curve(self) -> GaussianCurve:
        return GaussianCurve(self.mu)
