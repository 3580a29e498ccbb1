"""Cost of the noisy steps of a run, by the size of a near set."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.kernel.gaussian import gaussian_delta
from skpuffer.kernel.numbers import Floats, Indices
from skpuffer.kernel.plain import Plain, to_plain
from skpuffer.kernel.steps import Accounting, GradientSteps, steps_of
from skpuffer.noise import GaussianNoise, Noise
from skpuffer.privacy_loss import GaussianCurve
from skpuffer.releases import (
    FullBatchSampling,
    GradientRelease,
    PoissonSampling,
    ShuffledEpochsSampling,
    VoteRelease,
)
from skpuffer.scenarios import Adjacency, MaxInfluence

__all__ = ["RunPart"]

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

    Given the quilt both worlds are mixtures of tables, coupled pair by pair to differ
    in the near records only, by one coupling for the whole run. So it costs what a
    group of as many replaced records costs by composition, also where batches are drawn
    by chance: the draws are independent of the tables.

    Parameters
    ----------
    noise : Noise
        Of each step.
    release : GradientRelease or VoteRelease
        Without what no cost depends on.
    least : tuple of float or None
        Of votes: least sizes of near sets that meet 1, 2, ... teachers.
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
        """Return the part of a run under quilts.

        Raises
        ------
        UnsupportedError
            If near sets are no numbers of records, or nothing is known of the run.
        """
        if fact.of_output:
            raise UnsupportedError(Statement("quilt.moves_with_run", name=release.name))
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
        """What the run takes for granted, in sentences."""
        return self.accounting(1).assumptions

    def evidence(self, size: float, renyi: bool) -> tuple[Statement, ...]:
        """What is not proved of the noise, of its Rényi costs or of its trade-off."""
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
    """Refuse a run of which groups have no known cost.

    Raises
    ------
    UnsupportedError
        With a clause that says why.
    """
    # near a record there is another one nearly always
    steps = steps_of(release, Adjacency.arbitrary(min(2, release.n_records), ()))
    # A search over quilts asks for groups of all sizes at every scale of the noise. Of
    # these alone it takes milliseconds each, and seconds of others.
    if is_drawn(release):
        scheme: Any = getattr(release, "sampling", None)
        if type(scheme) is not PoissonSampling or type(noise) is not GaussianNoise:
            raise UnsupportedError(
                Statement(
                    "quilt.near_sets_under_sampling",
                    scheme=str(scheme),
                    family=noise.family,
                )
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
