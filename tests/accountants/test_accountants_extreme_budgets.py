"""Budgets that are absurdly small or large: less noise for more, or a refusal."""

from dataclasses import replace

import numpy as np
import pytest

from skpuffer.accountants import (
    Best,
    GroupPrivacy,
    PrivacyLoss,
    RenyiDP,
    SampledAllocation,
)
from skpuffer.accountants._compatibility import _releases
from skpuffer.exceptions import UnsupportedError
from skpuffer.kernel.noise import largest_argument
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario
from skpuffer.summary import PrivateQuantile
from tests.refused import codes_of, refused

BUDGETS = (1e-6, 1e-4, 1e-2, 1.0, 50.0, 700.0, 1e4, 1e6)
OUT_OF_REACH = {"curve.epsilon_out_of_reach", "noise.no_finite_scale"}


@pytest.mark.parametrize("name", list(_releases(100)))
@pytest.mark.parametrize(
    "accountant",
    [
        PrivacyLoss(1.0, 1e-5),
        PrivacyLoss(1.0, 1e-5, noise="laplace"),
        RenyiDP(1.0, 1e-5),
        RenyiDP(1.0, None, alpha=8.0),
        GroupPrivacy(1.0),
        SampledAllocation(1.0, 1e-5),
        Best(1.0, delta=1e-5),
    ],
    ids=str,
)
def test_more_budget_takes_less_noise_however_much_it_is(accountant, name):
    release, scenario = _releases(100)[name], RecordScenario()
    if isinstance(release, GradientRelease):
        record = release.record if accountant.clip_order == 2 else None
        release = replace(release, clip_order=accountant.clip_order, record=record)
    if not accountant.supports(release, scenario):
        return
    # what costs seconds is asked of the ends alone
    slow = "poisson" in name or isinstance(accountant, Best | SampledAllocation)
    scales, refusals = [], []
    for epsilon in (1.0, 700.0, 1e6) if slow else BUDGETS:
        try:
            asked = accountant.set_params(epsilon=epsilon)
            scales.append(np.max(asked.calibrate(release, scenario).noise.scale))
        except (UnsupportedError, ValueError) as error:
            refusals.append((epsilon, codes_of(error) & OUT_OF_REACH, str(error)))
    # too small for the orders of a Rényi cost, and for nothing else
    assert all(epsilon <= 1e-4 and codes for epsilon, codes, _ in refusals)
    assert all("epsilon" in said for *_, said in refusals)
    assert isinstance(accountant, RenyiDP) or not refusals
    ratios = np.array(scales[1:]) / scales[:-1]
    assert np.all(ratios <= 1 + 1e-3)
    assert scales[-1] < 0.1 * scales[0]


@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("levels", [0.5, [0.25, 0.5]])
def test_quantiles_of_any_budget_are_chosen(epsilon, levels):
    X = np.random.default_rng(0).uniform(size=(1000, 1))
    model = PrivateQuantile(
        quantiles=levels, bounds=(0, 1), accountant=PrivacyLoss(epsilon)
    )
    found = model.fit(X).quantiles_
    if epsilon >= 50:
        np.testing.assert_allclose(np.ravel(found), levels, atol=0.05)


def test_what_no_argument_meets_is_refused():
    with refused(ValueError, "noise.no_finite_scale"):
        largest_argument(lambda u: 1.0 + u, 0.5, 1.0)
