"""One column is secret, through every column that depends on it."""

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skpuffer.distributions._weak_cache import MEMORY
from skpuffer.exceptions import ScenarioError, Statement, scenario_error
from skpuffer.kernel.numbers import (
    Floats,
    Indices,
    check_count,
    check_option,
    check_probability,
)
from skpuffer.releases import PublicContext
from skpuffer.scenarios._base import (
    BoundScenario,
    Pairs,
    Scenario,
    check_units,
    refuse_repeated,
    resolve_pairs,
)
from skpuffer.scenarios._priors._binned_law import BinnedLaw
from skpuffer.scenarios._priors._overlap import Belief, explained
from skpuffer.scenarios._priors._rows import RowBelief
from skpuffer.scenarios._priors._tables import (
    ReferenceTable,
    ordered,
    prior_arrays,
    secret_values,
)
from skpuffer.scenarios._simulator import check_running
from skpuffer.schema import Schema
from skpuffer.schema._cells import cell_codes, cell_key
from skpuffer.utils._checks import check_name
from skpuffer.utils._reading import matching_names, to_pandas

from ._belief import BoundBelief, believed
from ._bound import DISTRIBUTION_TYPES, MAX_SECRETS, BoundAttribute

#: A declared belief, a table, a callable that draws one, or the word 'empirical'.
Prior: TypeAlias = (
    Belief
    | ArrayLike
    | pd.DataFrame
    | ReferenceTable
    | Callable[[np.random.Generator], Any]
)


