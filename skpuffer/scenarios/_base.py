"""Scenarios, the statements of what is secret, and their binding to public facts."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, TypeAlias, TypeVar, cast

import joblib
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from skpuffer.distributions._weak_cache import share_life
from skpuffer.exceptions import (
    ScenarioError,
    Statement,
    scenario_error,
    unsupported_error,
)
from skpuffer.kernel.facts import Adjacency, Fact
from skpuffer.kernel.numbers import Floats, Indices, check_count, check_option
from skpuffer.releases import GradientRelease, PublicContext, QueryRelease, VoteRelease
from skpuffer.utils._sklearn import NestedParametersMixin, linked_to_docs

#: Tolerance between a row and a declared one: a share of the feature's range, and a
#: share of its largest number for the digits of that.
_ROUNDING = 1e-6
_DIGITS = 1e-12

#: What a scenario can be asked about.
AnyRelease = QueryRelease | GradientRelease | VoteRelease

#: A table as a query reads it.
Rows: TypeAlias = Floats | sparse.sparray | sparse.spmatrix

#: The pairs of secrets to keep apart, as a user gives them.
Pairs = str | Iterable[tuple[Any, Any]]

Kind = TypeVar("Kind", bound=Fact)
Checked = TypeVar("Checked")

#: Facts that a bound scenario keeps.
_MOST_FACTS = 32
Method = TypeVar("Method", bound=Callable[..., Fact])

#: Assumption on the targets where records depend on each other.
TARGETS_OF_RECORDS = Statement("assume.targets_not_stated")


@linked_to_docs
class Scenario(NestedParametersMixin, BaseEstimator, ABC):  # type: ignore[misc] # scikit-learn is untyped
    """A statement of what is secret.

    It holds parameters only, no data and no state. Bound to the public facts of a table
    it offers facts about a query.

    Examples
    --------
    One of one's own may be made of another. Here everybody is in the table twice:

    >>> from skpuffer.accountants import GroupPrivacy
    >>> from skpuffer.scenarios import RecordScenario, Scenario
    >>> from skpuffer.summary import PrivateMean
    >>> class RepeatedScenario(Scenario):
    ...     def __init__(self, times=2):
    ...         self.times = times
    ...
    ...     def check(self):
    ...         RecordScenario(self.times).check()
    ...
    ...     def bind(self, context):
    ...         return RecordScenario(self.times).bind(context)
    >>> for scenario in (RecordScenario(), RepeatedScenario()):
    ...     mean = PrivateMean(scenario, GroupPrivacy(), bounds=(0, 1))
    ...     print(mean.fit([[0.0], [0.5], [0.5], [1.0]]).certificate_.sensitivity)
    0.25
    0.5
    """

    # clones share the weak cache of distributions with the scenario they are made from
    def __sklearn_clone__(self) -> "Scenario":
        clone: Scenario = super().__sklearn_clone__()
        share_life(self, clone)
        return clone

    #: Whether a record may become any other with its secret, as nothing is said of how
    #: far it moves. Then only what bounds one record's influence on a release helps.
    any_records: bool = False

    #: Whether calibration reads the private rows; only an empirical prior does.
    needs_empirical: bool = False

    #: Whether records are taken to be drawn independently, as the errors of an estimate
    #: of a population need them to be.
    independent_records: bool = False

    #: What it is for, as a clause, where the facts it offers are read by few.
    _purpose: Statement | None = None

    # Column of ids, whose equal ones are one unit of privacy, and how many rows of a
    # unit are read at most. None where records are by themselves.
    unit: Hashable | None = None
    max_rows: int | None = None

    #: Whether `max_rows` is still to be read off public ids; see :meth:`of_sizes`.
    reads_sizes: bool = False

    #: Whether the table given is a pool, known to the attacker, of which what a query
    #: is run on is drawn; see :meth:`table_size` and :meth:`BoundScenario.realise`.
    draws_from_pool: bool = False

    def table_size(self, n_given: int) -> int:
        """Return how many records a query is run on."""
        return n_given

    # called at every binding, whatever scikit-learn's switches for validation say
    @abstractmethod
    def check(self) -> None:
        """Check the parameters by plain code; an error names the parameter."""

    #: Whether the data is read through a public coding of the scenario.
    is_coded: bool = False

    @property
    def code_book(self) -> Any:
        """Code book of that coding, a :class:`~skpuffer.schema.Schema`, or None."""
        return None

    def coded(self, X: Any) -> Any:
        """Return a table as the scenario's public coding reads it, row by row."""
        return X

    def coded_records(
        self, X: Any, y: Any, target_name: Any, **fill: bool
    ) -> tuple[Any, Any]:
        """Return coded records, each as one that the coding knows.

        Parameters
        ----------
        X : data frame of shape (n_records, n_columns)
            As :meth:`coded` returned it.
        y : array-like of shape (n_records,) or None
        target_name : str or None
        **fill : dict of {'fill_rows', 'fill_targets': bool}
            Whether missing values are filled too.

        Returns
        -------
        X : data frame
        y : array-like or None
        """
        return X, y

    #: What it is once bound: its facts declare themselves; see :class:`BoundScenario`.
    _bound: ClassVar[type["BoundScenario"]]

    def bind(self, context: PublicContext) -> "BoundScenario":
        """Bind the scenario to the public facts of a table."""
        # parameters may have been set since they were last checked
        self.check()
        return self._bound(self, context)

    def secret_position(
        self, feature_names: Sequence[Hashable] | None, n_features: int
    ) -> int | None:
        """Position of the secret among the columns of a table, or None."""
        return None

    def unit_position(
        self, feature_names: Sequence[Hashable] | None, n_features: int
    ) -> int | None:
        """Position of the column of ids among the columns of a table, or None."""
        unit: Any = self.unit
        if unit is None:
            return None
        if feature_names is not None:
            names = list(feature_names)
            return names.index(unit) if unit in names else None
        there = isinstance(unit, Integral) and unit < n_features
        return int(unit) if there else None

    def left_out(
        self, feature_names: Sequence[Hashable] | None, n_features: int
    ) -> list[int]:
        """Return the positions of the columns that are no features, in their order."""
        at = feature_names, n_features
        found = {self.secret_position(*at), self.unit_position(*at)}
        return sorted(position for position in found if position is not None)

    def check_numbers(self, labels: Sequence[int] | None, position: int | None) -> None:
        """Refuse a frame with numbers for names by which a position is in doubt."""
        held = [*(labels or ())]
        if self.unit is None or position is None or held == [*range(len(held))]:
            return
        raise scenario_error("units.numbered_columns_ambiguous", unit=self.unit)

    def check_secret(self, secret: ArrayLike) -> None:
        """Refuse secret values that no prior speaks of.

        Parameters
        ----------
        secret : ndarray of shape (n_records,)
        """
        return

    def of_sizes(self, largest: int) -> "Scenario":
        """Return the scenario of units of public sizes, once these are known."""
        return self

    def check_secret_of_units(self, secret: ArrayLike, units: Indices) -> None:
        """Refuse secret values that the rows of a unit should share and do not."""
        return

    def check_groups(self, groups: Indices) -> None:
        """Refuse groups of records that the scenario does not cover."""
        return

    def declared_groups(self, context: PublicContext) -> tuple[int, ...] | None:
        """Return which records belong together; None if nothing is said of it."""
        return context.groups

    def declared_bounds(self, context: PublicContext) -> tuple[Floats, Floats] | None:
        """Return public bounds (low, high) of each feature the scenario declares."""
        return None

    def public_table(self) -> pd.DataFrame | None:
        """Return a public table like the private one, without the secret, or None.

        Public preprocessing may be fitted on it.
        """
        return None

    def public_rows(self) -> list[tuple[Any, Hashable, Hashable | None]]:
        """Return public tables, as they came, that private records must not be in."""
        return []

    def public_record(self) -> dict[Hashable, Any]:
        """Return a public value of each column as a dict; empty without public rows."""
        return {}


