"""Hundreds of malformed tables: none is quoted, none is half fitted, none gives NaN."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

from skpuffer.testing import all_estimators
from skpuffer.testing._canaries import NUMBER, TEXT, listen, reachable

ENTRIES = all_estimators()
N_INPUTS, N_RECORDS = 14, 24

#: NaN or infinite where a variance, or all moments, drown in noise, and where a column
#: that has no bounds is no number.
DROWNED = ("correlation_", "_std", "r_squared_", "_ranges", "bounds_")

CELLS = (
    TEXT,
    TEXT.encode(),
    f"{NUMBER}",
    "nan",
    None,
    np.nan,
    np.inf,
    pd.NA,
    pd.NaT,
    np.datetime64("NaT", "D"),
    np.timedelta64(7310457, "s"),
    datetime.date(2026, 1, 1),
    NUMBER + 1j,
    np.complex64(NUMBER),
    Decimal(str(NUMBER)),
    Decimal("sNaN"),
    [NUMBER],
    {TEXT: NUMBER},
    {TEXT},
    object(),
    10**400,
    1e300,
    5e-324,
    True,
)


def frame(X):
    return pd.DataFrame(np.asarray(X, dtype=object), columns=["a", "b", "c"])


TABLES = {
    "array": np.asarray,
    "objects": lambda X: np.asarray(X, dtype=object),
    "lists": lambda X: np.asarray(X).tolist(),
    "frame": frame,
    "inferred": lambda X: frame(X).infer_objects(),
    "category": lambda X: frame(X).astype({"b": "category"}),
    "polars": lambda X: pl.DataFrame(
        {
            name: pl.Series(name, column.tolist(), strict=False)
            for name, column in zip("abc", np.asarray(X).T, strict=True)
        }
    ),
    "text": lambda X: np.asarray(X).astype(str),
}

SHAPES = {
    "a row": lambda X: X[5],
    "three dimensions": lambda X: X[None],
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "one row": lambda X: X[5:6],
    "ragged": lambda X: [*X[:-1].tolist(), [NUMBER]],
    "a generator": lambda X: (row for row in X),
    "a dict": lambda X: dict(enumerate(X.T)),
    "a number": lambda X: NUMBER,
    "a text": lambda X: TEXT,
    "nothing": lambda X: None,
    "a series": lambda X: pd.Series(X[:, 0]),
    "complex": lambda X: X + 1j,
    "a mask": lambda X: np.ma.masked_greater(X, 0.5),
    "structures": lambda X: np.ascontiguousarray(X).view([("a", float)]),
    "sparse": lambda X: sparse.csr_array(X),
    "sparse complex": lambda X: sparse.csr_array(X + 1j),
    "sparse NaN": lambda X: sparse.csr_array(np.where(X == NUMBER, np.nan, X)),
    "twice the name": lambda X: pd.DataFrame(X, columns=["a", "a", TEXT]),
    "half floats": lambda X: X.astype(np.float16),
    "long floats": lambda X: X.astype(np.longdouble) * 10,
    "large": lambda X: X * 1e300,
    "small": lambda X: X * 5e-324,
}

TARGETS = {
    **{name: shape for name, shape in SHAPES.items() if name != "twice the name"},
    "too short": lambda y: np.full(3, NUMBER),
    "text labels": lambda y: np.where(y > 0, TEXT, "other"),
    "numbers": lambda y: np.linspace(0, NUMBER, len(y)),
    "dates": lambda y: np.full(len(y), np.datetime64("2026-01-01")),
    "no dates": lambda y: np.full(len(y), np.datetime64("NaT", "D")),
    "sets": lambda y: [{NUMBER}] * len(y),
    "two columns": lambda y: np.column_stack([y, y]),
}


def with_cell(values, rng):
    """The values as objects, with one that cannot be, or can just be, taken."""
    values = np.asarray(values).astype(object)
    values[tuple(rng.integers(side) for side in values.shape)] = [*CELLS][
        rng.integers(len(CELLS))
    ]
    return values


def malformed(rng):
    """Arguments of `fit` with at least one thing wrong, and with canaries."""
    X = rng.uniform(-0.5, 0.5, (N_RECORDS, 3))
    X[5] = NUMBER, 0.0, 0.0
    y = np.tile([0, 1], N_RECORDS // 2)
    pick = lambda options: list(options)[rng.integers(len(options))]  # noqa: E731
    what = pick(["cell", "cell", "shape", "target", "target cell"])
    try:
        if what == "cell":
            return TABLES[pick(TABLES)](with_cell(X, rng)), y
        if what == "shape":
            return SHAPES[pick(SHAPES)](X), y
    except Exception:  # no such table can be made
        return with_cell(X, rng), y
    if what == "target":
        name = pick(TARGETS)
        column = X[:, :1] if name in SHAPES else y
        return X, TARGETS[name](column)
    return X, with_cell(y, rng)


def numbers(estimator):
    """What a fit has set, except for losses that nothing bounds and infinite orders."""
    held = {
        name: value
        for name, value in vars(estimator).items()
        if name not in (*estimator.get_params(deep=False), "_answers")
    }
    for path, leaf in reachable(held).items():
        array = np.asarray(leaf)
        unbounded = path.endswith((".norm", "clip_order", ".rpp_epsilon"))
        if array.dtype.kind == "f" and not unbounded:
            yield path, array


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_malformed_tables(entry):
    rng = np.random.default_rng(sum(map(ord, entry.name)))
    private = hasattr(entry.instance, "scenario") or hasattr(
        entry.instance, "estimator"
    )
    takes_target = get_tags(entry.instance).target_tags.required
    refused = 0
    for i in range(N_INPUTS):
        X, y = malformed(rng)
        model = clone(entry.instance)
        if "classes" in model.get_params(deep=False):
            model.set_params(classes=[0, 1])  # else labels are public by default
        with listen() as said:
            model.fit(X, *([y] if takes_target else []))
        where = f"input {i}: {type(X).__name__}, {said.error!r}"
        assert not said.songs, f"{where} quoted in {said.songs}"
        if said.error is None:
            for path, array in numbers(model):
                if any(name in str(path) for name in DROWNED):
                    continue
                assert np.all(np.isfinite(array)), f"{where}: {path} is not finite"
            continue
        refused += 1
        assert isinstance(said.error, ValueError | TypeError), where
        left = [name for name in vars(model) if name.endswith("_")]
        assert not (private and left), f"{where} left {left}"
    assert refused > 1  # the inputs are indeed malformed
