"""How the mechanisms that compare output laws relate, and what they imply."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.accountants import (
    ApproximateWasserstein,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
)
from skpuffer.noise import LaplaceNoise
from skpuffer.privacy import Notion
from skpuffer.privacy_loss import renyi_to_approximate
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import AttributeScenario

from .mixtures import hockey_stick
from .oracle_distributions import atoms, output, pair, scenario

values = st.integers(-8, 8).map(float)
tables = st.lists(
    st.tuples(st.sampled_from("abc"), values, values), min_size=4, max_size=25
).filter(lambda rows: len({secret for secret, _, _ in rows}) > 1)


def identity(X, y):
    return np.asarray(X, dtype=float)


def clipped_mean(n=10):
    return QueryRelease(
        contribution=identity,
        is_sum=True,
        factor=1 / n,
        n_records=n,
        dim=2,
        sensitivity=Sensitivity(
            add_remove={1: 16 / n, 2: 8 * 2**0.5 / n},
            replace={1: 32 / n, 2: 16 * 2**0.5 / n},
        ),
    )


@given(
    tables,
    st.floats(0.1, 3),
    st.one_of(
        st.sampled_from([1.5, 2.0, 8.0]).map(lambda a: {"alpha": a}),
        st.floats(1e-4, 0.3).map(lambda d: {"delta": d}),
    ),
    st.sampled_from(["gaussian", "laplace"]),
    st.sampled_from(["record", "dataset"]),
    st.sampled_from(["law", "support"]),
)
def test_less_noise_from_group_to_distribution(rows, eps, target, noise, level, trust):
    prior = pd.DataFrame(rows, columns=["secret", "x", "z"])
    secret = AttributeScenario("secret", level=level, prior=prior, prior_as=trust)
    group, worst, approximate, aware = (
        kind(eps, noise=noise, **target).calibrate(clipped_mean(), secret)
        for kind in (
            GroupPrivacy,
            GeneralWasserstein,
            ApproximateWasserstein,
            DistributionAwareWasserstein,
        )
    )
    assert np.all(worst.noise.scale <= group.noise.scale * (1 + 1e-9))
    assert np.all(approximate.noise.scale <= worst.noise.scale)
    assert np.all(aware.noise.scale <= worst.noise.scale)
    if "alpha" in target:
        found = aware.certificate
        assert found.notion.title.startswith(("Rényi", "pure"))
        assert found.implies(Notion.RENYI_PUFFERFISH)
        assert found.implies(Notion.APPROXIMATE_PUFFERFISH)


@pytest.mark.parametrize("alpha", [2, 10])
def test_a_renyi_promise_implies_an_approximate_one(alpha):
    noise = LaplaceNoise(2.0)
    (u, v), delta = pair("flu"), 1e-2
    for kind, event in (
        (GeneralWasserstein, 0.0),
        (DistributionAwareWasserstein, 0.0),
        (ApproximateWasserstein, 0.125),
    ):
        options = {"event_delta": event} if event else {}
        found = kind(alpha=alpha, **options).certify(noise, output(), scenario("flu"))
        assert found.event_delta == event
        single = renyi_to_approximate(alpha, found.epsilon, delta, conversion="basic")
        tight = renyi_to_approximate(alpha, found.epsilon, delta)
        whole = found.to_approximate(delta + event)
        assert whole.epsilon <= tight <= single
        for a, b in ((u, v), (v, u)):
            true = hockey_stick(noise, *atoms(a), *atoms(b), whole.epsilon)
            assert true <= (delta + event) * (1 + 1e-3)
