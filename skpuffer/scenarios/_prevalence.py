"""The secret of how common a value is in a table."""

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse, stats

from skpuffer.exceptions import Statement, scenario_error, type_error
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.facts import Adjacency, Fact, arbitrary_coupling
from skpuffer.kernel.numbers import (
    Floats,
    Indices,
    check_count,
    check_option,
    check_real,
)
from skpuffer.releases import PublicContext, QueryRelease
from skpuffer.schema._cells import cell_key
from skpuffer.utils._checks import check_share
from skpuffer.utils._reading import cells_of, is_frame, row_count

from ._base import (
    AnyRelease,
    BoundScenario,
    Scenario,
    offers,
    refuse_repeated,
    relabelling,
)

#: Rates of whole counts are read as such within this share of the number of records: a
#: product of floats is a few of these off.
_ROUNDING = 2.0**-50

#: Relative error of a binomial tail, and what stands for one that is smaller still.
_SURVIVAL_ROUNDING = 1e-9
_LEAST = float(np.finfo(float).tiny)

Count = tuple[int, int]


def _is_whole(value: Any) -> bool:
    """Whether a value is an integer, as truth values are not."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


class PrevalenceScenario(Scenario):
    """The secret is how common a class or an attribute is: one of two counts or rates.

    The two worlds are tables of as many records, of which `low` or `high` have the
    value. They differ in ``high - low`` records, so the promise is that of group
    privacy of that many records, and no more.

    Parameters
    ----------
    column : str, int or None
        The column whose value it is; None is the target. With ``relation='replace'`` it
        may stay among the features, or be no column of the data.
    low, high : int or float
        Integers count the records with the value. Floats are rates: of `n` records the
        whole number below ``rate * n``, or with ``law='binomial'`` each record's
        chance.
    relation : {'replace', 'relabel'}, default='replace'
        Whether the records that differ are others altogether, or keep all but their
        target, so that no feature is hidden. 'relabel' needs the target as `column`,
        and with 'binomial' features whose law does not depend on it.
    value : object, default=None
        The value. None is the second of two, in their order.
    law : {'fixed', 'binomial'}, default='fixed'
        'fixed': exactly so many records with the value. 'binomial': each record has the
        value independently with the rate of its world; records are coupled one by one
        to agree as often as they can.
    event_delta : float, default=1e-9
        With ``law='binomial'``, the mass that may be left out to bound the number of
        records that differ. Zero leaves all records.

    Notes
    -----
    The worlds have a coupling that differs in exactly ``high - low`` records, and none
    differs in fewer. Divergences are jointly convex, so a promise for each two tables
    that differ so is one for the two worlds, whatever else is believed of the records.

    With ``law='binomial'``, :class:`~skpuffer.accountants.PrivacyLoss` takes the mean
    over the number of records that differ where that needs less noise than its
    quantile does.

    References
    ----------
    Kifer and Machanavajjhala (2014), Pufferfish, section 3. Lindvall (2002), Lectures
    on the coupling method, section I.5 (maximal couplings).

    Examples
    --------
    >>> from skpuffer.accountants import RenyiDP
    >>> from skpuffer.releases import GradientRelease
    >>> from skpuffer.scenarios import PrevalenceScenario
    >>> scenario = PrevalenceScenario(None, 0.10000, 0.10004)
    >>> scenario.counts(50_000)
    (5000, 5002)
    >>> run = GradientRelease(n_records=50_000, n_steps=10, sampling="full_batch")
    >>> found = RenyiDP(alpha=16.0, delta=None).calibrate(run, scenario)
    >>> found.certificate.coupling_count
    2
    """

    independent_records = True

    def __init__(
        self,
        column: str | int | None,
        low: float,
        high: float,
        *,
        relation: str = "replace",
        value: Any = None,
        law: str = "fixed",
        event_delta: float = 1e-9,
    ) -> None:
        self.column = column
        self.low = low
        self.high = high
        self.relation = relation
        self.value = value
        self.law = law
        self.event_delta = event_delta

    @property
    def any_records(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether a record may become any other, and not its target alone."""
        return self.relation != "relabel"

    @property
    def is_rate(self) -> bool:
        """Whether `low` and `high` are rates, and not counts."""
        return not _is_whole(self.low)

    def check(self) -> None:
        """Check the parameters; see the class."""
        column: Any = self.column
        named = column is None or isinstance(column, str) or _is_whole(column)
        if not named:
            raise type_error("prevalence.column_invalid", column=column)
        # it is compared with cells and classes, one by one
        if type(self.value).__hash__ is None:
            raise type_error(
                "prevalence.value_not_comparable", value_type=type(self.value).__name__
            )
        check_option(("replace", "relabel"), relation=self.relation)
        check_option(("fixed", "binomial"), law=self.law)
        check_share(event_delta=self.event_delta)
        for name in ("low", "high"):
            self._check_end(name, getattr(self, name))
        if _is_whole(self.high) == self.is_rate:
            raise scenario_error(
                "prevalence.ends_kinds_mixed", low=self.low, high=self.high
            )
        if self.low >= self.high:
            raise scenario_error(
                "prevalence.high_not_above_low", low=self.low, high=self.high
            )
        if self.law == "binomial" and not self.is_rate:
            raise scenario_error(
                "prevalence.binomial_needs_rates", low=self.low, high=self.high
            )

    def _check_end(self, name: str, end: Any) -> None:
        """Refuse what is neither a count nor a rate."""
        if _is_whole(end):
            check_count(**{name: end}, least=0)
        elif not 0 <= check_real(**{name: end}) <= 1:
            raise scenario_error("prevalence.rate_out_of_range", name=name, end=end)

    def check_groups(self, groups: Indices) -> None:
        """Refuse ids that repeat: counted are records, of any groups."""
        refuse_repeated(groups, self)

    def bind(self, context: PublicContext) -> BoundScenario:
        """Bind to the public facts of a table; see :class:`Scenario`."""
        self.check()
        of_target = self._of_target(context)
        if self.relation == "relabel" and not of_target:
            raise scenario_error("prevalence.relabel_needs_target", column=self.column)
        if of_target:
            self._check_value(context)
        bound = _BoundPrevalence(self, context)
        if self.law == "fixed":
            self._check_counts(bound.counts, context.n_records)
        return bound

    def counts(self, n_records: int) -> Count:
        """Return the (expected) number of records with the value in either world."""
        self.check()
        n = check_count(n_records=n_records)
        low, high = (self._count(end, n) for end in (self.low, self.high))
        return low, high

    def _count(self, end: float, n: int) -> int:
        if not self.is_rate:
            return int(end)
        # 0.29 * 100 is below 29, and meant is 29
        exact = float(end) * n
        nearest = round(exact)
        near = abs(exact - nearest) <= n * _ROUNDING
        return nearest if near else int(np.floor(exact))

    def _check_counts(self, counts: Count, n: int) -> None:
        """Refuse counts of a table that has fewer records, or that coincide."""
        low, high = counts
        if high > n:
            raise scenario_error("prevalence.count_exceeds_records", high=high, n=n)
        if low == high:
            raise scenario_error(
                "prevalence.counts_coincide",
                low=self.low,
                high=self.high,
                n=n,
                count=low,
            )

    def _of_target(self, context: PublicContext) -> bool:
        """Whether the value is known to be one of the target."""
        if self.column is None:
            return True
        return context.target_name is not None and self.column == context.target_name

    def _check_value(self, context: PublicContext) -> None:
        """Refuse a value that is no public class, or none where there are several."""
        classes = context.classes
        if classes is None:
            return
        if self.value is None:
            if len(classes) != 2:
                raise scenario_error(
                    "prevalence.class_not_named",
                    n_classes=len(classes),
                    classes=list(classes),
                )
        elif not any(bool(self.value == label) for label in classes):
            raise scenario_error(
                "prevalence.class_unknown", classes=list(classes), value=self.value
            )

    def worlds(
        self, X: Any, y: Any = None, *, random_state: Any = None
    ) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """Make a table of either world by relabelling as few records as possible.

        For attacks and figures, from public or simulated tables: nothing here is
        private. The column alone is rewritten, at random positions.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_columns)
        y : array-like of shape (n_records,), default=None
            The target; needed where it is what is relabelled.
        random_state : int, RandomState instance, Generator or None, default=None
            Which records are relabelled, and with ``law='binomial'`` how many.

        Returns
        -------
        low : tuple of (X, y)
        high : tuple of (X, y)
            All records that have the value in the first have it in the second too.
        """
        self.check()
        n = row_count(X)
        low, high = counts = self.counts(n)
        rng, _ = noise_generator(random_state)
        if self.law == "fixed":
            self._check_counts(counts, n)
        else:
            # coupled record by record: who has the value at the lower rate keeps it
            low = int(rng.binomial(n, self.low))
            more = (self.high - self.low) / (1 - self.low)
            high = low + int(rng.binomial(n - low, min(1.0, more)))
        column = self.column
        of_target = column is None or (
            y is not None and column == getattr(y, "name", None)
        )
        rank = ranking(X, y, None if of_target else column, self.value, rng)
        first, second = (relabelled(X, y, rank, count) for count in (low, high))
        return first, second


