"""Independent blocks of records, each with a secret of its own."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse

from skpuffer.exceptions import Statement, scenario_error, type_error
from skpuffer.kernel.facts import (
    Adjacency,
    Fact,
    OutputDistributions,
    arbitrary_coupling,
)
from skpuffer.kernel.numbers import Floats, Indices, check_count
from skpuffer.releases import PublicContext, QueryRelease, VoteRelease
from skpuffer.utils._reading import refuse_mask

from ._base import AnyRelease, BoundScenario, RecordScenario, Rows, Scenario, offers
from ._facts import MaxInfluence, RecordBelief


class BlocksScenario(Scenario):
    """The table falls into independent blocks, each with a secret of its own.

    Blocks are, for example, the time series of several people. By parallel composition
    a release about all of them costs what one about the worst block does.

    Parameters
    ----------
    scenario : Scenario
        The secret within a block.
    sizes : int or array-like of int, default=None
        Number of records of each block, in the order of the table. None takes the
        `groups` given to `fit`, wherever their records are.

    Notes
    -----
    The other blocks are independent of the secret: they add the same independent term
    to both distributions of a pair, and a coupling keeps them as they are.

    Ids and sizes of blocks are public, so the scenario within may not add or remove
    records. Blocks go whole to one teacher of a
    :class:`~skpuffer.ensemble.PATEClassifier`.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Propositions 3.1 and E.1.

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

    All of a household of up to four is secret; it costs teachers' votes what one
    record costs:

    >>> from skpuffer.accountants import PrivacyLoss
    >>> from skpuffer.releases import VoteRelease
    >>> from skpuffer.scenarios import RecordScenario
    >>> household = BlocksScenario(RecordScenario(k=4, relation="replace"))
    >>> votes = VoteRelease(
    ...     n_records=200,
    ...     n_teachers=20,
    ...     n_classes=2,
    ...     n_queries=10,
    ...     groups=[i // 4 for i in range(200)],
    ... )
    >>> PrivacyLoss().calibrate(votes, household).certificate.sensitivity
    1.0
    """

    def __init__(self, scenario: Scenario, sizes: ArrayLike | None = None) -> None:
        self.scenario = scenario
        self.sizes = sizes

    @property
    def any_records(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether the records of a block may become any others."""
        return self.scenario.any_records

    @property
    def table(self) -> str | None:
        """Public name of the table, as the scenario of a block gives it."""
        return getattr(self.scenario, "table", None)

    def check(self) -> None:
        """Check the parameters; see the class."""
        if not isinstance(self.scenario, Scenario):
            raise type_error(
                "scenario.block_scenario_wrong_type", scenario=self.scenario
            )
        self.scenario.check()
        if self.scenario.needs_empirical:
            raise scenario_error("scenario.block_prior_is_private")
        if getattr(self.scenario, "max_rows", None) is not None:
            # nobody drops rows of units within a block
            raise scenario_error("blocks.of_units")
        if self.sizes is None:
            return
        refuse_mask(self.sizes, "sizes")
        sizes = np.atleast_1d(np.asarray(self.sizes, dtype=object))
        if sizes.ndim != 1 or not len(sizes):
            raise scenario_error("scenario.block_sizes_not_list", sizes=self.sizes)
        for size in sizes:
            check_count(sizes=size)

    def block_sizes(self, n_records: int) -> list[int]:
        """Return the sizes of the blocks of a table, as stated."""
        if self.sizes is None:
            raise scenario_error("blocks.groups_not_given")
        given: Any = self.sizes
        if np.ndim(given) == 0:
            size = int(given)
            # no record may be in no block: nothing would be promised for it
            if n_records % size:
                raise scenario_error(
                    "blocks.records_not_whole_blocks", n_records=n_records, size=size
                )
            return [size] * (n_records // size)
        sizes = [int(size) for size in given]
        if sum(sizes) != n_records:
            raise scenario_error(
                "blocks.sizes_sum_differs", sizes=sum(sizes), n_records=n_records
            )
        return sizes

    def secret_position(
        self, feature_names: Sequence[Hashable] | None, n_features: int
    ) -> int | None:
        """Position of the secret among the columns of a table, or None."""
        return self.scenario.secret_position(feature_names, n_features)

    def check_numbers(self, labels: Sequence[int] | None, position: int | None) -> None:
        """Refuse a frame with numbers for names by which a position is in doubt."""
        self.scenario.check_numbers(labels, position)

    def check_secret(self, secret: ArrayLike) -> None:
        """Refuse secret values that the scenario of a block does not cover."""
        # of groups the values are checked once these are known, in `check_rows`
        if self.sizes is None:
            return
        values = np.asarray(secret)
        # within a block secrets may have to agree, as at the level of a data set
        ends = np.cumsum(self.block_sizes(len(values)))
        for part in np.split(values, ends[:-1]):
            self.scenario.check_secret(part)

    def members(self, context: PublicContext) -> list[Indices]:
        """Return the positions of the records of each block."""
        if self.sizes is None and context.groups is not None:
            # the records of each group, in the order of the table
            groups = np.asarray(context.groups)
            ends = np.cumsum(np.bincount(groups))
            return np.split(np.argsort(groups, kind="stable"), ends[:-1])
        ends = np.cumsum(self.block_sizes(context.n_records))
        return np.split(np.arange(context.n_records), ends[:-1])

    @property
    def is_coded(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether the data is read through a coding of the scenario of a block."""
        return self.scenario.is_coded

    @property
    def code_book(self) -> Any:
        """Code book of the scenario of a block, or None."""
        return self.scenario.code_book

    def coded(self, X: Any) -> Any:
        """Return a table as the scenario of a block reads it, row by row."""
        return self.scenario.coded(X)

    def coded_records(
        self, X: Any, y: Any, target_name: Any, **fill: bool
    ) -> tuple[Any, Any]:
        """Return coded records, each as one that the scenario of a block knows."""
        return self.scenario.coded_records(X, y, target_name, **fill)

    def declared_groups(self, context: PublicContext) -> tuple[int, ...] | None:
        """Return the groups that the table comes with, or else the blocks."""
        if context.groups is not None:
            return context.groups
        sizes = self.block_sizes(context.n_records)
        return tuple(np.repeat(np.arange(len(sizes)), sizes).tolist())

    def declared_bounds(self, context: PublicContext) -> tuple[Floats, Floats] | None:
        """Return the bounds that the scenario of a block declares."""
        return self.scenario.declared_bounds(context)

    def public_rows(self) -> list[tuple[Any, Hashable, Hashable | None]]:
        """Return the prior tables as they came."""
        return self.scenario.public_rows()

    def public_table(self) -> pd.DataFrame | None:
        """Return the public table of the scenario of a block, or None."""
        return self.scenario.public_table()

    def public_record(self) -> dict[Hashable, Any]:
        """Return the public record of the scenario of a block.

        Returns
        -------
        dict of {column: object}
        """
        return self.scenario.public_record()

    def __repr__(self) -> str:
        # a list of sizes may have a line for each block
        several = self.sizes is not None and np.ndim(self.sizes)
        sizes = "<list>" if several else repr(self.sizes)
        return f"BlocksScenario({self.scenario!r}, sizes={sizes})"

    def explain(
        self, epsilon: ArrayLike = (0.1, 0.3, 1.0), *, delta: float = 1e-5
    ) -> pd.DataFrame:
        """Return what a declared belief about a block is worth, before any fit.

        Parameters
        ----------
        epsilon : float or array-like of float, default=(0.1, 0.3, 1.0)
        delta : float, default=1e-5

        Returns
        -------
        DataFrame
            As :meth:`AttributeScenario.explain`, compared with differential privacy of
            all records of one block.
        """
        self.check()
        explain = getattr(self.scenario, "explain", None)
        if explain is None:
            raise scenario_error("blocks.explain_without_belief")
        return explain(epsilon, delta=delta)


class _BoundBlocks(BoundScenario, of=BlocksScenario):
    def __init__(self, scenario: Any, context: PublicContext) -> None:
        super().__init__(scenario, context)
        self.members = scenario.members(context)
        # blocks of one size are alike
        self.sizes = sorted(set(map(len, self.members)))
        inner = scenario.scenario
        if isinstance(inner, RecordScenario) and inner.count < self.sizes[-1]:
            # one record of a block would be hidden, and not the block
            raise scenario_error(
                "blocks.larger_than_k", k=inner.count, largest=self.sizes[-1]
            )
        self.blocks: list[BoundScenario] = [
            scenario.scenario.bind(replace(context, n_records=size, groups=None))
            for size in self.sizes
        ]

    @property
    def target_assumption(self) -> Statement | None:
        """Assumption on the targets within a block."""
        return self.blocks[0].target_assumption

    def check_rows(self, X: Rows) -> Rows:
        """Return rows as the scenarios of the blocks declare them."""
        by_size = dict(zip(self.sizes, self.blocks, strict=True))
        parts = [by_size[len(block)].check_rows(X[block]) for block in self.members]
        if not sparse.issparse(parts[0]):
            rows = np.concatenate(parts)
        else:
            rows = sparse.vstack(parts, format="csr")
        # back in the order of the table
        return rows[np.argsort(np.concatenate(self.members))]

    def check_secrets(self, secret: ArrayLike | None) -> None:
        """Refuse secrets that the records of a block should share and do not."""
        if self.scenario.sizes is None and secret is not None:
            values: Any = secret
            for block in self.members:
                self.scenario.scenario.check_secret(values[block])

    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        offered: frozenset[type[Fact]] | None = None
        for block, part in self._parts(release):
            facts = block.provides(part)
            # a fact about all blocks needs that fact of each
            offered = facts if offered is None else offered & facts
        # the distributions of a query that is no sum are those of a whole table
        kept: set[type[Fact]] = {Adjacency, MaxInfluence, RecordBelief}
        if self._is_sum(release):
            kept.add(OutputDistributions)
        assert offered is not None  # there is a block
        return frozenset(offered & kept)

    @staticmethod
    def _is_sum(release: AnyRelease) -> bool:
        return isinstance(release, QueryRelease) and release.is_sum

    def _parts(self, release: AnyRelease) -> Iterator[tuple[BoundScenario, AnyRelease]]:
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
        secrets: list[tuple[str, Any]] = []
        pairs: list[tuple[int, int]] = []
        for size, fact in zip(self.sizes, found, strict=True):
            # indices of secrets go on from those of the blocks before
            start = len(secrets)
            secrets += [(f"block of {size}", secret) for secret in fact.secrets]
            pairs += [(start + i, start + j) for i, j in fact.pairs]
        given: Iterator[Any] = (fact.distributions for fact in found)
        distributions = reduce(_joined, given)
        chances = reduce(_joined, (fact.probabilities for fact in found))
        assert distributions is not None  # every fact has some
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
        whole = isinstance(release, VoteRelease) and release.groups is not None
        if whole and worst.relation == "add_remove":
            raise scenario_error("blocks.relation_add_remove")
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
        windows: list[Any] = [fact.window for fact in found]
        return Adjacency(
            count=worst.count,
            move=max(fact.move for fact in found),
            moves=found[0].moves if one else None,
            relation=worst.relation,
            coupling_id=coupling,
            count_is_certain=all(fact.count_is_certain for fact in found),
            sequences=self._sequences(found),
            # none where there is one without
            window=None if None in windows else max(windows),
            survival=self._survival([fact.survival for fact in found]),
            **self._trust(found),
        )

    def _survival(self, found: list[Any]) -> Floats | None:
        """Worst law of how many records differ, none of them outside of a block."""
        if any(one is None for one in found):
            return None
        n = self.context.n_records
        laws = [np.pad(one, (0, n - len(one))) for one in found]
        return np.max(laws, axis=0)

    @offers(RecordBelief)
    def _belief(self, release: AnyRelease, norm: float) -> RecordBelief:
        found = [
            block.fact(RecordBelief, part, norm) for block, part in self._parts(release)
        ]
        if any(f.count < size for f, size in zip(found, self.sizes, strict=True)):
            raise scenario_error("blocks.level_record_unsupported")
        worst = found[-1]
        record = worst.record
        if record is not None:
            blocks = sorted(block.tolist() for block in self.members)
            digest = joblib.hash(blocks)[:16]
            record = str(
                Statement("prior.speaks_of_blocks", record=record, digest=digest)
            )
        # what is believed of a block is the same whatever its size
        together = worst.together and Statement(
            "assume.together_one_block", sizes=list(self.sizes)
        )
        members = RecordScenario(worst.count, relation="replace")
        return replace(
            worst,
            record=record,
            together=together,
            anyone=BlocksScenario(members, self.scenario.sizes),
            pairwise=None,
            **self._trust(found),
        )

    @offers(MaxInfluence)
    def _influence(self, release: AnyRelease, norm: float) -> MaxInfluence:
        found = [
            block.fact(MaxInfluence, part, norm) for block, part in self._parts(release)
        ]
        unordered = any(fact.sequences is None for fact in found)
        # a belief is one for each block, so the worst block under its worst is enough
        return MaxInfluence(
            quilts=tuple(of_prior for fact in found for of_prior in fact.quilts),
            move=max(fact.move for fact in found),
            of_output=found[0].of_output,
            # near sets of other shapes are no consecutive records of a block
            sequences=None if unordered else self._sequences(found),
            **self._trust(found),
        )

    def _sequences(self, found: list[Any]) -> tuple[Indices, ...]:
        """Where in the table the sequences of each block are."""
        of_size = dict(zip(self.sizes, (fact.sequences for fact in found), strict=True))
        return tuple(
            block[sequence]
            for block in self.members
            for sequence in of_size[len(block)] or (np.arange(len(block)),)
        )

    def _trust(self, found: list[Any]) -> dict[Any, Any]:
        """Certainty of several facts together, as fields of a fact."""
        where = Statement("assume.blocks_in_table_order")
        if self.scenario.sizes is None:
            where = Statement("assume.blocks_by_public_groups")
        return {
            "certified": all(fact.certified for fact in found),
            # a pair of secrets lies in one block; samples of all blocks must be good
            "delta": max(fact.delta for fact in found),
            "confidence": 1 - min(1.0, sum(1 - fact.confidence for fact in found)),
            "assumptions": (
                Statement(
                    "assume.blocks_of_sizes_independent",
                    n_records=self.context.n_records,
                    sizes=list(self.sizes),
                    where=where,
                ),
                *(
                    Statement("assume.within_a_block", text=text)
                    for text in found[-1].assumptions
                ),
            ),
        }


def _joined(
    left: tuple[Any, ...] | None, right: tuple[Any, ...] | None
) -> tuple[Any, ...] | None:
    """Concatenate two tuples prior by prior; None where either is unknown."""
    if left is None or right is None:
        return None
    return tuple(a + b for a, b in zip(left, right, strict=True))
