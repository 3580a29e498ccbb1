"""Exact draws, the grid they are on, and the bits they are made of."""

import copy
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skpuffer.kernel.draws import (
    _below,
    exact_exponential,
    exact_normal,
    is_secret,
    rounded_multiple,
    secret_generator,
    spawned,
)
from skpuffer.kernel.run import (
    Covered,
    add_noise,
    draws_exactly,
    noise_grid,
    sample_on_grid,
    to_grid,
    with_room_for_grid,
)
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    GeneralizedGaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
)
from tests.refused import refused

from ..last_digits import reachable


def fraction(words):
    return words * 2.0**-64


@pytest.mark.parametrize(
    "draw, law", [(exact_normal, stats.halfnorm), (exact_exponential, stats.expon)]
)
def test_magnitudes_have_their_distribution(draw, law):
    whole, words = draw(200_000, np.random.default_rng(1))
    found = whole + fraction(words)
    assert stats.kstest(found, law.cdf).pvalue > 1e-3
    # far out as well
    for far in (2.0, 3.0):
        expected = 200_000 * law.sf(far)
        assert abs((found > far).sum() - expected) < 5 * math.sqrt(expected)


@pytest.mark.parametrize("ratio", [0.31, 1.0, 2.7])
def test_rounded_normal_numbers_have_the_mass_of_their_cells(ratio):
    """Chi-square against differences of the normal distribution function."""
    rng = np.random.default_rng(2)
    n = 200_000
    steps = rounded_multiple(ratio, *exact_normal(n, rng), rng)
    edges = np.arange(0, 12)
    cells = stats.norm.cdf((edges + 0.5) / ratio) - stats.norm.cdf(
        (edges - 0.5) / ratio
    )
    expected = n * cells * np.where(edges > 0, 2, 1)
    observed = np.bincount(steps, minlength=12)[:12]
    kept = expected > 20
    found = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    assert found < stats.chi2.isf(1e-4, kept.sum())
    # and a ratio that is off by a tenth would be seen
    off = stats.norm.cdf((edges + 0.5) / ratio / 1.1)
    off -= stats.norm.cdf((edges - 0.5) / ratio / 1.1)
    off *= n * np.where(edges > 0, 2, 1)
    seen = off > 20
    assert ((observed - off)[seen] ** 2 / off[seen]).sum() > 1000


def test_products_are_rounded_as_integers_are():
    """Where floats cannot tell, further bits do."""
    rng = np.random.default_rng(3)
    words = np.array([0, 2**63, 2**63 - 1, 2**64 - 1], dtype=np.uint64)
    whole = np.array([1, 0, 0, 2])
    # 1 * 1 -> 1, the half and what follows it -> 1, just below the half -> 0 or 1
    found = rounded_multiple(1.0, whole, words, rng)
    assert found[0] == 1
    assert found[1] == 1
    assert found[2] == 0
    assert found[3] == 3
    down = rounded_multiple(1.0, whole, words, rng, down=True)
    assert down.tolist() == [1, 0, 0, 2]


