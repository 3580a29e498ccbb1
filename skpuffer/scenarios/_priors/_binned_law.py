"""The belief that a coded record is distributed as in public rows."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import pairwise_distances_argmin

from skpuffer.exceptions import Statement, scenario_error
from skpuffer.kernel.numbers import Indices, check_option
from skpuffer.schema import Schema
from skpuffer.utils._reading import refuse_mask

from ._bounded import BoundedOdds, variation_radius
from ._cells import chosen_cells
from ._coding import Coding, coding_of
from ._rows import Laws, RowBelief
from ._tables import ordered, secret_values


@dataclass(eq=False, repr=False)
class BinnedRows(Laws):
    """Distributions of a coded record, with its coding and the atoms it may be.

    Parameters
    ----------
    names : tuple
        Columns that are coded, the target among them if the rows have it.
    atoms : ndarray of int of shape (n_atoms, n_names)
        Codes of each, distinct.
    counts : ndarray of int of shape (n_values,)
        Public rows with each value.
    """

    coding: Coding
    names: tuple[Hashable, ...]
    atoms: Indices
    counts: Indices

    def content(self) -> tuple[Any, ...]:
        """All that makes it another belief if it is another; see :class:`Laws`."""
        values = [self.coding.columns[name].values for name in self.names]
        edges = [getattr(self.coding.columns[n], "edges", None) for n in self.names]
        return *super().content(), self.names, values, edges, self.atoms


class BinnedLaw(RowBelief):
    """A record, coded by public bins, is distributed as in public rows.

    The data is read through the same coding first: a number as the mean of its bin's
    public rows, any other value as the nearest declared one. A record that no public
    row is like is read as the nearest with its label. So an estimator never
    distinguishes two records of one cell.

    Parameters
    ----------
    rows : data frame of shape (n_rows, n_columns)
        Public rows with the secret, and the target if the belief covers it. They are
        read once: later changes in place do not count.
    bins : Schema, 'auto', or dict of {column: int, list of numbers or list of \
            values}, default=None
        A public schema whose cells are taken, as ``Number(0, 99, bins=4)``: use few
        cells. Or by column: for numbers how many bins of about equal mass or the edges
        between them, else its values, of which the first stands for undeclared ones.
        Columns that are not named keep the values of the public rows. 'auto' chooses
        cells from the public rows: at most 200 records are told apart, and each has
        five public rows of every value of the secret on average.
    known : sequence of column names, default=()
        Columns of which an attacker may know any subset already. They must not be all
        that is read.
    rest : BoundedOdds, default=None
        How far what the rows do not have, such as the label, shifts the odds given the
        row. None is for releases that read these columns only.

    Notes
    -----
    Many bins and few rows cost noise, and few bins cost accuracy. Undeclared values are
    read as the first without a warning, which would depend on private data: compare the
    values yourself.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer.scenarios import AttributeScenario, BinnedLaw
    >>> rows = pd.DataFrame(
    ...     {"sex": [0, 1, 0, 1, 0, 1], "age": [20, 30, 40, 50, 60, 25]}
    ... )
    >>> prior = BinnedLaw(rows, {"age": [35]})
    >>> told = AttributeScenario("sex", level="record", prior=prior).explain(0.1)
    >>> told[["eta", "gain", "fallback"]].round(2)
             eta  gain  fallback
    epsilon
    0.1      0.3  3.02      0.33
    """

    _compared = ("bins", "known")

    def __init__(
        self,
        rows: Any,
        bins: Mapping[Hashable, Any] | Schema | str | None = None,
        *,
        known: Sequence[Hashable] = (),
        rest: BoundedOdds | None = None,
    ) -> None:
        self.rows = rows
        self.bins = bins
        self.known = known
        self.rest = rest

    def check(self, scenario: Any = None) -> None:
        """Check the parameters; see the class."""
        bins = {} if self.bins is None else self.bins
        if isinstance(self.bins, str):
            check_option(("auto",), bins=self.bins)
            bins = {}
        if not isinstance(bins, Mapping | Schema):
            raise scenario_error("prior.bins_not_dict_or_schema", bins=self.bins)
        if not self.is_named:
            raise scenario_error("prior.rows_without_names")
        columns = self.table().columns
        secret = None if scenario is None else scenario.column
        if scenario is not None:
            if scenario.column not in columns:
                raise scenario_error(
                    "prior.rows_lack_secret",
                    column=scenario.column,
                    columns=list(columns),
                )
            columns = self.covered(scenario)
        # a code book is of the whole table, and the rows may have some of its columns
        lacking = [name for name in columns if name not in bins and name != secret]
        if isinstance(bins, Schema) and lacking:
            raise scenario_error(
                "prior.bins_lack_columns", lacking=lacking, bins=list(bins)
            )
        strange = [name for name in bins if name not in columns]
        if strange and not isinstance(bins, Schema):
            raise scenario_error(
                "prior.bins_unknown_columns", strange=strange, columns=list(columns)
            )
        super().check(scenario)

    def _laws(self, scenario: Any) -> BinnedRows:
        table = self.table()
        frame = table.frame()
        names = self.covered(scenario)
        secret = frame[scenario.column].to_numpy()
        if isinstance(self.bins, str):
            coding = chosen_cells(frame, names, pd.factorize(secret)[0])
        else:
            coding = coding_of(frame, self.bins or {}, names)
        codes = coding.codes(frame, names)
        atoms, which = np.unique(codes, axis=0, return_inverse=True)
        values = tuple(ordered(secret_values(table, scenario.column)))
        if len(values) < 2:
            raise scenario_error("prior.secret_one_value_only", column=scenario.column)
        masses = np.array(
            [
                np.bincount(which.ravel()[secret == v], minlength=len(atoms))
                for v in values
            ],
            dtype=float,
        )
        counts = masses.sum(axis=1)
        known = atoms[:, [names.index(name) for name in self.known]]
        return BinnedRows(
            values, masses / counts[:, None], known, coding, names, atoms, counts
        )

    def _variation(self, laws: Laws, confidence: float) -> float:
        assert isinstance(laws, BinnedRows)
        # a sample says how far it is off on cells that were there before it
        counted = [
            name
            for name, bins in self._counts().items()
            if isinstance(bins, int | np.integer)
        ]
        if isinstance(self.bins, str):
            counted = list(laws.names)
        if counted:
            raise scenario_error("prior.confidence_edges_from_rows", counted=counted)
        # a union bound over the values, each with its own number of public rows
        beta = (1 - confidence) / len(laws.values)
        size = len(laws.atoms)
        return max(variation_radius(size, int(n), beta) for n in laws.counts)

    def _counts(self) -> Mapping[Hashable, Any]:
        # the cells of a code book are public, however many
        return self.bins if isinstance(self.bins, Mapping) else {}

    # -- reading a table ----------------------------------------------------------

    def read(self, scenario: Any, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of a data frame as they are coded; other columns stay.

        Parameters
        ----------
        scenario : AttributeScenario
        frame : DataFrame

        Returns
        -------
        DataFrame
        """
        laws = self.laws(scenario)
        assert isinstance(laws, BinnedRows)
        return laws.coding.read(frame)

    def atoms(self, scenario: Any) -> pd.DataFrame:
        """Return the coded records that have mass, without the secret."""
        laws = self.laws(scenario)
        assert isinstance(laws, BinnedRows)
        return pd.DataFrame(
            {
                name: laws.coding.columns[name].values[column]
                for name, column in zip(laws.names, laws.atoms.T, strict=True)
            }
        )

    def read_records(
        self,
        scenario: Any,
        frame: pd.DataFrame,
        y: Any,
        target: Hashable | None,
        *,
        fill_rows: bool = False,
        fill_targets: bool = False,
    ) -> tuple[pd.DataFrame, Any]:
        """Return coded records, each as the nearest atom of its label.

        Parameters
        ----------
        scenario : AttributeScenario
        frame : DataFrame
            As :meth:`read` returned it.
        y : array-like of shape (n_records,) or None
        target : str or None
            Which of the rows' columns `y` is, if any.
        fill_rows, fill_targets : bool, default=False
            Whether missing values are filled too.

        Returns
        -------
        frame : DataFrame
        y : array-like or None
        """
        refuse_mask(y, "y")
        laws = self.laws(scenario)
        assert isinstance(laws, BinnedRows)
        labels = None if y is None or target not in laws.names else np.asarray(y)
        if labels is not None and labels.shape == (len(frame), 1):
            labels = labels.ravel()
        # what is no label is refused later, as elsewhere
        if labels is not None and (
            labels.shape != (len(frame),)
            or (not fill_targets and pd.isna(labels).any())
        ):
            labels = None
        names = [name for name in laws.names if name in frame.columns]
        kept = names + [target] * (labels is not None)
        atoms = laws.atoms[:, [laws.names.index(name) for name in kept]]
        table = frame.copy()
        if labels is not None:
            table[target] = labels
        codes = laws.coding.codes(table, kept)
        codes = _nearest(laws.coding, kept, codes, atoms, labels is not None)
        read = frame.copy()
        for name, column in zip(names, codes.T, strict=False):
            values = laws.coding.columns[name].values[column]
            missing = frame[name].isna().to_numpy()
            if fill_rows or not missing.any():
                read[name] = values
            else:  # refused later, as elsewhere
                read[name] = np.where(missing, np.nan, values)
        if labels is not None:
            y = laws.coding.columns[target].values[codes[:, -1]]
            # objects only where texts need them
            y = np.array(y.tolist()) if y.dtype == object else y
        return read, y

    def statement(self) -> Statement:
        """Return the belief in a sentence."""
        return Statement(
            "assume.belief_binned_law",
            n_rows=len(self.table()),
            rest=self._rest_statement(),
        )


