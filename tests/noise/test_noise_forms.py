"""What each family of noise is by default, what it says of itself, and its draws."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gamma

from skpuffer.accountants import scale_for
from skpuffer.exceptions import Statement
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    DegenerateGaussianNoise,
    DiscreteLaplaceNoise,
    ExponentialNoise,
    GaussianNoise,
    GeneralizedCauchyNoise,
    GeneralizedGaussianNoise,
    GumbelNoise,
    L2LaplaceNoise,
    LaplaceNoise,
    Shift,
)
from tests.refused import refused

#: What most families have: `exact` is the trade-off, `mu` that of magnitude one.
USUAL = {
    "log_concave": True,
    "joint": False,
    "integer": False,
    "exact": False,
    "mu": None,
    "bounded_loss": True,
}
#: By family, at scale one.
FORMS = {
    GaussianNoise: {"norm": 2, "mu": 1.0, "bounded_loss": False, "variance": 1.0},
    LaplaceNoise: {"norm": 1, "exact": True, "variance": 2.0},
    DiscreteLaplaceNoise: {
        "norm": 1,
        "integer": True,
        "exact": True,
        "variance": 2 * math.exp(-1) / (1 - math.exp(-1)) ** 2,
    },
    GeneralizedCauchyNoise: {"norm": 2, "log_concave": False, "variance": math.inf},
    GumbelNoise: {"norm": math.inf, "variance": math.pi**2 / 6},
    ExponentialNoise: {"norm": math.inf, "variance": 1.0},
    GeneralizedGaussianNoise: {
        "norm": 2,
        "mu": math.sqrt(2),
        "bounded_loss": False,
        "variance": 0.5,
    },
}


@pytest.mark.parametrize("family", FORMS)
def test_what_a_family_says_of_itself(family):
    noise, form = family(), USUAL | FORMS[family]
    assert noise.scale == 1.0 and noise.dim is None and not noise.is_zero
    assert noise.norm == form["norm"]
    assert noise.log_concave is form["log_concave"]
    assert noise.joint is form["joint"]
    assert noise.integer is form["integer"]
    assert noise._exact_trade_off is form["exact"]
    # of some no move is hidden, so that no curve could be asked
    assert noise._mu_per_unit == (form["mu"] and pytest.approx(form["mu"], rel=1e-12))
    assert noise.has_bounded_loss is form["bounded_loss"]
    for variance in (noise.unit_variance, noise.variance()):
        assert variance == pytest.approx(form["variance"], rel=1e-12)


def test_what_noise_of_vectors_says_of_itself():
    ball = L2LaplaceNoise()
    assert (ball.norm, ball.joint, ball.log_concave) == (2, True, True)
    assert not ball.integer and not ball._exact_trade_off and ball.has_bounded_loss
    assert ball.curve(1.0).gaussian_mu is None
    covariance = CorrelatedGaussianNoise(covariance=[[4.0, 0.0], [0.0, 1.0]])
    factor = DegenerateGaussianNoise(factor=[[2.0], [1.0]])
    for noise in (covariance, factor):
        assert (noise.scale, noise.norm, noise.joint, noise.dim) == (1.0, 2, False, 2)
        assert noise._mu_per_unit == 1.0 and not noise._exact_trade_off
    # neither a covariance nor a factor is taken for another parameter
    for family in (CorrelatedGaussianNoise, DegenerateGaussianNoise):
        with pytest.raises(TypeError):
            family(1.0, [[1.0], [2.0]])


@pytest.mark.parametrize("beta", [1.0, 1.5, 2.0, 3.0, 64.0])
def test_what_a_shape_says_of_itself(beta):
    noise = GeneralizedGaussianNoise(beta=beta)
    assert noise.norm == min(beta, 2.0)
    assert noise.has_bounded_loss is (beta == 1.0)
    assert (noise.curve(1.0).gaussian_mu is None) is (beta != 2.0)
    expected = gamma(3 / beta) / gamma(1 / beta)
    assert noise.unit_variance == pytest.approx(expected, rel=1e-12)


def test_a_length_of_a_ball_varies_with_the_number_of_coordinates():
    for dim in (None, 3):
        variances = L2LaplaceNoise((1.0, 2.0, 3.0)).variance(dim)
        np.testing.assert_allclose(variances, [4.0, 16.0, 36.0])
    np.testing.assert_allclose(L2LaplaceNoise(2.0).variance(2), [12.0, 12.0])


def test_nothing_is_added_where_no_coordinate_has_noise():
    assert not GaussianNoise((0.0, 1.0)).is_zero
    assert GaussianNoise((0.0, 0.0)).is_zero


# -- what is not proved ----------------------------------------------------------------

_SPLITS = Statement("assume.worst_direction_numerical")
_CAUCHY = Statement("assume.cauchy_worst_shift_numerical")


@pytest.mark.parametrize(
    "noise, shift, trade_off, renyi",
    [
        (GaussianNoise(), Shift(1.0, dim=3), (), ()),
        (LaplaceNoise(), Shift(1.0, dim=3), (), ()),
        (L2LaplaceNoise(), Shift(1.0, dim=3), (), ()),
        (DiscreteLaplaceNoise(), Shift(1.0, 1, dim=3), (), ()),
        (GeneralizedCauchyNoise(), 1.0, (), ()),
        (GeneralizedCauchyNoise(), Shift(1.0, dim=1), (), ()),
        (GeneralizedCauchyNoise(), Shift(1.0, 2, 3, "scalar"), (), ()),
        (GeneralizedCauchyNoise(), Shift(1.0, dim=3), (_CAUCHY,), (_CAUCHY,)),
        (GeneralizedCauchyNoise(), Shift(1.0, dim=None), (_CAUCHY,), (_CAUCHY,)),
        (GeneralizedGaussianNoise(beta=1.0), Shift(1.0, dim=3), (), ()),
        (GeneralizedGaussianNoise(beta=2.0), Shift(1.0, dim=3), (), ()),
        # one coordinate, or several in the l1 norm
        (GeneralizedGaussianNoise(beta=1.5), 1.0, (), ()),
        (GeneralizedGaussianNoise(beta=3.0), Shift(1.0, dim=1), (), ()),
        (GeneralizedGaussianNoise(beta=3.0), Shift(1.0, 1, dim=3), (), ()),
        (GeneralizedGaussianNoise(beta=3.0), Shift(1.0, 2, 3, "scalar"), (), ()),
        # in the norm of the shape, or a lower one
        (GeneralizedGaussianNoise(beta=1.5), Shift(1.0, 1.5, 3), (_SPLITS,), ()),
        (GeneralizedGaussianNoise(beta=1.5), Shift(1.0, 1.2, 3), (_SPLITS,), ()),
        # in l2, where few coordinates are split and many are not
        (GeneralizedGaussianNoise(beta=1.5), Shift(1.0, 2, 3), (_SPLITS,), ()),
        (GeneralizedGaussianNoise(beta=1.5), Shift(1.0, 2, 11), (_SPLITS,), ()),
        (GeneralizedGaussianNoise(beta=1.5), Shift(1.0, 2, 12), (), ()),
        (GeneralizedGaussianNoise(beta=1.5), Shift(1.0, 2, None), (), ()),
        (GeneralizedGaussianNoise(beta=3.0), Shift(1.0, 2, 3), (_SPLITS,), (_SPLITS,)),
        (
            GeneralizedGaussianNoise(beta=3.0),
            Shift(1.0, 2, None),
            (_SPLITS,),
            (_SPLITS,),
        ),
    ],
)
def test_what_is_not_proved_is_said_where_it_is_used(noise, shift, trade_off, renyi):
    assert noise.evidence(shift) == noise.curve(shift).evidence() == trade_off
    assert noise.evidence(shift, renyi=True) == renyi
    assert noise.curve(shift).evidence(renyi=True) == renyi


# -- draws -----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (5,), (4, 3)])
def test_a_seed_draws_what_it_always_drew(shape):
    """By NumPy's own draws of each law, times the scale: fits can be repeated."""

    def rng():
        return np.random.default_rng(11)

    def ratio_of_student(freedom):
        return rng().standard_t(freedom, size=shape) / math.sqrt(freedom)

    drawn = {
        GaussianNoise(3.0): rng().standard_normal(shape),
        LaplaceNoise(3.0): rng().laplace(size=shape),
        GumbelNoise(3.0): rng().gumbel(size=shape),
        ExponentialNoise(3.0): rng().exponential(size=shape),
        GeneralizedCauchyNoise(3.0): ratio_of_student(1.0),
        GeneralizedCauchyNoise(3.0, exponent=4.5): ratio_of_student(3.5),
        GeneralizedGaussianNoise(3.0, beta=1.0): rng().laplace(size=shape),
        GeneralizedGaussianNoise(3.0): rng().standard_normal(shape) / math.sqrt(2),
    }
    for noise, unit in drawn.items():
        np.testing.assert_allclose(noise.sample(shape, rng()), 3.0 * unit, rtol=1e-12)
    generator = rng()
    size = generator.standard_gamma(1 / 1.5, size=shape) ** (1 / 1.5)
    signs = 2 * generator.integers(0, 2, size=shape) - 1
    found = GeneralizedGaussianNoise(3.0, beta=1.5).sample(shape, rng())
    np.testing.assert_allclose(found, 3.0 * size * signs, rtol=1e-12)
    generator = rng()
    rate = 1 - math.exp(-1 / 3.0)
    first, second = (generator.geometric(rate, shape) for _ in range(2))
    found = DiscreteLaplaceNoise(3.0).sample(shape, rng())
    np.testing.assert_array_equal(found, first - second)