def test_where_the_first_bits_do_not_tell_the_others_do():
    """Three times the number is above a half from two thirds of its last bit on."""
    n = 3000
    word = np.full(n, 2**64 // 6, dtype=np.uint64)
    found = rounded_multiple(3.0, np.zeros(n, int), word, np.random.default_rng(0))
    assert set(found) == {0, 1}
    assert abs(found.mean() - 1 / 3) < 5 * math.sqrt(2 / 9 / n)


def test_bits_that_follow_count_as_often_as_the_ratio_is_large():
    """The first 64 leave a product near a half open by 2**-32, far above round-off."""
    n, ratio = 3000, 3 * 2.0**30
    word = np.full(n, 2**33 // 3, dtype=np.uint64)
    found = rounded_multiple(ratio, np.zeros(n, int), word, np.random.default_rng(0))
    assert set(found) == {0, 1}
    # 2**33 is two more than a multiple of three
    assert abs(found.mean() - 1 / 3) < 5 * math.sqrt(2 / 9 / n)


def test_numbers_of_the_same_first_bits_are_as_often_below_as_above():
    n = 3000
    same = np.full(n, 2**63, dtype=np.uint64)
    below = _below(same, same, np.random.default_rng(0))
    assert abs(below.mean() - 1 / 2) < 5 / math.sqrt(4 * n)


@given(st.floats(1e-3, 2.0**39), st.integers(0, 8), st.integers(0, 2**64 - 1))
def test_rounding_is_that_of_fractions(ratio, whole, word):
    """As of a number of 64 bits, except within the last of them."""
    exact = Fraction(ratio) * (whole + Fraction(word, 2**64))
    found = int(
        rounded_multiple(
            ratio,
            np.array([whole]),
            np.array([word], dtype=np.uint64),
            np.random.default_rng(0),
        )[0]
    )
    step = Fraction(ratio) / 2**64
    assert math.floor(exact + Fraction(1, 2)) <= found
    assert found <= math.floor(exact + step + Fraction(1, 2))


def test_products_of_many_digits_are_rounded_as_fractions_are():
    """So large that their last digits are parts of the steps themselves."""
    rng = np.random.default_rng(6)
    n = 2000
    ratio, whole = rng.uniform(2.0**38, 2.0**40, n), np.full(n, 40)
    words = rng.integers(0, 2**64, n, dtype=np.uint64)
    for down, add in ((False, Fraction(1, 2)), (True, 0)):
        found = rounded_multiple(ratio, whole, words, rng, down=down)
        for each, r, word in zip(found, ratio, words, strict=True):
            least = Fraction(r) * (40 + Fraction(int(word), 2**64)) + add
            most = least + Fraction(r) / 2**64
            assert math.floor(least) <= each <= math.floor(most)


@pytest.mark.parametrize("scale", [0.4, 3.0, 1000.0])
def test_discrete_laplace_on_its_grid(scale):
    rng = np.random.default_rng(4)
    noise = DiscreteLaplaceNoise(scale)
    assert noise_grid(noise, 100) == 1.0
    drawn = sample_on_grid(noise, np.asarray(1.0), (100_000,), rng)
    assert np.array_equal(drawn, np.rint(drawn))
    t = math.exp(-1 / scale)
    share = (1 - t) / (1 + t)
    assert abs((drawn == 0).mean() - share) < 5 * math.sqrt(share / 100_000)
    assert abs(drawn.var() / noise._variance() - 1) < 0.05


@pytest.mark.parametrize(
    "kind, law", [(GaussianNoise, stats.norm), (LaplaceNoise, stats.laplace)]
)
def test_noise_on_a_grid(kind, law):
    rng = np.random.default_rng(5)
    noise = kind((0.3, 7.0))
    grid = noise_grid(noise, 1000)
    assert np.array_equal(np.exp2(np.rint(np.log2(grid))), grid)
    drawn = sample_on_grid(noise, grid, (50_000, 2), rng)
    assert np.array_equal(to_grid(drawn, grid), drawn)
    for column, scale in zip(drawn.T, noise.scale, strict=True):
        assert stats.kstest(column / scale, law.cdf).pvalue > 1e-3


def test_which_noise_has_a_grid():
    assert noise_grid(GeneralizedGaussianNoise(1.0, beta=1.5), 10) is None
    assert noise_grid(GaussianNoise(0.0), 10) is None
    assert noise_grid(DiscreteLaplaceNoise(0.0), 10) is None
    assert noise_grid(GaussianNoise((1.0, 0.0)), 10) is None
    assert noise_grid(LaplaceNoise(3.0), 10, integer=True) <= 1.0
    assert noise_grid(LaplaceNoise(2.0**60), 10, integer=True) is None
    # coarser for sums of very many records, whose rounding errors are larger
    grids = [float(noise_grid(GaussianNoise(1.0), 10**k)) for k in range(1, 12)]
    assert grids == sorted(grids)
    assert grids[0] == 2.0**-30
    assert grids[-1] <= 2.0**-10

    class Heavier(GaussianNoise):
        """Of another distribution, for all that is known."""

        family = "heavier"

    assert noise_grid(Heavier(1.0), 10) is None


@pytest.mark.parametrize(
    "n_records, bits",
    [
        (0, 30),
        (1, 30),
        (2**16, 30),
        (2**16 + 1, 29),
        (2**17, 29),
        (2**26 + 1, 19),
        (2**36, 10),
        (2**36 + 1, 10),
        (2**60, 10),
    ],
)
def test_steps_in_a_unit_of_scale(n_records, bits):
    """Between 2**bits and twice that many, by the number of records alone."""
    scale = (1.0, 1.9, 2.0, 3.0, 0.75)
    expected = np.array([1.0, 1.0, 2.0, 2.0, 0.5]) * 2.0**-bits
    for kind in (GaussianNoise, LaplaceNoise):
        np.testing.assert_array_equal(noise_grid(kind(scale), n_records), expected)
        assert noise_grid(kind(3.0), n_records).shape == ()
        # of integers no coarser than they are, and no finer than is needed
        whole = noise_grid(kind((3.0, 2.0 ** (bits + 3))), n_records, integer=True)
        np.testing.assert_array_equal(whole, [2.0 ** (1 - bits), 1.0])
        coarse = noise_grid(kind(2.0 ** (bits + 3)), n_records)
        assert coarse == 8.0
    assert noise_grid(DiscreteLaplaceNoise(3.0), n_records) == 1.0


def test_ratios_beyond_double_precision_have_no_grid():
    at = LaplaceNoise(2.0**40)
    assert noise_grid(at, 1, integer=True) == 1.0
    beyond = LaplaceNoise(math.nextafter(2.0**40, math.inf))
    assert noise_grid(beyond, 1, integer=True) is None
    assert noise_grid(LaplaceNoise((1.0, beyond.scale)), 1, integer=True) is None
    assert noise_grid(beyond, 1) == 2.0**10


@given(
    st.floats(1e-6, 1e6),
    st.floats(1e-4, 1e3),
    st.integers(1, 200),
    st.sampled_from([GaussianNoise, LaplaceNoise]),
    st.sampled_from([1.0, 2.0, math.inf]),
    st.floats(0.01, 100.0),
    st.floats(0.0, 1e-3),
)
def test_room_for_the_grid_covers_it(scale, share, dim, kind, norm, unit, further):
    """Sensitivity and two steps of each coordinate cost no more than it alone did."""
    noise, radius = kind(scale), share * scale
    larger = with_room_for_grid(noise, Covered(5000, radius, norm, dim, unit, further))
    if larger is None:
        assert share * unit < 1e-2
        return
    steps = np.full(dim, 2 * float(noise_grid(larger, 5000)) / unit)
    # in that norm, and in the one by which the noise is told apart
    longest = max(np.linalg.norm(steps, p) for p in (norm, noise.norm))
    moved = radius * (1 + further) + longest
    assert moved / larger.scale <= radius / noise.scale
    assert larger.scale <= noise.scale * 1.01


@pytest.mark.parametrize("norm", [1, 1.5, 2, math.inf])
@pytest.mark.parametrize("kind", [GaussianNoise, LaplaceNoise])
def test_room_for_the_grid_by_hand(kind, norm):
    """Two steps of each coordinate, in the longer of two norms."""
    # by the grid of the largest scale that may come of it, which is beyond two
    scale, units, sensitivity = (1.99, 3.0), np.array([1.0, 4.0]), 2.0**-20
    steps = 2 * np.array([2.0**-29, 2.0**-29]) / units
    longest = max(np.linalg.norm(steps, p) for p in (norm, kind().norm))
    for moved in (0.0, 2.0**-9):
        larger = with_room_for_grid(
            kind(scale),
            Covered(100, sensitivity, norm, 2, units, *([moved] if moved else [])),
        )
        more = 1 + longest / sensitivity + moved
        np.testing.assert_allclose(larger.scale, more * np.array(scale), rtol=1e-12)
        # rounded up, by more than another order of sums makes of a norm
        assert np.all(np.array(larger.scale) > more * np.array(scale))
        assert type(larger) is kind
    # in the unit of the output where none is said, and of many records
    larger = with_room_for_grid(kind(1.0), Covered(2**26, 1.0, norm, 3))
    longest = max(3 ** (1 / p) for p in (norm, kind().norm)) * 2.0**-19
    assert larger.scale == pytest.approx(1 + longest, rel=1e-12)


def test_what_is_added_is_on_the_grid_and_seeds_draw_as_ever():
    exact = np.array([[0.3, -7.1], [1e-12, 2.0**40]])
    noise = LaplaceNoise((1.0, 5.0))
    released = add_noise(exact, noise, secret_generator(), n_records=2**26)
    grid = noise_grid(noise, 2**26)
    assert released.shape == (2, 2)
    np.testing.assert_array_equal(np.rint(released / grid) * grid, released)
    assert np.all(np.abs(released - exact) < 60 * np.array([1.0, 5.0]))
    # in each coordinate: one draw in two millions is no step long
    assert np.all(np.any(released != to_grid(exact, grid), axis=0))
    # of integers, where the grid of numbers would be coarser
    whole = LaplaceNoise(2.0**35)
    drawn = [
        add_noise(
            np.arange(64.0), whole, secret_generator(), n_records=1, integer=integer
        )
        for integer in (True, False)
    ]
    assert np.any(drawn[0] % 2) and not np.any(drawn[1] % 2**5)
    # drawn from a seed: the exact value as it is, and the usual noise
    seeded = add_noise(exact, noise, np.random.default_rng(3), n_records=2**26)
    expected = exact + noise.sample((2, 2), np.random.default_rng(3))
    np.testing.assert_array_equal(seeded, expected)
    # and so is what has no grid
    unchanged = add_noise(exact, GaussianNoise(0.0), secret_generator(), n_records=1)
    np.testing.assert_array_equal(unchanged, exact)


def test_no_room_without_a_sensitivity():
    assert with_room_for_grid(GaussianNoise(1.0), Covered(10, 0.0, 2, 3)) is None
    assert with_room_for_grid(GaussianNoise(1.0), Covered(10, math.inf, 2, 3)) is None
    assert with_room_for_grid(GaussianNoise(1.0), Covered(10, 1e-12, 2, 3)) is None


def test_room_is_made_up_to_a_bound_and_no_further():
    # of a sensitivity beside which the grid is nothing
    made = [
        with_room_for_grid(GaussianNoise(1.0), Covered(10, 2.0**60, 2, 1, moved=moved))
        for moved in (2.0**-7, math.nextafter(2.0**-7, 1.0))
    ]
    assert made[0].scale == pytest.approx(1 + 2.0**-7)
    assert made[1] is None


def test_shapes_are_of_counts():
    rng = np.random.default_rng(0)
    with refused(ValueError, "parameter.count_too_small", name="shape"):
        sample_on_grid(LaplaceNoise(1.0), np.array(1.0), (2, -1), rng)


def test_bits_are_those_of_the_cipher():
    """The first block of RFC 8439, A.1, test vector 1."""
    from randomgen import ChaCha

    block = ChaCha(key=0, counter=0, rounds=20).random_raw(4).astype("<u8").tobytes()
    known = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    assert block.hex() == known


def test_secret_generators_differ_and_so_do_their_children():
    first, second = secret_generator(), secret_generator()
    children = spawned(first, 3)
    assert all(map(is_secret, [first, second, *children]))
    drawn = {g.integers(2**63) for g in (first, second, *children)}
    assert len(drawn) == 5
    # all 256 bits of the key are used, and all twenty rounds
    state = first.bit_generator.state["state"]
    assert state["rounds"] == 20
    assert np.count_nonzero(state["keysetup"]) >= 6
    # keys are of the operating system, and not made of the parent's state
    same = copy.deepcopy(first)
    drawn = {g.integers(2**63) for g in (*spawned(first, 2), *spawned(same, 2))}
    assert len(drawn) == 4
    # what is seeded stays so
    seeded = [spawned(np.random.default_rng(7), 2)[1].integers(2**63) for _ in range(2)]
    assert seeded[0] == seeded[1]


@pytest.mark.parametrize("exact", [True, False])
def test_last_digits_do_not_tell_tables_apart(exact):
    """The attack of Mironov (2012): it succeeds on floats, and not on the grid.

    Of two tables, of which one has the exact value 0 and the other 1, the first is
    ruled out where no noise leads from it to what was released.
    """
    noise, n = LaplaceNoise(1.0), 5000
    rng = secret_generator() if exact else np.random.default_rng(8)
    released = [
        add_noise(np.full(n, value), noise, rng, n_records=10) for value in (0.0, 1.0)
    ]
    if exact:
        grid = noise_grid(noise, 10)
        reached = [to_grid(values, grid) == values for values in released]
        assert all(map(np.all, reached))
    # a pure promise of epsilon one: of the first table as well, if e times less often
    ruled_out = [(~reachable(values, 1.0)).mean() for values in released]
    assert ruled_out[1] > 0.2
    if exact:
        spread = 5 * math.sqrt(math.e / n)
        assert ruled_out[1] <= math.e * ruled_out[0] + spread
        assert 1 - ruled_out[0] <= math.e * (1 - ruled_out[1]) + spread
    else:
        assert ruled_out[0] == 0


@pytest.mark.parametrize(
    "noise, exactly",
    [
        (GaussianNoise(1.0), True),
        (LaplaceNoise((1.0, 2.0)), True),
        (DiscreteLaplaceNoise(2.0), True),
        (GeneralizedGaussianNoise(1.0, beta=1.5), False),
        (L2LaplaceNoise(1.0), False),
        (CorrelatedGaussianNoise(covariance=np.eye(2)), False),
    ],
)
def test_seeds_draw_in_floating_point(noise, exactly):
    assert draws_exactly(noise, secret_generator()) is exactly
    assert draws_exactly(noise, np.random.default_rng(0)) is False