def _nearest(
    coding: Coding,
    names: Sequence[Hashable],
    codes: Indices,
    atoms: Indices,
    labelled: bool,
) -> Indices:
    """Codes of the atom that each coded record is read as: itself, if it is one."""
    keys = _keys(np.vstack([atoms, codes]))
    strange = np.flatnonzero(~np.isin(keys[len(atoms) :], keys[: len(atoms)]))
    if not len(strange):
        return codes
    codes = codes.copy()
    # the label is kept; ties go to the first atom
    groups = codes[strange, -1] if labelled else np.zeros(len(strange), dtype=int)
    for group in np.unique(groups):
        mine = strange[groups == group]
        among = atoms[atoms[:, -1] == group] if labelled else atoms
        if not len(among):  # of a label that no public row has
            among = atoms
        among = np.unique(among, axis=0)
        which = pairwise_distances_argmin(
            coding.places(codes[mine], names),
            coding.places(among, names),
            metric="manhattan",
        )
        codes[mine] = among[which]
    return codes


def _keys(codes: Indices) -> Indices:
    """One number for each row of codes, equal where rows are."""
    keys = np.zeros(len(codes), dtype=np.intp)
    for column in codes.T:
        # numbered anew after each column, so that no product is too large
        _, keys = np.unique(keys * (column.max() + 1) + column, return_inverse=True)
    return keys
