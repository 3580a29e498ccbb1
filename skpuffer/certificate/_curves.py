"""Costs of a certificate's curve, recomputed kind by kind from what it states."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import integrate, special

from ._noise import (
    Floats,
    GaussianShift,
    NoiseShift,
    NotRecomputableError,
    noise_shift,
    number,
    smallest_epsilon,
)
from ._pairs import left_to_hide, pairs_of
from ._quilts import worst_quilt
from ._structure import (
    Steps,
    composed_delta,
    composed_epsilon,
    log_slope,
    most_probable,
)

#: Part of a number by which two paths may differ: where each is exact, where cells or
#: a grid are rounded up, and of a delta read off a grid.
EXACT, BY_CELLS, BY_GRID, BY_READING = 1e-6, 5e-4, 1e-3, 5e-3

#: Epsilons beyond which no probability is bounded.
_FAR = 50.0

#: Most moves of a coupling, each of which is asked for by itself.
_MOST_MOVES = 10_000

#: Most combinations of pairs of which it is not known which one dominates.
_MOST_COMBINED = 64


class Recomputed(ABC):
    """A curve, recomputed; answers raise NotRecomputableError where it cannot be."""

    #: Part of an answer by which the stated one may differ.
    tolerance = EXACT

    def __init__(self, curve: dict[str, Any]) -> None:
        self.curve = curve

    @property
    def mu(self) -> float | None:
        """Distance of two unit Gaussians whose curve it is, if it is one's."""
        return None

    @abstractmethod
    def renyi(self, alpha: float) -> float:
        """Rényi cost at an order, in nats."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """Delta at an epsilon."""

    def epsilon(self, delta: float, near: float) -> float:
        """Smallest epsilon at a delta, of which something near may be known."""
        if delta <= 0:
            return self.renyi(math.inf)
        return smallest_epsilon(self.delta, delta)


class _OfNoise(Recomputed):
    """Noise against a shift, or Gaussians at a distance."""

    @property
    def noise(self) -> NoiseShift:
        if self.curve["kind"] == "gaussian":
            return GaussianShift(number(self.curve["mu"]))
        return noise_shift(self.curve["noise"], self.curve["shift"])

    @property
    def mu(self) -> float | None:
        return self.noise.mu

    def renyi(self, alpha: float) -> float:
        return self.noise.renyi(alpha)

    def delta(self, epsilon: float) -> float:
        return float(self.noise.delta(np.array([epsilon]))[0])


class _Ellipsoid(_OfNoise):
    """Of which the largest move in standard deviations is stated."""

    @property
    def noise(self) -> NoiseShift:
        return GaussianShift(number(self.curve["mu"]))


class _Table(Recomputed):
    """Rényi costs at some orders; what they convert to is searched for to a part."""

    tolerance = BY_GRID

    def renyi(self, alpha: float) -> float:
        # the divergence does not fall as its order grows
        return min((c for a, c in self._costs() if a >= alpha), default=math.inf)

    def delta(self, epsilon: float) -> float:
        found = [1.0]
        for a, cost in self._costs():
            if math.isinf(a):
                found.append(0.0 if cost <= epsilon else 1.0)
            else:
                # Canonne, Kamath and Steinke (2020), Proposition 12
                log = (a - 1) * (cost - epsilon) + a * math.log1p(-1 / a)
                found.append(math.exp(min(0.0, log - math.log(a - 1))))
        return min(found)

    def _costs(self) -> Iterator[tuple[float, float]]:
        orders, costs = self.curve["orders"], self.curve["epsilons"]
        if len(orders) != len(costs):
            raise NotRecomputableError("orders and costs are not as many")
        return zip(map(number, orders), map(number, costs), strict=True)


class _Composed(Recomputed):
    """Steps whose losses add up."""

    tolerance = BY_GRID

    def renyi(self, alpha: float) -> float:
        if any(pair["kind"] != "symmetric_pair" for pair, _ in self.curve["steps"]):
            raise NotRecomputableError("a step's Rényi cost is not read off here")
        return math.fsum(
            count * recomputed(pair["curve"]).renyi(alpha)
            for pair, count in self.curve["steps"]
        )

    def delta(self, epsilon: float) -> float:
        return max(composed_delta(steps, epsilon) for steps in self._all_steps)

    def epsilon(self, delta: float, near: float) -> float:
        if delta <= 0:
            raise NotRecomputableError("no largest loss of a composition is looked for")
        return max(composed_epsilon(steps, delta, near) for steps in self._all_steps)

    # made once: what is composed of them is kept by them
    @cached_property
    def _all_steps(self) -> list[Steps]:
        return list(alternatives(self.curve["steps"]))


def alternatives(events: list[Any]) -> Iterator[Steps]:
    """Yield steps with one of the pairs of each event, in every combination."""
    pairs = [pairs_of(pair) for pair, _ in events]
    if math.prod(map(len, pairs)) > _MOST_COMBINED:
        raise NotRecomputableError("too many pairs may dominate to try them all")
    counts = [int(count) for _, count in events]
    for chosen in itertools.product(*pairs):
        yield list(zip(chosen, counts, strict=True))


class _Worst(Recomputed):
    """The largest of several."""

    @property
    def parts(self) -> list[Recomputed]:
        return [recomputed(curve) for curve in self.curve["curves"]]

    @property
    def tolerance(self) -> float:  # type: ignore[override] # read, never assigned
        return max(part.tolerance for part in self.parts)

    def renyi(self, alpha: float) -> float:
        return max(part.renyi(alpha) for part in self.parts)

    def delta(self, epsilon: float) -> float:
        return max(part.delta(epsilon) for part in self.parts)

    def epsilon(self, delta: float, near: float) -> float:
        return max(part.epsilon(delta, near) for part in self.parts)


class _Mean(_Worst):
    """The mean over how many records differ."""

    def renyi(self, alpha: float) -> float:
        if self.curve["beyond"] > 0:
            return math.inf
        costs = [(alpha - 1) * part.renyi(alpha) for part in self.parts]
        mean = special.logsumexp(costs, b=self.curve["weights"])
        return float(mean) / (alpha - 1)

    def delta(self, epsilon: float) -> float:
        weights = self.curve["weights"]
        if len(weights) != len(self.curve["curves"]):
            raise NotRecomputableError("curves and weights are not as many")
        mean = sum(
            w * part.delta(epsilon) for w, part in zip(weights, self.parts, strict=True)
        )
        return float(min(1.0, self.curve["beyond"] + mean))

    def epsilon(self, delta: float, near: float) -> float:
        return Recomputed.epsilon(self, delta, near)


class _Repeated(Recomputed):
    """A mechanism that is run several times."""

    def renyi(self, alpha: float) -> float:
        return float(self.curve["times"] * recomputed(self.curve["curve"]).renyi(alpha))

    def delta(self, epsilon: float) -> float:
        mu = recomputed(self.curve["curve"]).mu
        if mu is None:
            raise NotRecomputableError("only Gaussian noise is added up so")
        together = GaussianShift(mu * math.sqrt(self.curve["times"]))
        return float(together.delta(np.array([epsilon]))[0])


class _BestRun(Recomputed):
    """The best of a random number of runs (Papernot and Steinke 2022, Lemma 7)."""

    # one run is read at more epsilons and orders here, which proves a little more
    tolerance = BY_READING

    @cached_property
    def one(self) -> Recomputed:
        return recomputed(self.curve["curve"])

    @cached_property
    def slopes(self) -> tuple[Floats, Floats]:
        """Log slopes of the generating function on two neighbouring tables."""
        mean = number(self.curve["runs"]["mean"])
        far = min(self.one.epsilon(1e-6 / mean, 1.0), _FAR)
        slope = log_slope(self.curve["runs"])
        here, there = most_probable(self.one.delta, far, self.one.renyi(math.inf))
        return slope(here), slope(there)

    def renyi(self, alpha: float) -> float:
        here, there = self.slopes
        if math.isinf(alpha):
            return self.one.renyi(alpha) + max(0.0, float(np.max(here - there)))
        more = float(np.max(alpha * here - (alpha - 1) * there)) / (alpha - 1)
        return self.one.renyi(alpha) + max(0.0, more)

    @cached_property
    def _costs(self) -> tuple[Floats, Floats]:
        orders = 1 + np.geomspace(1e-2, 1e4, 400)
        return orders, np.array([self.renyi(float(a)) for a in orders])

    def delta(self, epsilon: float) -> float:
        orders, costs = self._costs
        logs = (orders - 1) * (costs - epsilon) + orders * np.log1p(-1 / orders)
        by_order = math.exp(min(0.0, float(np.min(logs - np.log(orders - 1)))))
        here, there = self.slopes
        rest = epsilon - max(0.0, float(np.max(here - there)))
        if rest < 0:
            return by_order
        return min(by_order, number(self.curve["runs"]["mean"]) * self.one.delta(rest))


class _UnderBelief(Recomputed):
    """A curve for whoever believes in an overlap (Balle et al. 2018, Theorem 2)."""

    @cached_property
    def plain(self) -> Recomputed:
        inner = self.curve["curve"]
        # each would be asked for each of the ones above it
        if "overlap" in inner["kind"]:
            raise NotRecomputableError("a belief beside another is not amplified twice")
        return recomputed(inner)

    @property
    def tolerance(self) -> float:  # type: ignore[override] # read, never assigned
        return max(1e-5, self.plain.tolerance)

    def renyi(self, alpha: float) -> float:
        return self.plain.renyi(alpha)

    def delta(self, epsilon: float) -> float:
        etas = [eta for eta in left_to_hide(self.curve["overlap"], epsilon) if eta > 0]
        grown = [math.log1p(math.expm1(epsilon) / eta) for eta in etas]
        found = [eta * self.plain.delta(e) for eta, e in zip(etas, grown, strict=True)]
        return min(max(found, default=0.0), self.plain.delta(epsilon))


class _PairByPair(_UnderBelief):
    """The same, where pairs of values are told apart: known as a bound only."""

    def delta(self, epsilon: float) -> float:
        raise NotRecomputableError(
            "how pairs of a record's values are told apart is found by a search"
        )

    def least_known(self) -> Recomputed:
        """Without telling pairs apart, which costs no less."""
        return _UnderBelief(self.curve)


class _Coupling(Recomputed):
    """Noise against the moves of a coupling: means of f-divergences."""

    @property
    def tolerance(self) -> float:  # type: ignore[override] # read, never assigned
        kinds = {moves["kind"] for moves in self.curve["couplings"]}
        return BY_CELLS if "gaussian_moves" in kinds else EXACT

    def renyi(self, alpha: float) -> float:
        if math.isinf(alpha):
            return self._ball().renyi(alpha)
        logs = [self._log_moment(moves, alpha) for moves in self.curve["couplings"]]
        worst = max(0.0, max(logs) - math.log1p(-self.curve["event_delta"]))
        found = (worst + alpha * self._slack) / (alpha - 1)
        return self._least(found, lambda ball: ball.renyi(alpha))

    def delta(self, epsilon: float) -> float:
        at = epsilon - self._slack
        means = [self._mean_delta(moves, at) for moves in self.curve["couplings"]]
        grown = (1 + self.curve["mass_error"]) / (1 - self.curve["event_delta"])
        return self._least(
            max(means) * grown, lambda ball: float(ball.delta(np.array([epsilon]))[0])
        )

    @property
    def _slack(self) -> float:
        error = self.curve["mass_error"]
        if error >= 1 or self.curve["event_delta"] >= 1:
            raise NotRecomputableError("the errors of the coupling leave nothing")
        return math.log1p(error) - math.log1p(-error)

    def _ball(self) -> NoiseShift:
        return noise_shift(self.curve["noise"], self.curve["shift"])

    def _least(self, found: float, ask: Callable[[NoiseShift], float]) -> float:
        """No more than the noise costs against all moves that there are."""
        if math.isinf(number(self.curve["shift"]["radius"])):
            return found
        return min(found, ask(self._ball()))

    def _along(self, radius: float) -> NoiseShift:
        return noise_shift(
            self.curve["noise"], self.curve["shift"] | {"radius": radius}
        )

    def _log_moment(self, moves: dict[str, Any], alpha: float) -> float:
        _few_moves(moves)
        if moves["kind"] == "gaussian_moves":
            return self._log_gaussian_moment(moves, alpha)
        if moves["steps"] is None:
            costs = [self._along(number(r)).renyi(alpha) for r in moves["radii"]]
        else:
            costs = [self._of_step(step, alpha) for step in moves["steps"]]
        masses = np.atleast_2d(_rectangle(moves["masses"]))
        if masses.shape[1] != len(costs):
            raise NotRecomputableError("moves and masses are not as many")
        sums = special.logsumexp((alpha - 1) * np.array(costs), b=masses, axis=1)
        return float(np.max(sums))

    def _of_step(self, step: list[float], alpha: float) -> float:
        """Coordinates are independent, so their costs add up."""
        noise = self.curve["noise"]
        scales = np.broadcast_to(noise["scale"], len(step)).tolist()
        if noise["family"] == "correlated_gaussian":
            root = np.linalg.cholesky(_rectangle(noise["covariance"]))
            length = np.linalg.norm(np.linalg.solve(root, np.array(step, float)))
            return GaussianShift(float(length) / min(scales)).renyi(alpha)
        one = {"norm": 1.0, "dim": 1, "structure": "vector", "weights": None}
        return math.fsum(
            noise_shift(noise | {"scale": s}, one | {"radius": abs(x)}).renyi(alpha)
            for s, x in zip(scales, step, strict=True)
        )

    def _log_gaussian_moment(self, moves: dict[str, Any], alpha: float) -> float:
        noise = self.curve["noise"]
        mean, covariance = np.array(moves["mean"]), _rectangle(moves["covariance"])
        if noise["family"] != "gaussian" or np.ndim(noise["scale"]):
            raise NotRecomputableError(
                "Gaussian moves take Gaussian noise of one scale"
            )
        # E exp(a z²) along each principal axis, with a = alpha (alpha - 1) / 2
        variances, axes = np.linalg.eigh(covariance / noise["scale"] ** 2)
        means = mean @ axes / noise["scale"]
        a = alpha * (alpha - 1) / 2
        left = 1 - 2 * a * variances
        if np.any(left <= 0):
            return math.inf
        return float(np.sum(a * means**2 / left - np.log(left) / 2))

    def _mean_delta(self, moves: dict[str, Any], epsilon: float) -> float:
        _few_moves(moves)
        at = np.array([epsilon])
        if moves["kind"] == "gaussian_moves":
            if len(moves["mean"]) > 1:
                raise NotRecomputableError("Gaussian moves are on one coordinate here")
            center, spread = abs(moves["mean"][0]), math.sqrt(moves["covariance"][0][0])
            found, _ = integrate.quad(
                lambda z: (
                    math.exp(-z * z / 2)
                    / math.sqrt(2 * math.pi)
                    * float(self._along(abs(center + spread * z)).delta(at)[0])
                ),
                -12,
                12,
                points=[-center / spread],
                limit=200,
            )
            return float(found)
        deltas = [float(self._along(number(r)).delta(at)[0]) for r in moves["radii"]]
        masses = np.atleast_2d(_rectangle(moves["masses"]))
        if masses.shape[1] != len(deltas):
            raise NotRecomputableError("moves and masses are not as many")
        return float(np.max(masses @ deltas))


def _few_moves(moves: dict[str, Any]) -> None:
    if len(moves.get("radii", ())) > _MOST_MOVES:
        raise NotRecomputableError(f"more than {_MOST_MOVES} moves are not tried")


class _Quilts(Recomputed):
    """Noise under Markov quilts, each of which is tried."""

    def renyi(self, alpha: float) -> float:
        return worst_quilt(self.curve, alpha)[0]

    def delta(self, epsilon: float) -> float:
        raise NotRecomputableError(
            "a delta of quilts is the least over orders and couplings that are searched"
        )


class _Slices(Recomputed):
    """Costs along slices, taken together; of Gaussian noise at every order."""

    def delta(self, epsilon: float) -> float:
        raise NotRecomputableError("a delta of slices is not promised")

    def epsilon(self, delta: float, near: float) -> float:
        def at(log_order: float) -> float:
            a = 1 + math.exp(log_order)
            term = math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1)
            return self.renyi(a) + max(0.0, term)

        # by sections of a range that is narrowed around the least
        low, high = math.log(1e-3), math.log(1e6)
        for _ in range(12):
            grid = np.linspace(low, high, 41)
            best = int(np.argmin([at(x) for x in grid]))
            low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, 40)])
        return min(at(low), at(high), at((low + high) / 2))


class _MeanSquare(_Slices):
    def renyi(self, alpha: float) -> float:
        square = number(self.curve["square"])
        return alpha * square / 2 if square else 0.0


class _JointSlices(_Slices):
    def renyi(self, alpha: float) -> float:
        return float(np.max(self._of_pairs(alpha)))

    def _of_pairs(self, alpha: float) -> Floats:
        squares, weights = _rectangle(self.curve["squares"]), self.curve["weights"]
        if squares.shape[1] != len(weights):
            raise NotRecomputableError("slices and weights are not as many")
        a = alpha * (alpha - 1) / 2
        found: Floats = special.logsumexp(a * squares, b=weights, axis=1) / (alpha - 1)
        return found


class _SampledSlices(_JointSlices):
    def _of_pairs(self, alpha: float) -> Floats:
        most = np.array([number(m) for m in self.curve["most"]])
        a = alpha * (alpha - 1) / 2
        # by Hoeffding's inequality for what lies between 1 and exp(a most)
        sampled = (alpha - 1) * super()._of_pairs(alpha)
        with np.errstate(divide="ignore", over="ignore"):
            room = np.log(self.curve["shortfall"]) + np.log(np.expm1(a * most))
            room = np.where(
                a * most > 500, np.log(self.curve["shortfall"]) + a * most, room
            )
        found: Floats = np.logaddexp(sampled, room) / (alpha - 1)
        return np.minimum(found, alpha * most / 2)


class _Sphere(_Slices):
    """One move along a direction that is uniform on the sphere."""

    def renyi(self, alpha: float) -> float:
        square, dim = number(self.curve["square"]), int(self.curve["dim"])
        a = alpha * (alpha - 1) / 2 * square
        if dim == 1 or square == 0:
            return a / (alpha - 1)
        # the squared cosine of the angle is Beta(1/2, (d - 1)/2); with sin(t) its root
        power = dim - 2
        heights = [
            integrate.quad(
                lambda t, f=f: (
                    math.exp(f * (math.sin(t) ** 2 - 1)) * math.cos(t) ** power
                ),
                0,
                math.pi / 2,
                epsabs=0,
                epsrel=1e-12,
                limit=500,
            )[0]
            for f in (a, 0.0)
        ]
        return (a + math.log(heights[0] / heights[1])) / (alpha - 1)


_KINDS: dict[str, type[Recomputed]] = {
    "best_run": _BestRun,
    "count_law": _Mean,
    "coupling": _Coupling,
    "ellipsoid": _Ellipsoid,
    "gaussian": _OfNoise,
    "joint_slices": _JointSlices,
    "markov_quilt": _Quilts,
    "mean_square_of_slices": _MeanSquare,
    "overlap": _UnderBelief,
    "pairwise_overlap_curve": _PairByPair,
    "privacy_loss": _Composed,
    "renyi": _Table,
    "repeated": _Repeated,
    "sampled_joint_slices": _SampledSlices,
    "shift_over_sphere": _Sphere,
    "shifted_noise": _OfNoise,
    "worst_curve": _Worst,
    "worst_overlap_curve": _Worst,
}


def recomputed(curve: dict[str, Any]) -> Recomputed:
    """Return a curve of the structure of the schema, to be asked."""
    return _KINDS[curve["kind"]](curve)


def _rectangle(rows: Any) -> Floats:
    try:
        return np.array(rows, float)
    except ValueError:
        raise NotRecomputableError(
            "the rows of a matrix are of several lengths"
        ) from None