class _BoundPrevalence(BoundScenario):
    @cached_property
    def counts(self) -> Count:
        """How many records have the value in either world."""
        return self.scenario.counts(self.context.n_records)

    def provides(self, release: AnyRelease) -> frozenset[type[Fact]]:
        # where nothing bounds one record's influence, no noise hides it
        return frozenset({Adjacency} if release.is_bounded else ())

    @offers(Adjacency)
    def _adjacency(self, release: AnyRelease, norm: float) -> Adjacency:
        scenario = self.scenario
        count, event, survival = self._differ
        certain = event == 0
        relabel = scenario.relation == "relabel"
        coupling = None
        if certain:
            # it holds for any so many records, wherever they are
            known = relabelling(self.context, count)
            coupling = known if relabel else arbitrary_coupling("replace", count)
        # of a query nobody asks for it
        if isinstance(release, QueryRelease):
            survival = None
        return Adjacency(
            count=count,
            # a record may become any other: only the release's own sensitivity bounds
            # the move
            move=float("inf"),
            relation="replace",
            relabelled=relabel,
            # two given tables: which records differ between them is not by chance
            any_records=not relabel and scenario.law == "fixed",
            settled=scenario.law == "fixed",
            coupling_id=coupling,
            count_is_certain=certain,
            delta=event,
            survival=survival,
            assumptions=self.statements(count),
        )

    @cached_property
    def _differ(self) -> tuple[int, float, Floats | None]:
        """Number of records that differ, the mass of the event of more, and its law."""
        low, high = self.counts
        if self.scenario.law == "fixed":
            return high - low, 0.0, None
        n, scenario = self.context.n_records, self.scenario
        # Total variation of a record's two laws: whatever goes with the value has the
        # same law given it. Rounded up, as a difference of floats may be too small.
        gap = float(np.nextafter(float(scenario.high) - float(scenario.low), 2.0))
        survival = stats.binom.sf(np.arange(n), n, min(gap, 1.0))
        # Rounded up, and never zero where it may happen: in a moment a number of
        # records that is rarer than any float counts if their cost is large enough.
        survival = np.clip(survival * (1 + _SURVIVAL_ROUNDING), _LEAST, 1.0)
        # the least number that is exceeded rarely enough; none so small that there is
        # nothing to hide
        rare = survival <= float(scenario.event_delta)
        count = max(1, int(np.append(rare, True).argmax()))
        return count, float(survival[count]) if count < n else 0.0, survival

    def statements(self, count: int) -> tuple[Statement, ...]:
        """Assumptions on the data and the attacker, in sentences."""
        scenario, n = self.scenario, self.context.n_records
        column: object = repr(scenario.column)
        if scenario.column is None:
            column = Statement("prior.the_target")
        value: object = repr(scenario.value)
        if scenario.value is None:
            value = Statement("assume.prevalence_second_value")
        low, high = self.counts
        if scenario.law == "fixed":
            worlds = Statement(
                "assume.prevalence_secret_counts",
                value=value,
                column=column,
                low=low,
                high=high,
                n=n,
            )
            differ = Statement("assume.prevalence_given_tables_differ", count=count)
        else:
            worlds = Statement(
                "assume.prevalence_secret_rates",
                value=value,
                column=column,
                low=scenario.low,
                high=scenario.high,
            )
            differ = Statement("assume.prevalence_coupled_records_differ", count=count)
            if count == n:
                differ = Statement("assume.prevalence_all_may_differ")
        what = Statement("assume.prevalence_become_any_others")
        if scenario.relation == "relabel":
            what = Statement("assume.prevalence_targets_alone")
            if scenario.law == "binomial":
                # features with a law of their own given the value would tell of it too
                what = Statement("assume.prevalence_targets_alone_same_law")
        return (
            worlds,
            Statement("assume.prevalence_worlds_differ", differ=differ, what=what, n=n),
            Statement(
                "assume.prevalence_as_group_privacy",
                count=count,
                relation=scenario.relation,
            ),
        )

    def describe(self) -> str:
        low, high = self.counts
        n = self.context.n_records
        shown = f"{low} or {high} of {n} records"
        if self.scenario.law == "binomial":
            shown = f"about {shown}"
        return f"{super().describe()}: {shown}"


