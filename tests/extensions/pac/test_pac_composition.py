"""Several releases of one input: exact joints, bounds, and sums that bound nothing."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from skpuffer.exceptions import CompositionError
from skpuffer.information import (
    compose_additive,
    compose_exact,
    compose_mixed,
    compose_residual,
)
from tests.refused import refused

ORACLES = json.loads(
    (Path(__file__).parents[2] / "oracles" / "residual_pac_gaussian.json").read_text(
        "utf-8"
    )
)

NODES, MASSES = np.polynomial.hermite_e.hermegauss(100)
MASSES = MASSES / MASSES.sum()


def told(atoms, noise, groups=None):
    """Mutual information of equally likely atoms, or of their groups, and release.

    By tensor Gauss-Hermite quadrature around each atom; the noise is independent.
    """
    m, d = atoms.shape
    groups = np.arange(m) if groups is None else np.asarray(groups)
    deviations = np.sqrt(np.diag(noise))
    axes = np.meshgrid(*[NODES] * d, indexing="ij")
    shifts = np.stack([a.ravel() for a in axes], axis=1)
    masses = np.ones(1)
    for _ in range(d):
        masses = np.outer(masses, MASSES).ravel()
    total = 0.0
    for j in range(m):
        y = atoms[j] / deviations + shifts
        logits = -((y[:, None] - atoms / deviations) ** 2).sum(axis=2) / 2
        own = groups == groups[j]
        gain = logsumexp(logits[:, own], axis=1) - logsumexp(logits, axis=1)
        total += (masses @ gain - math.log(own.mean())) / m
    return total


@pytest.mark.every_run
def test_releases_of_one_sign():
    atoms, names = np.array([[-1.0], [1.0]]), ["minus", "plus"]
    for case in ORACLES["O-30"]:
        noise = np.array([[case["noise"]]])
        assert told(atoms, noise) == pytest.approx(case["single"], abs=1e-6)
        for k, joint in case["joint"].items():
            # as one release with so many times less noise
            found = told(atoms, noise / int(k))
            assert found == pytest.approx(joint, abs=2e-6)
            added = compose_additive([case["single"]] * int(k), entropy=math.log(2))
            assert found <= added <= math.log(2)
        pair = compose_exact([atoms] * 2, [noise] * 2, [names] * 2)
        assert told(*pair) == pytest.approx(case["joint"]["2"], abs=2e-6)


def test_releases_of_one_number():
    x = np.arange(8.0)[:, None]
    first, second, joint = ORACLES["O-31"]["dependent"]
    noise = [[2.0]]
    parts = [(x, np.array(noise)), (x**2 / 7, np.array(noise))]
    assert told(*parts[0]) == pytest.approx(first, abs=1e-6)
    assert told(*parts[1]) == pytest.approx(second, abs=1e-6)
    pair = compose_exact(*zip(*parts, strict=True), [range(8)] * 2)
    assert told(*pair) == pytest.approx(joint, abs=1e-6)
    assert joint < compose_additive([first, second])


def test_releases_of_independent_parts_add_up():
    x = np.arange(8)[:, None]
    first, second, joint = ORACLES["O-31"]["independent"]
    parts = [x % 2, x // 2]
    # a sign of unit distance in half the noise is as good as one of two in twice that
    noises = [np.array([[0.5]]), np.array([[1.0]])]
    assert told(np.array(parts[0], float), noises[0]) == pytest.approx(first, abs=1e-6)
    assert told(np.array(parts[1], float), noises[1]) == pytest.approx(second, abs=1e-6)
    pair = compose_exact(parts, noises, [range(8)] * 2)
    assert told(*pair) == pytest.approx(joint, abs=1e-6)
    assert joint == pytest.approx(compose_additive([first, second]), abs=1e-6)


@pytest.mark.every_run
def test_budgets_of_records_do_not_add_up():
    # two fair bits; their exclusive or, and the second one
    bits = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    first = bits[:, 0]
    outputs = [2.0 * (bits[:, :1] ^ bits[:, 1:]) - 1, 2.0 * bits[:, 1:] - 1]
    for case in ORACLES["O-42"]:
        noise = np.array([[case["noise"]]])
        alone = [told(output, noise, first) for output in outputs]
        # nothing each, so that a sum would be nothing, too
        assert_allclose(alone, 0, atol=1e-9)
        pair = compose_exact(outputs, [noise] * 2, [range(4)] * 2)
        joint = told(*pair, first)
        assert joint == pytest.approx(case["joint"], abs=1e-6)
        assert joint > compose_additive(np.maximum(alone, 0)) + 0.1
        whole = [told(output, noise) for output in outputs]
        mixed = compose_mixed(np.maximum(alone, 0), whole)
        assert mixed == pytest.approx(case["mixed"], abs=1e-6)
        assert joint <= mixed


def test_the_mixed_bound_of_many_records():
    # O-41: two releases, either of which tells 0.05 about a record
    assert compose_mixed([0.05] * 2, [0.2039150] * 2) == pytest.approx(0.2539150)


@pytest.mark.every_run
def test_residuals():
    case = ORACLES["O-36"]["composed"]
    found = compose_residual(case["residuals"], math.log(case["alphabet"]))
    assert found == pytest.approx(case["value"], abs=1e-7)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=5), st.floats(0.1, 10))
def test_the_two_forms_agree(budgets, entropy):
    left = compose_residual(entropy - np.array(budgets), entropy)
    assert left == pytest.approx(entropy - compose_additive(budgets, entropy), abs=1e-9)
    signed = compose_residual(entropy - np.array(budgets), entropy, discrete=False)
    assert signed == pytest.approx(entropy - compose_additive(budgets), abs=1e-9)


@given(st.lists(st.tuples(st.floats(0, 2), st.floats(0, 5)), min_size=1, max_size=5))
def test_the_mixed_bound_is_between(pairs):
    about, whole = np.array(pairs).T
    found = compose_mixed(about, whole)
    assert found <= compose_additive(whole) + 1e-9
    assert found >= np.minimum(about, whole).max() - 1e-9
    assert compose_mixed(about[:1], whole[:1]) == pytest.approx(min(about[0], whole[0]))


@given(st.integers(1, 6), st.floats(0.1, 4))
def test_repeated_releases_are_one_with_less_noise(k, noise):
    atoms, names = np.array([[-1.0], [0.5], [2.0]]), ["a", "b", "c"]
    joint, covariance = compose_exact(
        [atoms] * k, [np.array([[noise]])] * k, [names] * k
    )
    # the same distances in units of the noise, which are all that tells
    inverse = np.linalg.inv(covariance)
    gaps = joint[:, None] - joint
    squares = np.einsum("ijk,kl,ijl->ij", gaps, inverse, gaps)
    assert_allclose(squares, (atoms - atoms.T) ** 2 / (noise / k))


def test_rows_of_other_inputs_are_refused():
    atoms, noise = [[0.0], [1.0]], [[1.0]]
    for other in (["b", "a"], ["a", "c"]):
        with refused(CompositionError, "compose.inputs_differ_between_releases"):
            compose_exact([atoms] * 2, [noise] * 2, [["a", "b"], other])


@pytest.mark.parametrize(
    "arguments, name",
    [
        (([], [], []), "atoms"),
        (([[[0.0]]], [], []), "atoms"),
        (([[0.0]], [[[1.0]]], [["a"]]), "atoms"),
        (([[[0.0]]], [np.eye(2)], [["a"]]), "atoms"),
        (([[[0.0]]], [[[1.0]]], [["a", "b"]]), "inputs"),
        (([[[math.nan]]], [[[1.0]]], [["a"]]), "atoms"),
        (([[[0.0]]], [[[-1.0]]], [["a"]]), "noise_covariances"),
    ],
)
def test_bad_inputs_of_the_joint(arguments, name):
    with pytest.raises(ValueError, match=f"'{name}'"):
        compose_exact(*arguments)


def test_bad_inputs():
    for bad in ([], [-0.1], [math.nan], [[0.1]]):
        with refused(
            ValueError,
            (
                "compose.entries_shape_wrong",
                "parameter.array_not_finite",
                "parameter.is_negative",
            ),
        ):
            compose_additive(bad)
        with refused(
            ValueError,
            (
                "compose.entries_shape_wrong",
                "parameter.array_not_finite",
                "parameter.is_negative",
            ),
        ):
            compose_mixed(bad, [0.1])
    with refused(ValueError, "parameter.is_negative", name="entropy"):
        compose_additive([0.1], entropy=-1)
    with refused(ValueError, "compose.information_entries_not_per_release"):
        compose_mixed([0.1], [0.1, 0.2])
    with refused(ValueError, "compose.residuals_exceed_entropy"):
        compose_residual([3.0], 2.0)
    with refused(ValueError, "compose.entries_shape_wrong", name="residuals"):
        compose_residual([], 2.0)
    with refused(ValueError, "parameter.array_not_finite", name="entropy"):
        compose_residual([1.0], math.inf)