def test_a_seed_draws_the_vectors_it_always_drew():
    """By the factor of a covariance, or by a direction and a length."""
    covariance = np.array([[4.0, 2.0], [2.0, 5.0]])
    factor = np.array([[2.0, 0.0], [1.0, 2.0]])
    unit = np.random.default_rng(5).standard_normal((6, 2))
    noise = CorrelatedGaussianNoise(0.5, covariance=covariance)
    drawn = noise.sample((6, 2), np.random.default_rng(5))
    np.testing.assert_allclose(drawn, 0.5 * unit @ factor.T, rtol=1e-10)
    np.testing.assert_allclose(noise.variance(), [1.0, 1.25])
    np.testing.assert_allclose(noise.covariance_matrix(2), covariance / 4)
    tall = np.array([[1.0], [-2.0], [0.0]])
    unit = np.random.default_rng(5).standard_normal((6, 1))
    noise = DegenerateGaussianNoise(3.0, factor=tall)
    drawn = noise.sample((6, 3), np.random.default_rng(5))
    np.testing.assert_allclose(drawn, 3.0 * unit @ tall.T, rtol=1e-10)
    np.testing.assert_allclose(noise.variance(), [9.0, 36.0, 0.0])
    np.testing.assert_allclose(noise.covariance_matrix(3), 9.0 * tall @ tall.T)
    # length of a gamma distribution whose shape is the number of coordinates
    generator = np.random.default_rng(5)
    direction = generator.normal(size=(6, 3))
    radius = generator.gamma(3, size=(6, 1))
    expected = direction / np.linalg.norm(direction, axis=1, keepdims=True) * radius
    for scale in (2.0, (1.0, 2.0, 3.0)):
        drawn = L2LaplaceNoise(scale).sample((6, 3), np.random.default_rng(5))
        np.testing.assert_allclose(drawn, expected * np.asarray(scale), rtol=1e-10)


