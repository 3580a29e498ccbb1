"""Facts that no rule of the kernel reads: accountants with rules of their own do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.facts import Fact
from skpuffer.kernel.numbers import Floats, Indices

if TYPE_CHECKING:
    from skpuffer.privacy_loss._overlap import Overlap, PairwiseOverlap

    from ._quilts._base import QuiltChoice, Quilts


@dataclass(frozen=True, kw_only=True)
class OutputSamples(Fact):
    """Weighted outputs of tables under one prior, secrets mixed by mass.

    Parameters
    ----------
    draws : ndarray of shape (n_draws, dim)
        One output for each table.
    weights : ndarray of shape (n_draws,)
        Sum to one.
    groups : ndarray of shape (n_draws,)
        Index of the secret each draw was made under.
    regime : {'sampled', 'enumerated', 'design'}
        Relation of the tables to the prior: draws of it; all that there are; or all, as
        the prior was made of them.
    secret : {'dataset', 'record', 'groups'}
        Secret that a budget protects: the whole table; each record's membership; or
        each of several functions of the table.
    memberships : ndarray of int of shape (n_draws, n_secrets) or None
        Value of each secret in each table, as codes from zero.
    entropy : float or None
        Shannon entropy of the table under the prior, in nats, where it is known.
    again : callable of (n, rng) or None
        Draws outputs of `n` fresh tables, of shape (n, dim); `rng` may be a public
        seed.
    certified, delta, confidence, assumptions, reads_private_rows : optional
        As in :class:`Fact`. A result from finitely many draws is still an estimate,
        unless a bound on its error goes with it.

    Examples
    --------
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import JointTableScenario, OutputSamples
    >>> scenario = JointTableScenario(
    ...     tables=[[0, 0], [0, 1], [1, 0], [1, 1]], probabilities=[0.4, 0.1, 0.1, 0.4]
    ... )
    >>> total = QueryRelease(query=lambda X, y: X.sum(), n_records=2, dim=1)
    >>> fact = scenario.bind(total.context).fact(OutputSamples, total)
    >>> fact.draws.ravel().tolist(), fact.weights.tolist()
    ([0.0, 1.0, 1.0, 2.0], [0.4, 0.1, 0.1, 0.4])
    """

    # samples under an empirical prior are private rows' outputs: never in a text
    draws: Floats = field(repr=False)
    weights: Floats = field(repr=False)
    groups: Indices = field(repr=False)
    regime: str = "sampled"
    secret: str = "dataset"
    memberships: Indices | None = field(default=None, repr=False)
    entropy: float | None = None
    again: Callable[[int, np.random.Generator | int], Floats] | None = field(
        default=None, repr=False
    )


@dataclass(frozen=True, kw_only=True)
class RecordBelief(Fact):
    """A possible belief about one record, as every release reads it.

    Given either value of a secret the record has one of two distributions, the other
    records are independent of it and of the secret, and it may become any other.

    Parameters
    ----------
    overlap : Overlap
        Divergences between the two distributions, or bounds on them.
    belief : Statement
        The belief, in a sentence.
    wider : tuple of (str, Overlap)
        Overlap if the belief is off, each under a name.
    pairwise : PairwiseOverlap or None
        The same with how far each pair of the record's values moves the release.
    record : str or None
        Name of the part of the record that it is about; None if the table has no name.
    count : int
        How many records it takes together for one, such as those of a household.
    together : Statement or None
        Which records these are, in words; None is one by itself.
    anyone : Scenario or None
        Promise whatever is believed. None is :class:`RecordScenario` of as many
        replaced records.
    certified, delta, confidence, assumptions, reads_private_rows : optional
        As in :class:`Fact`.

    Examples
    --------
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import AttributeScenario, BoundedOdds, RecordBelief
    >>> scenario = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))
    >>> run = GradientRelease(n_records=1000, n_steps=10, sampling="full_batch")
    >>> fact = scenario.bind(run.context).fact(RecordBelief, run)
    >>> print(fact.belief)
    the whole row but the secret, read or not, shifts the odds of any value of the
    secret against any other within a range of 4 (largest over smallest factor)
    >>> [round(eta, 3) for eta in fact.overlap.etas(0.3)]
    [0.234, 0.234]
    """

    overlap: Overlap
    belief: Statement
    wider: tuple[tuple[str, Overlap], ...] = ()
    pairwise: PairwiseOverlap | None = field(default=None, repr=False)
    record: str | None = None
    count: int = 1
    together: Statement | None = None
    anyone: Any = None


@dataclass(frozen=True, kw_only=True)
class MaxInfluence(Fact):
    """Markov quilts of the protected records, with their max-influence.

    Parameters
    ----------
    quilts : tuple of Quilts
        One for each prior.
    move : float
        How far one record moves its contribution, in the release's `shift_norm`;
        infinity if it may become any other. With `of_output`, how far the output moves
        for a size of one, in the norm asked for.
    of_output : bool
        Whether sizes of near sets are moves of the output, not numbers of records.
    sequences : tuple of ndarray of int or None
        Positions in the table: near sets are consecutive in one of these, or any
        (None).
    certified, delta, confidence, assumptions, reads_private_rows : optional
        As in :class:`Fact`.

    References
    ----------
    Song, Wang and Chaudhuri (2017), Pufferfish privacy mechanisms for correlated data,
    section 4.

    Examples
    --------
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import MarkovChainScenario, MaxInfluence
    >>> run = GradientRelease(n_records=50, n_steps=1, sampling="full_batch")
    >>> bound = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]]).bind(run.context)
    >>> fact = bound.fact(MaxInfluence, run)
    >>> round(fact.worst(float("inf"), lambda size: size / 10).price, 3)
    1.773
    """

    quilts: tuple[Quilts, ...] = field(repr=False)
    move: float = float("inf")
    # two meanings of a size, told apart here and not by the quilts
    of_output: bool = False
    sequences: tuple[Indices, ...] | None = field(default=None, repr=False)

    def worst(
        self,
        order: float | str,
        cost: Callable[[Floats], Floats],
        method: str = "exact",
        max_distance: int | None = None,
        ceiling: float = float("inf"),
    ) -> QuiltChoice:
        """Largest price over priors and records, each record at its cheapest quilt.

        Each prior may use quilts of its own: the promise is made prior by prior.

        Parameters
        ----------
        order : float or 'total_variation'
            How influence is measured: the Rényi order, or total variation.
        cost : callable
            Cost of noise for near sets of given sizes; non-decreasing.
        method : {'exact', 'approximate'}, default='exact'
        max_distance : int or None, default=None
            Leave out quilts with records further away than that.
        ceiling : float, default=inf
            A price from which on it does not matter how large it is.

        Returns
        -------
        QuiltChoice
        """
        quilts: Iterable[Quilts] = self.quilts
        # from bounds of the influence that are quicker to find, and never below it
        if method == "approximate":
            quilts = [of_prior.approximate() for of_prior in quilts]
        found = [
            of_prior.worst(order, cost, max_distance, ceiling) for of_prior in quilts
        ]
        # the worst prior's, as the promise is made for each; within a prior the worst
        # record's
        return max(found, key=lambda choice: choice.price)
