"""Beliefs about one record that are read from public rows."""

import copy
import pickle
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import combinations
from typing import Any, Self

import joblib
import numpy as np
import pandas as pd
from sklearn.base import clone

from skpuffer.exceptions import ScenarioError, Statement, scenario_error
from skpuffer.kernel.numbers import Floats, Indices
from skpuffer.privacy_loss._overlap import (
    FiniteOverlap,
    NearOverlap,
    Overlap,
    WorstOverlap,
    finite_overlap,
)
from skpuffer.releases import PublicContext

from ._bounded import BoundedOdds, check_rest
from ._coding import target_of
from ._overlap import Belief
from ._tables import ReferenceTable


@dataclass(eq=False, repr=False)
class Laws:
    """Distributions of one record given each value of the secret, on public rows.

    Parameters
    ----------
    values : tuple
        Values of the secret.
    masses : ndarray of shape (n_values, n_atoms)
        Masses of the atoms, given each value; each row sums to one.
    known : ndarray of int of shape (n_atoms, n_known)
        Codes of the columns that an attacker may know.
    """

    values: tuple[Any, ...]
    masses: Floats
    known: Indices

    def content(self) -> tuple[Any, ...]:
        """All that makes it another belief if it is another."""
        return self.values, self.masses, self.known

    def conditional(self) -> Iterator[Floats]:
        """Yield the distributions given each subset of what may be known."""
        # of the atoms that agree in the columns of a subset; all, for the empty one
        n_known = self.known.shape[1]
        for size in range(n_known + 1):
            for subset in combinations(range(n_known), size):
                if not subset:
                    yield self.masses
                    continue
                _, groups = np.unique(
                    self.known[:, subset], axis=0, return_inverse=True
                )
                for group in range(groups.max() + 1):
                    yield np.where(groups.ravel() == group, self.masses, 0.0)

    def pairs(
        self, pairs: Sequence[tuple[int, int]], doubted: bool = False
    ) -> list[tuple[Floats, Floats, float]]:
        """Return distributions to compare, on all atoms: by pair, and by what is known.

        Each comes with the smaller mass of what is known, given either value; zero only
        where masses are `doubted`, so that what has none may have some.
        """
        found = []
        for masses in self.conditional():
            totals = masses.sum(axis=1)
            for i, j in pairs:
                # what a value rules out is not compared under it
                mass = float(min(totals[i], totals[j]))
                if mass > 0:
                    found.append((masses[i] / totals[i], masses[j] / totals[j], mass))
                elif doubted:
                    found.append((masses[i], masses[j], mass))
        if not found:
            raise scenario_error("prior.no_pair_possible")
        return found


def codes_of(frame: pd.DataFrame, names: Sequence[Hashable]) -> Indices:
    """Codes of some columns of a table, equal where values are."""
    found = [pd.factorize(frame[name], use_na_sentinel=False)[0] for name in names]
    if not found:
        return np.zeros((len(frame), 0), dtype=np.intp)
    return np.column_stack(found)


#: What pickling raises of a lambda, and of a lock, a file or a generator.
_NO_PICKLE = (TypeError, pickle.PicklingError)
#: A copy is made as if pickled; and a classifier of tensors may hold some that refuse.
_NO_COPY = (*_NO_PICKLE, copy.Error, RuntimeError)


def _copied(given: Any) -> Any:
    try:
        return copy.deepcopy(given)
    except _NO_COPY:  # of what cannot be copied there is this one only
        return given


def _digest(content: Any) -> Any:
    try:
        return joblib.hash(content)
    except _NO_PICKLE:  # what cannot be hashed is refused where it is read
        return object()


#: How far, in total variation, either distribution may be off.
_OFF = (0.05, 0.1)

#: Any masses on some rows: two records of which neither may be the other.
_ANY = FiniteOverlap((1.0, 0.0), (0.0, 1.0))

#: Columns known to an attacker: every subset of them is gone through.
_MOST_KNOWN = 10


