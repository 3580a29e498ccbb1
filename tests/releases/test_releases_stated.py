"""What releases say of themselves, and where they refuse what would leave unnoised."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from skpuffer.noise import GaussianNoise
from skpuffer.releases import (
    GradientRelease,
    Optimiser,
    PublicContext,
    QueryRelease,
    Recalibration,
    SelectionRelease,
    Sensitivity,
)
from skpuffer.releases._sensitivity import (
    NORMS,
    grouped_sensitivity,
    stacked_sensitivity,
)


def gradients(**changes):
    return GradientRelease(
        **{"n_records": 100, "batch_size": 10, "n_steps": 5, **changes}
    )


def whole(**changes):
    return gradients(batch_size=None, sampling="full_batch", **changes)


# -- sampling -------------------------------------------------------------------------

#: What each scheme takes for granted, how likely a record is in a batch, and what sums
#: are divided by, of batches of 15 out of 100.
SCHEMES = {
    "full_batch": ("every step takes all 100 records", 1.0, 100.0),
    "poisson": (
        "every step takes each record independently with probability 0.15, and which "
        "ones it took stays secret",
        0.15,
        15.0,
    ),
    "fixed_size": (
        "every step takes a fresh uniformly random subset of 15 of the 100 records, "
        "which stays secret",
        0.15,
        15.0,
    ),
    "with_replacement": (
        "every step draws 15 times uniformly from the 100 records, and which ones it "
        "drew stays secret",
        1 - 0.99**15,
        15.0,
    ),
    "shuffled_epochs": (
        "every epoch deals each of the 100 records to one batch, at random but with no "
        "amplification claimed for it",
        1 / 7,
        100 / 7,
    ),
    "fresh_bins": (
        "in every epoch each record independently draws one of its 7 batches uniformly "
        "and anew, and which ones it drew stays secret",
        1 / 7,
        100 / 7,
    ),
    "balls_in_bins": (
        "each record independently draws one of the 7 batches of an epoch uniformly, "
        "once for all epochs, and which one it drew stays secret",
        1 / 7,
        100 / 7,
    ),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_a_scheme_says_what_it_takes_for_granted(name):
    statement, rate, divisor = SCHEMES[name]
    run = gradients(
        batch_size=None if name == "full_batch" else 15, sampling=name, n_steps=8
    )
    assert run.sampling_statement == statement
    assert run.sampling_rate == pytest.approx(rate, rel=1e-12)
    assert run.divisor == pytest.approx(divisor, rel=1e-12)
    assert run.n_epochs == (8 if name == "full_batch" else 2)
    batches = list(run.sampling.batches(run, np.random.default_rng(0)))
    assert len(batches) == 8
    if name == "full_batch":
        assert batches == [None] * 8
        return
    counts = np.bincount(np.concatenate(batches[:7]), minlength=100)
    assert len(counts) == 100
    if name in ("shuffled_epochs", "fresh_bins", "balls_in_bins"):
        # once in an epoch, whatever the order, and the next epoch goes on
        np.testing.assert_array_equal(counts, 1)
        assert np.array_equal(batches[7], batches[0]) == (name == "balls_in_bins")
    if name == "fixed_size":
        assert all(len(set(batch.tolist())) == 15 for batch in batches)
    if name == "with_replacement":
        assert all(len(batch) == 15 for batch in batches)


def test_of_one_record_with_replacement_every_step_takes_it():
    run = gradients(n_records=1, batch_size=3, sampling="with_replacement")
    assert run.sampling_rate == 1.0


@pytest.mark.parametrize("size", [None, 0, 101, 2.5])
@pytest.mark.parametrize("name", [n for n in SCHEMES if n != "full_batch"])
def test_a_batch_has_a_size_that_the_table_allows(name, size):
    if name == "with_replacement" and size == 101:
        assert gradients(batch_size=size, sampling=name).batch_size == 101
        return
    with pytest.raises((ValueError, TypeError), match="'batch_size'"):
        gradients(batch_size=size, sampling=name)
    assert gradients(batch_size=100, sampling=name).batch_size == 100


# -- gradients ------------------------------------------------------------------------


class _Record:
    """Facts of a record, as a training estimator states them."""

    def clipped(self, norm, radius):
        return None

    def label_move(self, norm):
        return norm / 2

    def pair_costs(self, X, y, release):
        return np.full((2, 2), 3.0)


LAST = Optimiser(learning_rate=0.1, recalibration=Recalibration(n_steps=4, clip_norm=2))
SOFT = {"blocks": (1, 2), "clip_norm": (1.0, 2.0)}


@pytest.mark.parametrize(
    "changes, kind, match",
    [
        ({"optimiser": "sgd"}, TypeError, "'optimiser'"),
        ({"noise_position": "loss"}, ValueError, "'noise_position'"),
        ({"published": "none"}, ValueError, "'published'"),
        (
            {
                "noise_position": "update",
                "optimiser": Optimiser(learning_rate=0.1, momentum=0.5),
            },
            ValueError,
            "momentum=0",
        ),
        ({"noise_proportions": (1.0, 2.0)}, ValueError, "'noise_proportions'"),
        ({**SOFT, "noise_proportions": (1.0,)}, ValueError, "'noise_proportions'"),
        ({**SOFT, "noise_proportions": [1.0, 2.0]}, ValueError, "'noise_proportions'"),
        ({**SOFT, "noise_proportions": (1.0, 0.0)}, ValueError, "'noise_proportions'"),
        ({"noise_correlation": "tree"}, TypeError, "'noise_correlation'"),
        ({"optimiser": LAST, "n_steps": 4}, ValueError, "'recalibration' takes 4"),
        ({"optimiser": LAST, "record": _Record()}, ValueError, "record=None"),
        ({"optimiser": LAST, **SOFT}, ValueError, "blocks=None"),
        (
            {"optimiser": LAST, "noise_position": "update"},
            ValueError,
            "noise_position='gradient'",
        ),
        ({"record": _Record(), "clip_order": 1}, ValueError, "'record'"),
        ({"record": _Record(), **SOFT}, ValueError, "'record'"),
    ],
)
def test_a_run_that_would_not_keep_what_it_states_is_refused(changes, kind, match):
    with pytest.raises(kind, match=match):
        whole(**changes)


def test_what_is_refused_above_is_taken_where_it_holds():
    assert whole(optimiser=LAST, n_steps=5).n_steps == 5
    still = Optimiser(learning_rate=0.1)
    assert whole(noise_position="update", optimiser=still).optimiser is still
    apart = whole(**SOFT, noise_proportions=(1, 3))
    assert apart.units == (1.0, 3.0, 3.0)
    assert apart.clip_norm == (1.0, 2.0)


def test_a_changed_label_moves_less_than_a_replaced_record():
    moved = whole(record=_Record(), clip_norm=3.0).sensitivity
    assert moved.value("add_remove", 2, 5) == 3.0
    assert moved.value("replace", 2, 5) == 6.0
    assert moved.value("relabel", 2, 5) == 1.5
    assert whole(clip_norm=3.0).sensitivity.value("relabel", 2, 5) == 6.0


def test_pairs_of_records_count_only_where_all_take_part():
    X = np.zeros((2, 1))
    stated = whole(record=_Record(), clip_norm=3.0)
    np.testing.assert_array_equal(stated.pair_costs(X, None, 2), np.full((2, 2), 0.5))
    # never more than any two records may be apart
    near = whole(record=_Record(), clip_norm=1.0)
    np.testing.assert_array_equal(near.pair_costs(X, None, 2), np.ones((2, 2)))
    assert stated.pair_costs(X, None, 1) is None
    assert whole().pair_costs(X, None, 2) is None
    drawn = gradients(record=_Record(), sampling="poisson")
    assert drawn.pair_costs(X, None, 2) is None
    assert stated.shift_ceiling == 0.0 and stated.shift_norm(1.0) == 2.0


def test_norms_of_gradients_in_units_of_their_noise():
    """The longest gradient that clipping leaves, by hand, of coordinates divided."""
    scales = np.array([0.5, 2.0, 4.0])
    plain = whole(clip_norm=3.0)
    assert plain.clip_norm_in(scales) == pytest.approx(3.0 / 0.5)
    apart = whole(**SOFT)
    assert apart.clip_norm_in(scales) == pytest.approx(math.hypot(1 / 0.5, 2 / 2.0))
    summed = whole(**SOFT, clip_order=1)
    assert summed.clip_norm_in(scales) == pytest.approx(1 / 0.5 + 2 / 2.0)
    assert plain.clip_norm_in(np.array([0.0, 1.0])) == math.inf
    for release in (apart, whole(dim=4)):
        with pytest.raises(ValueError, match="coordinates"):
            release.clip_norm_in(scales[:2])


# -- choices --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scores:
    dim: int = 1
    is_finite: bool = True
    width: float = 1.0

    def ranges(self, relation):
        return (self.width, 2 * self.width) if relation == "replace" else (self.width,)

    def choose(self, X, noise, rng):
        return np.full(self.dim, self.width)


def test_a_choice_says_how_many_and_how_far_its_scores_move():
    release = SelectionRelease(
        n_records=9, scores=(_Scores(), _Scores(2, width=3.0)), assumptions=("a",)
    )
    assert (release.dim, release.is_finite, release.is_bounded) == (3, True, True)
    assert release.ranges("add_remove") == (1.0, 3.0)
    assert release.ranges("replace") == (1.0, 2.0, 3.0, 6.0)
    assert release.noise_error(None) is None
    assert release.context == PublicContext(n_records=9)
    assert release.choose(None, None, None).tolist() == [1.0, 3.0, 3.0]
    endless = replace(release, scores=(_Scores(), _Scores(is_finite=False)))
    assert not endless.is_finite
    # two releases are the same whatever is known of their tables
    assert release == replace(release, assumptions=())
    assert release != endless


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"scores": ()}, "'scores'"),
        ({"n_records": 0}, "'n_records'"),
        ({"n_records": 2.5}, "'n_records'"),
        ({"context": PublicContext(n_records=8)}, "'n_records'"),
    ],
)
def test_what_is_no_choice_is_refused(changes, match):
    with pytest.raises((TypeError, ValueError), match=match):
        SelectionRelease(**{"n_records": 9, "scores": (_Scores(),)} | changes)


# -- vectors in a ball, and sensitivities ---------------------------------------------


def test_a_vector_in_a_ball_is_the_projected_one():
    release = QueryRelease(
        query=lambda X, y: X.sum(axis=0), n_records=2, ball=([0.0, 1.0], 2.0)
    )
    assert release.run(np.array([[3.0, 1.0], [1.0, 0.0]])).tolist() == [2.0, 1.0]
    # how long it is was not known before
    with pytest.raises(ValueError, match="'ball'"):
        release.run(np.ones((2, 3)))
    np.testing.assert_allclose(release.noise_error(GaussianNoise(2.0)), 2.0)


@pytest.mark.parametrize(
    "changes, kind, match",
    [
        ({"is_sum": True, "contribution": lambda X, y: X}, ValueError, "'ball'"),
        ({"linear": np.eye(2)}, ValueError, "'ball'"),
        ({"ball": 3.0}, TypeError, "'ball'"),
        ({"ball": (0.0, -1.0)}, ValueError, "'ball'"),
        ({"ball": (np.zeros(3), 1.0)}, ValueError, "of the 2 coordinates"),
        ({"ball": (np.zeros((1, 2)), 1.0)}, ValueError, "'ball'"),
    ],
)
def test_a_ball_that_is_none_is_refused(changes, kind, match):
    given = {"query": lambda X, y: X, "n_records": 2, "dim": 2, "ball": (0.0, 1.0)}
    QueryRelease(**given)
    with pytest.raises(kind, match=match):
        QueryRelease(**given | changes)


def test_sensitivities_of_parts():
    one = Sensitivity({1: 3.0, 2: 2.0, math.inf: 1.0}, {1: 5.0, 2: 3.0, math.inf: 1.5})
    other = Sensitivity(
        {1: 4.0, 2: 4.0, math.inf: 4.0}, {1: 1.0, 2: 1.0, math.inf: 1.0}
    )
    stacked = stacked_sensitivity([one, other])
    assert stacked.add_remove == {1: 7.0, 2: math.hypot(2, 4), math.inf: 4.0}
    assert stacked.replace == {1: 6.0, 2: math.hypot(3, 1), math.inf: 1.5}
    assert tuple(stacked.replace) == NORMS
    # a record that changes its cell is one less here and one more there
    grouped = grouped_sensitivity(one)
    assert grouped.add_remove == one.add_remove
    assert grouped.replace == {1: 6.0, 2: max(3.0, 2 * math.sqrt(2)), math.inf: 1.5}
    assert grouped_sensitivity(other).replace == {
        1: 8.0,
        2: pytest.approx(4 * math.sqrt(2)),
        math.inf: 4.0,
    }
    labelled = Sensitivity({2: 2.0}, relabel={2: 0.5})
    assert labelled.value("relabel", 2, 3) == 0.5
    assert labelled.value("replace", 2, 3) == 4.0
    tripled = Sensitivity({2: 2.0}, {2: 3.0}, {2: 0.5}).times(3.0)
    assert [tripled.value(r, 2, 3) for r in ("add_remove", "replace", "relabel")] == [
        6.0,
        9.0,
        1.5,
    ]
    # what is not stated stays what follows from the rest
    assert Sensitivity({2: 2.0}).times(3.0).replace is None
    assert Sensitivity({2: 2.0}, relabel={2: 9.0}).value("relabel", 2, 3) == 4.0
