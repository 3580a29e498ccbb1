"""Where a scenario reads the private rows, nothing is certified, by any accountant."""

from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from skpuffer.accountants import Best
from skpuffer.accountants._base import known_accountants
from skpuffer.accountants._compatibility import _releases, _scenarios
from skpuffer.noise import GaussianNoise, LaplaceNoise
from skpuffer.releases import GradientRelease, QueryRelease, Sensitivity
from skpuffer.scenarios import AttributeScenario, SimulatorScenario

pytestmark = pytest.mark.filterwarnings(
    "ignore::skpuffer.exceptions.EmpiricalPriorWarning"
)


def private_scenarios():
    """Scenarios of every kind, each saying that it reads the private rows."""
    for scenario in _scenarios().values():
        if isinstance(scenario, AttributeScenario) and scenario.any_records:
            peeking = type("Peeking", (AttributeScenario,), {"needs_empirical": True})
            yield peeking(**scenario.get_params(deep=False))
        elif isinstance(scenario, AttributeScenario):
            yield AttributeScenario("secret", level=scenario.level, prior="empirical")
        else:
            private = copy(scenario)
            if isinstance(private, SimulatorScenario):
                private.set_params(n_draws=20)
            private.needs_empirical = True
            yield private


def private_releases():
    """Releases of every kind, whose public facts bring the private rows along."""
    rows = np.array([[0.0], [1.0]]), np.zeros(2), np.array([0, 1])
    for release in _releases().values():
        release = replace(release, context=replace(release.context, empirical=rows))
        yield release
        if isinstance(release, GradientRelease):
            yield replace(release, dim=1)  # whose losses can be sampled
        if type(release) is QueryRelease and release.sensitivity is not None:
            # so that nothing moves further than any record does
            yield replace(release, sensitivity=Sensitivity(add_remove={1: 1e-3}))


def accountants(kind):
    params = kind().get_params()
    small = {name: 100 for name in ("n_samples", "n_draws") if name in params}
    yield kind(**small)
    # another promise where none is the default, and else the same at another number
    if "delta" in params and params["delta"] is None:
        yield kind(**small, delta=1e-3)


@cache
def met():
    """Every release with every scenario, bound to its public facts."""
    return [
        (release, scenario.bind(release.context))
        for release in private_releases()
        for scenario in private_scenarios()
    ]


def promises(accountant, release, scenario):
    """Every certificate to be had."""
    if not accountant.supports(release, scenario):
        return
    attempts = [lambda: accountant.calibrate(release, scenario).certificate]
    for noise in (GaussianNoise(1.0), LaplaceNoise(1.0)):
        attempts.append(partial(accountant.certify, noise, release, scenario))
    for attempt in attempts:
        with suppress(ValueError):  # nothing is promised
            yield attempt()


@pytest.mark.parametrize("kind", known_accountants())
def test_nothing_is_certified_of_private_rows(kind):
    n_scenarios = len(list(private_scenarios()))
    found = [
        promise
        for at, accountant in enumerate(accountants(kind))
        for case, (release, scenario) in enumerate(met())
        # every fifth pair, others of the second promise: each release and scenario is
        # in some
        if sum(divmod(case, n_scenarios)) % 5 == at
        for promise in promises(accountant, release, scenario)
    ]
    # Best would choose by these rows, and says nothing at all
    assert bool(found) is (kind is not Best)
    for certificate in found:
        assert not certificate.certified
        assert not certificate.composable
        assert certificate.rpp_epsilon == np.inf
        assert certificate.epsilon_lower is None
