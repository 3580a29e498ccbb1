"""Gradient releases: what they say of themselves, and what they refuse."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.releases import SAMPLING_SCHEMES, GradientRelease, PublicContext
from tests.refused import refused


def release(**changes):
    return GradientRelease(
        **{"n_records": 100, "batch_size": 10, "n_steps": 5, **changes}
    )


def test_the_full_batch_is_everything():
    full = release(sampling="full_batch", batch_size=None)
    assert full.batch_size == 100
    assert full.sampling_rate == 1.0
    assert full.divisor == 100
    assert full.steps_per_epoch == 1
    assert full.n_epochs == 5


@given(n=st.integers(1, 10_000), size=st.integers(1, 10_000), steps=st.integers(1, 99))
def test_an_epoch_visits_as_many_records_as_there_are(n, size, steps):
    size = min(n, size)
    for sampling in ("poisson", "fixed_size", "shuffled_epochs"):
        one = release(n_records=n, batch_size=size, n_steps=steps, sampling=sampling)
        assert one.steps_per_epoch * size >= n > (one.steps_per_epoch - 1) * size
        assert one.n_epochs * one.steps_per_epoch >= steps
        assert 0 < one.sampling_rate <= 1
        assert one.sampling_rate * n == pytest.approx(one.divisor)


def test_shuffled_batches_divide_by_their_mean_size():
    shuffled = release(n_records=100, batch_size=30, sampling="shuffled_epochs")
    assert shuffled.steps_per_epoch == 4
    assert shuffled.divisor == 25


def test_with_replacement_a_record_is_drawn_at_least_once():
    drawn = release(sampling="with_replacement")
    assert drawn.sampling_rate == pytest.approx(1 - 0.99**10, rel=1e-12)
    assert drawn.divisor == 10
    assert release(sampling="with_replacement", batch_size=500).divisor == 500


def test_blocks_clip_apart_and_add_up():
    apart = release(blocks=(3, 4), clip_norm=(3.0, 4.0), dim=7)
    assert apart.total_clip_norm == 5.0
    assert release(
        blocks=(3, 4), clip_norm=(3.0, 4.0), clip_order=1
    ).total_clip_norm == pytest.approx(7.0)
    assert apart.sensitivity.value("add_remove", norm=2, dim=7) == 5.0
    assert apart.sensitivity.value("replace", norm=2, dim=7) == 10.0


def test_releases_are_compared_by_what_is_accounted():
    other = dataclasses.replace(
        release(),
        context=PublicContext(n_records=100, n_features=3),
        assumptions=("a",),
    )
    assert other == release()
    assert hash(other) == hash(release())
    assert release(n_steps=6) != release()


@pytest.mark.parametrize(
    "changes, code, parameters",
    [
        ({"n_records": 0}, "parameter.count_too_small", {"name": "n_records"}),
        ({"n_steps": 0}, "parameter.count_too_small", {"name": "n_steps"}),
        ({"n_steps": 2.5}, "parameter.count_too_small", {"name": "n_steps"}),
        ({"sampling": "cyclic"}, "sampling.sampling_not_valid", {}),
        ({"batch_size": None}, "sampling.batch_size_missing", {}),
        ({"batch_size": 0}, "parameter.count_too_small", {"name": "batch_size"}),
        ({"batch_size": 101}, "sampling.batch_size_exceeds_records", {}),
        ({"sampling": "full_batch"}, "sampling.full_batch_size_wrong", {}),
        ({"clip_norm": 0.0}, "parameter.not_positive", {"name": "clip_norm"}),
        ({"clip_norm": np.inf}, "parameter.not_positive", {"name": "clip_norm"}),
        ({"clip_norm": (1.0, 1.0)}, "gradient.clip_norms_need_blocks", {}),
        ({"clip_order": 0.5}, "parameter.below_one", {"name": "clip_order"}),
        (
            {"blocks": (3, 4), "clip_norm": 1.0},
            "gradient.clip_norms_count_mismatch",
            {},
        ),
        (
            {"blocks": (3, 4), "clip_norm": (1.0,)},
            "gradient.clip_norms_count_mismatch",
            {},
        ),
        (
            {"blocks": (3, 4), "clip_norm": (1.0, 1.0, 1.0)},
            "gradient.clip_norms_count_mismatch",
            {},
        ),
        (
            {"blocks": (3, 4), "clip_norm": [1.0, 1.0]},
            "gradient.clip_norms_count_mismatch",
            {},
        ),
        (
            {"blocks": (3, 4), "clip_norm": (1.0, 0.0)},
            "parameter.not_positive",
            {"name": "clip_norm"},
        ),
        (
            {"blocks": (3, 4), "clip_norm": (1.0, 1.0), "dim": 8},
            "gradient.blocks_sum_mismatch",
            {},
        ),
        (
            {"blocks": (3, 0), "clip_norm": (1.0, 1.0)},
            "parameter.count_too_small",
            {"name": "blocks"},
        ),
        (
            {"context": PublicContext(n_records=99)},
            "release.n_records_differs_from_context",
            {},
        ),
    ],
)
def test_bad_input_is_named(changes, code, parameters):
    with refused((TypeError, ValueError), code, **parameters):
        release(**changes)


def test_every_scheme_can_be_described():
    for sampling in SAMPLING_SCHEMES:
        size = None if sampling == "full_batch" else 10
        assert release(sampling=sampling, batch_size=size).sampling.name == sampling
