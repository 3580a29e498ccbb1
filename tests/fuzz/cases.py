"""Random bad calls of an estimator: what may stand in a parameter, and in a table.

A case is made of a seed alone, so that one that failed can be made again.
"""

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

from skpuffer.testing._canaries import NUMBER, TEXT

N_ROWS = 40

#: Kinds of columns of a data frame.
_KINDS = (None, "category", "string", "datetime64[ns]", "Float64", "boolean", object)


class Weird:
    """An object of no use to anybody."""

    def __repr__(self):
        return "Weird()"


def _values():
    """What may be given for a parameter that is meant to be anything else."""
    return [
        None,
        True,
        False,
        -1,
        0,
        1,
        2,
        7,
        10**18,
        -0.5,
        0.0,
        0.5,
        1.5,
        1e-300,
        1e300,
        np.nan,
        np.inf,
        -np.inf,
        1 + 1j,
        np.float32(0.5),
        np.int64(3),
        np.float64(np.nan),
        "",
        "auto",
        "nonsense",
        b"bytes",
        [],
        (),
        {},
        [0, 1],
        [0, 0],
        (1, 0),
        (0, 1),
        (-1, 1),
        (np.nan, 1),
        (-np.inf, np.inf),
        ("a", "b"),
        {"x": 1},
        {0: (0, 1)},
        {1, 2},
        range(3),
        np.array(3),
        np.array([1.0, 2.0]),
        np.zeros((2, 2)),
        np.array([], dtype=float),
        np.array(["a", None], dtype=object),
        pd.Series([1, 2]),
        pd.DataFrame({"a": [1.0]}),
        Weird(),
        Weird,
        len,
        lambda x: x,
        Ellipsis,
    ]


def odd_parameters(estimator, rng):
    """A clone with one to three parameters, nested ones too, set to odd values."""
    fresh = clone(estimator)
    names = sorted(
        name
        for name in fresh.get_params(deep=True)
        # what an estimator of another library says of its own parameters is its own
        if name != "random_state" and not name.startswith(("estimator__", "base__"))
    )
    told = {}
    for name in rng.choice(names, min(len(names), rng.integers(1, 4)), replace=False):
        values = _values()
        told[str(name)] = values[rng.integers(len(values))]
        old = fresh.get_params(deep=True).get(str(name))
        if isinstance(old, int | float) and not isinstance(old, bool):
            factor = rng.choice([-1.0, 0.0, 1e-12, 0.5, 2.0, 1e6])
            if rng.random() < 0.4:
                told[str(name)] = type(old)(old * factor)
    # what holds a parameter first: it may be gone once it is replaced
    for name in sorted(told, key=lambda name: -name.count("__")):
        fresh.set_params(**{name: told[name]})
    return fresh, told


def good_table(rng):
    """Rows in [-1, 1] with a canary among them, and two classes."""
    X = rng.uniform(-1, 1, (N_ROWS, 3))
    X[5, 0] = NUMBER
    y = (X[:, 0] > 0).astype(int)
    y[:2] = 0, 1
    return X, y


def odd_table(estimator, rng, n_ways=2):
    """Arguments of `fit` that are odd in up to so many ways; and what was done."""
    X, y = good_table(rng)
    done = []
    ways = rng.choice(
        len(_OF_ROWS), rng.integers(n_ways > 0, n_ways + 1), replace=False
    )
    for way in ways:
        done.append(_OF_ROWS[way].__name__)
        try:
            X = _OF_ROWS[way](X, rng)
        except Exception:  # one oddity may not be had of another
            done.pop()
    if get_tags(estimator).target_tags.required or (n_ways and rng.random() < 0.2):
        if n_ways and rng.random() < 0.6:
            way = _OF_TARGETS[rng.integers(len(_OF_TARGETS))]
            done.append(way.__name__)
            y = way(y, rng)
        return (X, y), done
    return (X,), done


def _place(X, rng):
    return tuple(rng.integers(0, size) for size in X.shape)


def _cell(value):
    def put(X, rng):
        X = np.array(X, dtype=object if not isinstance(value, float) else float)
        X[_place(X, rng)] = value
        return X

    put.__name__ = f"a cell {type(value).__name__} {value if value == value else 'nan'}"
    return put


def no_rows(X, rng):
    return X[:0]


def few_rows(X, rng):
    return X[: rng.integers(1, 4)]


def no_columns(X, rng):
    return X[:, :0]


def one_column(X, rng):
    return X[:, :1]


def more_columns(X, rng):
    return np.hstack([X, X])


def one_dimension(X, rng):
    return np.asarray(X)[:, 0]


def three_dimensions(X, rng):
    return np.asarray(X)[None]


def lists(X, rng):
    return np.asarray(X).tolist()


def ragged(X, rng):
    rows = np.asarray(X).tolist()
    rows[rng.integers(len(rows))].pop()
    return rows


def constant(X, rng):
    return np.full(np.shape(X), rng.choice([0.0, 1.0, -1.0]))


def huge(X, rng):
    return np.asarray(X) * rng.choice([1e10, 1e160, 1e308])


def tiny(X, rng):
    return np.asarray(X) * 1e-310


def of_type(X, rng):
    kind = rng.choice(
        ["float32", "float16", "int8", "uint8", "bool", "complex64", "S8"]
    )
    return np.asarray(X).astype(kind)