# -- tables in which a value is as common as one likes, by the least relabelling -------


@dataclass(frozen=True)
class Ranking:
    """Which records have the value, for each number of them, and what the others have.

    Records come in the order in which they get the value, those with it first.
    """

    order: Indices
    value: Any
    others: NDArray[Any]
    column: Any


def ranking(
    X: Any, y: Any, column: Any, value: Any, rng: np.random.Generator
) -> Ranking:
    """Return in which order records get or lose a value."""
    held = _target(y) if column is None else _column(X, column)
    if y is not None and (given := row_count(y)) != (n := row_count(X)):
        raise scenario_error("prevalence.target_count_differs", given=given, n=n)
    codes, labels = pd.factorize(held, sort=True)
    if np.any(codes < 0):
        raise scenario_error("prevalence.secret_column_missing_values")
    if value is None:
        if len(labels) != 2:
            raise scenario_error("prevalence.value_not_named", n_labels=len(labels))
        position = 1
    else:
        same = np.flatnonzero([cell_key(v) == cell_key(value) for v in labels])
        if len(same) != 1 or len(labels) < 2:
            raise scenario_error("prevalence.value_not_in_column", value=value)
        position = int(same[0])
    has = codes == position
    shuffled = rng.permutation(len(has))
    order = np.concatenate([shuffled[has[shuffled]], shuffled[~has[shuffled]]])
    # who loses it gets what some record without it has
    others = held.copy()
    others[has] = rng.choice(held[~has], size=int(has.sum()))
    return Ranking(order, labels[position], others, column)


