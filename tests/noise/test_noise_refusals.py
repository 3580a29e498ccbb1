"""What noise refuses, each by its reason: numbers that mean less noise than is said."""

import math

import numpy as np
import pytest

from skpuffer.exceptions import InfiniteDistanceError
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
from skpuffer.noise._on_grid import sample_on_grid
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

CURVE = GaussianNoise(1.0).curve(Shift(1.0))
BETA = GeneralizedGaussianNoise(1.0, beta=1.5)
IDENTITY = np.eye(2)
FACTOR = [[1.0], [2.0]]
BANDS = [[1.0, 0.0], [1.0, 0.5]]
TREE = prefix_sum_tree(4)

CASES = {
    # -- shifts
    "dim 0": (lambda: Shift(1.0, dim=0), "'dim'"),
    "dim 1.5": (lambda: Shift(1.0, dim=1.5), "'dim'"),
    "weight 0": (lambda: Shift(1.0, dim=2, weights=(1.0, 0.0)), "'weights'"),
    "weight of no number": (
        lambda: Shift(1.0, dim=1, weights=(math.nan,)),
        "'weights'",
    ),
    "no weights": (lambda: Shift(1.0, dim=None, weights=()), "'dim'|'weights'"),
    "weights of another": (
        lambda: Shift(1.0, dim=2, weights=(1.0, 1.0, 1.0)),
        "'weights' must have one entry for each of the dim=2 coordinates. Got 3",
    ),
    "structure": (lambda: Shift(1.0, structure="matrix"), "'structure'"),
    "radius below 0": (lambda: Shift(-1.0), "'radius'"),
    "radius of no number": (lambda: Shift(math.nan), "'radius'"),
    "norm below 1": (lambda: Shift(1.0, norm=0.5), "'norm'"),
    "asked in a norm below 1": (lambda: Shift(1.0).magnitude(1.0, norm=0.5), "'norm'"),
    "norms that differ": (
        lambda: Shift(1.0, norm=2, dim=None).magnitude(1.0, norm=1),
        "Norm mismatch: a shift bounded in the 2-norm has no bound in the 1-norm",
    ),
    "dimensions that differ": (
        lambda: Shift(1.0, dim=3).magnitude([1.0, 2.0], norm=2),
        "The shift has dim=3 but the noise has 2 coordinates",
    ),
    # -- scales
    "scale below 0": (lambda: GaussianNoise(-1.0), "'scale'"),
    "scale of no number": (lambda: LaplaceNoise(math.nan), "'scale'"),
    "scales below 0": (lambda: GaussianNoise([1.0, -1.0]), "'scale'"),
    "scale without end": (lambda: LaplaceNoise(math.inf), "'scale' must be finite"),
    "scales without end": (
        lambda: GaussianNoise([1.0, math.inf]),
        "'scale' must be fin",
    ),
    "matrix of scales": (
        lambda: GaussianNoise([[1.0, 0.0], [0.0, 1.0]]),
        r"'scale' must be one number or one for each coordinate. Got shape \(2, 2\)",
    ),
    "no scales": (
        lambda: GaussianNoise([]),
        r"one for each coordinate. Got shape \(0,\)",
    ),
    "proportions of 0": (
        lambda: GaussianNoise([0.0, 1.0]).curve(Shift(1.0, dim=2)).scale_for(2.0, 1.0),
        "proportions of the noise to calibrate, so each must be positive",
    ),
    "no end of the shift": (
        lambda: GaussianNoise(1.0).curve(Shift(math.inf)).scale_for(2.0, 1.0),
        "The shift is infinite, so no finite scale of noise covers it",
    ),
    # -- curves
    "order 1": (lambda: CURVE.renyi(1.0), "'alpha'"),
    "orders with 1": (lambda: CURVE.renyi([2.0, 1.0]), "'alpha'"),
    "epsilon of no number": (lambda: CURVE.delta(math.nan), "'epsilon'"),
    "delta above 1": (lambda: CURVE.epsilon(1.1), "'delta'"),
    "delta 1": (lambda: CURVE.epsilon(1.0), "'delta'"),
    "delta below 0": (lambda: CURVE.epsilon([0.1, -0.1]), "'delta'"),
    "delta of no number": (lambda: CURVE.epsilon(math.nan), "'delta'"),
    "scale for order 1": (lambda: CURVE.scale_for(1.0, 1.0), "'alpha'"),
    "scale for epsilon 0": (lambda: CURVE.scale_for(2.0, 0.0), "'epsilon'"),
    "scale for epsilon -1": (lambda: CURVE.scale_for_delta(-1.0, 0.1), "'epsilon'"),
    "scale for delta 2": (lambda: CURVE.scale_for_delta(1.0, 2.0), "'delta'"),
    "scale for delta -1": (lambda: CURVE.scale_for_delta(1.0, -0.1), "'delta'"),
    "shift below 0": (lambda: GaussianNoise(1.0).curve(-1.0), "'shift'"),
    # -- draws and sizes
    "shape below 0": (lambda: GaussianNoise(1.0).sample((2, -1), 0), "'shape'"),
    "shape of a part": (lambda: GaussianNoise(1.0).sample(1.5, 0), "'shape'"),
    "shape of another": (
        lambda: GaussianNoise([1.0, 2.0]).sample((2, 3), 0),
        "The last axis of 'shape' must be the 2 coordinates of the noise",
    ),
    "grid shape below 0": (
        lambda: sample_on_grid(
            LaplaceNoise(1.0), np.array(1.0), (-1, 2), np.random.default_rng(0)
        ),
        "'shape'",
    ),
    "variance of 0": (lambda: GaussianNoise(1.0).variance(0), "'dim'"),
    "variance of 1.5": (lambda: L2LaplaceNoise(1.0).variance(1.5), "'dim'"),
    "variance of another": (
        lambda: GaussianNoise([1.0, 2.0]).variance(3),
        "The noise has 2 coordinates. Got dim=3; omit it",
    ),
    "level above 1": (lambda: GaussianNoise(1.0).interval_width(1.5), "'level'"),
    "variance of l2 noise": (
        lambda: L2LaplaceNoise(1.0).unit_variance,
        "depends on the number of coordinates",
    ),
    # -- families
    "pure gaussian": (
        lambda: CURVE.scale_for(math.inf, 1.0),
        "Gaussian noise has no finite pure-epsilon cost",
    ),
    "pure beta": (
        lambda: BETA.curve(1.0).scale_for(math.inf, 1.0),
        "beta=1.5 has no finite pure-epsilon cost",
    ),
    "pure cauchy of any dim": (
        lambda: (
            GeneralizedCauchyNoise(1.0)
            .curve(Shift(1.0, dim=None))
            .scale_for(math.inf, 1.0)
        ),
        "Over an unknown number of coordinates generalised Cauchy noise has no finite",
    ),
    "beta below 1": (
        lambda: GeneralizedGaussianNoise(1.0, beta=0.99),
        "'beta' must be in the range",
    ),
    "beta above": (
        lambda: GeneralizedGaussianNoise(1.0, beta=1e4),
        "'beta' must be in the range",
    ),
    "beta of no number": (
        lambda: GeneralizedGaussianNoise(1.0, beta=math.nan),
        "'beta'",
    ),
    "beta of a text": (lambda: GeneralizedGaussianNoise(1.0, beta="2"), "'beta'"),
    "losses of several": (
        lambda: BETA.loss_cdf(0.5, Shift(1.0, dim=2)),
        "The privacy loss of a shift of several coordinates depends on its direction",
    ),
    "loss of no number": (lambda: BETA.loss_cdf(math.nan, 1.0), "'loss'"),
    "tail below 0": (lambda: BETA.tail(-1.0), "'t'"),
    "cdf of no number": (lambda: BETA.cdf(math.nan), "'x'"),
    "share above 1": (lambda: BETA.quantile(1.01), "'p' must be in the range"),
    "share below 0": (lambda: BETA.quantile([0.5, -0.01]), "'p' must be in the range"),
    "share of no number": (lambda: BETA.quantile(math.nan), "'p'"),
    "exponent 0": (lambda: GeneralizedCauchyNoise(1.0, exponent=0.0), "'exponent'"),
    "exponent 1": (
        lambda: GeneralizedCauchyNoise(1.0, exponent=1.0),
        "'exponent' must be at least .*: the density has an integral above 1 only",
    ),
    "several cauchy below 2": (
        lambda: GeneralizedCauchyNoise(1.0, exponent=1.9).curve(Shift(1.0, dim=2)),
        "with an 'exponent' below 2 serves one coordinate only",
    ),
    "scales of integers": (
        lambda: DiscreteLaplaceNoise([1.0, 2.0]),
        "'scale' of discrete Laplace noise must be one number",
    ),
    "scale of integers": (
        lambda: DiscreteLaplaceNoise(2.0**32 + 1),
        "'scale' of discrete Laplace noise must be at most",
    ),
    # -- covariances
    "scales beside a covariance": (
        lambda: CorrelatedGaussianNoise([1.0, 2.0], covariance=IDENTITY),
        "'scale' must be one number where 'covariance' is given",
    ),
    "no covariance": (
        lambda: CorrelatedGaussianNoise(1.0, covariance=[[1.0, 2.0], [2.0, 1.0]]),
        "'covariance'",
    ),
    "flat covariance": (
        lambda: CorrelatedGaussianNoise(1.0, covariance=[[1.0, 1.0], [1.0, 1.0]]),
        "'covariance'",
    ),
    "units of another": (
        lambda: CorrelatedGaussianNoise(1.0, covariance=IDENTITY).in_units([1.0] * 3),
        "'units' must have 2 entries, one for each coordinate of the covariance",
    ),
    "scales beside a factor": (
        lambda: DegenerateGaussianNoise([1.0, 2.0], factor=FACTOR),
        "'scale' must be one number where 'factor' is given",
    ),
    "factor of no number": (
        lambda: DegenerateGaussianNoise(1.0, factor=[[1.0], [math.nan]]),
        "'factor'",
    ),
    "factor of full rank": (
        lambda: DegenerateGaussianNoise(1.0, factor=IDENTITY),
        "'factor' must have shape .dim, rank., with fewer columns than rows",
    ),
    "factor of a row": (
        lambda: DegenerateGaussianNoise(1.0, factor=[1.0, 2.0]),
        "'factor' must have shape .dim, rank., with fewer columns than rows",
    ),
    "factor of nothing": (
        lambda: DegenerateGaussianNoise(1.0, factor=np.ones((2, 0))),
        "'factor'",
    ),
    "dependent columns": (
        lambda: DegenerateGaussianNoise(1.0, factor=np.ones((3, 2))),
        "'factor' must have columns that are far from dependent",
    ),
    "units of another factor": (
        lambda: DegenerateGaussianNoise(1.0, factor=FACTOR).in_units([1.0] * 3),
        "'units' must have 2 entries, one for each coordinate of the factor",
    ),
    # -- strategies
    "decay 0": (lambda: BufferedToeplitz((0.0,), (0.1,)), "'decays'"),
    "decay 1": (
        lambda: BufferedToeplitz((1.0,), (0.1,)),
        "'decays' must be in the range",
    ),
    "one decay of 1": (
        lambda: BufferedToeplitz((0.5, 1.0), (0.1, 0.1)),
        "'decays' must be in the range",
    ),
    "one large weight": (
        lambda: BufferedToeplitz((0.9, 0.5), (3.0, 0.1)),
        "'weights' is so large that the noise would grow",
    ),
    "weight of a buffer": (lambda: BufferedToeplitz((0.5,), (0.0,)), "'weights'"),
    "buffers that differ": (
        lambda: BufferedToeplitz((0.5, 0.4), (0.1,)),
        "must have one number for each buffer. Got 2 and 1",
    ),
    "no buffers": (lambda: BufferedToeplitz((), ()), "'decays'"),
    "large weights": (
        lambda: BufferedToeplitz((0.9,), (3.0,)),
        "'weights' is so large that the noise would grow",
    ),
    "bandwidth 0": (lambda: banded_square_root(0), "'bandwidth'"),
    "inverse bandwidth 0": (lambda: banded_inverse_square_root(0), "'bandwidth'"),
    "factorised bandwidth 0": (
        lambda: banded_matrix_factorization(4, bandwidth=0),
        "'bandwidth'",
    ),
    "inverse factorised bandwidth 0": (
        lambda: banded_inverse_factorization(4, bandwidth=0),
        "'bandwidth'",
    ),
    "buffers 0": (lambda: buffered_linear_toeplitz(4, n_buffers=0), "'n_buffers'"),
    "steps 0": (lambda: banded_inverse_factorization(0, bandwidth=2), "'n_steps'"),
    "another objective": (
        lambda: banded_inverse_factorization(4, bandwidth=2, objective="sum"),
        "'objective'",
    ),
    "batches 0": (
        lambda: banded_inverse_factorization(4, bandwidth=2, n_batches=0),
        "'n_batches'",
    ),
    "rows for the worst step": (
        lambda: banded_matrix_factorization(
            4, bandwidth=2, objective="max", toeplitz=False
        ),
        "'toeplitz' is False, which is for objective='mean'",
    ),
    "rows for few batches": (
        lambda: banded_matrix_factorization(
            4, bandwidth=3, n_batches=2, toeplitz=False
        ),
        "no fewer batches than diagonals",
    ),
    "restarts of nothing": (
        lambda: Restarted(strategy="identity", every=2),
        "'strategy' must be a strategy of",
    ),
    "restarts every 0": (
        lambda: Restarted(strategy=Toeplitz((1.0, 0.5)), every=0),
        "'every'",
    ),
    "restarts of another length": (
        lambda: Restarted(strategy=TREE, every=3),
        "is a tree over 4 steps, but the run has 3",
    ),
    "a tree of no steps": (lambda: prefix_sum_tree(0), "'n_steps'"),
    "a tree for another run": (
        lambda: TREE.check_run(5),
        "is a tree over 4 steps, but the run has 5",
    ),
    "rows of no number": (lambda: BandedRows([[math.nan]]), "'rows'"),
    "rows of a row": (
        lambda: BandedRows([1.0, 0.5]),
        r"'rows' must have one row for each step, .* Got an array of shape \(2,\)",
    ),
    "no rows": (
        lambda: BandedRows(np.ones((0, 2))),
        "'rows' must have one row for each",
    ),
    "diagonal 0": (lambda: BandedRows([[0.0]]), "'rows'"),
    "rows beyond the first column": (
        lambda: BandedRows([[1.0, 0.5], [1.0, 0.5]]),
        "'rows' must be zero left of the first column",
    ),
    "rows that grow": (
        lambda: BandedRows([[1.0, 0.0], *[[1.0, 9.0]] * 40]),
        "'rows' is of a matrix whose noise grows",
    ),
    "rows for another run": (
        lambda: BandedRows(BANDS).check_run(3),
        "a strategy with rows for 2 steps, but the run has 3",
    ),
    "matrix of no number": (
        lambda: BandedRows.of_matrix([[1.0, 0.0], [math.inf, 1.0]]),
        "'matrix'",
    ),
    "a matrix that is not square": (
        lambda: BandedRows.of_matrix([[1.0, 0.0]]),
        r"'matrix' must be square. Got shape \(1, 2\)",
    ),
    "a matrix above its diagonal": (
        lambda: BandedRows.of_matrix([[1.0, 0.5], [0.5, 1.0]]),
        "'matrix' must be zero above the diagonal",
    ),
    "column of no number": (lambda: Toeplitz((1.0, math.nan)), "'column'"),
    "no column": (lambda: Toeplitz(()), "'column' must hold at least one number"),
    "a matrix for a column": (
        lambda: InverseToeplitz(((1.0,), (0.5,))),
        "'column' must hold at least one number",
    ),
    "column that begins at 0": (lambda: Toeplitz((0.0, 1.0)), "'column'"),
    "column that begins below": (lambda: InverseToeplitz((-1.0, 0.5)), "'column'"),
    "column whose noise grows": (
        lambda: Toeplitz((1.0, 2.0)),
        "'column' has a polynomial with a zero in the unit disc",
    ),
    "inverse that overflows": (
        lambda: InverseToeplitz((1.0, -9.0)).coefficients(1000),
        "'column' is of a matrix whose inverse overflows within 1000 steps",
    ),
}


# what is rarely used is said by a warning as well
@pytest.mark.filterwarnings("ignore:Generalised Cauchy noise is usual")
@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_by_its_reason(name):
    make, words = CASES[name]
    with pytest.raises((ValueError, TypeError), match=words):
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
