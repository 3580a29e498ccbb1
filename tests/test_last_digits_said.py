"""What a certificate says of last digits, and the noise that pays for it."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.kernel import run
from skpuffer.kernel.draws import noise_generator
from skpuffer.kernel.run import (
    FLOATING_POINT,
    NO_ROOM,
    ON_GRID,
    ROUNDED_ELSEWHERE,
    ROUNDED_SUMS,
    SUMS_ON_GRID,
)
from skpuffer.noise import DiscreteLaplaceNoise, GaussianNoise, GeneralizedGaussianNoise
from skpuffer.releases import GradientRelease, QueryRelease, Sensitivity
from skpuffer.scenarios import RecordScenario

RECORDS = RecordScenario()
QUERY = QueryRelease(
    contribution=lambda X, y=None: X,
    is_sum=True,
    factor=0.5,
    n_records=1000,
    dim=3,
    sensitivity=Sensitivity(add_remove={1: 3.0, 2: 2.0}, replace={1: 6.0, 2: 4.0}),
)
COUNTS = replace(QUERY, is_integer=True, factor=1.0)
SUMS = GradientRelease(n_records=1000, n_steps=5, sampling="full_batch")
GAUSSIAN = PrivacyLoss(1.0, 1e-5, noise="gaussian")


@dataclass(frozen=True)
class AnotherQuery(QueryRelease):
    """A subclass, which may be executed otherwise."""


def secret():
    return noise_generator(None)[0]


def asked(release, accountant=GAUSSIAN, **changes):
    calibration = accountant.calibrate(release, RECORDS, secret())
    return replace(calibration, **changes)


def on_grid(found, *asked, **said):
    known = {"by_sensitivity": True} | said
    noise, said = run.on_grid(found.noise, found.certificate, *asked, **known)
    return replace(found, noise=noise), said


def scales(calibration):
    return np.broadcast_to(np.asarray(calibration.noise.scale, dtype=float), 3)


def test_noise_pays_for_the_rounding_of_a_query():
    before = asked(QUERY)
    after, said = on_grid(before, QUERY, secret())
    assert said == (ON_GRID, ROUNDED_SUMS)
    grown = scales(after) / scales(before) - 1
    # of a grid of 30 bits below the scale, two steps in each of three coordinates
    step = 2.0 ** (math.floor(math.log2(scales(before)[0])) - 30)
    share = 2 * step * math.sqrt(3) / before.certificate.sensitivity
    assert grown == pytest.approx([share] * 3, rel=1e-4)
    assert after.certificate == before.certificate


@pytest.mark.parametrize(
    "release, known",
    [
        # another dependence of the promise on noise, or a length that is not known
        (QUERY, {"by_sensitivity": False}),
        (replace(QUERY, dim=None), {}),
    ],
    ids=["ratio", "length"],
)
def test_where_no_room_is_known_it_says_so(release, known):
    before = asked(release)
    after, said = on_grid(before, release, secret(), **known)
    assert (after, said) == (before, (ON_GRID, NO_ROOM))
    _, said = on_grid(before, release, secret(), np.full(3, 1e-9), **known)
    assert said == (ON_GRID, NO_ROOM, ROUNDED_ELSEWHERE)


def test_without_a_stated_sensitivity_there_is_no_room():
    before = asked(QUERY)
    before = replace(before, certificate=replace(before.certificate, sensitivity=None))
    after, said = on_grid(before, QUERY, secret())
    assert (after, said) == (before, (ON_GRID, NO_ROOM))


@pytest.mark.parametrize("noise", [None, DiscreteLaplaceNoise(2.0)])
def test_whole_numbers_are_on_the_grid_already(noise):
    before = asked(COUNTS, **({} if noise is None else {"noise": noise}))
    assert on_grid(before, COUNTS, secret()) == (before, (ON_GRID,))


def test_sums_of_gradients_pay_in_the_run():
    before = asked(SUMS)
    after, said = on_grid(before, SUMS, secret())
    assert (after, said) == (before, (SUMS_ON_GRID, ROUNDED_SUMS))
    after, said = on_grid(before, SUMS, secret(), by_sensitivity=False)
    assert (after, said) == (before, (SUMS_ON_GRID, NO_ROOM))


@pytest.mark.parametrize(
    "release, changes, rng",
    [
        # a seed draws its digits again
        (QUERY, {}, lambda: np.random.default_rng(0)),
        (COUNTS, {}, lambda: np.random.default_rng(0)),
        (SUMS, {}, lambda: np.random.default_rng(0)),
        # no exact draws, or nothing to be drawn
        (QUERY, {"noise": GeneralizedGaussianNoise(1.0, beta=1.5)}, secret),
        (QUERY, {"noise": GaussianNoise(0.0)}, secret),
        (COUNTS, {"noise": DiscreteLaplaceNoise(0.0)}, secret),
        (QUERY, {"noise": GaussianNoise([1.0, 0.0, 1.0])}, secret),
        # whole numbers with noise of more steps than are drawn exactly
        (COUNTS, {"noise": GaussianNoise(2.0**41)}, secret),
        # executed in a way that is not known here
        (
            AnotherQuery(
                **{
                    name: getattr(QUERY, name)
                    for name in (
                        "contribution",
                        "is_sum",
                        "n_records",
                        "dim",
                        "sensitivity",
                    )
                }
            ),
            {},
            secret,
        ),
    ],
    ids=range(9),
)
def test_elsewhere_the_last_digits_may_tell_more(release, changes, rng):
    before = replace(asked(QUERY if release is not SUMS else SUMS), **changes)
    assert on_grid(before, release, rng()) == (before, (FLOATING_POINT,))
    _, said = on_grid(before, release, rng(), np.full(3, 1e-9))
    assert said == (FLOATING_POINT, ROUNDED_ELSEWHERE)
    # what was not rounded is nothing to tell of
    _, said = on_grid(before, release, rng(), np.zeros(3))
    assert said == (FLOATING_POINT,)


def test_large_noise_of_other_numbers_has_a_coarser_grid():
    before = asked(QUERY, noise=GaussianNoise(2.0**41))
    assert on_grid(before, QUERY, secret())[1][0] == ON_GRID


def test_updates_are_on_no_grid():
    """What their noise is added to is made of the table and of the iterate."""
    updates = replace(SUMS, noise_position="update")
    before = asked(SUMS)
    assert on_grid(before, updates, secret()) == (before, (FLOATING_POINT,))


@pytest.mark.parametrize(
    "accountant, norms",
    [
        (GAUSSIAN, [2]),
        (PrivacyLoss(1.0, noise="laplace"), [1]),
        (GroupPrivacy(1.0, alpha=math.inf, noise="laplace"), [1]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("any_records", [True, False])
def test_noise_covers_what_an_engine_rounded(accountant, norms, any_records):
    before = asked(QUERY, accountant)
    rounding = np.array([1e-6, 0.0, 2e-6])
    plain, _ = on_grid(before, QUERY, secret())
    after, said = on_grid(before, QUERY, secret(), rounding, any_records)
    assert said == (ON_GRID, ROUNDED_SUMS)
    # once before and once after, in units of the release, which are those of the noise
    moved = 2 * 0.5 * max(np.linalg.norm(rounding, norm) for norm in norms)
    if any_records:
        # of the smaller of both sensitivities
        share = moved / min(
            QUERY.sensitivity.value(relation, norms[0], 3)
            for relation in ("add_remove", "replace")
        )
    else:
        share = 1000 * moved / before.certificate.sensitivity
    grown = scales(after) / scales(before) - scales(plain) / scales(before)
    assert grown == pytest.approx([share] * 3, rel=1e-3)


@pytest.mark.parametrize(
    "norm, rounded, moved", [(None, math.sqrt(3), math.sqrt(5) / 2), (1.0, 3, 3 / 3)]
)
def test_rounding_is_measured_in_the_norm_of_the_sensitivity(norm, rounded, moved):
    """Or in that of the noise, where it is larger there; and no norm is that one's."""
    before = asked(QUERY)
    certificate = replace(before.certificate, norm=norm)
    before = replace(before, certificate=certificate)
    after, _ = on_grid(before, QUERY, secret())
    step = 2.0 ** (math.floor(math.log2(scales(before)[0])) - 30)
    share = 2 * step * rounded / certificate.sensitivity
    assert scales(after) / scales(before) - 1 == pytest.approx([share] * 3, rel=1e-4)
    far, _ = on_grid(before, QUERY, secret(), np.array([1e-6, 0.0, 2e-6]), True)
    grown = (scales(far) - scales(after)) / scales(before)
    assert grown == pytest.approx([1e-6 * moved] * 3, rel=1e-3)


def test_where_a_record_moves_nothing_no_room_covers_its_rounding():
    still = replace(
        QUERY, sensitivity=Sensitivity(add_remove={2: 2.0}, replace={2: 0.0})
    )
    before = asked(still)
    after, said = on_grid(before, still, secret(), np.full(3, 1e-9), True)
    assert (after, said) == (before, (ON_GRID, NO_ROOM, ROUNDED_ELSEWHERE))
