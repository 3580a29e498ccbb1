"""Contents are equal only where two computations are the same."""

import functools
import gc
import random
import sys
import threading
import types
import weakref
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpuffer.utils._content import content_of

SCALE = 1.0
NESTED = {"scale": 1.0}


def equal(one, other):
    found = [content_of(value) for value in (one, other)]
    assert None not in found
    return found[0].equals(found[1], frozenset())


def same(one, other):
    """Equal in the key and in the notes, as two dicts would be."""
    assert equal(one, other) == equal(other, one)
    return equal(one, other)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-2, 2, width=16)
    | st.text("ab", max_size=2)
    | st.binary(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text("ab", max_size=1), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(values, values)
def test_plain_values_have_one_content_each(one, other):
    assert same(one, other) == (repr(one) == repr(other))


@pytest.mark.parametrize(
    "one, other",
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("1", b"1"),
        (np.float64(1), 1.0),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), np.zeros(2, dtype=np.float32)),
        (np.ones((3, 3)), np.asfortranarray(np.ones((3, 3)))),
        (np.array(["a", 1], dtype=object), np.array(["a", "1"], dtype=object)),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})),
        (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 2]}, index=[1, 0])),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": ["1"]})),
        (pd.Series([1], name="a"), pd.Series([1], name="b")),
        ({1, 2}, frozenset({1, 2})),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (Ridge(1.0), Ridge(2.0)),
        (Ridge(), LogisticRegression()),
        (make_pipeline(StandardScaler(), Ridge()), make_pipeline(PCA(), Ridge())),
        (np.mean, np.median),
        (functools.partial(np.mean, axis=0), functools.partial(np.mean, axis=1)),
    ],
)
def test_what_differs_anywhere_is_another_content(one, other):
    assert not same(one, other)
    assert same(one, one) and same(other, other)


@pytest.mark.parametrize(
    "made",
    [
        lambda: math_nan(),
        lambda: np.arange(6.0).reshape(2, 3),
        lambda: pd.DataFrame({"a": [1.5, None], "b": ["x", None]}),
        lambda: make_pipeline(StandardScaler(), LogisticRegression(C=2.0)),
        lambda: lambda X: X.mean(axis=0),
        lambda: functools.partial(scaled, power=2),
        lambda: {"a": [1, (2, {3})]},
    ],
)
def test_equal_values_made_twice_are_equal(made):
    assert same(made(), made())


def math_nan():
    return float("nan")


def scaled(X, power=1):
    return SCALE * X**power


def nested(X):
    return scaled(X) * NESTED["scale"]


def test_a_fitted_state_is_content():
    rows = np.arange(8.0).reshape(4, 2)
    assert not same(StandardScaler().fit(rows), StandardScaler())
    assert not same(StandardScaler().fit(rows), StandardScaler().fit(rows + 1))
    assert same(StandardScaler().fit(rows), StandardScaler().fit(rows))


def test_functions_are_their_code_and_what_it_reads(monkeypatch):
    def times(factor):
        return lambda X: factor * X

    assert same(times(2.0), times(2.0)) and not same(times(2.0), times(3.0))
    assert not same(lambda X: X + 1, lambda X: X + 2)
    assert not same(lambda X, a=1: X + a, lambda X, a=2: X + a)
    before = content_of(scaled), content_of(nested)
    assert before[0].equals(content_of(scaled), frozenset())
    # a global that is rebound, read by the function or by one that it calls
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    assert not before[0].equals(content_of(scaled), frozenset())
    assert not before[1].equals(content_of(nested), frozenset())
    monkeypatch.undo()
    assert before[1].equals(content_of(nested), frozenset())
    # one that is written to in place
    monkeypatch.setitem(NESTED, "scale", 2.0)
    assert not before[1].equals(content_of(nested), frozenset())


def _scaled(x, by=0.0, *, more=0.0, **others):
    return x * (by + more + others.get("yet", 0.0))


class _Callable:
    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x * self.by

    def method(self, x, *, more=0.0):
        return x * (self.by + more)


def _with_attribute(by):
    def function(x):
        return x * function.by

    function.by = by
    return function


def _in_a_list(by):
    held = [[0.0], {"by": by}]
    return lambda x: x * held[1]["by"]


def _of_a_class(by):
    return type("Scaled", (_Callable,), {"by": by, "__init__": lambda self: None})()