def relabelled(X: Any, y: Any, rank: Ranking, count: int) -> tuple[Any, Any]:
    """Return a copy of a table in which so many records have the value."""
    cells = rank.others.copy()
    cells[rank.order[:count]] = rank.value
    if rank.column is None:
        return X, y if y is None else _like(y, cells)
    if isinstance(X, pd.DataFrame):
        column = X[rank.column]
        return X.assign(**{rank.column: _like(column, cells)}), y
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        values = nw.new_series(rank.column, cells, backend=nw.get_native_namespace(X))
        return frame.with_columns(values).to_native(), y
    X = np.array(X)
    X[:, rank.column] = cells
    return X, y


def _like(old: Any, cells: NDArray[Any]) -> Any:
    """Cells as what they stand for: a series keeps its index, name and dtype."""
    if isinstance(old, pd.Series):
        return pd.Series(cells, index=old.index, name=old.name).astype(old.dtype)
    series = nw.from_native(old, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        backend = nw.get_native_namespace(series)
        return nw.new_series(series.name, cells, backend=backend).to_native()
    return cells


def _target(y: Any) -> NDArray[Any]:
    if y is None:
        raise scenario_error("prevalence.target_missing")
    held = np.asarray(y)
    if held.ndim != 1:
        raise scenario_error("prevalence.target_not_one_dimensional")
    return held


def _column(X: Any, column: Any) -> NDArray[Any]:
    """Cells of a column, by name or position."""
    if sparse.issparse(X):
        raise scenario_error("prevalence.table_sparse")
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        if column in frame.columns:
            return np.array(cells_of(frame.get_column(column)))
    else:
        rows = np.asarray(X)
        by_position = not isinstance(column, str) and rows.ndim == 2
        if by_position and 0 <= column < rows.shape[1]:
            return np.array(rows[:, column])
    raise scenario_error("prevalence.column_unknown", column=column)
