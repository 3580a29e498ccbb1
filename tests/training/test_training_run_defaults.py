"""The rule for what was not said: it follows its own explanation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.exceptions import Statement
from skpuffer.training import run_defaults
from skpuffer.training._engine import SCHEDULES
from tests.refused import refused

records = st.integers(1, 10**7)
multipliers = st.floats(1e-3, 1e4)
smoothness = st.floats(0.01, 10.0)


@given(n=records, z=multipliers, curved=smoothness)
def test_the_noise_of_a_score_is_never_more_than_stated(n, z, curved):
    chosen = run_defaults(n, z, curved)
    rate = chosen.learning_rate / (1 - chosen.momentum)
    distance = chosen.clip_norm * rate * chosen.n_steps
    scale = min(1.0, 0.5 / min(curved, 1.0))
    assert distance * z / n <= 1.2 * scale * (1 + 1e-9)
    assert 50 <= chosen.n_steps <= 200
    assert chosen.n_steps <= 100 or chosen.n_steps * n <= 10**6
    assert 0.3 <= chosen.clip_norm <= 1.0
    assert 0 <= chosen.momentum <= 0.95 + 1e-12
    # stable on rows of norm one, by the heavy-ball criterion
    assert chosen.learning_rate <= 2 / min(curved, 1.0) * (1 + 1e-9)


@given(n=st.integers(201, 399))
def test_steps_are_as_many_as_keep_the_momentum_at_a_half(n):
    chosen = run_defaults(n, 1.0, 0.25)
    assert 50 < chosen.n_steps <= 100
    assert chosen.momentum <= 0.5 + 1e-12
    fewer = run_defaults(n, 1.0, 0.25, n_steps=chosen.n_steps - 1)
    assert fewer.momentum >= 0.5


@given(n=st.integers(10, 10**6), z=st.floats(0.1, 100))
def test_more_records_or_budget_go_as_far(n, z):
    def distance(chosen):
        return (
            chosen.clip_norm
            * chosen.learning_rate
            / (1 - chosen.momentum)
            * chosen.n_steps
        )

    here = distance(run_defaults(n, z, 0.25))
    assert distance(run_defaults(2 * n, z, 0.25)) >= here * (1 - 1e-9)
    assert distance(run_defaults(n, z / 2, 0.25)) >= here * (1 - 1e-9)
    assert distance(run_defaults(2 * n, 2 * z, 0.25)) == pytest.approx(here)


@given(
    n=st.integers(10, 10**6),
    z=st.floats(0.1, 100),
    steps=st.integers(1, 300),
    schedule=st.sampled_from(sorted(SCHEDULES)),
)
def test_a_schedule_goes_as_far_while_steps_are_stable(n, z, steps, schedule):
    plain = run_defaults(n, z, 0.25, n_steps=steps, clip_norm=0.5)
    chosen = run_defaults(n, z, 0.25, n_steps=steps, clip_norm=0.5, schedule=schedule)

    def rate(run):
        return run.learning_rate / (1 - run.momentum)

    mean = np.mean([SCHEDULES[schedule](t, steps) for t in range(steps)])
    longest = 2 / 0.25 / (1 - 0.95)
    assert rate(chosen) == pytest.approx(min(rate(plain) / mean, longest))
    assert chosen.learning_rate <= 8 * (1 + 1e-9)
    assert chosen.n_steps == plain.n_steps


def test_what_was_decided_is_kept():
    chosen = run_defaults(400, 4.0, 0.25, n_steps=7, clip_norm=0.6)
    assert chosen.n_steps == 7
    assert chosen.clip_norm == 0.6
    distance = 0.6 * 7 * chosen.learning_rate / (1 - chosen.momentum)
    assert distance == pytest.approx(1.2 * 400 / 4.0)


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"n_records": 0}, Statement("parameter.count_too_small", name="n_records")),
        ({"multiplier": 0.0}, Statement("parameter.not_positive", name="multiplier")),
        ({"smoothness": -1.0}, Statement("parameter.not_positive", name="smoothness")),
        (
            {"schedule": "annealed"},
            Statement("parameter.option_unknown", name="schedule"),
        ),
    ],
)
def test_bad_input_is_named(changes, said):
    given_ = {"n_records": 10, "multiplier": 1.0, "smoothness": 0.25} | changes
    with refused((TypeError, ValueError), said.code, **said.parameters):
        run_defaults(**given_)


@pytest.mark.parametrize("smoothness", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("multiplier", [0.5, 10.0, 300.0])
@pytest.mark.parametrize("n_records", [150, 20_000])
def test_runs_of_the_last_iterate(n_records, multiplier, smoothness):
    """No momentum and no average, no step longer than allowed, and the same way."""
    usual = run_defaults(n_records, multiplier, smoothness)
    longest = 1.6 / smoothness
    found = run_defaults(n_records, multiplier, smoothness, longest_step=longest)
    assert found.momentum == found.average == 0
    assert 0 < found.learning_rate <= longest
    assert found.n_steps == 200
    ways = [
        run.n_steps * run.clip_norm * run.learning_rate / (1 - run.momentum)
        for run in (usual, found)
    ]
    # or as far as a hundred of them go at the longest clip norm
    most = 0.75 * longest * 100
    assert ways[1] == pytest.approx(min(ways[0], most), rel=1e-9)


@given(n=records, z=multipliers)
def test_regressions_go_less_far_and_clip_shorter_where_noise_is_much(n, z):
    usual = run_defaults(n, z, 1.0)
    chosen = run_defaults(n, z, 1.0, regression=True)

    def distance(run):
        return run.clip_norm * run.learning_rate / (1 - run.momentum) * run.n_steps

    assert distance(chosen) <= distance(usual) * (1 + 1e-9)
    assert 0.1 <= chosen.clip_norm <= 0.75
    many = n / z
    if many <= 100:
        assert chosen.clip_norm < 0.3
    if many >= 1200:
        assert distance(chosen) == pytest.approx(distance(usual))
        assert chosen.clip_norm >= 0.3
    # the noise of a prediction stays below what the notes say, of half the range
    assert distance(chosen) * z / n <= 0.2 * max(1, (many / 50) ** 0.35) * (1 + 1e-9)
