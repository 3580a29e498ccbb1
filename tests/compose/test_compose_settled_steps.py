"""Rows on their way through steps, and the map that is promised to bring them there."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skpuffer.compose._settled_steps import AS_IT_IS, Flow, settle, settle_all
from skpuffer.summary import PrivateStandardScaler
from tests.refused import refused

X = np.random.default_rng(0).uniform(-1, 1, (12, 3))
FRAME = pd.DataFrame(X, columns=list("abc"))
PUBLIC = X[::-1] / 2


def twice(X):
    return 2 * X


def shifted(X):
    return X + 1


TWICE, SHIFTED = FunctionTransformer(twice), FunctionTransformer(shifted)


@pytest.mark.parametrize("rows", [X, FRAME], ids=["array", "frame"])
def test_the_map_of_a_flow_makes_its_rows_of_the_raw_ones(rows):
    """Whatever was selected and applied on the way, in its order."""
    public = PUBLIC if rows is X else FRAME[::-1] / 2
    names = [2, 0] if rows is X else ["c", "a"]
    begin = Flow(base=rows, rows=rows, public=public)
    assert begin.feature_map() is None
    chosen = begin.selecting("chosen", names)
    # raw columns go on as raw columns, which a scenario may know
    assert chosen.steps == () and chosen.feature_map() is None
    np.testing.assert_array_equal(chosen.base, X[:, [2, 0]])
    np.testing.assert_array_equal(chosen.public, PUBLIC[:, [2, 0]])
    for flow, expected in (
        (begin.after("a", TWICE, ()), 2 * X),
        (begin.after("a", TWICE, ()).after("b", SHIFTED, ()), 2 * X + 1),
        (begin.after("a", TWICE, ()).selecting("b", names), 2 * X[:, [2, 0]]),
        (
            begin.after("a", TWICE, ())
            .selecting("b", names)
            .after("c", SHIFTED, ("p",)),
            2 * X[:, [2, 0]] + 1,
        ),
        (
            chosen.after("a", TWICE, ("p", "q")).after("b", SHIFTED, ("p", "q")),
            2 * X[:, [2, 0]] + 1,
        ),
    ):
        np.testing.assert_array_equal(flow.rows, expected)
        np.testing.assert_array_equal(flow.feature_map()(flow.base), expected)
        of_public = chosen.public if flow.base is chosen.base else public
        np.testing.assert_array_equal(flow.public, flow.feature_map()(of_public))
        said = str(flow.feature_map().assumption)
        for name, _ in flow.steps:
            assert repr(name) in said
        assert ("released under certificates" in said) == bool(flow.released)
        for name in flow.released:
            assert repr(name) in said


def test_rows_that_lost_a_column_without_a_name_are_mapped_by_nothing():
    flow = Flow(base=X, rows=X, is_cut=True)
    assert flow.feature_map() is AS_IT_IS
    np.testing.assert_array_equal(AS_IT_IS(X), X)
    assert flow.after("a", TWICE, ()).is_cut and flow.selecting("a", [0]).is_cut


def test_a_step_that_returns_other_records_is_refused():
    for function in (lambda X: X[:6], lambda X: np.vstack([X, X])):
        with refused(ValueError, "pipeline.step_rows_not_per_record"):
            Flow(base=X, rows=X).after("a", FunctionTransformer(function), ())


def scaled_by_public_rows(name, node, flow):
    """What stands for a private step once it was fitted."""
    return FrozenEstimator(StandardScaler().fit(PUBLIC[:, : flow.rows.shape[1]]))


PRIVATE = PrivateStandardScaler(bounds=(-1, 1))
BY_PUBLIC = StandardScaler().fit(PUBLIC).transform


@pytest.mark.parametrize("public", [None, PUBLIC], ids=["alone", "reference"])
def test_private_steps_are_fitted_where_they_stand_and_know_what_is_before(public):
    """To the rows that public and released steps have made, and to no others."""
    steps = [
        ("first", TWICE),
        (
            "inner",
            Pipeline([("one", PRIVATE), ("two", SHIFTED), ("no", "passthrough")]),
        ),
        (
            "union",
            FeatureUnion([("p", PRIVATE), ("plain", TWICE), ("none", "drop")]),
        ),
        (
            "columns",
            ColumnTransformer(
                [("q", PRIVATE, [0, 1]), ("drop", "drop", [2])], remainder="passthrough"
            ),
        ),
        ("last", PRIVATE),
    ]
    told = []

    def note(name, node, flow):
        told.append((name, flow.released, np.asarray(flow.rows)))
        return scaled_by_public_rows(name, node, flow)

    flow = Flow(base=X, rows=X, public=public)
    done, released = settle_all(steps, flow, note)
    behind_inner = BY_PUBLIC(2 * X) + 1
    behind_union = np.hstack([BY_PUBLIC(behind_inner), 2 * behind_inner])
    scaled = StandardScaler().fit(PUBLIC[:, :2]).transform(behind_union[:, :2])
    expected = [
        ("inner__one", (), 2 * X),
        ("union__p", ("inner__one",), behind_inner),
        ("columns__q", ("inner__one", "union__p"), behind_union[:, :2]),
        (
            "last",
            ("inner__one", "union__p", "columns__q"),
            np.hstack([scaled, behind_union[:, 3:]]),
        ),
    ]
    assert [one[:2] for one in told] == [one[:2] for one in expected]
    for (name, _, rows), (*_, known) in zip(told, expected, strict=True):
        np.testing.assert_allclose(rows, known, err_msg=name)
    assert released == ("inner__one", "union__p", "columns__q", "last")
    assert [name for name, _ in done] == [name for name, _ in steps]


def test_public_steps_are_fitted_on_public_rows_at_their_place():
    step = StandardScaler()
    flow = Flow(base=X, rows=X, public=PUBLIC).after("a", TWICE, ())
    fitted, released = settle(clone(step), "b", flow, scaled_by_public_rows)
    assert released == ()
    np.testing.assert_allclose(fitted.mean_, 2 * PUBLIC.mean(axis=0))