#: Places where a query may hold a number: it makes one of the number.
CARRIERS = {
    "attribute": _with_attribute,
    "class": _of_a_class,
    "closure": lambda by: lambda x: x * by,
    "closure of a closure": lambda by: (lambda f: lambda x: f(x))(lambda x: x * by),
    "default": lambda by: lambda x, by=by: x * by,
    "keyword default": lambda by: lambda x, *, by=by: x * by,
    "list": _in_a_list,
    "method": lambda by: _Callable(by).method,
    "object": _Callable,
    "partial, by keyword": lambda by: functools.partial(_scaled, yet=by),
    "partial, by place": lambda by: functools.partial(_scaled, 3.0, by),
    "partial of a method": lambda by: functools.partial(_Callable(1.0).method, more=by),
}


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_number_is_content_wherever_a_query_holds_it(carrier):
    make = CARRIERS[carrier]
    if carrier != "class":  # made twice it is another one
        assert same(make(2.0), make(2.0))
    assert not same(make(2.0), make(3.0))


def test_classes_are_the_code_of_their_methods():
    def made(factor):
        class Mine(Ridge):
            def fit(self, X, y):
                self.coef_ = factor * X.mean(axis=0)
                return self

        return Mine

    assert same(made(1.0), made(1.0)) is False  # another class, whatever it does
    one = made(1.0)
    assert same(one(), one()) and not same(one(1.0), one(2.0))
    before = content_of(one())
    one.fit.__closure__[0].cell_contents = 3.0
    assert not before.equals(content_of(one()), frozenset())


def test_methods_and_plain_objects_are_their_attributes():
    class Query:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, X):
            return self.factor * X

        def run(self, X):
            return self(X)

    assert same(Query(1.0), Query(1.0)) and not same(Query(1.0), Query(2.0))
    assert same(Query(1.0).run, Query(1.0).run)
    assert not same(Query(1.0).run, Query(2.0).run)


def test_what_holds_itself_is_read_once():
    loop = [1]
    loop.append(loop)
    other = [1]
    other.append(other)
    assert same(loop, other)


@dataclass
class Held:
    inner: object


@pytest.mark.parametrize(
    "value",
    [
        np.random.default_rng(0),
        np.random.RandomState(0),
        random.Random(0),
        threading.Lock(),
        iter([1]),
        object(),
        np.ma.masked_array([1.0], [True]),
        pd.Series(["a"], dtype="category"),
        functools.lru_cache(lambda X: X),
    ],
)
def test_what_is_not_understood_has_no_content(value):
    for holder in (value, [value], {"a": value}, Held(value), lambda: value):
        assert content_of(holder) is None


def test_a_walk_without_an_end_is_given_up():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert content_of(deep) is None
    assert content_of([[] for _ in range(30_000)]) is None


def test_contents_hold_no_rows():
    """A key outlives what it was read from."""
    words = pd.DataFrame({"a": ["a private word"] * 3})

    def made(rows):
        return content_of(lambda X: rows.sum() + len(words)), weakref.ref(rows)

    found, gone = made(np.arange(1000.0))
    gc.collect()
    assert gone() is None
    assert "a private word" not in repr((found.key, dict(found.notes)))


def test_what_a_computation_writes_is_told_from_what_it_reads():
    log, factor = [], [2.0]

    def query(X):
        log.append(len(X))
        return factor[0] * len(X)

    before = content_of(query)
    query([1])
    written = before.written(content_of(query))
    assert len(written) == 1
    query([1, 2])
    assert content_of(query).equals(before, written)
    assert not content_of(query).equals(before, frozenset())
    factor[0] = 3.0
    assert not content_of(query).equals(before, written)


def test_a_setting_beside_a_log_is_still_compared():
    state = {"calls": 0, "factor": 2.0, "deep": {"log": [], "power": 1}}

    def query(X):
        state["calls"] += 1
        state["deep"]["log"].append(len(X))
        return state["factor"] * len(X) ** state["deep"]["power"]

    before = content_of(query)
    query([1])
    written = before.written(content_of(query))
    assert len(written) == 2
    query([1])
    assert content_of(query).equals(before, written)
    state["deep"]["power"] = 2
    assert not content_of(query).equals(before, written)
    state["deep"]["power"] = 1
    state["factor"] = 3.0
    assert not content_of(query).equals(before, written)


def test_only_logs_that_grow_are_what_a_computation_writes():
    class Query:
        def __init__(self):
            self.weights = np.ones(2)

        def __call__(self, X):
            # a setting that it changes itself, and reads
            self.weights = self.weights / self.weights.sum()
            return X @ self.weights

    query = Query()
    before = content_of(query)
    query(np.eye(2))
    assert before.written(content_of(query)) is None

    weights = [1.0, 1.0]

    def scaled(X):
        total = sum(weights)
        weights[:] = [w / total for w in weights]
        return X @ np.array(weights)

    before = content_of(scaled)
    scaled(np.eye(2))
    assert before.written(content_of(scaled)) is None


