"""What releases say of themselves, and where they refuse what would leave unnoised."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

from skpuffer._template._intervals import noise_error
from skpuffer.exceptions import Statement
from skpuffer.kernel.queries import NORMS, stacked_sensitivity
from skpuffer.linear_model._base_sgd import usual_batch_size
from skpuffer.noise import GaussianNoise
from skpuffer.noise.strategies import banded_square_root, identity, prefix_sum_tree
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    Optimiser,
    PublicContext,
    QueryRelease,
    Recalibration,
    SelectionRelease,
    Sensitivity,
    Stage,
    VoteRelease,
)
from skpuffer.scenarios._attribute._pair_costs import pair_costs
from skpuffer.summary._cells import grouped_sensitivity
from tests.refused import refused


def gradients(**changes):
    return GradientRelease(
        **{"n_records": 100, "batch_size": 10, "n_steps": 5, **changes}
    )


def whole(**changes):
    return gradients(batch_size=None, sampling="full_batch", **changes)


def test_what_a_release_is_unless_more_is_said():
    """Of each kind: what its noise is in proportion to, or counts on."""
    run = whole()
    assert (run.clip_norm, run.clip_order, run.total_clip_norm) == (1.0, 2.0, 1.0)
    assert (run.published, run.noise_position) == ("all", "gradient")
    assert run.sensitivity == Sensitivity({2: 1.0})
    assert gradients().sampling.name == "poisson"
    vector = QueryRelease(query=lambda X, y: X.sum(0), n_records=3)
    assert (vector.factor, vector.slack, vector.modulus_norm) == (1.0, 0.0, 2.0)
    assert vector.shift_ceiling == math.inf and vector.total_slack(1.0) == 0.0
    assert not (vector.is_sum or vector.is_integer or vector.is_bounded)
    assert vector.unit_array == 1.0
    np.testing.assert_array_equal(replace(vector, units=(1, 3)).unit_array, [1.0, 3.0])
    one = Stage("sums", 2, Sensitivity({2: 1.0}), 1.0)
    assert one.times == 1
    adaptive = AdaptiveRelease(n_records=3, stages=[one])
    assert (adaptive.relation, adaptive.norm, adaptive.dim) == ("replace", 2.0, 2)
    assert adaptive.shift_ceiling == 0.0 and adaptive.is_bounded
    votes = VoteRelease(n_records=9, n_teachers=3, n_classes=2, n_queries=4)
    assert votes.relation == "replace_vote" and votes.max_answers == 4
    assert votes.test_noise(GaussianNoise(2.0)).scale == 10.0
    context = PublicContext(n_records=3)
    assert (context.n_targets, context.has_target) == (1, False)


@pytest.mark.parametrize("name", ["empirical", "pool"])
def test_a_context_that_is_printed_shows_no_rows(name):
    rows = np.full((3, 1), 41.5)
    context = PublicContext(n_records=3, **{name: (rows, None)})
    assert "41.5" not in repr(context) and name not in repr(context)
    assert "41.5" not in repr(gradients(n_records=3, batch_size=1, context=context))
    # nor do rows, which have no single truth value, decide what is the same
    assert context == PublicContext(n_records=3)


# -- sampling -------------------------------------------------------------------------

#: What each scheme takes for granted, how likely a record is in a batch, and what sums
#: are divided by, of batches of 15 out of 100.
SCHEMES = {
    "full_batch": (
        Statement("assume.step_takes_all_records", n_records=100),
        1.0,
        100.0,
    ),
    "poisson": (
        Statement("assume.step_poisson_sampled", sampling_rate=0.15),
        0.15,
        15.0,
    ),
    "fixed_size": (
        Statement("assume.step_fixed_size_subset", batch_size=15, n_records=100),
        0.15,
        15.0,
    ),
    "with_replacement": (
        Statement("assume.step_drawn_with_replacement", batch_size=15, n_records=100),
        1 - 0.99**15,
        15.0,
    ),
    "shuffled_epochs": (
        Statement("assume.epoch_shuffled_not_amplified", n_records=100),
        1 / 7,
        100 / 7,
    ),
    "fresh_bins": (
        Statement("assume.epoch_fresh_bins", steps_per_epoch=7),
        1 / 7,
        100 / 7,
    ),
    "balls_in_bins": (
        Statement("assume.epoch_balls_in_bins", steps_per_epoch=7),
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
    if name == "poisson":
        # 120 are expected of 800 trials, and no more than five deviations of ten off
        assert 70 < sum(map(len, batches)) < 170
        assert all(np.all(np.diff(batch) > 0) for batch in batches)
        assert len({tuple(batch.tolist()) for batch in batches}) == 8
    if name == "fixed_size":
        assert all(len(set(batch.tolist())) == 15 for batch in batches)
    if name == "with_replacement":
        assert all(len(batch) == 15 for batch in batches)


def test_of_certain_trials_every_step_takes_all():
    run = gradients(batch_size=100, sampling="poisson")
    for batch in run.sampling.batches(run, np.random.default_rng(0)):
        np.testing.assert_array_equal(batch, np.arange(100))


def test_more_is_drawn_until_the_last_record_had_its_chance():
    """Where records come so often that what is drawn at first ends before."""

    class Often:
        def __init__(self):
            self.calls = 0

        def random(self, size):
            self.calls += 1
            return np.zeros(size)

    rng = Often()
    run = gradients(n_records=1_000, batch_size=100, n_steps=2, sampling="poisson")
    for batch in run.sampling.batches(run, rng):
        np.testing.assert_array_equal(batch, np.arange(1_000))
    assert rng.calls > 1


@pytest.mark.parametrize("name", SCHEMES)
def test_a_size_for_a_table_that_nobody_knows_yet(name):
    scheme = gradients(
        batch_size=None if name == "full_batch" else 15, sampling=name
    ).sampling
    usual = [usual_batch_size(scheme, n, 30) for n in (100, 20)]
    more = 30 if name == "with_replacement" else 20
    assert usual == ([None, None] if name == "full_batch" else [30, more])
    unasked = [usual_batch_size(scheme, n, None) for n in (100, 5)]
    assert unasked == ([None, None] if name == "full_batch" else [10, 1])


def test_of_one_record_with_replacement_every_step_takes_it():
    run = gradients(n_records=1, batch_size=3, sampling="with_replacement")
    assert run.sampling_rate == 1.0


@pytest.mark.parametrize("size", [None, 0, 101, 2.5])
@pytest.mark.parametrize("name", [n for n in SCHEMES if n != "full_batch"])
def test_a_batch_has_a_size_that_the_table_allows(name, size):
    if name == "with_replacement" and size == 101:
        assert gradients(batch_size=size, sampling=name).batch_size == 101
        return
    with refused(
        (ValueError, TypeError),
        (
            "parameter.count_too_small",
            "sampling.batch_size_exceeds_records",
            "sampling.batch_size_missing",
        ),
    ):
        gradients(batch_size=size, sampling=name)
    assert gradients(batch_size=100, sampling=name).batch_size == 100
    # and nobody chooses it but whoever knows what a step costs
    with pytest.raises(ValueError, match=f"is needed under '{name}' sampling"):
        gradients(batch_size=None, sampling=name)


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
    "changes, kind, said",
    [
        ({"optimiser": "sgd"}, TypeError, Statement("gradient.optimiser_wrong_type")),
        (
            {"noise_position": "loss"},
            ValueError,
            Statement("parameter.option_unknown", name="noise_position"),
        ),
        (
            {"published": "none"},
            ValueError,
            Statement("parameter.option_unknown", name="published"),
        ),
        (
            {
                "noise_position": "update",
                "optimiser": Optimiser(learning_rate=0.1, momentum=0.5),
            },
            ValueError,
            Statement("gradient.update_noise_with_momentum"),
        ),
        (
            {"noise_proportions": (1.0, 2.0)},
            ValueError,
            Statement("gradient.noise_proportions_count_mismatch"),
        ),
        (
            {**SOFT, "noise_proportions": (1.0,)},
            ValueError,
            Statement("gradient.noise_proportions_count_mismatch"),
        ),
        (
            {**SOFT, "noise_proportions": [1.0, 2.0]},
            ValueError,
            Statement("gradient.noise_proportions_count_mismatch"),
        ),
        (
            {**SOFT, "noise_proportions": (1.0, 0.0)},
            ValueError,
            Statement("parameter.not_positive", name="noise_proportions"),
        ),
        (
            {"noise_correlation": "tree"},
            TypeError,
            Statement("gradient.noise_correlation_wrong_type"),
        ),
        (
            {"optimiser": LAST, "n_steps": 4},
            ValueError,
            Statement("gradient.recalibration_too_many_steps", n_last=4, n_steps=4),
        ),
        (
            {"optimiser": LAST, "record": _Record()},
            ValueError,
            Statement("gradient.recalibration_unsupported", setting="record=None"),
        ),
        (
            {"optimiser": LAST, **SOFT},
            ValueError,
            Statement("gradient.recalibration_unsupported", setting="blocks=None"),
        ),
        (
            {"optimiser": LAST, "noise_position": "update"},
            ValueError,
            Statement(
                "gradient.recalibration_unsupported",
                setting="noise_position='gradient'",
            ),
        ),
        (
            {"record": _Record(), "clip_order": 1},
            ValueError,
            Statement("gradient.record_needs_whole_l2_clipping"),
        ),
        (
            {"record": _Record(), **SOFT},
            ValueError,
            Statement("gradient.record_needs_whole_l2_clipping"),
        ),
    ],
)
def test_a_run_that_would_not_keep_what_it_states_is_refused(changes, kind, said):
    with refused(kind, said.code, **said.parameters):
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


class _Clipped:
    ceiling = 0.75

    def point(self, X, y):
        return X

    def gradient_move(self, shift):
        return 2 * shift


class _Bounded(_Record):
    """Facts that hold of gradients at parameters within a ball, if there is one."""

    def __init__(self):
        self.asked = []

    def clipped(self, norm, radius):
        self.asked.append((norm, radius))
        return _Clipped()


def test_gradients_are_bounded_at_the_parameters_that_a_run_may_have():
    """Noise of the updates comes after the projection, and leaves the ball."""
    inside = Optimiser(learning_rate=0.1, radius=2.5)
    for changes, radius in (
        ({}, None),
        ({"optimiser": Optimiser(learning_rate=0.1)}, None),
        ({"optimiser": inside}, 2.5),
        ({"optimiser": inside, "noise_position": "update"}, None),
    ):
        record = _Bounded()
        run = whole(record=record, clip_norm=3.0, **changes)
        assert record.asked == [(3.0, radius)]
        assert isinstance(run.clipped, _Clipped) and run.shift_ceiling == 0.75
        assert run.modulus(0.5) == 1.0 and run.contribution(7, None) == 7
        assert run.moves_with_contributions
    assert not whole(record=_Record()).moves_with_contributions
    assert not whole().moves_with_contributions


def test_pairs_of_records_count_only_where_all_take_part():
    X = np.zeros((2, 1))
    stated = whole(record=_Record(), clip_norm=3.0)
    np.testing.assert_array_equal(pair_costs(stated, X, None, 2), np.full((2, 2), 0.5))
    # never more than any two records may be apart
    near = whole(record=_Record(), clip_norm=1.0)
    np.testing.assert_array_equal(pair_costs(near, X, None, 2), np.ones((2, 2)))
    assert pair_costs(stated, X, None, 1) is None
    assert pair_costs(whole(), X, None, 2) is None
    drawn = gradients(record=_Record(), sampling="poisson")
    assert pair_costs(drawn, X, None, 2) is None
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
        with refused(ValueError, "gradient.noise_scales_mismatch"):
            release.clip_norm_in(scales[:2])


def test_correlated_noise_is_of_gradients_and_no_correlation_is_none():
    assert whole(noise_correlation=identity()).noise_correlation is None
    # made for another number of steps it would account for other noise than is drawn
    tree = prefix_sum_tree(5)
    assert whole(noise_correlation=tree).noise_correlation is tree
    for n_steps in (4, 6):
        with pytest.raises(ValueError, match=f"but the run has {n_steps}"):
            whole(noise_correlation=tree, n_steps=n_steps)
    banded = banded_square_root(2)
    assert whole(noise_correlation=banded).noise_correlation is banded
    with refused(ValueError, "gradient.noise_correlation_of_updates"):
        whole(noise_correlation=banded, noise_position="update")


@pytest.mark.parametrize(
    "kind, changes",
    [
        (Recalibration, {"n_steps": 2.5}),
        (Recalibration, {"n_steps": "4"}),
        (Recalibration, {"n_steps": 1}),
        (Recalibration, {"clip_norm": 0.0}),
        (Recalibration, {"clip_norm": "2"}),
        (Recalibration, {"shortest": 1.0}),
        (Recalibration, {"shortest": 0.0}),
        (Recalibration, {"shortest": "0.2"}),
        (Optimiser, {"learning_rate": "0.1"}),
        (Optimiser, {"learning_rate": 0.0}),
        (Optimiser, {"learning_rate": math.inf}),
        (Optimiser, {"momentum": "0.5"}),
        (Optimiser, {"momentum": 1.0}),
        (Optimiser, {"momentum": -0.1}),
        (Optimiser, {"average": 1.1}),
        (Optimiser, {"average": math.nan}),
        (Optimiser, {"l2": -1.0}),
        (Optimiser, {"l2": "1"}),
        (Optimiser, {"radius": 0.0}),
        (Optimiser, {"radius": "1"}),
        (Optimiser, {"schedule": "fast"}),
        (Optimiser, {"recalibration": 4}),
    ],
)
def test_settings_of_a_run_are_numbers_in_their_range(kind, changes):
    given = {"n_steps": 4, "clip_norm": 2.0}
    if kind is Optimiser:
        given = {"learning_rate": 0.1}
    (name,) = changes
    with pytest.raises((TypeError, ValueError), match=f"'{name}'"):
        kind(**given | changes)


# -- stages ---------------------------------------------------------------------------

ONE = Sensitivity({1: 2.0, 2: 1.0}, replace={1: 3.0, 2: 1.5}, relabel={1: 0.5, 2: 0.25})


def stages(**changes):
    given = [Stage("counts", 2, ONE, 0.25), Stage("sums", 3, ONE, 0.75, 4)]
    return AdaptiveRelease(**{"n_records": 9, "stages": given} | changes)


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"n_records": 0}, Statement("parameter.count_too_small", name="n_records")),
        ({"n_records": 2.5}, Statement("parameter.count_too_small", name="n_records")),
        (
            {"relation": "relabel"},
            Statement("parameter.option_unknown", name="relation"),
        ),
        ({"norm": 3.0}, Statement("parameter.option_unknown", name="norm")),
        ({"norm": -2.0}, Statement("parameter.not_positive", name="norm")),
        ({"norm": math.nan}, Statement("parameter.is_nan", name="norm")),
        ({"norm": math.inf}, Statement("parameter.not_positive", name="norm")),
        ({"stages": []}, Statement("release.stage_shares_sum")),
        (
            {"stages": [Stage("counts", 2, ONE, 0.5)]},
            Statement("release.stage_shares_sum"),
        ),
        ({"stages": [("counts", 2, ONE, 1.0)]}, Statement("release.stages_wrong_type")),
        (
            {"sensitivity": ONE},
            Statement("release.adaptive_field_not_allowed", field="sensitivity"),
        ),
        ({"dim": 3}, Statement("release.adaptive_field_not_allowed", field="dim")),
        (
            {"query": len},
            Statement("release.adaptive_field_not_allowed", field="query"),
        ),
        (
            {"context": PublicContext(n_records=8)},
            Statement("release.n_records_differs_from_context"),
        ),
    ],
)
def test_stages_that_do_not_make_one_release_are_refused(changes, said):
    with refused((TypeError, ValueError), said.code, **said.parameters):
        stages(**changes)


def test_a_text_is_no_norm_of_stages():
    with refused(TypeError, "parameter.not_real_number", name="norm"):
        stages(norm="2")


def test_stages_in_their_units():
    whole = stages(relation="add_remove")
    units = [1.0 * math.sqrt(1 / 0.25), 1.0 * math.sqrt(4 / 0.75)]
    assert [whole.unit(i) for i in (0, 1)] == pytest.approx(units)
    moves = {"add_remove": 1.0, "replace": 1.5, "relabel": 0.25}
    for relation, move in moves.items():
        expected = math.sqrt((move / units[0]) ** 2 + 4 * (move / units[1]) ** 2)
        found = whole.sensitivity.value(relation, 2, whole.dim)
        assert found == pytest.approx(expected)
    noise = GaussianNoise(2.0)
    errors = noise_error(whole, noise)
    np.testing.assert_allclose(errors, 2.0 * np.repeat(units, [2, 12]))
    with refused(ValueError, "parameter.size_not_workable", name="unit"):
        Stage("far", 1, Sensitivity({1: 1e60}), 1e-60).unit("add_remove", 1.0)
    for sensitivity in (Sensitivity({2: 0.0}), Sensitivity({})):
        with refused(ValueError, "release.stage_sensitivity_not_positive"):
            Stage("none", 1, sensitivity, 1.0).unit("add_remove", 2.0)


# -- votes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"groups": (0, 1, 2)}, "pate.groups_shape_wrong"),
        ({"groups": (0, 0, 0, 1, 1, 1)}, "pate.groups_fewer_than_teachers"),
        ({"groups": (0, 0, 0, 1, 2, 3)}, "pate.group_larger_than_share"),
        ({"query": len, "threshold": 1.0}, "pate.query_with_threshold"),
    ],
)
def test_votes_that_no_teacher_could_cast_are_refused(changes, match):
    with refused(ValueError, match):
        VoteRelease(n_records=6, n_teachers=3, n_classes=2, n_queries=4, **changes)


def test_groups_go_whole_to_one_teacher():
    given = {"n_records": 6, "n_teachers": 3, "n_classes": 2, "n_queries": 4}
    release = VoteRelease(**given, groups=("b", "b", "a", "a", "c", "c"))
    assert release.groups == (1, 1, 0, 0, 2, 2)
    assert release.context.groups == release.groups
    order = np.arange(6)
    # 3 consecutive records are of two groups at least, and of 3 at most
    assert release.teachers_met([1, 2, 3, 4, 6], [order]).tolist() == [1, 2, 2, 3, 3]
    assert release.teachers_met([1, 2, 3, 4, 6]).tolist() == [1, 2, 3, 3, 3]
    stacked = replace(
        release, query=lambda X, y: np.ones(8), assumptions=("a", "b")
    ).stacked()
    assert stacked.assumptions == (
        "a",
        "b",
        Statement("assume.queries_fixed_before_votes"),
    )
    assert stacked.dim == 8 and stacked.is_integer
    for relation in ("add_remove", "replace"):
        assert stacked.sensitivity.value(relation, 1, 8) == 8.0
        assert stacked.sensitivity.value(relation, 2, 8) == pytest.approx(math.sqrt(8))
        assert stacked.sensitivity.value(relation, math.inf, 8) == 1.0


@pytest.mark.parametrize("seed", range(6))
def test_how_many_teachers_consecutive_records_lie_with_is_counted_out(seed):
    """All windows of all sequences; records of one group go to one teacher."""
    rng = np.random.default_rng(seed)
    sizes = [[3, 1, 2, 3, 1, 2], [3, 3, 3, 2, 1]][seed % 2]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    release = VoteRelease(
        n_records=12, n_teachers=4, n_classes=2, n_queries=1, groups=tuple(groups)
    )
    # of all records, of some, and of a few groups alone
    sequences = [rng.permutation(12), rng.permutation(12)[:7], np.arange(12), [0, 1, 3]]
    if seed % 2:
        sequences = sequences[2:]
    sequences = [np.asarray(sequence) for sequence in sequences]

    def met(size):
        most = 0
        for sequence in sequences:
            for start in range(len(sequence) - size + 1):
                window = groups[sequence[start : start + size]]
                # a group that comes twice may be counted as two
                most = max(most, 1 + np.count_nonzero(np.diff(window)))
        return min(most, 4)

    sizes = np.arange(1, 13)
    # shorter than one that meets as many
    expected = np.maximum.accumulate([met(size) for size in sizes])
    np.testing.assert_array_equal(release.teachers_met(sizes, sequences), expected)


def test_only_rows_of_an_array_are_summed_block_by_block(monkeypatch):
    """What is sliced by names elsewhere, or not at all, is summed as it is."""
    monkeypatch.setattr("skpuffer.kernel.queries._BLOCK", 8)
    seen = []

    def contribution(X, y):
        seen.append(len(X))
        return np.asarray(X, dtype=float)

    release = QueryRelease(contribution=contribution, is_sum=True, n_records=9, dim=2)
    X = np.arange(18.0).reshape(9, 2)
    for table in (X, pd.DataFrame(X)):
        assert release.run(table).tolist() == [72.0, 81.0]
    assert seen == [4, 4, 1, 9]


def test_a_length_that_is_found_last_has_no_bound():
    last = Recalibration(n_steps=4, clip_norm=2.0)
    with refused(ValueError, "training.recalibration_with_radius"):
        Optimiser(learning_rate=0.1, recalibration=last, radius=2.0)
    with refused(TypeError, "training.recalibration_wrong_type"):
        Optimiser(learning_rate=0.1, recalibration=4)


def test_no_step_forgets_more_than_its_curvature_allows():
    """Of the largest curvature or none, whichever contracts less."""
    plain = Optimiser(learning_rate=0.5, schedule="linear")
    assert plain.contractions(2, 2.0) == [1.0, 1.0]
    assert plain.contractions(2, 8.0) == [3.0, 1.0]
    shrinking = replace(plain, l2=2.0)
    assert shrinking.contractions(2, 2.0) == [0.5, 1 / 1.5]
    assert shrinking.contractions(2, 2.0, all_penalised=False) == [1.0, 1.0]
    carrying = replace(plain, momentum=0.5)
    assert carrying.contractions(2, 2.0) == [math.inf, math.inf]
    with refused(ValueError, "parameter.is_negative", name="smoothness"):
        plain.contractions(2, -1.0)


def test_step_sizes_by_hand():
    def by_cosine(share):
        return (1 + math.cos(math.pi * share)) / 2

    expected = {
        "constant": [1.0] * 40,
        "invscaling": [(t + 1) ** -0.5 for t in range(40)],
        "linear": [1 - t / 40 for t in range(40)],
        "cosine": [by_cosine(t / 40) for t in range(40)],
        "warmup_cosine": [0.5, 1.0, *(by_cosine(t / 38) for t in range(38))],
    }
    for schedule, factors in expected.items():
        optimiser = Optimiser(learning_rate=0.5, schedule=schedule)
        assert optimiser.step_sizes(40) == pytest.approx([0.5 * f for f in factors])


@pytest.mark.parametrize("dtype", [float, object])
def test_a_sum_that_knows_how_is_the_sum_of_its_parts(dtype):
    class Doubled:
        def __call__(self, X, y):
            return 2.0 * np.asarray(X, dtype=float)

        def sums(self, X):
            assert X.dtype == float
            return 2.0 * X.sum(axis=0, keepdims=True)

    X = np.array([[1.0, 2.0], [3.0, 5.0]]).astype(dtype)
    release = QueryRelease(
        contribution=Doubled(),
        is_sum=True,
        factor=0.5,
        n_records=2,
        dim=2,
        units=(1, 3),
    )
    assert release.run(X).tolist() == [4.0, 21.0]


# -- pairs of records -----------------------------------------------------------------


def test_pairs_of_records_by_how_far_apart_their_contributions_are():
    X = np.array([[0.0], [0.5], [4.0]])
    summed = QueryRelease(
        contribution=lambda X, y: np.asarray(X),
        is_sum=True,
        factor=-0.5,
        n_records=3,
        dim=1,
        sensitivity=Sensitivity({2: 0.5}),
    )
    expected = [[0.0, 0.25, 1.0], [0.25, 0.0, 1.0], [1.0, 1.0, 0.0]]
    np.testing.assert_allclose(pair_costs(summed, X, None, 2), expected)
    smooth = QueryRelease(
        query=lambda X, y: X.max(axis=0),
        contribution=lambda X, y: np.asarray(X),
        modulus=lambda move: move / 2,
        slack=0.25,
        n_records=3,
        dim=1,
        sensitivity=Sensitivity({2: 0.5}),
    )
    # of 1.0 + 0.25 in all; a record that is the same moves nothing, not even the slack
    expected = [[0.0, 0.4, 1.0], [0.4, 0.0, 1.0], [1.0, 1.0, 0.0]]
    np.testing.assert_allclose(pair_costs(smooth, X, None, 2), expected)
    # where nothing bounds any record, or contributions say nothing, no pair is known
    for other in (
        replace(summed, sensitivity=None),
        replace(summed, sensitivity=Sensitivity({2: 0.0})),
        replace(smooth, modulus=None),
        replace(smooth, contribution=None),
    ):
        assert pair_costs(other, X, None, 2) is None


def test_pairs_of_records_whose_targets_are_not_known_are_not_compared():
    class WithTarget:
        needs_target = True

        def __call__(self, X, y):
            return X if y is None else X * y[:, np.newaxis]

    X, y = np.array([[1.0], [2.0]]), np.array([2.0, 1.0])
    release = QueryRelease(
        contribution=WithTarget(),
        is_sum=True,
        n_records=2,
        dim=1,
        sensitivity=Sensitivity({2: 4.0}),
    )
    assert pair_costs(release, X, None, 2) is None
    np.testing.assert_array_equal(pair_costs(release, X, y, 2), np.zeros((2, 2)))


def test_an_arbitrary_record_moves_a_query_as_its_sensitivity_says():
    """Whatever is said of contributions, which may become anything then."""

    def modulus(move):
        assert math.isfinite(move)
        return move / 10

    release = QueryRelease(
        query=lambda X, y: X.max(axis=0),
        contribution=lambda X, y: X,
        modulus=modulus,
        n_records=3,
        dim=4,
        sensitivity=Sensitivity({2: 0.5}, relabel={2: 0.25}),
    )
    moves = {"add_remove": 0.5, "replace": 1.0, "relabel": 0.25}
    for relation, move in moves.items():
        assert release.record_move(math.inf, 2, relation) == move
        assert release.record_move(1.0, 2, relation) == 0.1
        assert release.record_move(100.0, 2, relation) == move
    unknown = replace(release, sensitivity=None)
    assert unknown.record_move(math.inf, 2, "replace") == math.inf
    assert unknown.record_move(1.0, 1, "replace") == pytest.approx(0.2)
    assert (release.is_bounded, unknown.is_bounded) == (True, False)


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
    assert noise_error(release, None) is None
    assert release.context == PublicContext(n_records=9)
    assert release.choose(None, None, None).tolist() == [1.0, 3.0, 3.0]
    endless = replace(release, scores=(_Scores(), _Scores(is_finite=False)))
    assert not endless.is_finite
    # two releases are the same whatever is known of their tables
    assert release == replace(release, assumptions=())
    assert release != endless


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"scores": ()}, Statement("release.selection_scores_empty")),
        ({"n_records": 0}, Statement("parameter.count_too_small", name="n_records")),
        ({"n_records": 2.5}, Statement("parameter.count_too_small", name="n_records")),
        (
            {"context": PublicContext(n_records=8)},
            Statement("release.n_records_differs_from_context"),
        ),
    ],
)
def test_what_is_no_choice_is_refused(changes, said):
    with refused((TypeError, ValueError), said.code, **said.parameters):
        SelectionRelease(**{"n_records": 9, "scores": (_Scores(),)} | changes)


# -- vectors in a ball, and sensitivities ---------------------------------------------


def test_a_vector_in_a_ball_is_the_projected_one():
    release = QueryRelease(
        query=lambda X, y: X.sum(axis=0), n_records=2, ball=([0.0, 1.0], 2.0)
    )
    assert release.run(np.array([[3.0, 1.0], [1.0, 0.0]])).tolist() == [2.0, 1.0]
    # how long it is was not known before
    with refused(ValueError, "release.ball_center_shape_wrong"):
        release.run(np.ones((2, 3)))
    np.testing.assert_allclose(noise_error(release, GaussianNoise(2.0)), 2.0)


@pytest.mark.parametrize(
    "changes, kind, said",
    [
        (
            {"is_sum": True, "contribution": lambda X, y: X},
            ValueError,
            Statement("release.ball_without_query"),
        ),
        ({"linear": np.eye(2)}, ValueError, Statement("release.ball_without_query")),
        ({"ball": 3.0}, TypeError, Statement("release.ball_not_a_pair")),
        ({"ball": (0.0, -1.0)}, ValueError, Statement("release.ball_invalid")),
        (
            {"ball": (np.zeros(3), 1.0)},
            ValueError,
            Statement("release.coordinates_of_vector", dim=2),
        ),
        (
            {"ball": (np.zeros((1, 2)), 1.0)},
            ValueError,
            Statement("release.ball_center_shape_wrong"),
        ),
    ],
)
def test_a_ball_that_is_none_is_refused(changes, kind, said):
    given = {"query": lambda X, y: X, "n_records": 2, "dim": 2, "ball": (0.0, 1.0)}
    QueryRelease(**given)
    with refused(kind, said.code, **said.parameters):
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
