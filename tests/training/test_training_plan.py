"""The rule for what was not said: it follows its own explanation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.training import default_plan

records = st.integers(1, 10**7)
multipliers = st.floats(1e-3, 1e4)
smoothness = st.floats(0.01, 10.0)


@given(n=records, z=multipliers, curved=smoothness)
def test_the_noise_of_a_score_is_never_more_than_planned(n, z, curved):
    plan = default_plan(n, z, curved)
    rate = plan.learning_rate / (1 - plan.momentum)
    reach = plan.clip_norm * rate * plan.n_steps
    scale = min(1.0, 0.5 / min(curved, 1.0))
    assert reach * z / n <= 1.2 * scale * (1 + 1e-9)
    assert 50 <= plan.n_steps <= 200
    assert plan.n_steps <= 100 or plan.n_steps * n <= 10**6
    assert 0.3 <= plan.clip_norm <= 1.0
    assert 0 <= plan.momentum <= 0.95 + 1e-12
    # stable on rows of norm one, by the heavy-ball criterion
    assert plan.learning_rate <= 2 / min(curved, 1.0) * (1 + 1e-9)


@given(n=st.integers(10, 10**6), z=st.floats(0.1, 100))
def test_more_records_or_budget_reach_as_far(n, z):
    def reach(plan):
        return plan.clip_norm * plan.learning_rate / (1 - plan.momentum) * plan.n_steps

    here = reach(default_plan(n, z, 0.25))
    assert reach(default_plan(2 * n, z, 0.25)) >= here * (1 - 1e-9)
    assert reach(default_plan(n, z / 2, 0.25)) >= here * (1 - 1e-9)
    assert reach(default_plan(2 * n, 2 * z, 0.25)) == pytest.approx(here)


def test_what_was_decided_is_kept():
    plan = default_plan(400, 4.0, 0.25, n_steps=7, clip_norm=0.6)
    assert plan.n_steps == 7
    assert plan.clip_norm == 0.6
    reach = 0.6 * 7 * plan.learning_rate / (1 - plan.momentum)
    assert reach == pytest.approx(1.2 * 400 / 4.0)


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"n_records": 0}, "n_records"),
        ({"multiplier": 0.0}, "multiplier"),
        ({"smoothness": -1.0}, "smoothness"),
    ],
)
def test_bad_input_is_named(changes, match):
    given_ = {"n_records": 10, "multiplier": 1.0, "smoothness": 0.25} | changes
    with pytest.raises((TypeError, ValueError), match=match):
        default_plan(**given_)