# -- the same in other units, and against other moves ----------------------------------


def test_noise_in_other_units():
    assert GaussianNoise(2.0).in_units([1.0, 3.0]) == GaussianNoise((2.0, 6.0))
    assert LaplaceNoise((1.0, 2.0)).in_units(3.0) == LaplaceNoise((3.0, 6.0))
    kept = GeneralizedCauchyNoise(2.0, exponent=5.0).in_units(3.0)
    assert kept == GeneralizedCauchyNoise(6.0, exponent=5.0)
    noise = CorrelatedGaussianNoise(2.0, covariance=[[1.0, 0.5], [0.5, 2.0]])
    expected = CorrelatedGaussianNoise(2.0, covariance=[[9.0, 3.0], [3.0, 8.0]])
    # of whole numbers: products without rounding
    assert noise.in_units([3.0, 2.0]) == expected
    assert noise.in_units(2.0).covariance == ((4.0, 2.0), (2.0, 8.0))
    noise = DegenerateGaussianNoise(2.0, factor=[[1.0], [2.0]])
    assert noise.in_units([3.0, 2.0]).factor == ((3.0,), (4.0,))
    # one number or as many as coordinates, and not what would broadcast
    for units in ([[1.0, 1.0]], [1.0]):
        for made in (noise, expected):
            with refused(
                ValueError,
                (
                    "gaussian.covariance_units_mismatch",
                    "gaussian.factor_units_mismatch",
                ),
            ):
                made.in_units(units)


