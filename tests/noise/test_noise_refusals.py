"""What noise refuses, each by its reason: numbers that mean less noise than is said."""

import math

import numpy as np
import pytest

from skpuffer._template._intervals import interval_width
from skpuffer.accountants import scale_for, scale_for_delta
from skpuffer.exceptions import InfiniteDistanceError, Statement
from skpuffer.kernel.run import sample_on_grid
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    DegenerateGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    GeneralizedCauchyNoise,
    GeneralizedGaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
    Shift,
)
from skpuffer.noise.strategies import (
    BandedRows,
    BufferedToeplitz,
    InverseToeplitz,
    Restarted,
    Toeplitz,
    banded_inverse_factorization,
    banded_inverse_square_root,
    banded_matrix_factorization,
    banded_square_root,
    buffered_linear_toeplitz,
    prefix_sum_tree,
)
from tests.refused import refused

CURVE = GaussianNoise(1.0).curve(Shift(1.0))
BETA = GeneralizedGaussianNoise(1.0, beta=1.5)
IDENTITY = np.eye(2)
FACTOR = [[1.0], [2.0]]
BANDS = [[1.0, 0.0], [1.0, 0.5]]
TREE = prefix_sum_tree(4)

CASES = {
    # -- shifts
    "dim 0": (
        lambda: Shift(1.0, dim=0),
        Statement("parameter.count_too_small", name="dim"),
    ),
    "dim 1.5": (
        lambda: Shift(1.0, dim=1.5),
        Statement("parameter.count_too_small", name="dim"),
    ),
    "weight 0": (
        lambda: Shift(1.0, dim=2, weights=(1.0, 0.0)),
        Statement("parameter.not_positive", name="weights"),
    ),
    "weight of no number": (
        lambda: Shift(1.0, dim=1, weights=(math.nan,)),
        Statement("parameter.is_nan", name="weights"),
    ),
    "no weights": (
        lambda: Shift(1.0, dim=None, weights=()),
        Statement("parameter.count_too_small", name="dim"),
    ),
    "weights of another": (
        lambda: Shift(1.0, dim=2, weights=(1.0, 1.0, 1.0)),
        Statement("noise.shift_weights_count_mismatch", dim=2, n_weights=3),
    ),
    "structure": (
        lambda: Shift(1.0, structure="matrix"),
        Statement("parameter.option_unknown", name="structure"),
    ),
    "radius below 0": (
        lambda: Shift(-1.0),
        Statement("parameter.is_negative", name="radius"),
    ),
    "radius of no number": (
        lambda: Shift(math.nan),
        Statement("parameter.is_nan", name="radius"),
    ),
    "norm below 1": (
        lambda: Shift(1.0, norm=0.5),
        Statement("parameter.below_one", name="norm"),
    ),
    "asked in a norm below 1": (
        lambda: Shift(1.0).magnitude(1.0, norm=0.5),
        Statement("parameter.below_one", name="norm"),
    ),
    "norms that differ": (
        lambda: Shift(1.0, norm=2, dim=None).magnitude(1.0, norm=1),
        Statement("noise.shift_norm_mismatch", norm=2.0, noise_norm=1.0),
    ),
    "dimensions that differ": (
        lambda: Shift(1.0, dim=3).magnitude([1.0, 2.0], norm=2),
        Statement("noise.shift_dimension_mismatch", dim=3, noise_dim=2),
    ),
    # -- scales
    "scale below 0": (
        lambda: GaussianNoise(-1.0),
        Statement("parameter.is_negative", name="scale"),
    ),
    "scale of no number": (
        lambda: LaplaceNoise(math.nan),
        Statement("parameter.is_nan", name="scale"),
    ),
    "scales below 0": (
        lambda: GaussianNoise([1.0, -1.0]),
        Statement("parameter.is_negative", name="scale"),
    ),
    "scale without end": (
        lambda: LaplaceNoise(math.inf),
        Statement("noise.scale_not_finite"),
    ),
    "scales without end": (
        lambda: GaussianNoise([1.0, math.inf]),
        Statement("noise.scale_not_finite"),
    ),
    "matrix of scales": (
        lambda: GaussianNoise([[1.0, 0.0], [0.0, 1.0]]),
        Statement("noise.scale_shape_wrong", shape=(2, 2)),
    ),
    "no scales": (
        lambda: GaussianNoise([]),
        Statement("noise.scale_shape_wrong", shape=(0,)),
    ),
    "proportions of 0": (
        lambda: scale_for(GaussianNoise([0.0, 1.0]), 2.0, 1.0, Shift(1.0, dim=2)),
        Statement("noise.scale_proportions_not_positive"),
    ),
    "no end of the shift": (
        lambda: scale_for(GaussianNoise(1.0), 2.0, 1.0, Shift(math.inf)),
        Statement("noise.shift_infinite"),
    ),
    # -- curves
    "order 1": (
        lambda: CURVE.renyi(1.0),
        Statement("parameter.renyi_order_out_of_range", name="alpha"),
    ),
    "orders with 1": (
        lambda: CURVE.renyi([2.0, 1.0]),
        Statement("parameter.renyi_order_out_of_range", name="alpha"),
    ),
    "epsilon of no number": (
        lambda: CURVE.delta(math.nan),
        Statement("parameter.is_nan", name="epsilon"),
    ),
    "delta above 1": (
        lambda: CURVE.epsilon(1.1),
        Statement("parameter.probability_out_of_range", name="delta"),
    ),
    "delta 1": (
        lambda: CURVE.epsilon(1.0),
        Statement("parameter.probability_out_of_range", name="delta"),
    ),
    "delta below 0": (
        lambda: CURVE.epsilon([0.1, -0.1]),
        Statement("parameter.probability_out_of_range", name="delta"),
    ),
    "delta of no number": (
        lambda: CURVE.epsilon(math.nan),
        Statement("parameter.is_nan", name="delta"),
    ),
    "scale for order 1": (
        lambda: scale_for(CURVE.noise, 1.0, 1.0, CURVE.shift),
        Statement("parameter.renyi_order_out_of_range", name="alpha"),
    ),
    "scale for epsilon 0": (
        lambda: scale_for(CURVE.noise, 2.0, 0.0, CURVE.shift),
        Statement("parameter.not_positive", name="epsilon"),
    ),
    "scale for epsilon -1": (
        lambda: scale_for_delta(CURVE.noise, -1.0, 0.1, CURVE.shift),
        Statement("parameter.not_positive", name="epsilon"),
    ),
    "scale for delta 2": (
        lambda: scale_for_delta(CURVE.noise, 1.0, 2.0, CURVE.shift),
        Statement("parameter.probability_out_of_range", name="delta"),
    ),
    "scale for delta -1": (
        lambda: scale_for_delta(CURVE.noise, 1.0, -0.1, CURVE.shift),
        Statement("parameter.probability_out_of_range", name="delta"),
    ),
    "shift below 0": (
        lambda: GaussianNoise(1.0).curve(-1.0),
        Statement("parameter.is_negative", name="shift"),
    ),
    # -- draws and sizes
    "shape below 0": (
        lambda: GaussianNoise(1.0).sample((2, -1), 0),
        Statement("parameter.count_too_small", name="shape"),
    ),
    "shape of a part": (
        lambda: GaussianNoise(1.0).sample(1.5, 0),
        Statement("parameter.count_too_small", name="shape"),
    ),
    "shape of another": (
        lambda: GaussianNoise([1.0, 2.0]).sample((2, 3), 0),
        Statement("noise.sample_shape_mismatch", dim=2),
    ),
    "grid shape below 0": (
        lambda: sample_on_grid(
            LaplaceNoise(1.0), np.array(1.0), (-1, 2), np.random.default_rng(0)
        ),
        Statement("parameter.count_too_small", name="shape"),
    ),
    "variance of 0": (
        lambda: GaussianNoise(1.0).variance(0),
        Statement("parameter.count_too_small", name="dim"),
    ),
    "variance of 1.5": (
        lambda: L2LaplaceNoise(1.0).variance(1.5),
        Statement("parameter.count_too_small", name="dim"),
    ),
    "variance of another": (
        lambda: GaussianNoise([1.0, 2.0]).variance(3),
        Statement("noise.variance_dimension_mismatch", noise_dim=2, dim=3),
    ),
    "level above 1": (
        lambda: interval_width(GaussianNoise(1.0), 1.5),
        Statement("parameter.probability_out_of_range", name="level"),
    ),
    "variance of l2 noise": (
        lambda: L2LaplaceNoise(1.0).unit_variance,
        Statement("noise.l2_laplace_dimension_needed"),
    ),
    # -- families
    "pure gaussian": (
        lambda: scale_for(CURVE.noise, math.inf, 1.0, CURVE.shift),
        Statement("gaussian.no_pure_epsilon"),
    ),
    "pure beta": (
        lambda: scale_for(BETA, math.inf, 1.0, 1.0),
        Statement("shaped.beta_no_pure_epsilon", beta=1.5),
    ),
    "pure cauchy of any dim": (
        lambda: scale_for(
            GeneralizedCauchyNoise(1.0), math.inf, 1.0, Shift(1.0, dim=None)
        ),
        Statement("shaped.cauchy_dimension_unknown"),
    ),
    "beta below 1": (
        lambda: GeneralizedGaussianNoise(1.0, beta=0.99),
        Statement("shaped.beta_out_of_range"),
    ),
    "beta above": (
        lambda: GeneralizedGaussianNoise(1.0, beta=1e4),
        Statement("shaped.beta_out_of_range"),
    ),
    "beta of no number": (
        lambda: GeneralizedGaussianNoise(1.0, beta=math.nan),
        Statement("parameter.is_nan", name="beta"),
    ),
    "beta of a text": (
        lambda: GeneralizedGaussianNoise(1.0, beta="2"),
        Statement("parameter.not_real_number", name="beta"),
    ),
    "losses of several": (
        lambda: BETA.loss_cdf(0.5, Shift(1.0, dim=2)),
        Statement("shaped.loss_depends_on_direction"),
    ),
    "loss of no number": (
        lambda: BETA.loss_cdf(math.nan, 1.0),
        Statement("parameter.is_nan", name="loss"),
    ),
    "tail below 0": (
        lambda: BETA.tail(-1.0),
        Statement("parameter.is_negative", name="t"),
    ),
    "cdf of no number": (
        lambda: BETA.cdf(math.nan),
        Statement("parameter.is_nan", name="x"),
    ),
    "share above 1": (
        lambda: BETA.quantile(1.01),
        Statement("shaped.share_out_of_range", name="p"),
    ),
    "share below 0": (
        lambda: BETA.quantile([0.5, -0.01]),
        Statement("shaped.share_out_of_range", name="p"),
    ),
    "share of no number": (
        lambda: BETA.quantile(math.nan),
        Statement("parameter.is_nan", name="p"),
    ),
    "exponent 0": (
        lambda: GeneralizedCauchyNoise(1.0, exponent=0.0),
        Statement("parameter.not_positive", name="exponent"),
    ),
    "exponent 1": (
        lambda: GeneralizedCauchyNoise(1.0, exponent=1.0),
        Statement("shaped.cauchy_exponent_too_small", exponent=1.0),
    ),
    "several cauchy below 2": (
        lambda: GeneralizedCauchyNoise(1.0, exponent=1.9).curve(Shift(1.0, dim=2)),
        Statement("shaped.cauchy_several_coordinates"),
    ),
    "scales of integers": (
        lambda: DiscreteLaplaceNoise([1.0, 2.0]),
        Statement("noise.discrete_laplace_several_scales"),
    ),
    "scale of integers": (
        lambda: DiscreteLaplaceNoise(2.0**32 + 1),
        Statement("noise.discrete_laplace_scale_too_large"),
    ),
    # -- covariances
    "scales beside a covariance": (
        lambda: CorrelatedGaussianNoise([1.0, 2.0], covariance=IDENTITY),
        Statement("gaussian.scale_with_covariance"),
    ),
    "no covariance": (
        lambda: CorrelatedGaussianNoise(1.0, covariance=[[1.0, 2.0], [2.0, 1.0]]),
        Statement("parameter.covariance_not_positive_definite", name="covariance"),
    ),
    "flat covariance": (
        lambda: CorrelatedGaussianNoise(1.0, covariance=[[1.0, 1.0], [1.0, 1.0]]),
        Statement("parameter.covariance_not_positive_definite", name="covariance"),
    ),
    "units of another": (
        lambda: CorrelatedGaussianNoise(1.0, covariance=IDENTITY).in_units([1.0] * 3),
        Statement("gaussian.covariance_units_mismatch", dim=2),
    ),
    "scales beside a factor": (
        lambda: DegenerateGaussianNoise([1.0, 2.0], factor=FACTOR),
        Statement("gaussian.scale_with_factor"),
    ),
    "factor of no number": (
        lambda: DegenerateGaussianNoise(1.0, factor=[[1.0], [math.nan]]),
        Statement("parameter.array_not_finite", name="factor"),
    ),
    "factor of full rank": (
        lambda: DegenerateGaussianNoise(1.0, factor=IDENTITY),
        Statement("gaussian.factor_shape_wrong"),
    ),
    "factor of a row": (
        lambda: DegenerateGaussianNoise(1.0, factor=[1.0, 2.0]),
        Statement("gaussian.factor_shape_wrong"),
    ),
    "factor of nothing": (
        lambda: DegenerateGaussianNoise(1.0, factor=np.ones((2, 0))),
        Statement("gaussian.factor_shape_wrong"),
    ),
    "dependent columns": (
        lambda: DegenerateGaussianNoise(1.0, factor=np.ones((3, 2))),
        Statement("gaussian.factor_columns_dependent"),
    ),
    "units of another factor": (
        lambda: DegenerateGaussianNoise(1.0, factor=FACTOR).in_units([1.0] * 3),
        Statement("gaussian.factor_units_mismatch", dim=2),
    ),
    # -- strategies
    "decay 0": (
        lambda: BufferedToeplitz((0.0,), (0.1,)),
        Statement("parameter.not_positive", name="decays"),
    ),
    "decay 1": (
        lambda: BufferedToeplitz((1.0,), (0.1,)),
        Statement("strategy.decays_out_of_range"),
    ),
    "one decay of 1": (
        lambda: BufferedToeplitz((0.5, 1.0), (0.1, 0.1)),
        Statement("strategy.decays_out_of_range"),
    ),
    "one large weight": (
        lambda: BufferedToeplitz((0.9, 0.5), (3.0, 0.1)),
        Statement("strategy.buffer_weights_noise_grows"),
    ),
    "weight of a buffer": (
        lambda: BufferedToeplitz((0.5,), (0.0,)),
        Statement("parameter.not_positive", name="weights"),
    ),
    "buffers that differ": (
        lambda: BufferedToeplitz((0.5, 0.4), (0.1,)),
        Statement("strategy.buffers_count_mismatch", n_decays=2, n_weights=1),
    ),
    "no buffers": (
        lambda: BufferedToeplitz((), ()),
        Statement("strategy.buffers_count_mismatch"),
    ),
    "large weights": (
        lambda: BufferedToeplitz((0.9,), (3.0,)),
        Statement("strategy.buffer_weights_noise_grows"),
    ),
    "bandwidth 0": (
        lambda: banded_square_root(0),
        Statement("parameter.count_too_small", name="bandwidth"),
    ),
    "inverse bandwidth 0": (
        lambda: banded_inverse_square_root(0),
        Statement("parameter.count_too_small", name="bandwidth"),
    ),
    "factorised bandwidth 0": (
        lambda: banded_matrix_factorization(4, bandwidth=0),
        Statement("parameter.count_too_small", name="bandwidth"),
    ),
    "inverse factorised bandwidth 0": (
        lambda: banded_inverse_factorization(4, bandwidth=0),
        Statement("parameter.count_too_small", name="bandwidth"),
    ),
    "buffers 0": (
        lambda: buffered_linear_toeplitz(4, n_buffers=0),
        Statement("parameter.count_too_small", name="n_buffers"),
    ),
    "steps 0": (
        lambda: banded_inverse_factorization(0, bandwidth=2),
        Statement("parameter.count_too_small", name="n_steps"),
    ),
    "another objective": (
        lambda: banded_inverse_factorization(4, bandwidth=2, objective="sum"),
        Statement("parameter.option_unknown", name="objective"),
    ),
    "batches 0": (
        lambda: banded_inverse_factorization(4, bandwidth=2, n_batches=0),
        Statement("parameter.count_too_small", name="n_batches"),
    ),
    "rows for the worst step": (
        lambda: banded_matrix_factorization(
            4, bandwidth=2, objective="max", toeplitz=False
        ),
        Statement("strategy.non_toeplitz_unsupported"),
    ),
    "rows for few batches": (
        lambda: banded_matrix_factorization(
            4, bandwidth=3, n_batches=2, toeplitz=False
        ),
        Statement("strategy.non_toeplitz_unsupported"),
    ),
    "restarts of nothing": (
        lambda: Restarted(strategy="identity", every=2),
        Statement("strategy.restarted_wrong_type"),
    ),
    "restarts every 0": (
        lambda: Restarted(strategy=Toeplitz((1.0, 0.5)), every=0),
        Statement("parameter.count_too_small", name="every"),
    ),
    "restarts of another length": (
        lambda: Restarted(strategy=TREE, every=3),
        Statement("strategy.tree_steps_mismatch", tree_steps=4, n_steps=3),
    ),
    "a tree of no steps": (
        lambda: prefix_sum_tree(0),
        Statement("parameter.count_too_small", name="n_steps"),
    ),
    "a tree for another run": (
        lambda: TREE.check_run(5),
        Statement("strategy.tree_steps_mismatch", tree_steps=4, n_steps=5),
    ),
    "rows of no number": (
        lambda: BandedRows([[math.nan]]),
        Statement("parameter.array_not_finite", name="rows"),
    ),
    "rows of a row": (
        lambda: BandedRows([1.0, 0.5]),
        Statement("strategy.rows_shape_wrong", shape=(2,)),
    ),
    "no rows": (
        lambda: BandedRows(np.ones((0, 2))),
        Statement("strategy.rows_shape_wrong"),
    ),
    "diagonal 0": (
        lambda: BandedRows([[0.0]]),
        Statement("parameter.not_positive", name="rows"),
    ),
    "rows beyond the first column": (
        lambda: BandedRows([[1.0, 0.5], [1.0, 0.5]]),
        Statement("strategy.rows_not_lower"),
    ),
    "rows that grow": (
        lambda: BandedRows([[1.0, 0.0], *[[1.0, 9.0]] * 40]),
        Statement("strategy.rows_noise_grows"),
    ),
    "rows for another run": (
        lambda: BandedRows(BANDS).check_run(3),
        Statement("strategy.rows_steps_mismatch", n_rows=2, n_steps=3),
    ),
    "matrix of no number": (
        lambda: BandedRows.of_matrix([[1.0, 0.0], [math.inf, 1.0]]),
        Statement("parameter.array_not_finite", name="matrix"),
    ),
    "a matrix that is not square": (
        lambda: BandedRows.of_matrix([[1.0, 0.0]]),
        Statement("strategy.matrix_not_square", shape=(1, 2)),
    ),
    "a matrix above its diagonal": (
        lambda: BandedRows.of_matrix([[1.0, 0.5], [0.5, 1.0]]),
        Statement("strategy.matrix_not_lower_triangular"),
    ),
    "column of no number": (
        lambda: Toeplitz((1.0, math.nan)),
        Statement("parameter.array_not_finite", name="column"),
    ),
    "no column": (lambda: Toeplitz(()), Statement("strategy.column_empty")),
    "a matrix for a column": (
        lambda: InverseToeplitz(((1.0,), (0.5,))),
        Statement("strategy.column_empty"),
    ),
    "column that begins at 0": (
        lambda: Toeplitz((0.0, 1.0)),
        Statement("parameter.not_positive", name="column"),
    ),
    "column that begins below": (
        lambda: InverseToeplitz((-1.0, 0.5)),
        Statement("parameter.not_positive", name="column"),
    ),
    "column whose noise grows": (
        lambda: Toeplitz((1.0, 2.0)),
        Statement("strategy.column_noise_grows"),
    ),
    "inverse that overflows": (
        lambda: InverseToeplitz((1.0, -9.0)).coefficients(1000),
        Statement("strategy.column_inverse_overflows", n_steps=1000),
    ),
}


