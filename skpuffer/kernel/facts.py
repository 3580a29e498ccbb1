"""Facts that a bound scenario can offer about a query, one frozen dataclass each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from skpuffer.exceptions import Statement, stated
from skpuffer.kernel.numbers import Floats, Indices, check_count
from skpuffer.kernel.queries import QueryRelease
from skpuffer.kernel.votes import VoteRelease

if TYPE_CHECKING:
    from skpuffer.distributions import Distribution


def arbitrary_coupling(relation: str, count: int, units: str | None = None) -> str:
    """Name, as a coupling, of any two tables that differ in `count` records.

    Such a statement is about no coupling in particular, so those of one relation and
    count may be added up whichever scenario they come from. For units, the rows that
    are kept are drawn, and as many records of other units may differ in more: what
    holds for units adds up with what holds for the same ones alone.
    """
    return f"{relation}:{count}" if units is None else f"{relation} of units:{units}"


@dataclass(frozen=True, kw_only=True)
class Fact:
    """Base of facts: their certainty and their assumptions.

    Parameters
    ----------
    certified : bool
        Whether the fact holds (True) or was estimated from samples (False).
    delta : float
        Mass, for each pair of secrets, outside of which the fact holds.
    confidence : float
        Probability, over a public sample, that the fact holds.
    assumptions : tuple of Statement
        Assumptions of the fact, in sentences.
    reads_private_rows : bool
        Whether the private rows were read for it. Then nothing that is found from it is
        certified, not even what holds for any rows: that it was reached is read off the
        rows.

    Examples
    --------
    >>> from skpuffer.scenarios import Fact
    >>> fact = Fact(delta=1e-6)
    >>> fact.certified, fact.confidence
    (True, 1.0)
    """

    # Defaults are those of a fact that is proved for all tables; whatever is estimated
    # or holds on an event only has to say so.
    certified: bool = True
    delta: float = 0.0
    confidence: float = 1.0
    assumptions: tuple[Statement, ...] = ()
    reads_private_rows: bool = False

    def __post_init__(self) -> None:
        # a scenario of one's own may say what it assumes in words
        if not all(isinstance(each, Statement) for each in self.assumptions):
            held = tuple(map(stated, self.assumptions))
            object.__setattr__(self, "assumptions", held)


@dataclass(frozen=True, kw_only=True)
class _ConditionalDistributions(Fact):
    """Base of facts that are distributions given each secret, under each prior."""

    distributions: tuple[tuple[Distribution | None, ...], ...]
    secrets: tuple[object, ...]
    pairs: tuple[tuple[int, int], ...]

    def pairs_of_distributions(
        self,
    ) -> Iterator[tuple[int, int, int, Distribution, Distribution]]:
        """Yield the pairs of distributions to compare, except secrets without mass.

        Yields
        ------
        prior, first, second : int
            Numbers of the prior and of the secrets.
        distributions : two Distribution
        """
        # prior by prior: a promise is about beliefs, and an attacker holds one of them
        for prior, given in enumerate(self.distributions):
            for i, j in self.pairs:
                u, v = given[i], given[j]
                # a secret that a prior rules out is not compared under it (Kifer and
                # Machanavajjhala)
                if u is not None and v is not None:
                    yield prior, i, j, u, v


@dataclass(frozen=True, kw_only=True)
class OutputDistributions(_ConditionalDistributions):
    """Distributions of the query's output given each secret, under each prior.

    Parameters
    ----------
    distributions : tuple of tuple of Distribution or None
        ``distributions[prior][secret]``; None where the secret has no mass under the
        prior.
    secrets : tuple
    pairs : tuple of (int, int)
        Indices into `secrets` of the pairs that must look alike.
    probabilities : tuple of tuple of float or None
        Mass of each secret under each prior, where known.
    common_part_removed : bool
        Whether the distributions are those of one record's contribution, the other
        records being independent of the secret. Shifts between the distributions are
        unaffected, and never larger than that of one arbitrary record; information
        measures change.
    scale : float
        The output moves by this factor times the distributions' own coordinates.
    corners : bool
        Whether the pairs are the corners of a convex set of moves, all by one coupling.
        They stand for the others in what is convex in the move, as a norm is; the cost
        of noise need not be.
    certified, delta, confidence, assumptions, reads_private_rows : optional
        As in :class:`Fact`.

    Examples
    --------
    >>> from skpuffer.distributions import Discrete
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import LawsScenario, OutputDistributions
    >>> scenario = LawsScenario([(Discrete([0, 1]), Discrete([1, 2]))])
    >>> count = QueryRelease(query=lambda X, y: X.sum(), n_records=9, dim=1)
    >>> fact = scenario.bind(count.context).fact(OutputDistributions, count)
    >>> [first.mean.tolist() for *_, first, _ in fact.pairs_of_distributions()]
    [[0.5]]
    """

    # for accountants that weigh secrets: a Pufferfish promise holds pair by pair
    # without
    probabilities: tuple[tuple[float, ...] | None, ...] | None = None
    # An independent summand makes no W_inf larger; an information measure is another
    # one without it.
    common_part_removed: bool = False
    # kept apart from the distributions: distances found once serve every factor
    scale: float = 1.0
    corners: bool = False

    def compared_in(
        self, release: QueryRelease, norm: float
    ) -> tuple[float, tuple[float, ...] | None]:
        """Return norm and units in which the distributions are to be compared."""
        # on one coordinate all norms are the same, and so is what is remembered
        return 2.0 if release.dim == 1 else norm, release.units

    def output_move(self, shift: float, release: QueryRelease, norm: float) -> float:
        """Return how far the output moves where the distributions' points move so far.

        Parameters
        ----------
        shift : float
        release : QueryRelease
        norm : float

        Returns
        -------
        float
            Without the release's `slack`.
        """
        # a norm is homogeneous; times zero, an infinite distance is no move
        return self.scale * shift if self.scale else 0.0

    def shift_ceiling(self, release: QueryRelease, ceiling: float) -> float:
        """Return the shift that moves the output by a ceiling, or further."""
        return ceiling / self.scale if self.scale else float("inf")


@dataclass(frozen=True, kw_only=True)
class RecordDistributions(_ConditionalDistributions):
    """Distributions of one record's contribution, where the query is no sum of them.

    The other records are independent of it and of the secret. A coupling of two of the
    distributions is therefore one of the tables, under which the query moves by no more
    than the release's `record_move` makes of how far the contribution does. Nothing
    else is known of the output's own distributions.

    Parameters
    ----------
    distributions : tuple of tuple of Distribution or None
        ``distributions[prior][secret]``, to be compared in the release's own
        `shift_norm`; None where the secret has no mass under the prior.
    secrets : tuple
    pairs : tuple of (int, int)
        Indices into `secrets` of the pairs that must look alike.
    certified, delta, confidence, assumptions, reads_private_rows : optional
        As in :class:`Fact`.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer.releases import PublicContext, QueryRelease
    >>> from skpuffer.scenarios import AttributeScenario, RecordDistributions
    >>> public = pd.DataFrame({"sex": [0, 0, 1, 1], "x": [0.0, 0.2, 0.4, 0.5]})
    >>> scenario = AttributeScenario(
    ...     "sex", level="record", prior=public, prior_as="law"
    ... )
    >>> context = PublicContext(n_records=9, feature_names=("x",), n_features=1)
    >>> model = QueryRelease(
    ...     query=lambda X, y: X.mean(axis=0),
    ...     contribution=lambda X, y: X,
    ...     modulus=lambda shift: shift / 9,
    ...     n_records=9,
    ...     dim=1,
    ...     context=context,
    ... )
    >>> fact = scenario.bind(context).fact(RecordDistributions, model)
    >>> [law.mean.tolist() for law in fact.distributions[0]]
    [[0.1], [0.45]]
    """

    #: No more than one arbitrary record moves the output.
    common_part_removed: ClassVar[bool] = True

    def compared_in(self, release: QueryRelease, norm: float) -> tuple[float, None]:
        """Return norm and units in which the distributions are to be compared."""
        return release.shift_norm(norm), None

    def output_move(self, shift: float, release: QueryRelease, norm: float) -> float:
        """Return how far the output moves at most where a contribution moves so far.

        Parameters
        ----------
        shift : float
        release : QueryRelease
        norm : float

        Returns
        -------
        float
            Without the release's `slack`.
        """
        return release.record_move(shift, norm, "replace")

    def shift_ceiling(self, release: QueryRelease, ceiling: float) -> float:
        """Return the shift from which on the output moves as by any record."""
        return release.shift_ceiling


@dataclass(frozen=True, kw_only=True)
class CoupledSamples(Fact):
    """Joint samples of the output under two secrets, from a coupling of their tables.

    Parameters
    ----------
    draws : tuple of (int, int, int, ndarray, ndarray)
        (prior, i, j, outputs under i, outputs under j), the outputs of shape
        (n_draws, dim), row against row.
    secrets : tuple
    certified, delta, confidence, assumptions, reads_private_rows : optional
        As in :class:`Fact`.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.scenarios import CoupledSamples
    >>> outputs = np.array([[0.0], [1.0]])
    >>> CoupledSamples(
    ...     draws=((0, 0, 1, outputs, outputs + 0.5),),
    ...     secrets=("a", "b"),
    ...     certified=False,
    ... ).secrets
    ('a', 'b')
    """

    # row against row is the coupling: to sort either side would make another one
    draws: tuple[tuple[int, int, int, Floats, Floats], ...]
    secrets: tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class Adjacency(Fact):
    """Number of records in which neighbouring tables differ, and bound on each move.

    Parameters
    ----------
    count : int
        At most so many records differ.
    move : float
        Each moves its contribution by at most this much, in the release's own
        `shift_norm`; infinity if a record may become any other.
    relation : {'add_remove', 'replace'}
    coupling_id : str or None
        Name of the coupling of neighbouring tables that this speaks of; None if it has
        no name by which another release could be known to rest on the same one.
    moves : ndarray of shape (count,) or None
        Each record's own bound, in decreasing order, where they differ.
    sequences : tuple of ndarray of int or None
        Positions in the table: all records that differ are of one of these, such as a
        household or a series. None lets them be any.
    window : int or None
        They are within so many consecutive ones of it; None is anywhere in it.
    any_records : bool
        Whether the secret is any `count` records themselves, all others being the same
        in both tables: differential privacy. They are fixed before anything is drawn.
    count_is_certain : bool
        Whether no more records differ in any event. If not, `delta` is the mass of the
        event in which more do.
    relabelled : bool
        Whether the records that differ do so in their targets alone.
    survival : ndarray of shape (n,) or None
        Bounds of the probability that more than 0, 1, ... records differ, under a
        coupling that need not be that of the other fields. Zero only where it cannot
        happen.
    units : str or None
        How many units of privacy differ, and by which ids; `count` is then of their
        records. None is records by themselves.
    settled : bool
        Whether the pair of secrets alone says which records differ: they are not drawn
        with the tables.
    certified, delta, confidence, assumptions, reads_private_rows : optional
        As in :class:`Fact`.

    Examples
    --------
    >>> from skpuffer.scenarios import Adjacency
    >>> anywhere = Adjacency.arbitrary(2, ("two records may be any others",))
    >>> anywhere.move, anywhere.coupling_id
    (inf, 'replace:2')
    """

    count: int
    move: float
    relation: str
    # Promises add up only if one coupling of the tables serves all of them (Pierquin et
    # al. 2024, Corollary 3.1); without a name that cannot be known.
    coupling_id: str | None
    # where `count` records are; what does not read it takes them to be anywhere
    sequences: tuple[Indices, ...] | None = field(default=None, repr=False)
    window: int | None = None
    # amplification by sampling rests on it: the other records must be the same
    any_records: bool = False
    # not the same as `delta == 0`: no more than all records can differ
    count_is_certain: bool = True
    # what holds of any other records holds of these
    relabelled: bool = False
    # a refinement of `count` and `move`, which hold without it
    moves: Floats | None = field(default=None, repr=False)
    # whole runs may be weighed by it, never their steps
    survival: Floats | None = field(default=None, repr=False)
    # means over batches rest on it
    settled: bool = False
    units: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # a mean number of records, say, would be cut off to a smaller group of them
        count = check_count(least=0, count=self.count)
        object.__setattr__(self, "count", count)

    def teachers(self, release: VoteRelease) -> int:
        """Return how many teachers hold a record that differs, at most."""
        size = self.window
        if size is None:
            size = max(map(len, self.sequences or ()), default=self.count)
        together = release.teachers_met(size, self.sequences)
        return min(int(together), int(release.teachers_met(self.count)))

    def in_any_event(self, n_records: int) -> Adjacency:
        """Return what is so outside of the fact's event too: records may become any.

        Parameters
        ----------
        n_records : int
            Number of records in the table: so many differ where their number is not
            certain.

        Returns
        -------
        Adjacency
        """
        sure = self.count_is_certain
        count = self.count if sure else n_records
        return replace(
            self,
            count=count,
            count_is_certain=True,
            move=float("inf"),
            moves=None,
            # where they are was said of as many as the event leaves
            sequences=self.sequences if sure else None,
            window=self.window if sure else None,
            coupling_id=arbitrary_coupling(self.relation, count, self.units),
            delta=0.0,
            confidence=1.0,
            assumptions=(
                *self.assumptions,
                Statement("assume.delta_no_room_for_event", delta=self.delta),
            ),
        )

    def any_coupling(self, relation: str | None = None) -> str:
        """Return the name of any tables that differ in so many records, or units.

        Parameters
        ----------
        relation : {'add_remove', 'replace'}, default=None
            None is that of the fact.

        Returns
        -------
        str
        """
        return arbitrary_coupling(relation or self.relation, self.count, self.units)

    def together(self, coupling: str | None) -> str | None:
        """Return the name of a coupling of tables that differ in these places only.

        Parameters
        ----------
        coupling : str or None
            Its name without a word on the places.

        Returns
        -------
        str or None
        """
        # what holds for any so many records has an arbitrary name; a coupling with a
        # name of its own knows where they are
        if coupling != self.any_coupling():
            return coupling
        places = [np.asarray(one, dtype=np.int64) for one in self.sequences or ()]
        # with the lengths, as others may have the same numbers one after the other
        digest = hashlib.sha256(repr((self.window, *map(len, places))).encode())
        for one in places:
            digest.update(one.tobytes())
        return f"{coupling} together:{digest.hexdigest()[:32]}"

    # one place for the infinite move and the name of the coupling: they go together
    @classmethod
    def arbitrary(
        cls,
        count: int,
        assumptions: Iterable[Statement],
        relation: str = "replace",
        any_records: bool = False,
        units: str | None = None,
    ) -> Adjacency:
        """Return the fact that `count` records may become any others.

        Parameters
        ----------
        count : int
        assumptions : tuple of Statement
        relation : {'add_remove', 'replace'}, default='replace'
        any_records : bool, default=False
            Whether these are any records of the table; see the class.
        units : str, default=None
            As of the class.

        Returns
        -------
        Adjacency
        """
        return cls(
            count=count,
            any_records=any_records,
            # no bound by the prior: the release's own sensitivity takes its place
            move=float("inf"),
            relation=relation,
            coupling_id=arbitrary_coupling(relation, count, units),
            units=units,
            assumptions=tuple(assumptions),
        )


@dataclass(frozen=True, kw_only=True)
class OutputSensitivity(Fact):
    """Sensitivity of the output: how far neighbouring tables move it at most.

    Parameters
    ----------
    radius : float
        Bound on the move, in the release's own units and the norm asked for, without
        the release's `slack`.
    coupling_id : str or None
        As for :class:`Adjacency`.
    certified, delta, confidence, assumptions, reads_private_rows : optional
        As in :class:`Fact`.

    Examples
    --------
    >>> from skpuffer.scenarios import OutputSensitivity
    >>> OutputSensitivity(radius=0.5, coupling_id=None).certified
    True
    """

    # by any coupling, not the best one: an upper bound is all that noise needs
    radius: float
    coupling_id: str | None