def test_lengths_in_standard_deviations():
    moves = np.array([[2.0, 4.0], [0.0, -8.0]])
    found = GaussianNoise((2.0, 4.0)).whitened(moves)
    np.testing.assert_array_equal(found, [[1.0, 1.0], [0.0, -2.0]])
    np.testing.assert_array_equal(GaussianNoise(2.0).whitened(moves), moves / 2)
    noise = CorrelatedGaussianNoise(0.5, covariance=[[4.0, 2.0], [2.0, 5.0]])
    # the Cholesky factor is (2, 0), (1, 2)
    np.testing.assert_allclose(noise.whitened(moves), [[2.0, 3.0], [0.0, -8.0]])


@pytest.mark.parametrize("factor", [0.0, 0.5, 3.0])
@pytest.mark.parametrize(
    "noise, shift",
    [
        (GaussianNoise((1.0, 2.0)), Shift(2.0, 1, 2, weights=(1.0, 3.0))),
        (LaplaceNoise(2.0), 1.0),
        (DiscreteLaplaceNoise(2.0), Shift(4.0, 1, None)),
        (GeneralizedCauchyNoise(), Shift(1.0, 2, 3, "scalar")),
    ],
)
def test_multiples_of_a_shift(noise, shift, factor):
    curve = noise.curve(shift)
    multiple = curve.times(factor)
    assert multiple.noise == noise
    found, known = multiple.shift, curve.shift
    assert found == replace(known, radius=factor * known.radius)
    if factor:
        assert multiple.magnitude >= factor * curve.magnitude * (1 - 1e-15)
        assert not noise.integer or multiple.magnitude == factor * 4


def test_moves_that_leave_the_subspace_cost_everything():
    noise = DegenerateGaussianNoise(factor=[[1.0], [2.0]])
    assert noise.renyi(2, Shift(1e-300, dim=2)) == math.inf
    assert noise.renyi(2, Shift(0.0, dim=2)) == 0.0
    assert noise.delta(50.0, Shift(1.0, dim=None)) == 1.0
    assert noise.renyi(2, 1e-300) == math.inf
    np.testing.assert_array_equal(noise.renyi(2, np.array([0.0, 1.0])), [0.0, math.inf])
    with refused(ValueError, "noise.shift_dimension_mismatch", dim=3, noise_dim=2):
        noise.renyi(2, Shift(1.0, dim=3))
    # without any noise no move is hidden, and none costs nothing
    still = DegenerateGaussianNoise(0.0, factor=[[1.0], [2.0]])
    moves = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 0.0]])
    lengths = np.linalg.norm(still.whitened(moves), axis=1)
    np.testing.assert_array_equal(lengths, [math.inf, 0.0, math.inf])