class AttributeScenario(Scenario):
    """The secret is the value of one column, and the other columns depend on it.

    The noise covers how far the query's distribution moves when the secret value
    changes and the other columns change with it, as they do under the prior.

    Parameters
    ----------
    column : str or int
        The secret column, as the prior names it, or a position counted from zero for
        tables without names. The column is dropped before fitting and ignored in
        prediction.
    level : {'record', 'dataset'}, default='record'
        Owner of the secret value. 'record': each record has its own, and records are
        independent. 'dataset': all records share one value and are drawn given it. A
        declared belief without rows protects, at 'dataset', the values of all records
        together.
    prior : belief, table, callable, list of these, or 'empirical', default=None
        The attacker's belief about a record, which is needed.

        - :class:`BoundedOdds` and :class:`BoundedInference` need no table.
          :class:`BinnedLaw` and :class:`DeclaredOdds` (``level='record'``) need public
          rows.
        - A public table with the secret column, or a callable of a NumPy generator
          that returns one. The promise holds for each belief of a list.
        - ``'empirical'`` takes the training data: it warns, and the certificate is an
          estimate.
    pairs : 'all' or list of (value, value), default='all'
        The values that must look alike.
    prior_as : {'cells', 'sample', 'law', 'support', 'confidence'}, default=None
        How far the prior is trusted. None is 'sample' for tables, 'law' for beliefs.

        - 'cells': a record, coded by public cells that are chosen from the table's
          rows, is distributed as in these: ``BinnedLaw(table, "auto")``. Several
          releases of one named `table` compose.
        - 'sample': draws from an unknown distribution. The certificate is an estimate.
        - 'law': the belief is exactly the table's empirical distribution. Certified.
        - 'support': any distribution on the table's rows. Certified, at nearly the
          cost of differential privacy.
        - 'confidence': an independent sample of a distribution on the values seen.
          Certified with probability `confidence` over the sample.
    target : str or int, default=None
        The prior's column that is the target. None takes the name of `y` at fit.
    confidence : float, default=0.99
        For ``prior_as='confidence'``.
    n_draws : int, default=100
        Simulated tables, for queries that are not sums over records.
    random_state : int, default=0
        Seed of those public simulations, not of the noise.
    table : str or None, default=None
        Public name of the table. Certificates of several releases on one named table
        may be added up (:func:`~skpuffer.privacy.compose`).
    n_jobs : int, default=None
        Processes that run the query on simulated tables, as in joblib.
    verbose : bool, default=False
        Whether to show a progress bar of simulated tables.
    unit : str, default=None
        Column of ids: the secret is that of a unit, such as a person with several rows.
        With `max_rows` and no `unit`, the `groups` given to `fit` are the ids.
    max_rows : int, default=None
        Rows of a unit that are read at most (``level='record'``); others are dropped at
        random first, and noise grows with it. Under a table as `prior`, all rows of a
        unit share one secret and are independent given it. Under :class:`BoundedOdds`
        and :class:`BoundedInference` the belief is about all rows of a unit together.

    References
    ----------
    Pierquin et al. (2024), Rényi Pufferfish privacy, Definition F.1 and Table 1; Zhang,
    Ohrimenko and Cummings (2022), Attribute privacy (levels).

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer.accountants import GeneralWasserstein
    >>> from skpuffer.scenarios import AttributeScenario
    >>> from skpuffer.summary import PrivateMean
    >>> public = pd.DataFrame({"sex": [0, 0, 1, 1], "height": [160, 170, 168, 182]})
    >>> private = pd.DataFrame({"sex": [1, 0, 1, 0], "height": [175, 162, 171, 166]})
    >>> scenario = AttributeScenario(
    ...     "sex", level="record", prior=public, prior_as="law"
    ... )
    >>> mean = PrivateMean(scenario, GeneralWasserstein()).fit(private)
    >>> mean.feature_names_in_.tolist()  # the secret is dropped
    ['height']
    >>> round(mean.certificate_.gain, 2)  # of 22 centimetres, 12 have to be hidden
    1.83
    """

    independent_records = True

    def __init__(
        self,
        column: Hashable,
        *,
        level: str = "record",
        prior: Prior | Sequence[Prior] | None = None,
        pairs: Pairs = "all",
        prior_as: str | None = None,
        target: Hashable | None = None,
        confidence: float = 0.99,
        n_draws: int = 100,
        random_state: int = 0,
        table: str | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        unit: str | None = None,
        max_rows: int | None = None,
    ) -> None:
        self.column = column
        self.level = level
        self.prior = prior
        self.pairs = pairs
        self.prior_as = prior_as
        self.target = target
        self.confidence = confidence
        self.n_draws = n_draws
        self.random_state = random_state
        self.table = table
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.unit = unit
        self.max_rows = max_rows

    @property
    def needs_empirical(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether the private rows are to be taken as the prior."""
        return isinstance(self.prior, str) and self.prior == "empirical"

    @property
    def any_records(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether a belief is declared, which says nothing of how far records move."""
        return bool(self._beliefs())

    def check(self) -> None:
        """Check the parameters; see the class."""
        check_option(("record", "dataset"), level=self.level)
        if self.prior_as is not None:
            check_option(("cells", *DISTRIBUTION_TYPES), prior_as=self.prior_as)
        check_probability(confidence=self.confidence)
        check_count(n_draws=self.n_draws, least=2)
        check_count(random_state=self.random_state, least=0)
        check_name(table=self.table)
        check_running(self.n_jobs, self.verbose)
        self._check_units()
        if not isinstance(self.column, Hashable):
            raise _not_one(self.column)
        if not isinstance(self.target, Hashable):
            raise scenario_error("attribute.target_not_one_column", target=self.target)
        if isinstance(self.prior, str):
            check_option(("empirical",), prior=self.prior)
            if self.prior_as == "cells":
                raise scenario_error("prior.cells_of_private_rows")
            return
        if self._beliefs():
            self._check_beliefs()
            return
        secrets = set()
        for table in self._tables():
            for which in ("column", "target"):
                name = getattr(self, which)
                if name not in table and not (which == "target" and name is None):
                    several = isinstance(name, tuple) and which == "column"
                    if several and set(name) <= set(table.columns):
                        raise _not_one(name)
                    raise scenario_error(
                        "prior.column_missing",
                        which=which,
                        name=name,
                        columns=list(table.columns),
                    )
            secrets.update(secret_values(table, self.column))
        if len(secrets) > MAX_SECRETS:
            raise scenario_error(
                "prior.too_many_secret_values",
                column=self.column,
                n_secrets=len(secrets),
                max_secrets=MAX_SECRETS,
            )
        resolve_pairs(
            self.pairs,
            ordered(secrets),
            Statement("assume.secret_named_column", column=self.column),
        )

    def _check_units(self) -> None:
        """Check ids of units, beside what is said of the secret."""
        check_units(self)
        if self.max_rows is None:
            return
        if self.level != "record":
            raise scenario_error("units.level_not_record", level=self.level)
        # by position one column would shift the other
        named = isinstance(self.unit, str) and isinstance(self.column, str)
        if self.unit is not None and not named:
            raise scenario_error("units.positions_beside_secret", unit=self.unit)
        if self.unit is not None and self.unit == self.column:
            raise scenario_error("units.unit_is_secret", unit=self.unit)
        of_rows = [b for b in self._beliefs() if isinstance(b, RowBelief)]
        if of_rows and self.max_rows > 1:
            raise scenario_error(
                "units.belief_of_single_rows", belief_type=type(of_rows[0]).__name__
            )

    def _priors(self) -> list[Any]:
        """The priors as a list."""
        given: Any = self.prior
        priors = list(given) if isinstance(given, list | tuple) else [given]
        if self.prior_as != "cells" or self.needs_empirical:
            return priors
        kept = vars(self).get("_kept_cells")
        if kept is None or kept[0] is not given:
            self._kept_cells = kept = given, [self._by_cells(one) for one in priors]
        return kept[1]

    def _by_cells(self, prior: Any) -> Any:
        """Belief in a table by cells that are chosen from its rows."""
        if prior is None or isinstance(prior, Belief):
            return prior
        if callable(prior):
            prior = prior(np.random.default_rng(int(self.random_state)))
        shared = isinstance(prior, ReferenceTable)
        return _law_by_cells(prior if shared else ReferenceTable(prior))

    def __getstate__(self) -> dict[str, Any]:
        # whoever hashes a scenario must not see that it was used
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_kept_cells", None)
        return state

    def _beliefs(self) -> list[Any]:
        """The priors that are declared beliefs."""
        return [prior for prior in self._priors() if isinstance(prior, Belief)]

    def _binned(self) -> BinnedLaw | None:
        """The belief by whose coding the data is read, or None."""
        binned = [belief for belief in self._beliefs() if isinstance(belief, BinnedLaw)]
        return binned[0] if binned else None

    @property
    def trust(self) -> str:
        """How far the prior is trusted; see the parameter `prior_as`."""
        if self.prior_as is not None and self.prior_as != "cells":
            return self.prior_as
        return "law" if self._beliefs() else "sample"

    def pairs_of(self, secrets: Sequence[Any]) -> tuple[tuple[int, int], ...]:
        """Return the pairs to keep apart, as indices of the values of a belief."""
        return resolve_pairs(
            self.pairs, secrets, Statement("prior.owner_declared_belief")
        )

    def _check_beliefs(self) -> None:
        """Refuse what says nothing beside a declared belief."""
        beliefs = self._beliefs()
        if len(beliefs) < len(self._priors()):
            raise scenario_error("prior.beliefs_and_tables_mixed")
        if sum(isinstance(belief, BinnedLaw) for belief in beliefs) > 1:
            raise scenario_error("prior.several_binned_laws")
        of_rows = [b for b in beliefs if isinstance(b, RowBelief)]
        column: Any = self.column
        counted = isinstance(column, Integral) and not isinstance(column, bool)
        if not isinstance(column, str) and not (counted and column >= 0):
            raise scenario_error("attribute.column_not_name_or_position", column=column)
        if counted and any(belief.is_named for belief in of_rows):
            raise scenario_error("attribute.position_for_named_rows", column=column)
        if self.level != "record" and of_rows:
            raise scenario_error("attribute.level_not_record", level=self.level)
        for belief in beliefs:
            belief.check(self)
        if all(isinstance(belief, RowBelief) for belief in beliefs):
            return
        # all of these are about rows of a table
        said = {
            "pairs": isinstance(self.pairs, str) and self.pairs == "all",
            "prior_as": self.prior_as is None,
            "target": self.target is None,
        }
        for name, default in said.items():
            if not default:
                raise scenario_error("prior.parameter_needs_table", name=name)

    def _tables(self) -> list[ReferenceTable]:
        """The priors as reference tables; callables are run with the public seed."""
        priors = self._priors()
        if not priors:
            raise scenario_error("prior.empty_list")
        out = []
        for prior in priors:
            if prior is None:
                raise scenario_error("prior.is_none")
            if callable(prior):
                prior = prior(np.random.default_rng(int(self.random_state)))
            shared = isinstance(prior, ReferenceTable)
            out.append(prior if shared else ReferenceTable(prior))
        return out

    def secret_position(
        self, feature_names: Sequence[Hashable] | None, n_features: int
    ) -> int | None:
        """Position of the secret column among the columns of a table, or None."""
        if feature_names is not None:
            names = list(feature_names)
            return names.index(self.column) if self.column in names else None
        if self.needs_empirical or not isinstance(self.column, int | np.integer):
            return None
        if self._beliefs():
            return self._declared_position(n_features)
        # the data is laid out as the prior without its target
        columns = [c for c in self._tables()[0].columns if c != self.target]
        # the target itself may be the secret
        there = n_features == len(columns) and self.column in columns
        return columns.index(self.column) if there else None

    def _declared_position(self, n_features: int) -> int | None:
        """Position of the secret in data without names, under a declared belief."""
        for belief in self._beliefs():
            if isinstance(belief, RowBelief):
                return belief.position(self, n_features)
        column: Any = self.column
        if column >= n_features:
            raise scenario_error(
                "attribute.position_out_of_range", column=column, n_features=n_features
            )
        return int(column)

    def check_numbers(self, labels: Sequence[int] | None, position: int | None) -> None:
        """Refuse a frame with numbers for names by which a position is in doubt."""
        named = not isinstance(self.column, int | np.integer)
        if labels is None or self.needs_empirical or named:
            return
        numbered = list(labels) == list(range(len(labels)))
        tables = [b.table() for b in self._beliefs() if isinstance(b, RowBelief)]
        if not self._beliefs():
            tables = self._tables()
        there = position is not None
        # where no table says how the data is laid out, columns are counted
        counted: list[Hashable] = list(range(len(labels) + (not there)))
        layouts = [[c for c in t.columns if c != self.target] for t in tables]
        for columns in layouts or [counted]:
            rest = [c for c in columns if c != self.column and c in labels]
            if list(labels) != (columns if there else rest) and (there or not numbered):
                raise scenario_error(
                    "attribute.numbered_columns_ambiguous", column=self.column
                )

    def check_secret(self, secret: ArrayLike) -> None:
        """Refuse values that no prior has, or that differ where all records share one.

        Parameters
        ----------
        secret : ndarray of shape (n_records,)
        """
        if self._beliefs():
            return
        held = set(map(cell_key, np.asarray(secret)))
        if self.level == "dataset" and len(held) > 1:
            raise scenario_error(
                "attribute.several_values_at_dataset_level", column=self.column
            )
        if self.needs_empirical:
            return
        known = set().union(*(secret_values(t, self.column) for t in self._tables()))
        if not held <= set(map(cell_key, known)):
            raise scenario_error("attribute.values_not_in_prior", column=self.column)

    def check_secret_of_units(self, secret: ArrayLike, units: Indices) -> None:
        """Refuse units whose rows have several values, where a table is the prior."""
        # a declared belief is about all rows of a unit, whatever values they have
        if self._beliefs():
            return
        held = np.column_stack([units, cell_codes(np.asarray(secret))])
        if len(np.unique(held, axis=0)) > len(np.unique(units)):
            raise scenario_error("units.secret_varies", column=self.column)

    def check_groups(self, groups: Indices) -> None:
        """Refuse ids that repeat at ``level='record'``: one person, one record."""
        if self.level == "record":
            refuse_repeated(groups, self)

    def declared_bounds(self, context: PublicContext) -> tuple[Floats, Floats] | None:
        """Return the range of each feature over the public prior tables."""
        tables = self._public_tables()
        if not tables:
            return None
        # public rows, as the query reads them: bounds of theirs tell nothing private
        low, high = [], []
        for table in tables:
            # of a column that a belief leaves to its rest nothing is known
            if self._beliefs() and not set(context.feature_names or ()) <= set(
                table.columns
            ):
                return None
            X, _ = prior_arrays(self, table, self.target, context)
            low.append(X.min(axis=0))
            high.append(X.max(axis=0))
        return np.min(low, axis=0), np.max(high, axis=0)

    def public_rows(self) -> list[tuple[Any, Hashable, Hashable | None]]:
        """Return the prior tables, or the public rows of beliefs, as they came."""
        if self.needs_empirical:
            return []
        of_rows = [b.table() for b in self._beliefs() if isinstance(b, RowBelief)]
        tables = of_rows if self._beliefs() else self._tables()
        return [(table, self.column, self.target) for table in tables]

    def public_table(self) -> pd.DataFrame | None:
        """Return the rows of all prior tables, without the secret and the target."""
        dropped = [c for c in (self.column, self.target) if c is not None]
        frames = [
            table.frame().drop(columns=dropped, errors="ignore")
            for table in self._public_tables()
        ]
        return pd.concat(frames, ignore_index=True) if frames else None

    def public_record(self) -> dict[Hashable, Any]:
        """Return what comes first in each column of the first prior table.

        Returns
        -------
        dict of {column: object}
        """
        for table in self._public_tables():
            frame = table.frame()
            if not table.named:
                # an array of data has its columns in this order, without the target
                frame = frame.drop(columns=[self.target], errors="ignore")
                frame.columns = range(frame.shape[1])
            held = {c: column.dropna() for c, column in frame.items()}
            return {c: column.iloc[0] for c, column in held.items() if len(column)}
        return {}

    def _public_tables(self) -> list[ReferenceTable]:
        """Public rows of the prior, as the data is read; none where there are none."""
        if self.needs_empirical:
            return []
        if not self._beliefs():
            return self._tables()
        rows = [belief for belief in self._beliefs() if isinstance(belief, RowBelief)]
        return [self._as_read(belief) for belief in rows]

    def _as_read(self, belief: RowBelief) -> ReferenceTable:
        """Public rows of a belief, as the data is read."""

        def read() -> ReferenceTable:
            return ReferenceTable(self.coded(belief.table().frame()))

        binned = self._binned()
        if binned is None or belief is not binned:
            return read()
        # its laws are worked out anew for any other rows, bins or names, and each fit
        # asks for the rows several times
        return MEMORY.found((binned.laws(self),), "coded rows", read)

    @property
    def is_coded(self) -> bool:  # type: ignore[override] # read, never assigned
        """Whether the data is read through the bins of a :class:`BinnedLaw`."""
        return self._binned() is not None

    @property
    def code_book(self) -> Any:
        """Code book of those bins, or None."""
        bins = getattr(self._binned(), "bins", None)
        return bins if isinstance(bins, Schema) else None

    def coded(self, X: Any) -> Any:
        """Return a table as the declared bins read it; see :class:`Scenario`."""
        binned = self._binned()
        if binned is None or matching_names(X) is None:
            return X
        return binned.read(self, to_pandas(X))

    def coded_records(
        self, X: Any, y: Any, target_name: Any, **fill: bool
    ) -> tuple[Any, Any]:
        """Return each record as the nearest one declared; see :class:`Scenario`."""
        binned = self._binned()
        if binned is None or matching_names(X) is None:
            return X, y
        target = self.target if self.target is not None else target_name
        return binned.read_records(self, to_pandas(X), y, target, **fill)

    def explain(
        self, epsilon: ArrayLike = (0.1, 0.3, 1.0), *, delta: float = 1e-5
    ) -> pd.DataFrame:
        """Return how much a declared belief reduces noise at some budgets.

        It reads no data, needs no fit, and assumes Gaussian noise under
        :class:`~skpuffer.accountants.OverlapAmplification`.

        Parameters
        ----------
        epsilon : float or array-like of float, default=(0.1, 0.3, 1.0)
        delta : float, default=1e-5

        Returns
        -------
        DataFrame
            A row for each epsilon. `eta` is the share of a record left to hide. `gain`
            is times less noise than plain differential privacy of one replaced record.
            `fallback` is the epsilon whatever is believed, before `max_fallback`.
            Further columns hold epsilon if the belief is off.

        Examples
        --------
        >>> from skpuffer.scenarios import AttributeScenario, BoundedOdds
        >>> scenario = AttributeScenario("race", level="record", prior=BoundedOdds(2))
        >>> scenario.explain([0.1, 0.3]).round(2)
                  eta  gain  fallback  with odds within 4
        epsilon
        0.1      0.13  5.88      0.69                0.20
        0.3      0.06  6.31      2.27                0.62
        """
        self.check()
        if not self._beliefs():
            raise scenario_error("attribute.explain_needs_declared_belief")
        return explained(*believed(self), epsilon, delta)

    def bind(self, context: PublicContext) -> BoundScenario:
        """Bind to the public facts of a table; see :class:`Scenario`."""
        self.check()
        kind = BoundBelief if self._beliefs() else BoundAttribute
        return kind(self, context)

    def __repr__(self) -> str:
        declared, n_priors = self._beliefs(), len(self._priors())
        if self.needs_empirical or (declared and self.prior_as != "cells"):
            prior = repr(self.prior)
        else:
            prior = "<table>" if n_priors == 1 else f"<{n_priors} tables>"
        parts = [f"{self.column!r}, level={self.level!r}, prior={prior}"]
        if not isinstance(self.pairs, str):
            parts.append(f"pairs={self.pairs!r}")
        if not declared or self.prior_as is not None:
            told = self.prior_as or self.trust
            parts.append(f"prior_as={told!r}")
        for name in ("table", "unit", "max_rows"):
            if getattr(self, name) is not None:
                parts.append(f"{name}={getattr(self, name)!r}")
        return f"AttributeScenario({', '.join(parts)})"


# of public rows, told apart by their content; clones of a scenario ask again
@lru_cache(maxsize=8)
def _law_by_cells(table: ReferenceTable) -> BinnedLaw:
    return BinnedLaw(table, "auto")


def _not_one(names: Sequence[Hashable]) -> ScenarioError:
    return ScenarioError(Statement("attribute.several_secret_columns", names=names))