class RowBelief(Belief):
    """Base of beliefs about one record that are read from public rows.

    A subclass has the parameters `rows`, `known` and `rest`, and says what is believed
    of these rows. Rows and a classifier of them are compared by identity and kept as
    first read; changes in place do not count. A copy, pickled or not, is of what was
    read.
    """

    rows: Any
    known: Sequence[Hashable]
    rest: BoundedOdds | None

    #: Parameters that are known by identity, and read once.
    _shared: tuple[str, ...] = ("rows",)

    def table(self) -> ReferenceTable:
        """Return the public rows, as they were when they were first read."""
        try:
            table: ReferenceTable = self._read("rows")
        except ScenarioError:
            raise scenario_error(
                "prior.rows_not_a_table", owner=type(self).__name__
            ) from None
        return table

    def _read(self, name: str) -> Any:
        """Return a shared parameter, as it was when it was first read."""
        given, kept = getattr(self, name), vars(self).get("_kept_read", {})
        if name not in kept or kept[name][0] is not given:
            read = ReferenceTable(given) if name == "rows" else _copied(given)
            # a new dict, as clones share the old one
            self._kept_read = kept = {**kept, name: (given, read)}
        return kept[name][1]

    def _once(self, made: Callable[[], Laws], *content: Any) -> Laws:
        """What a function makes of parameters, made anew where one is another."""
        key = [getattr(self, name) for name in self._shared]
        digest = _digest(content)
        kept = vars(self).get("_kept_laws")
        if (
            kept is None
            or kept[1] != digest
            or any(a is not b for a, b in zip(kept[0], key, strict=True))
        ):
            kept = self._kept_laws = key, digest, made()
        return kept[2]

    # Whoever hashes a belief must not see that it was used: so it is always read here,
    # and what was made of it is left out.
    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        for name in self._shared:
            try:
                state[name] = self._read(name)
            except (TypeError, ValueError):
                # what is no table, or no rows of numbers, is refused where it is used
                continue
        for name in ("_kept_read", "_kept_laws"):
            state.pop(name, None)
        return state

    # public rows and a fitted classifier are shared: `clone` would unfit the latter
    def __sklearn_clone__(self) -> Self:
        # and so is what was made of them, which a search needs at every fit
        other = object.__new__(type(self))
        other.__dict__.update(vars(self))
        other.rest = clone(self.rest, safe=False)
        return other

    def __repr__(self) -> str:
        # rows and classifiers print over many lines
        said = [f"<{len(self.table())} rows>"]
        for name, value in self.get_params(deep=False).items():
            default = signature(type(self)).parameters[name].default
            if name not in ("rows", "propensity") and value != default:
                said.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(said)})"

    # -- what a subclass says -----------------------------------------------------

    #: Parameters, besides `rest` and those that are shared, that it is made of.
    _compared: tuple[str, ...] = ("known",)

    @abstractmethod
    def _laws(self, scenario: Any) -> Laws:
        """Distributions of a record given each value of the secret."""

    def _variation(self, laws: Laws, confidence: float) -> float:
        """Total variation within which the true distributions are, at a confidence."""
        raise scenario_error(
            "prior.confidence_needs_binned_law", owner=type(self).__name__
        )

    # -- public rows --------------------------------------------------------------

    @property
    def is_named(self) -> bool:
        """Whether the public rows have names for their columns."""
        return self.table().named

    def position(self, scenario: Any, n_features: int) -> int | None:
        """Return where the secret is in data without names, laid out as the rows are.

        Parameters
        ----------
        scenario : AttributeScenario
        n_features : int

        Returns
        -------
        int or None
            None where the data does not have it.

        Raises
        ------
        ScenarioError
            If the data is laid out in another way.
        """
        features = [c for c in self.table().columns if c != scenario.target]
        there = [c for c in features if c != scenario.column]
        if n_features == len(there):
            return None
        if n_features != len(features):
            raise scenario_error(
                "prior.unnamed_column_count_differs",
                n_features=n_features,
                n_there=len(there),
            )
        return features.index(scenario.column)

    def covered(self, scenario: Any) -> tuple[Hashable, ...]:
        """Return the columns that the belief speaks of, target included."""
        return tuple(c for c in self.table().columns if c != scenario.column)

    def check(self, scenario: Any = None) -> None:
        """Check the parameters; see the class."""
        check_rest(self.rest)
        if isinstance(self.known, str) or not isinstance(self.known, Sequence):
            raise scenario_error("prior.known_not_a_list", known=self.known)
        if len(self.known) > _MOST_KNOWN:
            raise scenario_error(
                "prior.known_too_many_columns",
                n_known=len(self.known),
                most_known=_MOST_KNOWN,
            )
        there = self.table().columns
        if scenario is not None:
            there = self.covered(scenario)
        strange = [name for name in self.known if name not in there]
        if strange:
            raise scenario_error(
                "prior.known_unknown_columns", strange=strange, there=list(there)
            )
        if scenario is not None:
            self.laws(scenario)

    def check_covers(self, scenario: Any, context: PublicContext) -> None:
        """Refuse columns read, target included, that neither rows nor rest cover."""
        if self.rest is not None:
            return
        covered = self.covered(scenario)
        # columns without names are as many as the rows have; see `position`
        names = context.feature_names or ()
        missing: list[object] = [repr(name) for name in names if name not in covered]
        if context.has_target and target_of(scenario, context) not in covered:
            one = context.n_targets == 1
            missing.append(
                Statement("prior.the_target" if one else "prior.its_targets")
            )
        if missing:
            raise scenario_error(
                "prior.columns_read_not_covered",
                missing=missing,
                owner=type(self).__name__,
                covered=list(covered),
            )

    def speaks_of(self, scenario: Any, context: PublicContext) -> Statement:
        """Return the columns covered, with a digest of what is believed of them."""
        laws = self.laws(scenario)
        return Statement(
            "prior.speaks_columns",
            names=list(self.covered(scenario)),
            digest=joblib.hash([*laws.content()])[:16],
        )

    # -- overlaps -----------------------------------------------------------------

    def laws(self, scenario: Any) -> Laws:
        """Return the distributions of a record, worked out once."""
        compared = [getattr(self, name) for name in self._compared]
        return self._once(
            lambda: self._laws(scenario), *compared, scenario.column, scenario.target
        )

    def overlap(self, scenario: Any = None) -> Overlap:
        """Return the overlap of the distributions, as far as they are trusted."""
        return self._overlap(scenario, 1.0 if self.rest is None else float(self.rest.w))

    def wider(self, scenario: Any = None) -> tuple[tuple[Statement, Overlap], ...]:
        """Return the overlap of distributions that are off, and of a wider rest."""
        if scenario.trust == "support":
            return ()
        overlap = self.overlap(scenario)
        # each of those compared: where some columns may be known, it is the
        # distributions given these that are off by so much, not those of all records
        which = (
            "prior.wider_conditional" if self.known else "prior.wider_total_variation"
        )
        found: list[tuple[Statement, Overlap]] = [
            (Statement(which, t=t), NearOverlap(overlap, t)) for t in _OFF
        ]
        if self.rest is not None and self.rest.w > 1:
            twice = 2 * float(self.rest.w)
            found.append(
                (
                    Statement("prior.wider_rest_odds", twice=twice),
                    self._overlap(scenario, twice),
                )
            )
        return tuple(found)

    def _overlap(self, scenario: Any, odds: float) -> Overlap:
        if scenario.trust == "support":
            return _ANY
        laws = self.laws(scenario)
        variation = 0.0
        if scenario.trust == "confidence":
            variation = self._variation(laws, float(scenario.confidence))
        # What public rows rule out may be so within the variation, and then nothing is
        # known of the rest of the record.
        parts: list[Overlap] = []
        pairs = scenario.pairs_of(laws.values)
        for p, q, mass in laws.pairs(pairs, doubted=variation > 0):
            part: Overlap = finite_overlap(p, q, odds) if mass else _ANY
            if variation and mass:
                # of parts of two distributions, in parts of their mass
                part = NearOverlap(part, min(1.0, variation / mass))
            parts.append(part)
        return WorstOverlap(tuple(parts)) if len(parts) > 1 else parts[0]

    def parts(self, scenario: Any) -> list[FiniteOverlap]:
        """Return the overlap of each pair of distributions, atom by atom."""
        odds = 1.0 if self.rest is None else float(self.rest.w)
        laws = self.laws(scenario)
        return [
            FiniteOverlap(tuple(p.tolist()), tuple(q.tolist()), odds)
            for p, q, _ in laws.pairs(scenario.pairs_of(laws.values))
        ]

    def _rest_statement(self) -> Statement:
        known: Statement | str = ""
        if self.known:
            known = Statement("assume.belief_known_columns", names=list(self.known))
        if self.rest is None:
            return Statement("assume.belief_nothing_else_read", known=known)
        return Statement(
            "assume.belief_rest_odds_bounded", known=known, w=float(self.rest.w)
        )