# what is rarely used is said by a warning as well
@pytest.mark.filterwarnings("ignore:Generalised Cauchy noise is usual")
@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_by_its_reason(name):
    make, said = CASES[name]
    with refused((ValueError, TypeError), said.code, **said.parameters):
        make()


def test_an_infinite_shift_is_an_error_of_its_own():
    with pytest.raises(InfiniteDistanceError):
        CASES["no end of the shift"][0]()


@pytest.mark.filterwarnings("ignore:Generalised Cauchy noise is usual")
@pytest.mark.parametrize(
    "make",
    [
        lambda: Shift(0.0, norm=1, dim=1, weights=(1e-9,)),
        lambda: Shift(math.inf, norm=math.inf),
        lambda: GaussianNoise(0.0),
        lambda: GeneralizedGaussianNoise(1.0, beta=1.0),
        lambda: GeneralizedCauchyNoise(1.0, exponent=1.9).curve(Shift(1.0, dim=1)),
        lambda: GeneralizedCauchyNoise(1.0, exponent=2.0).curve(Shift(1.0, dim=2)),
        lambda: DiscreteLaplaceNoise(2.0**32),
        lambda: CURVE.epsilon(0.999),
        lambda: CURVE.delta(-1.0),
        lambda: BETA.quantile([0.0, 1.0]),
        lambda: BETA.tail(0.0),
        lambda: GaussianNoise(1.0).sample(0, 0),
        lambda: GaussianNoise([1.0, 2.0]).sample((0, 2), 0),
        lambda: BandedRows(BANDS).check_run(2),
        lambda: TREE.check_run(4),
    ],
)
def test_what_is_at_the_edge_is_taken(make):
    make()
