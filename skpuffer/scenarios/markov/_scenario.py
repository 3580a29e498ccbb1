"""Records that form a Markov chain."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skpuffer.exceptions import ScenarioError, Statement
from skpuffer.kernel.numbers import Floats, check_finite, check_option, check_share
from skpuffer.releases import PublicContext
from skpuffer.scenarios._base import (
    BoundScenario,
    Scenario,
    protected_records,
    stated,
)
from skpuffer.scenarios.priors._tables import bound_arrays
from skpuffer.utils._checks import check_masses, check_name, check_sizes

from ._bound import BoundMarkovChain
from ._chains import stationary_distribution

__all__ = ["MarkovChainScenario"]


class MarkovChainScenario(Scenario):
    """The secret is the state of a Markov chain at one time, through its neighbours.

    Record `t` of the table is the state at time `t` of a Markov chain, such as a time
    series of activities or of readings in bins. Nobody who sees the release shall tell
    which of two states the chain was in at any one time.

    Parameters
    ----------
    transition : array-like of shape (n_states, n_states), or a list of these
        Row-stochastic: entry (a, b) is the probability of b after a. A list is a
        finite set of beliefs, and the promise holds for each.
    initial : array-like of shape (n_states,), 'stationary' or list of these, \
            default='stationary'
        Distribution of the first record; one for all chains, or one for each.
    states : array-like of shape (n_states,) or (n_states, n_features), default=None
        The records that the states stand for, in the order of `transition`. None
        numbers them from zero.
    pairs : {'same_index', 'all'}, default='same_index'
        Which secrets must look alike: two states at the same time, or any state at any
        time and any other.
    protected : array-like of int, default=None
        Times at which the state is secret, from zero. None is all.
    event_delta : float, default=1e-9
        Mass, for each pair of secrets, that may be left out where distributions of the
        whole series are out of reach; the certificate then states what was left out.
        Zero asks for all of it, which for long series leaves group privacy.
    table : str or None, default=None
        Public name of the table, by which certificates of several releases that rest
        on one coupling of it may be added up (:func:`~skpuffer.privacy.compose`). None
        names no table, and such certificates are not added; see also the notes.

    See Also
    --------
    BayesianNetworkScenario : Other dependencies than a chain.

    Notes
    -----
    *Sums over records* of contributions that are whole multiples of one vector (counts,
    means of readings in equal bins, any histogram of two states) have exact
    distributions by dynamic programming: in integers where the transition probabilities
    are short decimals or fractions and the series is short (a few hundred records),
    else in floats that never subtract and with a margin for round-off, which can
    overstate W_inf by one step of the lattice and never understates it. That reaches a
    few thousand records of two states.

    *Long series* are cut: with the states known at a distance of `width` records to
    both sides of the secret, what lies beyond does not depend on it. The two tables of
    a pair are coupled to agree on these two states, except with a probability that
    falls geometrically in `width`, and the smallest width is taken for which it is at
    most `event_delta`. Distributions of the sum inside the window, given the states at
    its ends, then stand for those of the whole sum. Their distances are not smaller
    than those of the whole sum outside the event.

    *Other queries* are bounded by how many records differ: those of the window, or all.
    For training runs and votes there is also the law of that number, for two chains
    that are coupled step by step, to both sides of the secret, until they meet:
    :class:`~skpuffer.accountants.PrivacyLoss` takes the mean over it where that needs
    less noise. Such a mean is about one release, so a table with a name (`table`),
    whose releases are to be added up, is accounted for by its window.

    With ``pairs='all'`` there are no windows.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Theorem 3.3 and Definition 4.2;
    Song, Wang and Chaudhuri (2017), Pufferfish privacy mechanisms for correlated data,
    for the dependence of a chain on what surrounds a secret.

    Examples
    --------
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.releases import QueryRelease
    >>> from skpuffer.scenarios import MarkovChainScenario
    >>> scenario = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
    >>> count = QueryRelease(
    ...     contribution=lambda X, y: X, is_sum=True, n_records=50, dim=1
    ... )
    >>> accountant = GeneralWasserstein(epsilon=1, alpha=float("inf"), noise="laplace")
    >>> accountant.calibrate(count, scenario).certificate.sensitivity
    7.0
    """

    def __init__(
        self,
        transition: ArrayLike,
        initial: str | ArrayLike | Sequence[str | ArrayLike] = "stationary",
        *,
        states: ArrayLike | None = None,
        pairs: str = "same_index",
        protected: ArrayLike | None = None,
        event_delta: float = 1e-9,
        table: str | None = None,
    ) -> None:
        self.transition = transition
        self.initial = initial
        self.states = states
        self.pairs = pairs
        self.protected = protected
        self.event_delta = event_delta
        self.table = table

    def check(self) -> None:
        """Check the parameters; see the class."""
        check_option(("same_index", "all"), pairs=self.pairs)
        check_share(event_delta=self.event_delta)
        check_name(table=self.table)
        self.chains()
        self._states()
        protected_records(self.protected)

    def chains(self) -> list[tuple[Floats, Floats]]:
        """Return the Markov chains that the series may follow.

        Returns
        -------
        list of (ndarray of shape (n_states,), ndarray of shape (n_states, n_states))
            Distribution of the first record, and transition probabilities.

        Raises
        ------
        ScenarioError
            If a row is not a distribution, shapes differ, or a chain has several
            stationary distributions where one is asked for.
        """
        matrices = self._matrices()
        first = self._initial_distributions(len(matrices), len(matrices[0]))
        return [
            (self._stationary(matrix) if initial is None else initial, matrix)
            for initial, matrix in zip(first, matrices, strict=True)
        ]

    def _matrices(self):
        array = stated(check_finite, transition=self.transition)
        if array.ndim == 2:
            array = array[None]
        if array.ndim != 3 or array.size == 0 or array.shape[1] != array.shape[2]:
            raise ScenarioError(
                Statement("markov.transition_not_square", shape=np.shape(array))
            )
        if array.shape[1] < 2:
            raise ScenarioError(Statement("markov.transition_one_state"))
        for matrix in array:
            for a, row in enumerate(matrix):
                try:
                    check_masses(len(row), counts=False, transition=row)
                except ValueError as error:
                    raise ScenarioError(
                        Statement("markov.transition_row_invalid", row=a, error=error)
                    ) from None
        # distributions sum to one up to the round-off of their entries, which errors
        # allow for
        sums = array.sum(axis=2, keepdims=True)
        off = np.abs(sums - 1) > array.shape[2] * np.finfo(float).eps
        return list(np.where(off, array / sums, array))

    def _initial_distributions(self, n_chains, n_states):
        """Distributions of the first record, None where it is the stationary one."""
        given = self.initial
        if given is None:
            raise ScenarioError(Statement("markov.initial_missing"))
        several = (
            not isinstance(given, str)
            and np.iterable(given)
            and any(np.iterable(one) for one in given)
        )
        listed = list(given) if several else [given] * n_chains
        if len(listed) != n_chains:
            raise ScenarioError(
                Statement(
                    "markov.initial_count_differs",
                    n_listed=len(listed),
                    n_chains=n_chains,
                )
            )
        return [self._initial_distribution(one, n_states) for one in listed]

    @staticmethod
    def _initial_distribution(given, n_states):
        if isinstance(given, str):
            check_option(("stationary",), initial=given)
            return None
        try:
            return check_masses(n_states, counts=False, initial=given)
        except (TypeError, ValueError) as error:
            raise ScenarioError(
                Statement("markov.initial_invalid", n_states=n_states, error=error)
            ) from None

    @staticmethod
    def _stationary(matrix):
        try:
            return np.array(stationary_distribution(matrix))
        except ValueError:
            raise ScenarioError(Statement("markov.stationary_needs_initial")) from None

    def _states(self):
        """The records that states stand for, of shape (n_states, n_features)."""
        k = len(self._matrices()[0])
        if self.states is None:
            return np.arange(float(k))[:, None]
        # labels are encoded as the table encodes them
        states = stated(check_sizes, states=self.states)
        states = states[:, None] if states.ndim == 1 else states
        if states.ndim != 2 or len(states) != k:
            raise ScenarioError(
                Statement("markov.states_shape_invalid", k=k, shape=states.shape)
            )
        if len(np.unique(states, axis=0)) < k:
            raise ScenarioError(Statement("markov.states_repeated"))
        return states

    def _state_rows(self, context):
        """States in the form the query reads, of shape (n_states, n_features)."""
        rows, names = self._states(), context.feature_names
        if names is not None:
            if len(names) != rows.shape[1]:
                raise ScenarioError(
                    Statement(
                        "markov.states_features_differ",
                        names=list(names),
                        n_features=rows.shape[1],
                    )
                )
            rows = pd.DataFrame(rows, columns=list(names))
        return bound_arrays(context, rows)[0]

    def declared_bounds(self, context: PublicContext) -> tuple[Floats, Floats] | None:
        """Return the range of each feature over the states."""
        rows = self._state_rows(context)
        return rows.min(axis=0), rows.max(axis=0)

    def bind(self, context: PublicContext) -> BoundScenario:
        """Bind to the public facts of a table; see :class:`Scenario`."""
        self.check()
        return BoundMarkovChain(self, context)

    def __repr__(self) -> str:
        try:
            shape = np.shape(self.transition) or (0,)
        except ValueError:  # ragged
            shape = (len(self.transition),)
        chain = f"<{shape[0]} {'chains' if len(shape) == 3 else 'states'}>"
        first = self.initial if isinstance(self.initial, str) else "<given>"
        parts = [chain, f"initial={first!r}", f"pairs={self.pairs!r}"]
        if self.protected is not None:
            parts.append(f"protected=<{len(self.protected)} times>")
        parts.append(f"event_delta={self.event_delta!r}")
        if self.table is not None:
            parts.append(f"table={self.table!r}")
        return f"MarkovChainScenario({', '.join(parts)})"
