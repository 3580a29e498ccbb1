"""Synthetic tables by trees of noisy tables."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skpuffer._template._raw_tables import (
    check_records,
    column_keys,
    mapped_context,
    read_raw,
)
from skpuffer._template._reading import (
    map_by_schema,
)
from skpuffer.accountants._budget_split import stage_layout
from skpuffer.base import PrivateEstimatorMixin, Task
from skpuffer.exceptions import PrivacyWarning, Statement, type_error, value_error
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.numbers import check_count, floats
from skpuffer.releases import AdaptiveRelease, PublicContext
from skpuffer.scenarios import AttributeScenario, RecordScenario, Scenario
from skpuffer.schema import Schema
from skpuffer.utils._silence import warn

from ._plan import Plan, SynthesisContext, TableCells
from ._structure import Budget, Structure, joint_counts

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from skpuffer.accountants import Accountant
    from skpuffer.kernel.numbers import Floats
    from skpuffer.noise import Noise
    from skpuffer.utils._types import BoundsLike, RandomState, Table

    from ._mechanism import Mechanism


#: What rounding may leave of the sum of the shares.
_DIGITS = 1e-9


class PrivateTableSynthesizer(PrivateEstimatorMixin):
    """Synthetic table with the margins and the links of a private one.

    A tree links each column to the one it depends on most, within the classes of a
    target if one is named. :meth:`sample` draws any number of rows at no further cost.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret to protect. None is one record, added or removed: differential
        privacy. A column that is the secret is left out of the synthetic table.
    accountant : Accountant, default=None
        How the loss is counted. None is (1, 1e-5)-differential privacy by
        :class:`~skpuffer.accountants.PrivacyLoss` under a `RecordScenario`, the same
        numbers by :class:`~skpuffer.accountants.Best` under any other scenario. Noise
        is Gaussian, or Laplace noise for a pure promise.
    schema : Schema, default=None
        Public code book: which columns there are, their bounds and levels. None needs
        `bounds` or `categories`.
    target : str or int, default=None
        Column within whose classes the others are linked, for models that predict it.
        None is the target of the schema if that is a category, and otherwise none. Rows
        whose target is none of the public levels are not counted.
    shares : tuple of 3 float, default=(0.2, 0.1, 0.7)
        Parts of the budget for the margins, the choice of the tree, and its tables: of
        mu squared with Gaussian noise, of epsilon with Laplace noise.
    n_bins : int, default=32
        Cells of a number for which the schema does not say how many; amounts have cells
        of the logarithm. More cells are finer, but noisier. A number whose bounds begin
        or end at zero has a cell for zero alone, and ten more towards it, each half as
        wide as the next.
    max_cells : int, default=2**18
        Most cells that a table of two columns, and the target, may have.
    n_samples : int, default=None
        Rows that :meth:`sample` draws by default. None is the number of records, which
        is public, or the noisy one where ``size='private'``.
    bounds : pair (low, high) or dict of {column: (low, high)}, default=None
        Public bounds, where there is no `schema`.
    categories : dict of {column: list}, default=None
        Public levels of categorical columns, where there is no `schema`.
    verbose : bool, default=False
        Whether to show a progress bar of the pairs of columns.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    tree_ : list of (column, column)
        Links, each parent before its children; within the classes of the target if
        `structure_` says so. Links that would be mostly noise are left out.
    structure_ : {'classes', 'tree', 'independent'}
        Structure that the noise allowed, by public numbers alone: links within the
        classes of the target, links without regard to it, or none.
    columns_ : list
        Names of the columns of the synthetic table.
    n_samples_ : int
        Rows that :meth:`sample` draws by default.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added, in units of the stages of the release.
    accountant_ : Accountant
        The accountant that set it.
    n_features_in_ : int
        Number of columns, the secret column not counted.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if all are strings.

    See Also
    --------
    skpuffer.summary.PrivateSummary : Released statistics, where no rows are needed.
    skpuffer.inspection.MarginalDisplay : Released margins beside those of a sample.

    Notes
    -----
    *The release* is accounted for as one mechanism of three stages: the counts of all
    columns (and classes); for every pair of columns the sum of absolute differences
    between its counts and those of independent columns; the tables of the links of the
    maximum spanning tree. With v columns besides the target and P pairs, one record
    moves these by at most sqrt(v), sqrt(P) and sqrt(v) in l2 where it is added or
    removed; replaced, by sqrt(2 v), 2 sqrt(P) and sqrt(2 v). Everything else is
    post-processing.

    *Post-processing.* Rare cells are put together in a table, by released counts. A
    link whose noisy score is below its table's own noise is left out, and its share is
    spent on the margins. Margins are inverse-variance means of all measurements. Tables
    are made non-negative and scaled (Sinkhorn), so that all agree exactly.

    *Where noise forbids.* If the noise of margins or scores is too large a share of the
    records, the classes and then the tree are given up before anything is released. A
    warning says so.

    *Limits.* A synthetic table has no link beyond the tree, and no rare combination is
    real. Impossible combinations may occur. The number of records is public, unless it
    is private: links are then chosen as for 5000 records.

    References
    ----------
    Chow and Liu (1968), Approximating discrete probability distributions with
    dependence trees; McKenna, Miklau and Sheldon (2021), Winning the NIST contest.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skpuffer.schema import Number, Schema
    >>> from skpuffer.synthesis import PrivateTableSynthesizer
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(18, 81, size=20_000)
    >>> smoker = np.where(rng.random(20_000) < 0.5 - age / 200, "yes", "no")
    >>> table = pd.DataFrame({"age": age, "smoker": smoker})
    >>> schema = Schema({"age": Number(18, 80, integer=True), "smoker": ["no", "yes"]})
    >>> synthesizer = PrivateTableSynthesizer(schema=schema).fit(table)
    >>> synthesizer.sample(1000).shape, synthesizer.tree_
    ((1000, 2), [('age', 'smoker')])
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "shares": ["array-like"],
        "n_bins": [Integral],
        "max_cells": [Integral],
        "n_samples": [Integral, None],
        "bounds": ["array-like", dict, None],
        "categories": [dict, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        schema: Schema | None = None,
        target: Hashable | None = None,
        shares: Sequence[float] = (0.2, 0.1, 0.7),
        n_bins: int = 32,
        max_cells: int = 2**18,
        n_samples: int | None = None,
        bounds: BoundsLike = None,
        categories: Mapping[Hashable, Sequence[Hashable]] | None = None,
        verbose: bool = False,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.schema = schema
        self.target = target
        self.shares = shares
        self.n_bins = n_bins
        self.max_cells = max_cells
        self.n_samples = n_samples
        self.bounds = bounds
        self.categories = categories
        self.verbose = verbose
        self.random_state = random_state

    _takes_any_size = True

    # -- checks, before anything is read ------------------------------------------

    def _check_parameters(self, scenario: Scenario) -> None:
        check_count(n_bins=self.n_bins)
        check_count(max_cells=self.max_cells)
        if self.n_samples is not None:
            check_count(n_samples=self.n_samples)
        _check_shares(self.shares)
        given = self.bounds is not None or self.categories is not None
        if self.schema is None and not given:
            raise value_error("synthesis.schema_missing")
        if not isinstance(self.target, Hashable):
            raise type_error("synthesis.target_not_a_name", target=self.target)
        named = tuple({self.target, getattr(self.schema, "target", None)} - {None})
        if named and scenario.left_out(named, len(named)):
            raise value_error("synthesis.target_is_secret")

    def _read_by(self, schema: Schema) -> TableCells:
        """Map of the table to cells, by a code book without the secret."""
        target = self.target
        if target is None and schema.classes is not None:
            target = schema.target
        if target is not None and target not in schema:
            raise value_error(
                "synthesis.target_not_in_schema",
                target=target,
                names=list(schema.with_target(None).names),
            )
        cells = TableCells(schema.with_target(None), target, int(self.n_bins))
        most, names = cells.largest_table()
        if most > self.max_cells:
            raise value_error(
                "synthesis.table_too_many_cells",
                names=list(names),
                most=most,
                max_cells=self.max_cells,
            )
        return cells

    def _validate(self, X: Any, y: Any) -> tuple[Any, None, TableCells]:
        """Check the table; its cells are read by the code book."""
        check_records(self, X)
        if self.schema is not None:
            scenario = RecordScenario() if self.scenario is None else self.scenario
            # the same map again: what came is its cells
            cells = map_by_schema(self, scenario, None)
            self.n_features_in_ = len(cells.names)
            return X, None, cells
        X = read_raw(self, X, reset=True)
        cells = self._read_by(
            Schema.from_parameters(
                column_keys(X), bounds=self.bounds, categories=self.categories
            )
        )
        return cells(X), None, cells

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # the code book gives what is missing a cell, and text too
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    # -- the release --------------------------------------------------------------

    def _release(self, task: Task) -> AdaptiveRelease:
        cells, context = task.reading, task.context
        n = context.n_records
        if self.schema is None:
            # what a scenario says of rows is read by the same cells
            context = mapped_context(context, cells, len(cells.names))
        layout = stage_layout(task.accountant, task.scenario)
        make = partial(
            AdaptiveRelease,
            n_records=n,
            name="synthetic table",
            **layout._asdict(),
        )
        # Every layout of stages is made to have sensitivity one, so the noise is known
        # before the stages are. It is asked of tables nonetheless: of one count, an
        # accountant that chooses among families would take another than of those.
        tables = Structure(cells.n_cells).stages(tuple(self.shares), layout.norm)
        probe = make(context=context, stages=tables)
        noise = task.accountant.calibrate(probe, task.scenario).noise
        budget = Budget(float(np.max(noise.std(1))), layout.relation, layout.norm)
        known = _USUAL if context.size == "private" else n
        plan = Plan.within(cells, known, budget, tuple(self.shares))
        facts = {f.name: getattr(context, f.name) for f in fields(PublicContext)}
        return make(
            context=SynthesisContext(**facts, plan=plan),
            stages=plan.structure.stages(tuple(self.shares), layout.norm),
            assumptions=_assumptions(cells, task.scenario),
        )

    def _announce_noise(self, release: Any, noise: Noise) -> None:
        plan = release.context.plan
        if plan.given_up:
            warn(
                Statement(
                    "synthesis.noise_too_large",
                    owner=type(self).__name__,
                    given_up=plan.given_up,
                    n_records=release.n_records,
                ),
                PrivacyWarning,
            )

    def _execute(
        self, task: Task, release: Any, noise: Noise, rng: np.random.Generator
    ) -> Floats:
        plan = release.context.plan
        classes, cells = plan.split(task.X)
        shown = _shown if self.verbose else iter
        mechanism: Mechanism = plan.mechanism(release, noise)
        return mechanism.run(classes, cells, rng, shown)

    def _publish(self, value: Floats, release: Any) -> None:
        plan = release.context.plan
        names = plan.cells.names
        self._plan = plan
        self._model = plan.mechanism(release, self.noise_).read(value)
        self.columns_ = list(names)
        self.structure_ = plan.kind
        self.tree_ = [
            (names[plan.columns[parent]], names[plan.columns[child]])
            for parent, child in self._model.edges
        ]
        n_records = max(1, round(float(self._model.masses.sum())))
        self.n_samples_ = self.n_samples or n_records

    # -- post-processing ----------------------------------------------------------

    def sample(
        self, n: int | None = None, random_state: RandomState = None
    ) -> pd.DataFrame:
        """Draw the rows of a synthetic table, at no further cost.

        Parameters
        ----------
        n : int, default=None
            Number of rows; None is `n_samples_`.
        random_state : int, RandomState instance, Generator or None, default=None
            None draws from the operating system's entropy.

        Returns
        -------
        pandas.DataFrame of shape (n, n_columns)
            Of the columns, types and levels of the schema. Each cell of the margins has
            its share of the rows, rounded up or down.
        """
        check_is_fitted(self)
        n = self.n_samples_ if n is None else check_count(n=n)
        rng, _ = noise_generator(random_state)
        classes, cells = self._model.sample(n, rng)
        return self._plan.cells.decode(self._plan.in_order(classes, cells), rng)

    def marginal(self, columns: Hashable | Sequence[Hashable]) -> pd.Series:
        """Return the released counts of the cells of some columns.

        Parameters
        ----------
        columns : name or list of names
            Columns of the synthetic table.

        Returns
        -------
        pandas.Series
            Expected numbers of records, non-negative, which sum to the number of
            records; cells by their texts.

        Raises
        ------
        ValueError
            If a name is no column or comes twice, or there are more than `max_cells`
            cells.
        """
        check_is_fitted(self)
        at, index = self._cells_of(columns)
        joint = self._plan.joint(self._model, at)
        return pd.Series(joint.ravel(), index, name="count")

    def _counted(self, rows: Table, columns: Hashable | Sequence[Hashable]) -> Any:
        """Count the rows of a table by the same cells as :meth:`marginal`."""
        at, index = self._cells_of(columns)
        cells = self._plan.cells
        codes, n_cells = cells(rows)[:, at], [cells.n_cells[k] for k in at]
        # a target that is none of its levels is in no cell
        codes = codes[np.all(codes < n_cells, axis=1)]
        counts = joint_counts(list(codes.T), n_cells)
        return pd.Series(counts.ravel(), index, name="count")

    def _cells_of(
        self, columns: Hashable | Sequence[Hashable]
    ) -> tuple[list[int], pd.Index]:
        """Positions of columns, and the texts of their cells."""
        names = columns if isinstance(columns, list | tuple) else [columns]
        plan = self._plan
        unknown = [name for name in names if name not in self.columns_]
        if unknown or len(set(names)) < len(names) or not names:
            raise value_error(
                "synthesis.columns_invalid", known=self.columns_, columns=columns
            )
        at = [self.columns_.index(name) for name in names]
        n_cells = [plan.cells.n_cells[k] for k in at]
        if np.prod(n_cells, dtype=object) > self.max_cells:
            raise value_error(
                "synthesis.columns_too_many_cells",
                prod=np.prod(n_cells, dtype=object),
                max_cells=self.max_cells,
            )
        labels = [plan.cells.labels(k) for k in at]
        if len(at) == 1:
            return at, pd.Index(labels[0], name=names[0])
        return at, pd.MultiIndex.from_product(labels, names=names)


#: Number of records for which links are chosen, where it is private.
_USUAL = 5000


def _check_shares(shares: object) -> None:
    """Refuse shares that are not three parts of one."""
    values = floats(shares)
    parts = values is not None and values.shape == (3,) and np.all(values > 0)
    if values is None or not parts or abs(float(np.sum(values)) - 1) > _DIGITS:
        raise value_error("synthesis.shares_invalid", shares=shares)


def _assumptions(cells: TableCells, scenario: Scenario) -> tuple[Statement, ...]:
    """What the certificate says of the synthetic table, in sentences."""
    said = [Statement("assume.synthetic_columns_public", columns=list(cells.names))]
    inner = getattr(scenario, "scenario", scenario)
    if isinstance(inner, AttributeScenario):
        said.append(Statement("assume.synthetic_secret_left_out", column=inner.column))
    return tuple(said)


def _shown(pairs: Iterable[Any]) -> Iterable[Any]:
    """The pairs, with a progress bar."""
    from tqdm.auto import tqdm  # a display, wanted by few: not at import

    shown: Iterable[Any] = tqdm(pairs, desc="pairs of columns", unit="pair")
    return shown