def _module(name, monkeypatch, **names):
    made = types.ModuleType(name)
    vars(made).update(names)
    monkeypatch.setitem(sys.modules, name, made)
    return made


def _same(change, of):
    before = content_of(of)
    change()
    after = content_of(of)
    return (
        before is not None and after is not None and after.equals(before, frozenset())
    )


def _read_of_module(X):
    return X * outer.inner.FACTOR  # noqa: F821


def test_modules_within_modules_are_read(monkeypatch):
    inner = _module("outer_of_ours.inner", monkeypatch, FACTOR=1.0)
    outer = _module("outer_of_ours", monkeypatch, inner=inner)
    query = types.FunctionType(_read_of_module.__code__, {"outer": outer})
    assert content_of(query) is not None
    assert not _same(lambda: setattr(inner, "FACTOR", 2.0), query)


def _imports_within(X):
    import settings_of_ours

    return X * settings_of_ours.FACTOR


def _reads_by_text(X):
    return X * globals()["FACTOR"]


def test_what_is_read_by_text_or_imported_within_is_not_understood():
    assert content_of(_imports_within) is None
    assert content_of(_reads_by_text) is None


def test_a_module_held_is_not_understood(monkeypatch):
    settings = _module("settings_of_ours", monkeypatch, FACTOR=1.0)
    assert content_of({"settings": settings}) is None


def _by_name(X, name="FACTOR"):
    return X * getattr(settings, name)  # noqa: F821


def test_any_name_of_a_module_may_be_read_by_text(monkeypatch):
    settings = _module("settings_of_ours", monkeypatch, FACTOR=1.0)
    query = types.FunctionType(_by_name.__code__, {"settings": settings})
    assert content_of(query) is None


def _twice(self, X, times):
    return X * times


class _Reads:
    def __get__(self, instance, owner):
        return FACTOR["of"]


FACTOR = {"of": 1.0}


@pytest.mark.parametrize(
    "name, one, other",
    [
        (
            "run",
            functools.partialmethod(_twice, times=2),
            functools.partialmethod(_twice, times=3),
        ),
        ("run", staticmethod(np.mean), staticmethod(np.median)),
        ("run", np.mean, np.median),
        ("weight", functools.cached_property(lambda self: 1), None),
        ("held", types.SimpleNamespace(v=1), types.SimpleNamespace(v=2)),
    ],
)
def test_members_of_a_class_are_read_whatever_they_are(name, one, other):
    if other is None:
        other = functools.cached_property(lambda self: 2)
    kind = type("Query", (), {name: one, "__call__": _twice})
    assert _same(lambda: None, kind()) or content_of(kind()) is None
    assert not _same(lambda: setattr(kind, name, other), kind())


def test_a_descriptor_is_its_code_and_what_it_reads(monkeypatch):
    kind = type("Query", (), {"weight": _Reads(), "__call__": _twice})
    assert content_of(kind()) is not None
    assert not _same(lambda: monkeypatch.setitem(FACTOR, "of", 2.0), kind())


def test_a_function_with_the_name_of_a_library_is_still_ours(monkeypatch):
    @functools.wraps(np.mean)
    def mean(X):
        return FACTOR["of"] * np.mean(X)

    assert not _same(lambda: monkeypatch.setitem(FACTOR, "of", 3.0), mean)


def test_attributes_of_functions_are_read():
    def query(X):
        return X * query.factor

    query.factor = 1.0
    assert content_of(query) is not None
    assert not _same(lambda: setattr(query, "factor", 2.0), query)


def test_libraries_that_were_patched_are_other_ones(monkeypatch):
    def query(X):
        return np.mean(X)

    assert not _same(lambda: monkeypatch.setattr(np, "mean", lambda X: 0), query)
    model = LogisticRegression()
    assert not _same(
        lambda: monkeypatch.setattr(LogisticRegression, "fit", lambda self, X, y: self),
        model,
    )


def test_frames_are_read_with_all_that_is_on_them():
    plain = pd.DataFrame({"a": [1.0]})
    noted = plain.copy()
    noted.attrs["unit"] = "year"

    class Frame(pd.DataFrame):
        pass

    levels = [(1, 2)]
    contents = [
        content_of(plain),
        content_of(noted),
        content_of(pd.MultiIndex.from_tuples(levels, names=["a", "b"])),
        content_of(pd.MultiIndex.from_tuples(levels, names=["a", "c"])),
        content_of(pd.date_range("2020", periods=1, freq="D")),
        content_of(pd.date_range("2020", periods=1, freq="h")),
    ]
    assert len({c.key for c in contents}) == len(contents)
    assert content_of(Frame({"a": [1.0]})) is None
