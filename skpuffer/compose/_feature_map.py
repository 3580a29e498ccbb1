"""Public map from raw columns to what a model reads."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from skpuffer._template._steps import chooses_by_rows
from skpuffer.exceptions import Statement, value_error
from skpuffer.kernel.numbers import floats
from skpuffer.utils._reading import (
    LARGEST,
    bounded,
    column_names,
    is_frame,
    object_cells,
    row_count,
    to_pandas,
)
from skpuffer.utils._silence import silence, unquoted
from skpuffer.utils._sklearn import safe_indexing

if TYPE_CHECKING:
    from skpuffer.kernel.numbers import Floats
    from skpuffer.utils._types import Array, Table


#: How many columns are given another type, to see whether a map goes by types.
_TYPES_TRIED = 16

#: Whose code it is that maps records, for messages.
TRANSFORMER = Statement("preprocessing.subject_parameter_transformer")


def subject_of(names: Sequence[str]) -> Statement:
    """Return one step, or a chain of them, as the subject of a message."""
    if len(names) == 1:
        return Statement("pipeline.subject_named_step", name=names[0])
    return Statement("pipeline.subject_chain_of_steps", names=names)


class FeatureMap:
    """Public preprocessing as a function of a table, comparable by content.

    It is applied to data and prior alike.

    Notes
    -----
    Two maps are equal if their transformers have the same content. One that cannot be
    hashed (it holds a lambda) makes a map that equals its own copies only.
    """

    def __init__(
        self,
        transformer: Any,
        columns: tuple[str, ...] | None,
        assumption: Statement,
        leaks: tuple[Statement, ...] = (),
        owner: Statement = TRANSFORMER,
    ):
        self.leaks, self._owner = leaks, owner
        self._transformer = transformer
        self._columns = columns
        self._assumption = assumption
        # Cached distributions of a prior are looked up by this: a map that cannot be
        # told from another by content must not be taken for it.
        try:
            content = joblib.hash((transformer, columns))
        except (PicklingError, AttributeError, TypeError):
            content = uuid.uuid4().hex
        self._digest = content

    @property
    def assumption(self) -> Statement:
        """Assumption that makes the map public, in a sentence."""
        return self._assumption

    @property
    def n_columns(self) -> int:
        """Number of columns that it reads; zero where the transformer does not say."""
        return int(getattr(self._transformer, "n_features_in_", 0))

    def __call__(self, table: Table) -> Floats:
        """Map a table to an array of floats; a frame may have more columns."""
        return self._mapped(self._readable(table))

    def _mapped(self, raw: Any) -> Floats:
        """Map a table that is as the transformer was fitted to."""
        # the transformer is the user's own code: its errors may quote values, so they
        # are raised anew without them
        mapped = unquoted(self._owner, self._transformer.transform, raw)
        # of one kind for the data and the prior, whatever each is given as
        if sparse.issparse(mapped):
            mapped = mapped.toarray()
        elif is_frame(mapped):
            mapped = to_pandas(mapped)
        numbers = floats(mapped)
        if numbers is None:
            raise value_error("preprocessing.columns_not_numeric", owner=self._owner)
        # a map that drops or adds rows would change how many records one person has
        if numbers.ndim != 2 or len(numbers) != len(raw):
            raise value_error(
                "preprocessing.rows_not_per_record",
                owner=self._owner,
                shape=numbers.shape,
                n_raw=len(raw),
            )
        wild = ~(np.abs(numbers) <= LARGEST)
        if wild.any():
            # One record must not end a fit, of which a step may be paid for. What has
            # no value, as the logarithm of a negative number, is zero. Gaps of the
            # table itself are refused later.
            frame = pd.DataFrame(raw)
            gaps = frame.isna() | frame.isin([np.inf, -np.inf])
            tamed = np.clip(np.nan_to_num(numbers), -LARGEST, LARGEST)
            numbers = np.where(gaps.any(axis=1).to_numpy()[:, None], numbers, tamed)
        return numbers

    def check_by_record(self, table: Table, n_rows: int = 8) -> None:
        """Refuse a map that mixes records: map a few rows alone and all in halves.

        A transformer that subtracts the mean of the table it is given, say, would pass
        private values from one record to another without the accountant.
        """
        refuse_mixing(self._mapped, self._readable(table), self._owner, n_rows)

    def _readable(self, table: Table) -> Any:
        """Table of the kind the transformer was fitted to: pandas by name, or array."""
        # columns of a frame may come in another order, with the secret among them
        if self._columns is None:
            values = to_pandas(table).to_numpy() if is_frame(table) else table
            return bounded(np.asarray(values))
        if not is_frame(table):
            raise value_error(
                "preprocessing.columns_need_data_frame", columns=list(self._columns)
            )
        known = column_names(table) or ()
        missing = [column for column in self._columns if column not in known]
        if missing:
            raise value_error(
                "preprocessing.columns_missing", missing=missing, known=list(known)
            )
        return bounded(to_pandas(table, self._columns))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureMap) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        return f"FeatureMap({type(self._transformer).__name__}, {self._digest[:8]})"


def refuse_mixing(
    apply: Callable[[Any], Any], rows: Any, owner: Statement, n_alone: int = 8
) -> None:
    """Refuse a map that gives a record something else in other company."""
    together = apply(rows)
    # Some rows alone, and all of them in other company. No test of finitely many
    # tables proves it, so the certificate states it as an assumption as well. The
    # seed is fixed: whether a map passes depends on the map and the table only.
    places = np.arange(row_count(rows))
    parts = [places[i : i + 1] for i in range(min(n_alone, len(places)))]
    parts += [places[::2], places[1::2], places[::-1]]
    rng = np.random.default_rng(0)
    parts += [np.flatnonzero(rng.random(len(places)) < 0.5) for _ in range(4)]
    for part in parts:
        if len(part) == 0:
            continue
        if not _same(apply(safe_indexing(rows, part, axis=0)), together, part):
            raise value_error("preprocessing.mixes_records", owner=owner)
    _refuse_types(apply, rows, owner)


def _refuse_types(apply: Callable[[Any], Any], rows: Any, owner: Statement) -> None:
    """Refuse a map that goes by the types of columns, which one cell can change."""
    if not isinstance(rows, pd.DataFrame) or len(rows) < 2:
        return
    some = rows.iloc[:8]
    # whichever type a column has here: a cell may have changed it
    chosen = np.random.default_rng(0).permutation(rows.shape[1])[:_TYPES_TRIED]
    for at in chosen:
        numbers, texts = some.copy(), some.copy()
        numbers.isetitem(at, np.ones(len(some)))
        texts.isetitem(at, object_cells(["n/a", *np.ones(len(some) - 1)]))
        try:
            with silence():
                known, mapped = apply(numbers), apply(texts)[1:]
        except Exception:  # text is refused, and nothing is released
            continue
        if not _same(mapped, known, np.arange(1, len(some))):
            raise value_error("preprocessing.columns_chosen_by_types", owner=owner)


def _same(apart: Array, together: Array, part: Array) -> bool:
    """Whether some rows, mapped by themselves, are those of all of them."""
    if len(apart) != len(part) or len(together) <= np.max(part):
        return False
    expected = together[part]
    if apart.shape != expected.shape:
        return False
    found, known = floats(apart), floats(expected)
    if found is None or known is None:
        # of texts and gaps
        return bool(pd.DataFrame(apart).equals(pd.DataFrame(expected)))
    # matrix products of another length may round differently in the last digits
    return bool(np.allclose(found, known, rtol=1e-6, atol=1e-9, equal_nan=True))


def is_fixed(transformer: Any) -> bool:
    """Whether a transformer has nothing left to learn from data.

    True for one that needs no fit by its tags, for one that is fitted and frozen, and
    for a pipeline, union or column transformer made of these alone.
    """
    # 'drop' and 'passthrough' are texts; a frozen estimator ignores `fit`
    if transformer is None or isinstance(transformer, str | FrozenEstimator):
        return True
    # A composite has as little to learn as its parts have. By exact type: what a
    # subclass does besides is not known.
    if type(transformer) is ColumnTransformer:
        parts = [part for _, part, _ in transformer.transformers]
        chosen = any(chooses_by_rows(of) for _, _, of in transformer.transformers)
        return not chosen and all(map(is_fixed, [*parts, transformer.remainder]))
    if type(transformer) is Pipeline:
        return all(is_fixed(part) for _, part in transformer.steps)
    if type(transformer) is FeatureUnion:
        return all(is_fixed(part) for _, part in transformer.transformer_list)
    composite = isinstance(transformer, ColumnTransformer | Pipeline | FeatureUnion)
    return not composite and not get_tags(transformer).requires_fit
