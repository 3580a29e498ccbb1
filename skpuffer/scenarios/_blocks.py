"""Independent blocks of records, each with a secret of its own."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse

from skpuffer.exceptions import ScenarioError
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.utils._checks import check_count
from skpuffer.utils._reading import refuse_mask
from skpuffer.utils._types import Floats

from ._base import AnyRelease, BoundScenario, Rows, Scenario, offers
from ._facts import (
    Adjacency,
    Fact,
    MaxInfluence,
    OutputDistributions,
    arbitrary_coupling,
)

__all__ = ["BlocksScenario"]


class BlocksScenario(Scenario):
    """The table falls into independent blocks, each with a secret of its own.

    Such as the time series of several people, one after the other. By parallel
    composition a release about all of them costs what one about the worst block does.

    Parameters
    ----------
    scenario : Scenario
        What is secret within a block.
    sizes : int or array-like of int
        Numbers of records of the blocks, in the order of the table. One number is the
        size of each.

    Notes
    -----
    The other blocks are independent of the secret. In a sum over records they add the
    same independent term to both distributions of a pair, which are then no further
    apart than those of one block. In other queries a coupling keeps them as they are,
    and the quilts of a record are those of its own block: all other blocks lie beyond
    any.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Proposition E.1 (parallel
    composition) and Proposition 3.1.

    Examples
    --------
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import BlocksScenario, MarkovChainScenario
    >>> person = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
    >>> scenario = BlocksScenario(person, sizes=50)
    >>> count = QueryRelease(
    ...     contribution=lambda X, y: X, is_sum=True, n_records=1000, dim=1
    ... )
    >>> accountant = GeneralWasserstein(epsilon=1, alpha=float("inf"), noise="laplace")
    >>> accountant.calibrate(count, scenario).certificate.sensitivity
    7.0
    """

    def __init__(self, scenario: Scenario, sizes: ArrayLike) -> None:
        self.scenario = scenario
        self.sizes = sizes

    def check(self) -> None:
        """Check the parameters; see the class."""
        if not isinstance(self.scenario, Scenario):
            raise TypeError(
                "The parameter 'scenario' must be a scenario for one block. "
                f"Got {self.scenario!r}."
            )
        self.scenario.check()
        if self.scenario.needs_empirical:
            raise ScenarioError(
                "The scenario of a block takes the private rows as its prior, but "
                "blocks need public ones."
            )
        refuse_mask(self.sizes, "sizes")
        sizes = np.atleast_1d(np.asarray(self.sizes, dtype=object))
        if sizes.ndim != 1 or not len(sizes):
            raise ScenarioError(
                f"The parameter 'sizes' must list block sizes. Got {self.sizes!r}."
            )
        for size in sizes:
            check_count(sizes=size)

    def block_sizes(self, n_records: int) -> list[int]:
        """Return the sizes of the blocks of a table.

        Parameters
        ----------
        n_records : int

        Returns
        -------
        list of int
        """
        if np.ndim(self.sizes) == 0:
            size = int(self.sizes)
            # no record may be in no block: nothing would be promised for it
            if n_records % size:
                raise ScenarioError(
                    f"The table has {n_records} records, which are no whole number of "
                    f"blocks of {size}: list the sizes of all blocks."
                )
            return [size] * (n_records // size)
        sizes = [int(size) for size in self.sizes]
        if sum(sizes) != n_records:
            raise ScenarioError(
                f"The parameter 'sizes' adds up to {sum(sizes)} records, but the table "
                f"has {n_records}."
            )
        return sizes

    def secret_position(
        self, feature_names: Sequence[Hashable] | None, n_features: int
    ) -> int | None:
        """Position of the secret among the columns of a table, or None."""
        return self.scenario.secret_position(feature_names, n_features)

    def check_secret(self, secret: ArrayLike) -> None:
        """Refuse secret values that the scenario of a block does not cover."""
        # within a block secrets may have to agree, as at the level of a data set
        ends = np.cumsum(self.block_sizes(len(secret)))
        for part in np.split(np.asarray(secret), ends[:-1]):
            self.scenario.check_secret(part)

    def declared_bounds(self, context: PublicContext) -> tuple[Floats, Floats] | None:
        """Return the bounds that the scenario of a block declares."""
        return self.scenario.declared_bounds(context)

    def public_table(self) -> pd.DataFrame | None:
        """Return the public table of the scenario of a block, or None."""
        return self.scenario.public_table()

    def bind(self, context: PublicContext) -> BoundScenario:
        """Bind to the public facts of a table; see :class:`Scenario`."""
        self.check()
        return _BoundBlocks(self, context)


class _BoundBlocks(BoundScenario):
    def __init__(self, scenario: Any, context: PublicContext) -> None:
        super().__init__(scenario, context)
        # blocks of one size are alike
        self.sizes = sorted(set(scenario.block_sizes(context.n_records)))
        self.blocks = [
            scenario.scenario.bind(replace(context, n_records=size))
            for size in self.sizes
        ]

    @property
    def target_assumption(self) -> str | None:
        """Assumption on the targets within a block."""
        return self.blocks[0].target_assumption

    def check_rows(self, X: Rows) -> Rows:
        """Return rows as the scenarios of the blocks declare them."""
        by_size = dict(zip(self.sizes, self.blocks, strict=True))
        start, parts = 0, []
        for size in self.scenario.block_sizes(self.context.n_records):
            parts.append(by_size[size].check_rows(X[start : start + size]))
            start += size
        stack = sparse.vstack if sparse.issparse(parts[0]) else np.concatenate
        return stack(parts)

    def leaks(self, X: Rows, secret: ArrayLike | None = None) -> tuple[str, ...]:
        """Sentence, if the prior of a block has the rows of the table or of a block."""
        ends = np.cumsum([0, *self.scenario.block_sizes(self.context.n_records)])
        parts = [slice(0, ends[-1]), *map(slice, ends[:-1], ends[1:])]
        found = (
            self.blocks[0].leaks(X[part], None if secret is None else secret[part])
            for part in parts
        )
        return next((leaks for leaks in found if leaks), ())

    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        offered = None
        for block, part in self._parts(release):
            facts = block.provides(part)
            # a fact about all blocks needs that fact of each
            offered = facts if offered is None else offered & facts
        # the distributions of a query that is no sum are those of a whole table
        summed = {OutputDistributions} if self._is_sum(release) else set()
        return frozenset(offered & {Adjacency, MaxInfluence, *summed})

    @staticmethod
    def _is_sum(release):
        return isinstance(release, QueryRelease) and release.is_sum

    def _parts(self, release):
        """Blocks, and the release as seen by each."""
        for block in self.blocks:
            part = release
            if isinstance(release, QueryRelease):
                # Of a sum the contribution is enough, and the common part of the other
                # blocks is removed. The matrix of a linear query is that of a whole
                # table, not of a block.
                part = replace(
                    release,
                    n_records=block.context.n_records,
                    context=block.context,
                    query=None if release.is_sum else release.query,
                    linear=None,
                )
            yield block, part

    @offers(OutputDistributions)
    def _output_distributions(
        self, release: AnyRelease, norm: float
    ) -> OutputDistributions:
        found = [
            block.fact(OutputDistributions, part, norm)
            for block, part in self._parts(release)
        ]
        distributions, secrets, pairs, chances = None, [], [], None
        for size, fact in zip(self.sizes, found, strict=True):
            # indices of secrets go on from those of the blocks before
            start = len(secrets)
            secrets += [(f"block of {size}", secret) for secret in fact.secrets]
            pairs += [(start + i, start + j) for i, j in fact.pairs]
            distributions = _joined(distributions, fact.distributions)
            chances = _joined(chances, fact.probabilities)
        return OutputDistributions(
            distributions=distributions,
            secrets=tuple(secrets),
            pairs=tuple(pairs),
            probabilities=chances,
            common_part_removed=all(fact.common_part_removed for fact in found),
            scale=found[0].scale,
            corners=any(fact.corners for fact in found),
            **self._trust(found),
        )

    @offers(Adjacency)
    def _adjacency(self, release: AnyRelease, norm: float) -> Adjacency:
        found = [
            block.fact(Adjacency, part, norm) for block, part in self._parts(release)
        ]
        # the records that differ lie in the block of the secret: the largest count
        worst = max(found, key=lambda fact: fact.count)
        one = len(found) == 1
        coupling = worst.coupling_id
        if not all(
            fact.coupling_id == arbitrary_coupling(worst.relation, fact.count)
            for fact in found
        ):
            # a block's coupling is the table's where the others stay as they are
            known = one and coupling is not None
            coupling = (
                f"{self.context.n_records} in blocks:{coupling}" if known else None
            )
        return Adjacency(
            count=worst.count,
            move=max(fact.move for fact in found),
            moves=found[0].moves if one else None,
            relation=worst.relation,
            coupling_id=coupling,
            count_is_certain=all(fact.count_is_certain for fact in found),
            survival=self._survival([fact.survival for fact in found]),
            **self._trust(found),
        )

    def _survival(self, found):
        """Worst law of how many records differ, none of them outside of a block."""
        if any(one is None for one in found):
            return None
        n = self.context.n_records
        return np.max([np.pad(one, (0, n - len(one))) for one in found], axis=0)

    @offers(MaxInfluence)
    def _influence(self, release: AnyRelease, norm: float) -> MaxInfluence:
        found = [
            block.fact(MaxInfluence, part, norm) for block, part in self._parts(release)
        ]
        # a belief is one for each block, so the worst block under its worst is enough
        return MaxInfluence(
            quilts=tuple(of_prior for fact in found for of_prior in fact.quilts),
            move=max(fact.move for fact in found),
            of_output=found[0].of_output,
            **self._trust(found),
        )

    def _trust(self, found):
        """Certainty of several facts together, as fields of a fact."""
        sizes = ", ".join(map(str, self.sizes))
        return {
            "certified": all(fact.certified for fact in found),
            # a pair of secrets lies in one block; samples of all blocks must be good
            "delta": max(fact.delta for fact in found),
            "confidence": 1 - min(1.0, sum(1 - fact.confidence for fact in found)),
            "assumptions": (
                f"the table ({self.context.n_records} records) falls into independent "
                f"blocks of {sizes} records, in its order, and these sizes are public",
                *(f"within a block: {text}" for text in found[-1].assumptions),
            ),
        }


def _joined(left, right):
    """Concatenate two tuples prior by prior; None where either is unknown."""
    if left is None or right is None:
        return right if left is None else None
    return tuple(a + b for a, b in zip(left, right, strict=True))
