"""What is stated of foreign code, and the vectors that it gives, piece by piece."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from skpuffer._template._foreign_code import StatedSensitivityMixin, VectorQuery
from skpuffer._template._plan import confidence_interval
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.distributions import PointMass
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.noise import GaussianNoise, GeneralizedCauchyNoise, LaplaceNoise
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import AttributeScenario, LawsScenario, RecordScenario
from tests.refused import refused

LAWS = LawsScenario([(PointMass([0.0, 1.0]), PointMass([1.0, 1.0]))])
RECORDS = RecordScenario()


class Stated(StatedSensitivityMixin):
    """The three parameters and nothing else."""

    def __init__(self, sensitivity=None, n_outputs=None, units=None):
        self.sensitivity, self.n_outputs, self.units = sensitivity, n_outputs, units


class Query(VectorQuery):
    """A query of a function of tables."""

    _parameter, _source = "statistic", "table"


# -- what is stated --------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, scenario, kind, code, parameters",
    [
        (
            {},
            RECORDS,
            UnsupportedError,
            "parameter.sensitivity_missing",
            {"scenario_type": "RecordScenario"},
        ),
        (
            {"units": [1.0, 2.0]},
            RECORDS,
            UnsupportedError,
            "parameter.sensitivity_missing",
            {},
        ),
        (
            {"sensitivity": 0.0},
            RECORDS,
            ValueError,
            "parameter.not_positive",
            {"name": "sensitivity"},
        ),
        (
            {"sensitivity": 0.0},
            LAWS,
            ValueError,
            "parameter.not_positive",
            {"name": "sensitivity"},
        ),
        (
            {"sensitivity": math.inf},
            RECORDS,
            ValueError,
            "parameter.not_positive",
            {"name": "sensitivity"},
        ),
        (
            {"sensitivity": "1"},
            RECORDS,
            TypeError,
            "parameter.not_real_number",
            {"name": "sensitivity"},
        ),
        (
            {"n_outputs": 0},
            LAWS,
            ValueError,
            "parameter.count_too_small",
            {"name": "n_outputs"},
        ),
        (
            {"n_outputs": 2.5},
            LAWS,
            ValueError,
            "parameter.count_too_small",
            {"name": "n_outputs"},
        ),
        (
            {"n_outputs": 2, "units": [1.0]},
            LAWS,
            ValueError,
            "parameter.units_not_n_outputs",
            {"n_units": 1},
        ),
        (
            {"n_outputs": 1, "units": [1.0] * 2},
            LAWS,
            ValueError,
            "parameter.units_not_n_outputs",
            {"n_outputs": 1},
        ),
        (
            {"units": [1.0, 0.0]},
            LAWS,
            ValueError,
            "parameter.not_positive",
            {"name": "units"},
        ),
        ({"units": 1.0}, LAWS, ValueError, "parameter.units_not_positive", {}),
        ({"units": []}, LAWS, ValueError, "parameter.units_not_positive", {}),
    ],
)
def test_what_is_no_statement_is_refused(options, scenario, kind, code, parameters):
    with refused(kind, code, **parameters):
        Stated(**options)._check_stated(scenario)


def test_what_is_one_is_taken():
    Stated()._check_stated(LAWS)
    Stated(n_outputs=2, units=[1.0, 2.0])._check_stated(LAWS)
    Stated(0.5)._check_stated(RECORDS)
    Stated(Sensitivity(add_remove={1: 0.0}, replace={1: 0.0}))._check_stated(RECORDS)
    # one whose secret is an attribute knows the distributions of what is released
    prior = pd.DataFrame({"s": [0, 1], "x": [1.0, 2.0]})
    Stated()._check_stated(AttributeScenario("s", level="record", prior=prior))


def test_one_number_is_an_l2_sensitivity_of_both_relations():
    found = Stated(0.25)._stated_sensitivity()
    assert found == Sensitivity(add_remove={2: 0.25}, replace={2: 0.25})
    whole = Sensitivity(add_remove={1: 1.0}, replace={1: 2.0})
    assert Stated(whole)._stated_sensitivity() is whole
    assert Stated()._stated_sensitivity() is None


def test_units_and_lengths_that_are_public():
    assert Stated()._stated_units() is None
    assert Stated(units=np.array([1, 2]))._stated_units() == (1.0, 2.0)
    assert Stated()._public_length(RECORDS) is None
    assert Stated(n_outputs=3)._public_length(RECORDS) == 3
    assert Stated(units=[1.0, 2.0])._public_length(RECORDS) == 2
    # distributions are of one length, whatever is stated
    for options in ({}, {"n_outputs": 2}, {"units": [1.0, 2.0]}):
        assert Stated(**options)._public_length(LAWS) == 2
    with refused(ValueError, "parameter.units_not_scenario_dim", n_units=3, dim=2):
        Stated(units=[1.0] * 3)._public_length(LAWS)


def test_what_nobody_has_proved_is_said():
    (sentence,) = Stated(0.25)._stated_assumptions()
    assert sentence == Statement("assume.stated_sensitivity_holds", sensitivity=0.25)
    whole = Sensitivity(add_remove={1: 1.0}, replace={1: 2.0})
    assert repr(whole) in str(Stated(whole)._stated_assumptions()[0])
    assert Stated()._stated_assumptions() == []


# -- vectors ---------------------------------------------------------------------------


def test_arrays_are_stacked_and_split_again():
    query = Query(7)
    assert query.size is None and query.shapes is None
    parts = [np.arange(4).reshape(2, 2), 5.0, np.array([6, 7])]
    vector = query._stacked(parts)
    np.testing.assert_array_equal(vector, [0, 1, 2, 3, 5, 6, 7])
    assert query.size == 7 and query.shapes == [(2, 2), (), (2,)]
    pieces = query.split(vector + 1)
    np.testing.assert_array_equal(pieces[0], [[1, 2], [3, 4]])
    assert pieces[1] == 6.0 and type(pieces[1]) is float
    np.testing.assert_array_equal(pieces[2], [7, 8])
    # the same shapes again
    query._stacked(parts)
    # an array of no entries has none
    empty = Query(None)
    assert empty._stacked([np.zeros((0, 3)), [1.0]]).tolist() == [1.0]
    assert empty.split(np.array([2.0]))[0].shape == (0, 3)
    assert empty.size == 1


@pytest.mark.parametrize(
    "dim, parts, match",
    [
        (None, [[1.0, math.nan]], "query.value_not_finite"),
        (None, [[1.0], -math.inf], "query.value_not_finite"),
        (None, ["forty"], "query.part_not_array"),
        (None, [object()], "query.part_not_array"),
        (3, [[1.0, 2.0]], "query.length_not_announced"),
        (1, [[1.0], 2.0], "query.length_not_announced"),
    ],
)
def test_what_gives_no_vector_is_refused(dim, parts, match):
    with refused(ValueError, match):
        Query(dim)._stacked(parts)


@pytest.mark.parametrize("other", [[[1.0] * 3], [[[1.0, 2.0]]], [1.0, 2.0]])
def test_shapes_that_depend_on_the_records_are_refused(other):
    """Of the same size as well: who saw the shape would know."""
    query = Query(None)
    query._stacked([[1.0, 2.0]])
    with refused(ValueError, "query.shape_depends_on_records"):
        query._stacked(other)
    # and what was known is still known
    query._stacked([[3.0, 4.0]])


# -- deviations of what is affine in them ----------------------------------------------


class Affine(BaseEstimator):
    """Two attributes of three numbers, in other units and moved."""

    _affine_attributes = ("a_", "b_", "d_")
    confidence_interval = confidence_interval
    deviations = PrivateEstimatorMixin._deviations

    def fit(self):
        """Fit nothing."""

    @staticmethod
    def _linear_parts(vector, release):
        return {"a_": {"x": 2 * vector[:2]}, "b_": vector[2] / 4}


def release_of(dim, query=None):
    return QueryRelease(query=query or len, n_records=2, dim=dim)


def test_deviations_in_the_units_of_the_attributes():
    scales = (1.0, 3.0, 8.0)
    held = Affine().deviations(LaplaceNoise(scales), release_of(3))
    root = math.sqrt(2)
    np.testing.assert_allclose(held["a_"]["x"], [2 * root, 6 * root], rtol=1e-12)
    assert held["b_"] == pytest.approx(2 * root, rel=1e-12)
    # of a vector whose length is known once it was read
    query = Query(None)
    assert Affine().deviations(GaussianNoise(2.0), release_of(None, query)) == {}
    query._stacked([np.zeros((1, 2)), 0.0])
    held = Affine().deviations(GaussianNoise(2.0), release_of(None, query))
    np.testing.assert_array_equal(held["a_"]["x"], [4.0, 4.0])
    assert held["b_"] == 0.5
    # without a variance in one coordinate there are none
    assert Affine().deviations(GeneralizedCauchyNoise((0, 1, 1)), release_of(3)) == {}


def test_intervals_of_nested_attributes():
    fitted = Affine()
    fitted.noise_ = GaussianNoise(2.0)
    fitted.a_, fitted.a_std_ = {"x": np.array([1.0, 2.0])}, {"x": np.array([0.5, 4.0])}
    fitted.b_, fitted.b_std_ = 3.0, 0.25
    fitted.c_ = 4.0
    # the default level is 95 %
    two = 1.959963984540054
    intervals = fitted.confidence_interval()
    assert list(intervals) == ["a_", "b_"]
    low, high = intervals["a_"]
    np.testing.assert_allclose(low["x"], [1 - two * 0.5, 2 - two * 4.0], rtol=1e-12)
    np.testing.assert_allclose(high["x"], [1 + two * 0.5, 2 + two * 4.0], rtol=1e-12)
    np.testing.assert_allclose(intervals["b_"], [3 - two / 4, 3 + two / 4], rtol=1e-12)
