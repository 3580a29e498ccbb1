"""Probabilities corrected for clipped residuals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, softmax

from skpuffer.additive._run import clipped_curvature, probabilities_of


def test_without_clipping_they_are_those_of_the_scores():
    scores = np.array([-2.0, 0.0, 3.0])
    np.testing.assert_allclose(probabilities_of(scores, 1.0)[:, 1], expit(scores))
    several = np.array([[1.0, 2.0, 3.0]])
    found = probabilities_of(several, 1.5)
    np.testing.assert_allclose(found, softmax(several, axis=1))


def test_the_rare_class_gets_the_root_of_what_clipping_takes():
    # p = 1/5: the residual of class 1 is 4/5, clipped to 1/2, so that a = 5/8
    odds = 0.25 / np.sqrt(0.5 / 0.8)
    found = probabilities_of(np.array([np.log(0.25)]), 0.5)[0]
    assert found[1] / found[0] == pytest.approx(odds)


def test_of_several_classes_the_norm_of_the_residual_counts():
    p = np.array([[0.7, 0.2, 0.1]])
    norms = np.linalg.norm(np.eye(3) - p, axis=1)
    odds = p[0] / np.sqrt(np.minimum(1, 0.5 / norms))
    found = probabilities_of(np.log(p), 0.5)
    np.testing.assert_allclose(found[0], odds / odds.sum())


@given(
    st.lists(st.floats(-20, 20), min_size=2, max_size=6),
    st.floats(0.5, 1.0),
)
def test_the_order_of_classes_stays(scores, clip):
    scores = np.array([scores])
    found = probabilities_of(scores, clip)[0]
    assert found.sum() == pytest.approx(1.0)
    order = np.argsort(scores[0], kind="stable")
    assert np.all(np.diff(found[order]) >= -1e-12)
    binary = probabilities_of(scores[:, 0], clip)[0]
    assert (binary[1] > binary[0]) == (scores[0, 0] > 0) or abs(scores[0, 0]) < 1e-9


def test_curvature_is_that_of_the_loss_where_nothing_is_clipped():
    assert clipped_curvature(np.zeros((3, 1)), 1.0) == pytest.approx(0.25)
    np.testing.assert_allclose(clipped_curvature(np.zeros((2, 4)), 1.5), 3 / 16)
    # at p = 1/5 with clip 1/2, a fifth of the residuals does not move
    found = clipped_curvature(np.full((2, 1), np.log(0.25)), 0.5)
    assert found == pytest.approx(0.2 * 0.8 * 0.8)
