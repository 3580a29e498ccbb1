"""What is about to leave: run from the same object it is accounted by."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skpuffer.releases import PublicContext, QueryRelease, Sensitivity, convert_norm
from tests.refused import refused

norms = st.sampled_from([1.0, 1.5, 2.0, 3.0, math.inf])
vectors = hnp.arrays(
    float, st.integers(1, 6), elements=st.floats(-100, 100, allow_subnormal=False)
)


def identity(X, y):
    return np.asarray(X, dtype=float)


def summed(**options):
    options = {
        "contribution": identity,
        "is_sum": True,
        "factor": 0.5,
        "n_records": 3,
        "dim": 2,
    } | options
    return QueryRelease(**options)


# -- norms -----------------------------------------------------------------------------


@given(vectors, norms, norms)
def test_a_norm_bounds_another(vector, p, q):
    bound = convert_norm(np.linalg.norm(vector, ord=p), p, q, len(vector))
    assert np.linalg.norm(vector, ord=q) <= bound * (1 + 1e-9) + 1e-100


@pytest.mark.parametrize(
    "p, q, worst",
    [(2, 1, [1, 1, 1]), (math.inf, 2, [1, 1, 1]), (1, 2, [1, 0, 0])],
)
def test_and_no_smaller_bound_holds(p, q, worst):
    value = np.linalg.norm(worst, ord=p)
    assert convert_norm(value, p, q, 3) == pytest.approx(np.linalg.norm(worst, ord=q))


def test_an_unknown_dimension_bounds_nothing():
    assert convert_norm(1.0, 2, 1, None) == math.inf
    assert convert_norm(0.0, 2, 1, None) == 0.0
    assert convert_norm(1.0, 1, 2, None) == 1.0


# -- sensitivity -----------------------------------------------------------------------


def test_replacing_is_leaving_and_coming_unless_better_is_known():
    one = Sensitivity(add_remove={2: 3.0})
    assert one.value("add_remove", 2, 4) == 3.0
    assert one.value("replace", 2, 4) == 6.0
    assert one.value("replace", 1, 4) == 12.0
    better = Sensitivity(add_remove={2: 3.0}, replace={2: 4.0})
    assert better.value("replace", 2, 4) == 4.0
    worse = Sensitivity(add_remove={2: 3.0}, replace={2: 40.0})
    assert worse.value("replace", 2, 4) == 6.0
    assert Sensitivity(add_remove={}).value("add_remove", 2, 4) == math.inf


def test_the_best_of_several_norms():
    both = Sensitivity(add_remove={1: 5.0, 2: 1.0})
    assert both.value("add_remove", 1, 4) == 2.0
    assert both.value("add_remove", 1, 100) == 5.0
    assert both.value("add_remove", 2, 4) == 1.0


def test_sensitivities_compare_by_value():
    one, other = Sensitivity({2: 1.0, 1: 2}), Sensitivity({1: 2.0, 2: 1})
    assert one == other and hash(one) == hash(other)
    assert one != Sensitivity({2: 1.0, 1: 2}, replace={2: 1.0})


@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_bad_sensitivity(value):
    with refused(ValueError, ("parameter.is_nan", "parameter.is_negative")):
        Sensitivity(add_remove={2: value})
    with refused(ValueError, ("parameter.is_nan", "parameter.is_negative")):
        Sensitivity(add_remove={2: 1.0}, replace={2: value})
    with refused(ValueError, "parameter.option_unknown", name="relation"):
        Sensitivity(add_remove={2: 1.0}).value("swap", 2, 1)


# -- moves of one record ---------------------------------------------------------------


def test_moves_of_a_sum():
    release = summed(
        factor=-0.5, sensitivity=Sensitivity(add_remove={2: 4.0}, replace={2: 6.0})
    )
    assert release.record_move(3.0, 2, "replace") == 1.5
    assert release.record_move(3.0, 1, "replace") == 1.5  # in the norm of the shift
    assert release.record_move(100.0, 2, "replace") == 6.0
    assert release.record_move(100.0, 2, "add_remove") == 4.0
    assert release.record_move(math.inf, 2, "replace") == 6.0
    assert release.shift_norm(1) == 1
    assert summed().record_move(math.inf, 2, "replace") == math.inf


def test_moves_of_a_smooth_query():
    release = QueryRelease(
        query=lambda X, y: X.mean(axis=0),
        contribution=identity,
        modulus=lambda move: min(2 * move, 5.0),
        n_records=3,
        dim=4,
        slack=0.25,
    )
    assert release.shift_norm(1) == 2
    assert release.record_move(1.0, 2, "replace") == 2.0
    assert release.record_move(1.0, 1, "replace") == 4.0
    assert release.record_move(9.0, 2, "replace") == 5.0
    assert (release.total_slack(2), release.total_slack(1)) == (0.25, 0.5)


def test_nothing_known_of_a_query():
    release = QueryRelease(query=lambda X, y: X, n_records=3)
    assert release.record_move(0.1, 2, "replace") == math.inf


@given(
    hnp.arrays(float, (4, 2), elements=st.floats(-1, 1)),
    hnp.arrays(float, 2, elements=st.floats(-1, 1)),
    st.sampled_from([1, 2, math.inf]),
)
def test_no_record_moves_a_sum_further_than_stated(table, record, norm):
    release = summed(factor=-0.25, n_records=4, units=(1.0, 10.0))
    changed = table.copy()
    changed[1] = record
    shift = np.linalg.norm(record - table[1], ord=norm)
    moved = (release.run(changed) - release.run(table)) / np.array(release.units)
    assert np.linalg.norm(moved, ord=norm) <= (
        release.record_move(shift, norm, "replace") + 1e-12
    )


# -- running ---------------------------------------------------------------------------


def test_run():
    X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert summed().run(X).tolist() == [4.5, 6.0]
    assert summed(units=(1, 10)).run(X).tolist() == [4.5, 60.0]
    query = QueryRelease(query=lambda X, y: X.max(), n_records=3)
    assert query.run(X).tolist() == [6.0]
    with_target = QueryRelease(query=lambda X, y: [[X.sum(), y.sum()]], n_records=3)
    assert with_target.run(X, np.ones(3)).tolist() == [21.0, 3.0]


def test_plain_and_frozen():
    release = summed()
    assert release.context == PublicContext(n_records=3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        release.factor = 2.0
    assert "empirical" not in repr(PublicContext(n_records=3, empirical=(1, 2, 3)))


@pytest.mark.parametrize(
    "options, code, parameters",
    [
        ({"n_records": 0}, "parameter.count_too_small", {"name": "n_records"}),
        ({"n_records": 2.5}, "parameter.count_too_small", {"name": "n_records"}),
        ({"contribution": None}, "release.sum_contribution_missing", {}),
        ({"is_sum": False}, "release.query_missing", {}),
        ({"units": (1.0, 0.0)}, "parameter.not_positive", {"name": "units"}),
        ({"units": (1.0, math.inf)}, "parameter.not_positive", {"name": "units"}),
        ({"units": (1.0, math.nan)}, "parameter.is_nan", {"name": "units"}),
        (
            {"context": PublicContext(n_records=4)},
            "release.n_records_differs_from_context",
            {"n_context": 4},
        ),
    ],
    ids=str,
)
def test_bad_release(options, code, parameters):
    with refused(ValueError, code, **parameters):
        summed(**options)


def test_a_sum_over_blocks_is_the_sum(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(103, 3))
    y = np.arange(103)

    def contribution(X, y):
        return np.hstack([X, X * y[:, None]])

    release = QueryRelease(
        contribution=contribution, is_sum=True, factor=0.1, n_records=103, dim=6
    )
    whole = release.run(rows, y)
    monkeypatch.setattr("skpuffer.kernel.queries._BLOCK", 60)
    np.testing.assert_allclose(release.run(rows, y), whole)
    np.testing.assert_allclose(whole, 0.1 * contribution(rows, y).sum(axis=0))
