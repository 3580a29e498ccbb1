"""Under any belief no more is promised than was asked, believed or not."""

import pytest

from skpuffer.accountants import OverlapAmplification
from skpuffer.exceptions import UnsupportedError
from tests.scenarios.pinned import NAMES, VARIANTS, N, releases_of

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

BELIEFS = [
    name
    for name, (scenario, about) in VARIANTS.items()
    if getattr(scenario, "any_records", False) and name.startswith("attribute")
]
RELEASES = dict(releases_of(NAMES, N, False, None))


@pytest.mark.parametrize("name", BELIEFS)
def test_noise_keeps_to_what_is_asked_and_to_the_fallback(name):
    scenario, _ = VARIANTS[name]
    answered = 0
    for epsilon, delta, noise in (
        (0.1, 1e-6, "gaussian"),
        (0.4, 1e-2, "laplace"),
        (0.4, 1e-4, "gaussian"),
        (2.0, 1e-6, "laplace"),
    ):
        asked = OverlapAmplification(
            epsilon,
            delta=delta,
            noise=noise,
            max_fallback=4.0,
            if_belief_suffices="cap",
        )
        for release in ("sum", "stages"):
            if release == "stages" and noise == "laplace":
                continue
            try:
                made = asked.calibrate(RELEASES[release], scenario)
            except UnsupportedError:
                continue
            answered += 1
            again = asked.certify(made.noise, RELEASES[release], scenario)
            for told in (made.certificate, again):
                assert told.epsilon <= epsilon * (1 + 1e-6)
                assert told.delta <= delta
                assert told.fallback <= 4.0 * (1 + 1e-6)
    assert answered
