"""Cost of the noisy steps of a run, by the size of a near set."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np

from skpuffer.distributions._weak_cache import MEMORY
from skpuffer.exceptions import Statement, unsupported_error
from skpuffer.kernel.curves import conversion_terms
from skpuffer.kernel.noise import gaussian_delta, root_above
from skpuffer.kernel.numbers import Floats, Indices, check_order, check_probability
from skpuffer.kernel.plain import Plain, to_plain
from skpuffer.kernel.steps import Accounting, GradientSteps, steps_of
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    GaussianNoise,
    LaplaceNoise,
    Noise,
    Shift,
)
from skpuffer.privacy_loss import GaussianCurve, renyi_to_delta
from skpuffer.releases import (
    FullBatchSampling,
    GradientRelease,
    PoissonSampling,
    ShuffledEpochsSampling,
    VoteRelease,
)
from skpuffer.scenarios import Adjacency, MaxInfluence

#: MiB that a grid of privacy losses may take, as in the composition accountants.
_MAX_MEMORY = 500.0

#: Kinds of run by the name they are written with.
_RUNS = {"gradients": GradientRelease, "votes": VoteRelease}

#: Fields that no cost depends on, or, of groups, no longer does.
_LEFT_OUT = (
    "assumptions",
    "context",
    "groups",
    "name",
    "optimiser",
    "published",
    "query",
)

#: Larger groups are rounded up to the next of a grid, whose steps are by this factor:
#: each costs a composition of its own, and a larger group costs no less.
_EXACT, _COARSE = 64, 1.05


@dataclass(frozen=True)
class RunPart(Plain, kind="run_part"):
    """Cost of the noisy steps of a run by the size of a near set; no data.

    Given the quilt both worlds are mixtures of tables, coupled to differ in the near
    records only, by one coupling for the whole run. So it costs what a group of as many
    replaced records does, also where batches are random.

    Parameters
    ----------
    noise : Noise
        Noise of each step.
    release : GradientRelease or VoteRelease
        Without what no cost depends on.
    least : tuple of float or None
        For votes, least sizes of near sets that meet 1, 2, ... teachers.
    smallest, largest : float
        Bounds of the near sets' sizes.
    """

    noise: Noise
    release: GradientRelease | VoteRelease
    least: tuple[float, ...] | None
    smallest: float
    largest: float

    @classmethod
    def of(
        cls, noise: Noise, fact: MaxInfluence, release: GradientRelease | VoteRelease
    ) -> Self:
        """Return the part of a run under quilts."""
        if fact.of_output:
            raise unsupported_error("quilt.moves_with_run", name=release.name)
        check_run(release, noise)
        largest = max(quilts.largest for quilts in fact.quilts)
        least = None
        if isinstance(release, VoteRelease):
            # the near records of a chain are consecutive, so few teachers hold them
            sizes = np.arange(1, int(largest) + 1)
            met = release.teachers_met(sizes, fact.sequences)
            least = tuple(sizes[np.diff(met, prepend=0) > 0].astype(float).tolist())
        part = cls(
            noise=noise,
            release=_bare(release),
            least=least,
            smallest=min(quilts.smallest for quilts in fact.quilts),
            largest=largest,
        )
        # a noise that no bound is known for is refused here
        part.accounting(1)
        part.accounting(min(2, int(largest)))
        return part

    def counts(self, sizes: Any) -> Indices:
        """Numbers of records, or of teachers, that near sets of these sizes change."""
        counts: Indices = np.ceil(np.asarray(sizes)).astype(np.int64)
        if self.least is not None:
            counts = np.searchsorted(np.array(self.least), counts, side="right")
        return counts

    @cached_property
    def _known(self) -> dict[int, Accounting]:
        return {}

    def accounting(self, count: int) -> Accounting:
        """Composition of all steps, for a group of so many records or teachers."""
        if count not in self._known:
            steps = steps_of(self.release, Adjacency.arbitrary(count, ()))
            self._known[count] = steps.under(self.noise, _MAX_MEMORY)
        return self._known[count]

    def _each(
        self,
        ask: Callable[[Any], float],
        counts: Indices,
        ceiling: float = math.inf,
    ) -> Floats:
        """Cost of each count, asked of the curve of a group of as many."""
        steps = np.log(np.maximum(counts / _EXACT, 1.0)) / math.log(_COARSE)
        coarse = np.ceil(_EXACT * _COARSE ** np.ceil(steps)).astype(np.int64)
        coarse = np.where(counts <= _EXACT, counts, np.maximum(coarse, counts))
        most = int(self.counts(self.largest))
        distinct, where = np.unique(np.minimum(coarse, most), return_inverse=True)
        found = np.full(len(distinct), math.inf)
        for at, count in enumerate(distinct):
            found[at] = ask(self.accounting(int(count)).curve)
            # larger groups cost no less
            if found[at] >= ceiling:
                break
        return found[where].reshape(counts.shape)

    @cached_property
    def _mu(self) -> float | None:
        """Gaussian mu of a group of one, where those of others are multiples of it."""
        most = int(self.counts(self.largest))
        one, all_near = self.accounting(1).curve, self.accounting(most).curve
        if not isinstance(one, GaussianCurve) or not isinstance(
            all_near, GaussianCurve
        ):
            return None
        same = math.isclose(all_near.mu, most * one.mu, rel_tol=1e-9)
        return one.mu if same else None

    def renyi(self, alpha: float, sizes: Floats, ceiling: float = math.inf) -> Floats:
        """Rényi cost at order `alpha` of each size of a near set, in nats.

        Those from `ceiling` on may be given as infinite.
        """
        counts = self.counts(sizes)
        if self._mu is not None:
            cost: Floats = alpha * (self._mu * counts) ** 2 / 2
            return cost
        return self._each(lambda curve: float(curve.renyi(alpha)), counts, ceiling)

    def delta(self, epsilon: float, sizes: Floats) -> Floats:
        """Delta at `epsilon` of each size of a near set."""
        counts = self.counts(sizes)
        if self._mu is not None:
            return gaussian_delta(float(epsilon), counts * np.float64(self._mu))
        return self._each(lambda curve: float(curve.delta(epsilon)), counts)

    def radius(self, size: float) -> float:
        """Sensitivity of one step to so many records."""
        return float(self.accounting(int(self.counts(size))).shift.radius)

    @property
    def has_trade_off(self) -> bool:
        """Whether :meth:`delta` is to be asked: composed trade-offs take seconds."""
        return not is_drawn(self.release)

    @property
    def assumptions(self) -> tuple[Statement, ...]:
        """Assumptions of the run, in sentences."""
        return self.accounting(1).assumptions

    def evidence(self, size: float, renyi: bool) -> tuple[Statement, ...]:
        """Return what is not proved of the noise, its Rényi costs or its trade-off."""
        found = self.accounting(int(self.counts(size)))
        return found.evidence[0 if renyi else 1]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        name = next(name for name, kind in _RUNS.items() if kind is type(self.release))
        told = {
            f.name: getattr(self.release, f.name)
            for f in fields(self.release)
            if f.name not in _LEFT_OUT
        }
        if "sampling" in told:
            told["sampling"] = str(told["sampling"])
        return {
            "kind": self.kind,
            "noise": to_plain(self.noise),
            "run": name,
            "release": to_plain(told),
            "least": to_plain(self.least),
            "smallest": to_plain(self.smallest),
            "largest": to_plain(self.largest),
        }

    @classmethod
    def read_back(cls, values: dict[str, Any]) -> Self:
        """Make one of the fields it was written with, read back each."""
        release = _RUNS[values.pop("run")](**values.pop("release"))
        return cls(release=release, **values)


def check_run(release: GradientRelease | VoteRelease, noise: Noise) -> None:
    """Refuse a run of which groups have no known cost."""
    # near a record there is another one nearly always
    steps = steps_of(release, Adjacency.arbitrary(min(2, release.n_records), ()))
    # A search over quilts asks for groups of all sizes at every scale of the noise. Of
    # these alone it takes milliseconds each, and seconds of others.
    if is_drawn(release):
        scheme: Any = getattr(release, "sampling", None)
        if type(scheme) is not PoissonSampling or type(noise) is not GaussianNoise:
            raise unsupported_error(
                "quilt.near_sets_under_sampling",
                scheme=str(scheme),
                family=noise.family,
            )
    elif isinstance(steps, GradientSteps):
        # refused in a norm that bounds none of the noise
        steps.dominated(noise)


def is_drawn(release: Any) -> bool:
    """Whether the batches of a run are drawn by chance, which is accounted for."""
    plain = (FullBatchSampling, ShuffledEpochsSampling)
    drawn = isinstance(release, GradientRelease)
    return drawn and type(release.sampling) not in plain


def _bare(release: Any) -> Any:
    """Return a run without what no cost depends on."""
    left_out: dict[str, Any] = {"context": None, "assumptions": ()}
    if isinstance(release, VoteRelease):
        return replace(release, groups=None, query=None, **left_out)
    return replace(release, optimiser=None, **left_out)


# -- privacy curve of noisy releases under Markov quilts, found order by order ---------


#: Rényi orders at which the curve is taken when it is converted. Each is a search over
#: all quilts of all records, so there are few; any set of orders gives a valid delta.
ORDERS = (1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 128, math.inf)


def orders_by_term(delta: float) -> list[tuple[float, float]]:
    """Return the orders, and what is added to their costs at delta, the least first."""
    terms = conversion_terms(np.array(ORDERS), delta).tolist()
    return sorted(zip(ORDERS, terms, strict=True), key=lambda order: order[1])


@dataclass(frozen=True)
class QuiltPart(Plain, kind="quilt_part"):
    """Cost of one noisy release by the size of a near set; no query, no data.

    Parameters
    ----------
    move : float
        Sensitivity of the output to one record, in the noise's norm.
    slack : float
        Added once to the sensitivity, however many records change.
    units : tuple of float or None
        As in the release.
    smallest, largest : float
        Bounds of the near sets' sizes.
    """

    noise: Noise
    move: float
    slack: float
    dim: int | None
    units: tuple[float, ...] | None
    smallest: float
    largest: float

    def radius(self, size: Any) -> Any:
        """Sensitivity of the output to so many records, or for an array of sizes."""
        # triangle inequality, one record after the other; the slack is a tolerance of
        # the two outputs, whatever differs between their tables
        return self.move * size + self.slack

    def shift(self, size: float) -> Shift:
        """Return the shift of so many records."""
        return Shift(
            float(self.radius(size)),
            norm=self.noise.norm,
            dim=self.dim,
            weights=self.units,
        )

    def renyi(self, alpha: float, sizes: Floats, ceiling: float = math.inf) -> Floats:
        """Rényi cost at order `alpha` of each size of a near set, in nats.

        Those from `ceiling` on may be given as infinite, but are known here at once.
        """
        return self._each(partial(self.noise.renyi, alpha), sizes)

    def delta(self, epsilon: float, sizes: Floats) -> Floats:
        """Delta at `epsilon` of each size of a near set."""
        return self._each(partial(self.noise.delta, epsilon), sizes)

    #: Whether :meth:`delta` is to be asked.
    has_trade_off: ClassVar[bool] = True

    #: Nothing but what the release itself assumes.
    assumptions: ClassVar[tuple[Statement, ...]] = ()

    def evidence(self, size: float, renyi: bool) -> tuple[Statement, ...]:
        """Return what is not proved of the noise, its Rényi costs or its trade-off."""
        return tuple(self.noise.evidence(self.shift(size), renyi=renyi))

    def _each(self, ask: Callable[[Any], Any], sizes: Floats) -> Floats:
        """Cost of the noise for each size of a near set."""
        # a search over quilts asks for thousands of sizes at once, which is fast only
        # as an array
        plain = isinstance(self.noise, (GaussianNoise, LaplaceNoise))
        plain = plain and not isinstance(self.noise, CorrelatedGaussianNoise)
        if plain and not self.noise.is_zero:
            # Their cost depends on the shift's magnitude only, so one coordinate of the
            # same magnitude stands for all, and takes an array of radii.
            # radius * per_unit is the magnitude in units of the scale; times the least
            # scale, it is the move of the coordinate whose noise is the least.
            one = Shift(1.0, norm=self.noise.norm, dim=self.dim, weights=self.units)
            per_unit = one.magnitude(self.noise.scale, self.noise.norm)
            least = float(np.min(self.noise.scale))
            return np.asarray(ask(self.radius(sizes) * per_unit * least), float)
        # other families are asked shift by shift, but chains have few distinct sizes
        distinct, where = np.unique(sizes, return_inverse=True)
        return np.array([ask(self.shift(size)) for size in distinct], float)[where]


class QuiltCurve(Plain, kind="markov_quilt"):
    """Privacy curve of noisy releases under quilts, found order by order.

    At each order every protected record takes its cheapest quilt: the influence of the
    quilt and what noise costs for the near set, by the chain rule.

    Parameters
    ----------
    parts : tuple of QuiltPart or RunPart
        One for each release.
    method : {'exact', 'approximate'}
    """

    gaussian_mu: ClassVar[None] = None

    def __init__(
        self,
        fact: MaxInfluence,
        parts: tuple[QuiltPart | RunPart, ...],
        method: str = "exact",
        max_distance: int | None = None,
    ) -> None:
        self.fact = fact
        self.parts = parts
        self.method = method
        self.max_distance = max_distance

    def _find(
        self,
        order: float | str,
        cost: Callable[[Floats], Floats],
        ceiling: float = math.inf,
    ) -> Any:
        return self.fact.worst(order, cost, self.method, self.max_distance, ceiling)

    def worst(self, alpha: float, ceiling: float = math.inf) -> Any:
        """Return the quilt that sets the Rényi cost at order `alpha`."""

        def cost(sizes: Floats) -> Floats:
            # Adaptive composition: given the quilt, the near records change by one
            # coupling whatever is released, so Rényi costs add up. The quilt's
            # influence is not part of the sum: it is paid for once (Song and Chaudhuri
            # 2017).
            total: Floats = np.sum(
                [part.renyi(alpha, sizes, ceiling) for part in self.parts], axis=0
            )
            return total

        return self._find(alpha, cost, ceiling)

    def renyi(self, alpha: float, ceiling: float = math.inf) -> float:
        """Rényi cost at order `alpha`, in nats; beyond the ceiling, no more is said."""
        return float(self.worst(check_order(alpha=alpha), ceiling).price)

    @cached_property
    def costs(self) -> tuple[float, ...]:
        """Rényi costs at `ORDERS`."""
        return tuple(self.renyi(alpha) for alpha in ORDERS)

    def by_orders(self, delta: float) -> float:
        """Epsilon at `delta` that follows from the Rényi costs."""
        best = math.inf
        # The least over the orders: one whose conversion alone costs more than the best
        # is not asked, and of the others no more than whether they cost less.
        for alpha, term in orders_by_term(delta):
            if term >= best:
                break
            best = min(best, term + self.renyi(alpha, best - term))
        return max(0.0, best)

    def variation(self, epsilon: float, ceiling: float = 1.0) -> float:
        """Delta at `epsilon` with quilts coupled to be equal, whatever the secret.

        They are, except for the total variation between their distributions given the
        secrets, which is a part of delta. One for several releases, and for runs
        without a trade-off.
        """
        # Trade-offs of several releases do not add up at one epsilon; the way by Rényi
        # orders accounts for them.
        if len(self.parts) > 1:
            return 1.0
        (part,) = self.parts
        if not part.has_trade_off:
            return 1.0

        def cost(sizes: Floats) -> Floats:
            return part.delta(epsilon, sizes)

        return float(min(1.0, self._find("total_variation", cost, ceiling).price))

    def delta(self, epsilon: float) -> float:
        """Delta at `epsilon`."""
        # two valid bounds on one mechanism: the smaller one holds
        by_orders = float(renyi_to_delta(ORDERS, self.costs, epsilon))
        return min(by_orders, self.variation(epsilon, by_orders))

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon found at `delta`."""
        delta = check_probability(delta=delta)
        # by value, as long as the quilts live: model selection asks again and again
        parts = tuple(map(replace, self.parts))  # without what they have cached
        key = "epsilon", parts, self.method, self.max_distance, delta
        return float(
            MEMORY.found(self.fact.quilts, key, lambda: self._find_epsilon(delta))
        )

    def _find_epsilon(self, delta: float) -> float:
        high = self.by_orders(delta)
        # the total variation alone may exceed delta, and then no epsilon helps this way
        if math.isinf(high) or self.variation(high, delta) > delta:
            return high
        if self.variation(0.0, delta) <= delta:
            return 0.0
        # prices beyond a few times delta are cut off: the search needs their side only
        root = root_above(lambda e: self.variation(e, 4 * delta), delta, 0.0, high)
        return float(root)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        return {
            "kind": self.kind,
            "quilts": to_plain(self.fact.quilts),
            "parts": to_plain(self.parts),
            "method": self.method,
            "max_distance": self.max_distance,
        }

    @classmethod
    def read_back(cls, values: dict[str, Any]) -> Self:
        """Make one of the fields it was written with, read back each."""
        # of the fact no more than the quilts is asked for
        return cls(MaxInfluence(quilts=values.pop("quilts")), **values)