def of_text(X, rng):
    return np.asarray(X).astype(str)


def read_only(X, rng):
    X = np.array(X)
    X.flags.writeable = False
    return X


def fortran(X, rng):
    return np.asfortranarray(X)


def strided(X, rng):
    return np.repeat(np.asarray(X), 2, axis=0)[::2]


def swapped_bytes(X, rng):
    return np.asarray(X).astype(">f8")


def masked(X, rng):
    return np.ma.masked_greater(X, 0.9)


def matrix(X, rng):
    kinds = [sparse.csr_matrix, sparse.csc_array, sparse.coo_array, sparse.lil_matrix]
    return kinds[rng.integers(len(kinds))](np.asarray(X))


def twice_in_csr(X, rng):
    csr = sparse.csr_array(np.asarray(X))
    indices = csr.indices.copy()
    indices[:3] = indices[0]
    return sparse.csr_array((csr.data, indices, csr.indptr), shape=csr.shape)


def frame(X, rng):
    X = pd.DataFrame(np.asarray(X))
    X.columns = [f"c{i}" for i in range(X.shape[1])]
    return X


def frame_of_numbers(X, rng):
    return pd.DataFrame(np.asarray(X))


def frame_of_one_name(X, rng):
    X = pd.DataFrame(np.asarray(X))
    X.columns = ["c"] * X.shape[1]
    return X


def frame_of_kinds(X, rng):
    X = frame(X, rng)
    for name in X:
        kind = _KINDS[rng.integers(len(_KINDS))]
        if kind == "boolean":
            X[name] = (X[name] > 0).astype(kind)
        elif kind is not None:
            X[name] = X[name].astype(kind)
        if rng.random() < 0.3 and kind is not None:
            X.loc[3, name] = None
    return X


def frame_of_polars(X, rng):
    return pl.from_pandas(frame(X, rng))


def lazy_frame(X, rng):
    return pl.from_pandas(frame(X, rng)).lazy()


def odd_index(X, rng):
    X = frame(X, rng)
    X.index = pd.Index(rng.integers(0, 3, len(X)))
    return X


def a_dict(X, rng):
    return {TEXT: np.asarray(X)[0]}


def nothing(X, rng):
    return None


def a_number(X, rng):
    return NUMBER


def a_text(X, rng):
    return TEXT


def a_generator(X, rng):
    return (row for row in np.asarray(X))


_OF_ROWS = [
    _cell(np.nan),
    _cell(np.inf),
    _cell(-np.inf),
    _cell(1e300),
    _cell(TEXT),
    _cell(None),
    _cell(NUMBER + 1j),
    no_rows,
    few_rows,
    no_columns,
    one_column,
    more_columns,
    one_dimension,
    three_dimensions,
    lists,
    ragged,
    constant,
    huge,
    tiny,
    of_type,
    of_text,
    read_only,
    fortran,
    strided,
    swapped_bytes,
    masked,
    matrix,
    twice_in_csr,
    frame,
    frame_of_numbers,
    frame_of_one_name,
    frame_of_kinds,
    frame_of_polars,
    lazy_frame,
    odd_index,
    a_dict,
    nothing,
    a_number,
    a_text,
    a_generator,
]


def short(y, rng):
    return y[:-1]


def none(y, rng):
    return None


def one_class(y, rng):
    return np.zeros_like(y)


def three_classes(y, rng):
    return np.where(np.arange(len(y)) % 3 == 2, 2, y)


def names(y, rng):
    return np.array(["no", "yes"])[y]


def floats(y, rng):
    return y + NUMBER


def with_nan(y, rng):
    return np.where(np.arange(len(y)) == 3, np.nan, y)


def with_infinity(y, rng):
    return np.where(np.arange(len(y)) == 3, np.inf, y)


def with_none(y, rng):
    y = y.astype(object)
    y[3] = None
    return y


def booleans(y, rng):
    return y.astype(bool)


def a_column(y, rng):
    return y[:, None]


def two_columns(y, rng):
    return np.c_[y, 1 - y]


def mixed(y, rng):
    y = y.astype(object)
    y[3] = TEXT
    return y


def complex_numbers(y, rng):
    return y + NUMBER * 1j


def huge_targets(y, rng):
    return y * 1e308


def a_series(y, rng):
    return pd.Series(y, index=rng.permutation(len(y)))


def a_category(y, rng):
    return pd.Series(y).astype("category")


def nullable(y, rng):
    return pd.Series(y, dtype="Int64").where(np.arange(len(y)) != 3)


def of_polars(y, rng):
    return pl.Series(y)


def a_list(y, rng):
    return y.tolist()


def sets(y, rng):
    return [{TEXT}] * len(y)


def many_classes(y, rng):
    return np.arange(len(y))


def a_scalar(y, rng):
    return NUMBER


def a_matrix(y, rng):
    return sparse.csr_array(y[:, None])


_OF_TARGETS = [
    short,
    none,
    one_class,
    three_classes,
    names,
    floats,
    with_nan,
    with_infinity,
    with_none,
    booleans,
    a_column,
    two_columns,
    mixed,
    complex_numbers,
    huge_targets,
    a_series,
    a_category,
    nullable,
    of_polars,
    a_list,
    sets,
    many_classes,
    a_scalar,
    a_matrix,
]