def test_at_orders_of_any_size_a_scale_spends_its_budget_and_no_more():
    for noise in (GaussianNoise(), LaplaceNoise(), GeneralizedCauchyNoise()):
        for alpha, epsilon in ((1.0 + 1e-9, 1e-6), (2.0, 0.3), (1e9, 7.0)):
            scale = scale_for(noise, alpha, epsilon, 0.7)
            cost = noise.with_scale(scale).renyi(alpha, 0.7)
            assert epsilon * (1 - 1e-9) <= cost <= epsilon


# -- to the last digits: what is computed is no less than what is true -----------------


@pytest.mark.parametrize(
    "alpha, u, beta, exact",
    [
        (2, 1, 1.5, 1.1345936447448369957),
        (1.5, 0.25, 1.5, 0.068446755136688471419),
        (8, 0.5, 1.25, 0.54231148013416821562),
        (3, 1, 3, 29.195722259502231116),
        (2, 0.25, 4, 0.38496442764278927176),
        (1.25, 1, 6, 622.07860871469957506),
        (16, 0.125, 1.75, 0.17634666708015879134),
    ],
)
def test_costs_of_a_shape_are_rounded_up(alpha, u, beta, exact):
    """Against integrals to thirty digits."""
    cost = GeneralizedGaussianNoise(beta=beta).renyi(alpha, u)
    # by more than quadrature misses, and that is documented
    assert exact * (1 + 0.9e-11) <= cost <= exact * (1 + 1.1e-11)


@pytest.mark.parametrize(
    "epsilon, u, beta, exact",
    [
        (0.5, 1, 1.5, 0.34554164026201367046),
        (1.5, 1, 1.5, 0.068151238826576181339),
        (3, 1, 1.5, 0.000028467708714273687113),
        (0.25, 2, 3, 0.89191221145284592788),
        (2, 2, 3, 0.78849101662960917872),
        (0.125, 0.25, 4, 0.10664022601292403016),
    ],
)
def test_trade_offs_of_a_shape_are_not_below(epsilon, u, beta, exact):
    delta = GeneralizedGaussianNoise(beta=beta).delta(epsilon, u)
    # up to the last digits of special functions
    assert exact * (1 - 2e-15) <= delta <= exact * (1 + 1e-12)


@pytest.mark.parametrize(
    "alpha, u, exponent, exact, error",
    [
        # a polynomial, a series, and quadrature, which is rounded up by its error
        (2, 1, 2, 0.40546510810816438198, 0.0),
        (1.5, 0.5, 2.5, 0.14805897314004340602, 0.0),
        (1.3, 3, 2, 1.4022910148905114693, 2e-13),
        (9.7, 2.5, 3.5, 3.4990491346580702162, 2e-13),
        (40.25, 2, 2, 1.701718133401970174, 2e-13),
        (1.7, 2, 1.5, 0.50094585230850647252, 4e-12),
    ],
)
@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_costs_of_heavy_tails_are_not_below(alpha, u, exponent, exact, error):
    cost = GeneralizedCauchyNoise(exponent=exponent).renyi(alpha, u)
    # to the digits that a logarithm near zero keeps
    assert exact * (1 + 0.9 * error - 5e-14) <= cost
    assert cost <= exact * (1 + 1.1 * error + 5e-14)


@pytest.mark.parametrize("shape", [(3,), (0, 3), (4, 4, 3)])
@pytest.mark.parametrize(
    "noise",
    [
        CorrelatedGaussianNoise(covariance=np.eye(3)),
        DegenerateGaussianNoise(factor=[[1.0], [2.0], [-1.0]]),
        L2LaplaceNoise(),
        L2LaplaceNoise((1.0, 2.0, 3.0)),
    ],
)
def test_each_vector_has_a_draw_of_its_own(noise, shape):
    drawn = noise.sample(shape, np.random.default_rng(2))
    assert drawn.shape == shape
    first = drawn[..., 0].ravel()
    assert len(np.unique(first)) == first.size
