"""What a certificate states is what its noise spends, not what was asked for."""

from contextlib import suppress

import pytest

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, PrivacyLoss, RenyiDP
from skpuffer.accountants import _composition as steps
from skpuffer.accountants._additive import _base as additive
from skpuffer.accountants._base import known_accountants
from skpuffer.accountants._compatibility import _releases, _scenarios
from skpuffer.releases import GradientRelease, VoteRelease
from skpuffer.scenarios import RecordScenario

RELEASES = {
    "query": _releases()["any query, with a sensitivity"],
    "full batches": GradientRelease(n_records=50, n_steps=4, sampling="full_batch"),
    "poisson": GradientRelease(n_records=50, n_steps=4, batch_size=5),
    "votes": VoteRelease(n_records=50, n_teachers=50, n_classes=3, n_queries=4),
}


@pytest.mark.parametrize(
    "spent, stated",
    [
        (2.4, 2.4),  # a fifth over it
        (2.0001, 2.0001),
        (2.000_000_1, 2.0),  # rounding
        (2.0, 2.0),
        (1.9999, 2.0),  # where a search for the scale stopped
        (1.9, 1.9),
        (0.0, 0.0),
    ],
)
def test_a_budget_is_stated_as_asked_up_to_rounding_only(spent, stated):
    calibration = GroupPrivacy(2.0).calibrate(RELEASES["query"], RecordScenario())
    certificate = GroupPrivacy(2.0).certify(
        calibration.noise, RELEASES["query"], RecordScenario()
    )
    object.__setattr__(certificate, "epsilon", spent)
    assert certificate.as_asked(2.0).epsilon == stated


STEPPERS = (
    PrivacyLoss(2.0, 1e-5, noise="gaussian"),
    RenyiDP(2.0, 1e-5, noise="gaussian"),
    RenyiDP(2.0, None, alpha=4.0, noise="gaussian"),
)


@pytest.mark.parametrize(
    "accountant, release",
    [
        *[(accountant, release) for accountant in STEPPERS for release in RELEASES],
        (GroupPrivacy(2.0, alpha=4.0, noise="gaussian"), "query"),
        (GeneralWasserstein(2.0, alpha=4.0, noise="gaussian"), "query"),
    ],
)
def test_noise_that_is_short_is_certified_as_what_it_is(
    accountant, release, monkeypatch
):
    release = RELEASES[release]
    enough = accountant.calibrate(release, RecordScenario())
    assert enough.certificate.epsilon == 2.0

    def shortened(find):
        return lambda *args: find(*args) / 1.2

    monkeypatch.setattr(steps, "_memoised_scale", shortened(steps._memoised_scale))
    # and not the scale that is remembered
    for name in ("_scale_at_order", "_scale_with_delta"):
        short = shortened(getattr(additive, name).__wrapped__)
        monkeypatch.setattr(additive, name, short)
    calibration = accountant.calibrate(release, RecordScenario())
    assert calibration.noise.scale == pytest.approx(enough.noise.scale / 1.2)
    spent = accountant.certify(calibration.noise, release, RecordScenario()).epsilon
    assert spent > 2.2
    assert calibration.certificate.epsilon == spent


@pytest.mark.parametrize(
    "kind", [kind for kind in known_accountants() if kind.recommended]
)
def test_no_accountant_states_less_than_its_noise_spends(kind):
    checked, met = 0, set()
    for name, scenario in _scenarios().items():
        if name.startswith("Simulator"):
            continue  # certified anew from other samples
        for release in _releases().values():
            # each scenario and each release once
            if {name, release.name} <= met or not kind().supports(release, scenario):
                continue
            met |= {name, release.name}
            with suppress(ValueError):  # nothing is promised
                calibration = kind().calibrate(release, scenario)
                spent = kind().certify(calibration.noise, release, scenario).epsilon
                assert spent <= calibration.certificate.epsilon * (1 + 1e-6)
                checked += 1
    assert checked