def offers(kind: type[Fact]) -> Callable[[Method], Method]:
    """Mark the method of a bound scenario that offers a kind of fact."""

    def mark(method: Method) -> Method:
        # read by `__init_subclass__`: a fact is offered where its method stands
        method.offers = kind  # type: ignore[attr-defined]
        return method

    return mark


class BoundScenario(ABC):
    """A scenario bound to the public facts of a table. Immutable.

    Parameters
    ----------
    scenario : Scenario
    context : PublicContext

    Examples
    --------
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import Adjacency, RecordScenario
    >>> run = GradientRelease(n_records=1000, batch_size=100, n_steps=50)
    >>> bound = RecordScenario(k=2).bind(run.context)
    >>> [kind.__name__ for kind in bound.provides(run)]
    ['Adjacency']
    >>> bound.fact(Adjacency, run).count
    2
    >>> bound.describe()
    'RecordScenario(k=2)'
    """

    def __init__(self, scenario: Any, context: PublicContext) -> None:
        self.scenario = scenario
        self.context = context

    #: Whether the query is run on another table than the one given; see `realise`.
    realises: ClassVar[bool] = False

    #: Methods by the kind of fact they offer; see :func:`offers`.
    _facts: ClassVar[dict[type[Fact], Callable[..., Fact]]] = {}

    def __init_subclass__(cls, of: type[Scenario] | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if of is not None:
            of._bound = cls
        # by the mark alone: names of methods are free
        own = {
            method.offers: method
            for method in vars(cls).values()
            if hasattr(method, "offers")
        }
        # a new mapping: the facts of the base class stay its own
        cls._facts = cls._facts | own

    @property
    def target_assumption(self) -> Statement | None:
        """Assumption on the targets, where the scenario speaks of features only."""
        return None

    @abstractmethod
    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        """Kinds of fact on offer for a release."""

    def check_rows(self, X: Rows) -> Rows:
        """Return private rows as the scenario declares them; refuse what cannot be.

        A scenario that lists all possible rows returns those listed, to the last digit.
        Errors quote no row.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_records, n_features)

        Returns
        -------
        X : {ndarray, sparse matrix} of shape (n_records, n_features)
        """
        return X

    def check_table(self, X: Rows, y: Any) -> None:
        """Refuse records that cannot be, their targets looked at as well."""
        return

    def realise(self, X: Rows, y: Any, rng: np.random.Generator) -> tuple[Rows, Any]:
        """Return the table that the query is run on, where :attr:`realises` says so.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_given, n_features)
        y : ndarray of shape (n_given,) or None
        rng : numpy.random.Generator
            The release's own generator, whose state is secret.

        Returns
        -------
        X, y : the table given, or a draw from a pool by the prior
        """
        return X, y

    def check_secrets(self, secret: ArrayLike | None) -> None:
        """Refuse secrets that do not go together."""
        return

    def fact(self, kind: type[Kind], release: AnyRelease, norm: float = 2) -> Kind:
        """Return one fact about a release.

        Parameters
        ----------
        kind : type
            One of the facts this scenario :meth:`provides`.
        release : QueryRelease, GradientRelease or VoteRelease
        norm : float, default=2
            Norm in which the output's sensitivity will be measured.

        Returns
        -------
        Fact
            Not certified if the scenario reads the private rows.
        """
        # Found once, however many ask: an account and its proof rest on one fact. By
        # identity, which a release that is kept cannot lose to another one.
        known = vars(self).setdefault("_known_facts", {})
        at = kind, id(release), float(norm)
        if at in known:
            return cast(Kind, known[at][1])
        # asked again here, as what is offered depends on the release
        if kind not in self.provides(release):
            raise scenario_error(
                "scenario.fact_not_offered",
                scenario_type=type(self.scenario).__name__,
                kind=kind.__name__,
                name=release.name,
            )
        # looked up by its name, so that a subclass replaces it as any other method
        fact = getattr(self, self._facts[kind].__name__)(release, norm)
        assert isinstance(fact, Fact)
        # in one place for all facts, so that no scenario can forget it
        if self.scenario.needs_empirical:
            fact = replace(fact, certified=False, reads_private_rows=True)
        if len(known) >= _MOST_FACTS:
            known.clear()
        known[at] = release, fact
        return cast(Kind, fact)

    def describe(self) -> str:
        """Return one line for the certificate."""
        # Parameters are public; the text of a long one may run over several lines. Made
        # once: scikit-learn takes as long for it as a proof does.
        if "_described" not in vars(self):
            self._described = " ".join(repr(self.scenario).split())
        return self._described


def finite_output(
    release: QueryRelease,
    X: Any,
    y: Any,
    what: object = Statement("simulation.one_simulated_table"),
) -> Floats:
    """Run a release on a simulated table and refuse an output that is not finite.

    A distance to NaN would be lost in a maximum.
    """
    output = release.run(X, y)
    if not np.all(np.isfinite(output)):
        raise scenario_error(
            "scenario.release_not_finite", name=release.name, what=what
        )
    return output


def matched_rows(X: Floats, rows: Floats) -> Indices:
    """Index of the declared row that each row equals up to rounding; -1 for none."""
    # each feature's own: large numbers in one say nothing of another
    near = np.maximum(
        _ROUNDING * np.ptp(rows, axis=0), _DIGITS * np.abs(rows).max(axis=0)
    )
    # every row against every declared one: only small tables are declared whole
    apart = np.abs(X[:, None] - rows)
    # A constant feature of zeros has no tolerance: then equal is near, and all else is
    # infinitely far.
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.where(apart == 0, 0.0, apart / near).max(axis=2, initial=0.0)
    return np.where(apart.min(axis=1) <= 1, apart.argmin(axis=1), -1)


def refuse_repeated(groups: Indices, scenario: Scenario) -> None:
    """Refuse ids that repeat, where the secret is that of single records."""
    # whoever has several rows would be promised what holds for one of them
    if len(np.unique(groups)) < len(groups):
        raise scenario_error(
            "scenario.group_ids_repeat", scenario_type=type(scenario).__name__
        )


def check_units(scenario: Scenario) -> None:
    """Check the parameters `unit` and `max_rows` of a scenario."""
    unit: Any = scenario.unit
    is_limited = scenario.max_rows is not None or scenario.reads_sizes
    counted = isinstance(unit, Integral) and not isinstance(unit, bool)
    if unit is not None and not (isinstance(unit, str) or (counted and unit >= 0)):
        raise scenario_error("units.unit_is_no_column", unit=unit)
    if scenario.max_rows is not None:
        check_count(max_rows=scenario.max_rows)
    elif unit is not None and not is_limited:
        raise scenario_error("units.max_rows_missing", unit=unit)


def name_of_units(scenario: Scenario) -> Hashable:
    """Return the column of ids, or 'groups' where ids come beside the table."""
    return "groups" if scenario.unit is None else scenario.unit


def kind_of_units(scenario: Scenario, k: int = 1) -> str | None:
    """Return how many units differ, and by which ids; two kinds do not add up."""
    if scenario.max_rows is None:
        return None
    ids = "groups" if scenario.unit is None else repr(scenario.unit)
    return f"{k} of {ids}"


def stated(check: Callable[..., Checked], **named: Any) -> Checked:
    """Return what a check makes of a parameter; its error is a ScenarioError."""
    try:
        return check(**named)
    except ValueError as error:
        raise ScenarioError(*error.args) from None


@contextmanager
def restating(code: str, **parameters: Any) -> Iterator[None]:
    """Say of an error within what it means to the scenario, by a code."""
    try:
        yield
    except ScenarioError:
        raise
    except (TypeError, ValueError) as error:
        raise scenario_error(code, error=error, **parameters) from None


def protected_records(given: ArrayLike | None, n: int | None = None) -> list[int]:
    """Positions of the records whose value is secret, in order."""
    # all records, as many as there are known to be
    if given is None:
        return [] if n is None else list(range(n))
    try:
        times = np.asarray(given)
    except ValueError:  # rows of different lengths
        times = np.empty(0)
    # booleans would be read as the records 0 and 1, hence integers only
    whole = times.ndim == 1 and times.size and times.dtype.kind in "iu"
    if not whole or times.min() < 0 or (n is not None and times.max() >= n):
        raise ScenarioError(
            Statement("scenario.protected_not_record_indices", given=given)
            if n is None
            else Statement("scenario.protected_out_of_range", most=n - 1, given=given)
        )
    # sorted and each once: a record given twice is still one record
    return [int(record) for record in np.unique(times)]


def resolve_pairs(
    pairs: Pairs, secrets: Iterable[Any], owner: object, public: bool = True
) -> tuple[tuple[int, int], ...]:
    """Return pairs of secrets as indices, each unordered pair once, or refuse them.

    Messages quote the secrets only if `public` is true.
    """
    try:
        secrets = list(secrets)
        there = (
            Statement("scenario.secrets_known", owner=owner, secrets=secrets)
            if public
            else Statement("scenario.secrets_are_others", owner=owner)
        )
        # by equality and hash, so 1 and 1.0 and True are one secret
        index = {secret: i for i, secret in enumerate(secrets)}
    except TypeError:
        raise scenario_error(
            "scenario.secrets_not_hashable_sequence", owner=owner
        ) from None
    if len(index) < len(secrets):
        raise scenario_error("scenario.secret_twice", there=there)
    # with a single secret nothing is kept apart, and any release would pass
    if len(secrets) < 2:
        raise scenario_error(
            "scenario.fewer_than_two_secrets",
            there=there
            if public
            else Statement(
                "scenario.secrets_counted", owner=owner, n_secrets=len(secrets)
            ),
        )
    # unordered: noise and divergences are taken in both directions of a pair
    if isinstance(pairs, str):
        # a text is a sequence too, whose letters are no pairs
        check_option(("all",), pairs=pairs)
        n = len(secrets)
        return tuple((i, j) for i in range(n) for j in range(i + 1, n))
    try:
        pairs = [tuple(pair) for pair in pairs]
    except TypeError:
        raise scenario_error("scenario.pairs_invalid", pairs=pairs) from None
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise scenario_error("scenario.pairs_empty_or_invalid", pairs=pairs)
    out = []
    for a, b in pairs:
        for value in (a, b):
            if value not in index:
                raise scenario_error(
                    "scenario.pair_secret_unknown", secret=value, there=there
                )
        # a secret looks like itself: such a pair would ask for nothing
        if a == b:
            raise scenario_error("scenario.pair_secrets_equal", pair=(a, b))
        i, j = sorted((index[a], index[b]))
        out.append((i, j))
    # each once, in the order given, so that two ways of writing it are equal
    return tuple(dict.fromkeys(out))


# -- differential privacy and group privacy as a scenario ------------------------------


class RecordScenario(Scenario):
    """The secret is everything about any `k` records, or units; all else may be known.

    This is differential privacy (`k=1`) and group privacy (`k>1`): the promise holds
    for each pair of tables that differ in `k` records. Where a person or a household
    has several rows, name the `unit`: the promise is then about all rows of one.

    Parameters
    ----------
    k : int, default=1
        How many records may belong together. It is taken on trust: where there are ids,
        name them as the `unit`.
    relation : {'add_remove', 'replace', 'relabel'}, default='add_remove'
        Whether a record's presence is secret ('add_remove') or its content ('replace',
        which costs up to twice as much). 'relabel' protects the target alone (label
        differential privacy): the features may be known. It costs less for linear
        models and gradients.
    unit : str or int, default=None
        Column of ids: all rows with one id are one unit of privacy. It is dropped
        before fitting and ignored in prediction; rows without an id are left out. With
        `max_rows` and no `unit`, the `groups` given to `fit` are the ids.
    max_rows : int, default=None
        Rows of a unit that count at most; others are dropped at random first (an engine
        that holds the table weighs them down). Noise grows with it. It must be known
        without the table.
    sizes : {'private', 'public'}, default='private'
        Whether the sizes of units are public. Then `max_rows` may be left out, and is
        the size of the largest unit. Not with 'add_remove'.
    size : {'public', 'private'} or int, default=None
        Number of records: 'public' reads it off the table; 'private' releases it with
        noise ('add_remove' only); an integer is declared, and sums are divided by it.
        Estimators that need the exact number refuse the latter two. None is that of
        the estimator's `schema`, or 'public'.

    References
    ----------
    Chaudhuri and Hsu (2011), Sample complexity bounds for differentially private
    learning, section 4 (label privacy).

    Examples
    --------
    >>> from skpuffer.scenarios import RecordScenario
    >>> RecordScenario(k=4, relation="replace")
    RecordScenario(k=4, relation='replace')

    At most two visits of each patient are read, and both are hidden together:

    >>> import pandas as pd
    >>> from skpuffer.summary import PrivateMean
    >>> visits = pd.DataFrame(
    ...     {"patient": [1, 1, 1, 2, 3, 3], "days": [3.0, 5, 1, 2, 8, 4]}
    ... )
    >>> mean = PrivateMean(RecordScenario(unit="patient", max_rows=2), bounds=(0, 9))
    >>> mean.fit(visits).feature_names_in_
    array(['days'], dtype=object)
    """

    independent_records = True

    def __init__(
        self,
        k: int = 1,
        relation: str = "add_remove",
        *,
        unit: Hashable | None = None,
        max_rows: int | None = None,
        sizes: str = "private",
        size: int | str | None = None,
    ) -> None:
        self.k = k
        self.relation = relation
        self.unit = unit
        self.max_rows = max_rows
        self.sizes = sizes
        self.size = size

    @property
    def any_records(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether a record may become any other, and not its target alone."""
        # no prior is stated, so none can be used: only the release bounds a record's
        # influence
        return self.relation != "relabel"

    @property
    def count(self) -> int:
        """How many records may differ."""
        return int(self.k) * int(self.max_rows or 1)

    @property
    def reads_sizes(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether sizes of units are public, and no limit is given."""
        # read before it is checked
        named = isinstance(self.sizes, str) and self.sizes == "public"
        return named and self.max_rows is None

    def of_sizes(self, largest: int) -> "RecordScenario":
        """Return the scenario of units of public sizes, once these are known."""
        return clone(self).set_params(max_rows=largest)

    def check(self) -> None:
        """Check the parameters; see the class."""
        check_units(self)
        check_count(k=self.k)
        check_option(("add_remove", "replace", "relabel"), relation=self.relation)
        check_option(("private", "public"), sizes=self.sizes)
        if self.sizes == "public" and self.relation == "add_remove":
            raise scenario_error("units.public_sizes_need_replace")
        if self.size is not None:
            check_size_said(self.size, self.relation)

    def check_groups(self, groups: Indices) -> None:
        """Refuse ids that repeat: any records may be secret, of any groups."""
        refuse_repeated(groups, self)

    def bind(self, context: PublicContext) -> BoundScenario:
        """Bind to the public facts of a table; see :class:`Scenario`."""
        bound = super().bind(context)
        if self.reads_sizes:
            # of one row nothing would be said of the others
            raise scenario_error("units.sizes_not_read")
        # what was made without regard to it has the exact number in it
        if self.size not in (None, "public") and context.size == "public":
            raise unsupported_error("size.release_with_number", size=self.size)
        return bound


def check_size_said(size: int | str, relation: str) -> None:
    """Check what is said of the number of records."""
    if not isinstance(size, str):
        check_count(size=size)
        return
    said = check_option(("public", "private"), size=size)
    if said == "private" and relation != "add_remove":
        raise scenario_error("size.relation_without", relation=relation)


#: What neighbouring tables have in common, by what is said of their size.
_NEIGHBOURS = {
    "public": "assume.neighbouring_tables",
    "declared": "assume.neighbouring_tables_size_declared",
    "private": "assume.neighbouring_tables_size_private",
}


class _BoundRecord(BoundScenario, of=RecordScenario):
    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        # where nothing bounds one record's influence, no noise hides it
        return frozenset({Adjacency} if release.is_bounded else ())

    @offers(Adjacency)
    def _adjacency(self, release: AnyRelease, norm: float) -> Adjacency:
        count, relation = self.scenario.count, self.scenario.relation
        if self.context.of_units:
            # a unit is one record of the release, whatever its rows
            count = int(self.scenario.k)
        units = kind_of_units(self.scenario, int(self.scenario.k))
        who = self._who()
        # what is taken as public, in the words of the relation: the certificate quotes
        # it
        of_rows = self.scenario.max_rows is not None and not self.context.of_units
        what = {
            "add_remove": Statement("assume.record_added_or_removed"),
            # their number is public, of all units together
            "replace": Statement("assume.records_of_units_replaced")
            if of_rows
            else Statement("assume.record_replaced"),
            "relabel": Statement("assume.record_given_another_target"),
        }[relation]
        public = Statement(
            _NEIGHBOURS[self.context.size],
            who=who,
            what=what,
            n_records=self.context.n_records,
        )
        assumptions: tuple[Statement, ...] = (public,)
        if self.scenario.sizes == "public":
            assumptions += (Statement("assume.sizes_of_units_public"),)
        if relation == "relabel":
            return Adjacency(
                count=count,
                move=float("inf"),
                relation="replace",
                relabelled=True,
                settled=True,
                coupling_id=relabelling(self.context, count, units),
                units=units,
                assumptions=assumptions,
            )
        # a record may become any other: only the release's own sensitivity bounds the
        # move
        return Adjacency.arbitrary(
            count, assumptions, relation, any_records=True, units=units
        )

    def _who(self) -> Statement:
        """Whose records may differ."""
        scenario = self.scenario
        if scenario.max_rows is not None:
            return Statement(
                "assume.record_of_units",
                k=int(scenario.k),
                unit=name_of_units(scenario),
                max_rows=int(scenario.max_rows),
            )
        if scenario.k == 1:
            return Statement("assume.record_one")
        return Statement("assume.record_up_to_k", k=int(scenario.k))


# -- names of couplings that several releases of one table share -----------------------


def relabelling(
    context: PublicContext, count: int, units: str | None = None
) -> str | None:
    """Name of the coupling of tables in which so many targets differ, or None.

    The target of one release may be a feature of another, which hides it from nobody:
    only releases of equal columns rest on one coupling.
    """
    columns = context.feature_names, context.target_name
    if None in columns:
        return None
    who = count if units is None else units
    return f"relabel:{who}:{joblib.hash(columns)}"


def coupling_in_table(bound: BoundScenario, kind: str, *key: Any) -> str | None:
    """Name of a coupling of two neighbouring tables, or None if it has no name.

    A coupling belongs to a named table with named columns: two tables of one prior may
    depend on each other in any way.
    """
    table, context = bound.scenario.table, bound.context
    if table is None or context.feature_names is None:
        return None
    # equal digests mean equal priors, pairs and columns: one and the same coupling
    digest = joblib.hash([*key, context.feature_names])
    return f"{kind}, {context.n_records} records of {table!r}:{digest}"


def same_table(coupling: str | None, table: str | None) -> tuple[Statement, ...]:
    """Assumptions that a shared coupling makes, in sentences."""
    if coupling is None:
        return ()
    return (Statement("assume.same_table_by_name", table=table),)
