"""What accountants refuse, by its reason, of the noise they choose or are given.

A refusal that is missed is a promise of what no theorem holds.
"""

import math

import numpy as np
import pytest

from skpuffer.accountants import (
    PAC,
    ApproximateWasserstein,
    AttributeGaussian,
    Best,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    HistoryUniformCap,
    IterationAmplification,
    Kantorovich,
    MarkovQuilt,
    OverlapAmplification,
    PrivacyLoss,
    RandomAllocation,
    RenyiDP,
    ResidualPAC,
    SampledAllocation,
    ShapedWasserstein,
    SinkhornWasserstein,
    SlicedWasserstein,
)
from skpuffer.accountants._compatibility import _releases
from skpuffer.distributions import Gaussian, PointMass
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    GeneralizedCauchyNoise,
    GumbelNoise,
    L2LaplaceNoise,
    LaplaceNoise,
)
from skpuffer.noise.strategies import banded_square_root
from skpuffer.releases import GradientRelease, QueryRelease, Sensitivity, VoteRelease
from skpuffer.scenarios import (
    AttributeScenario,
    BoundedOdds,
    LawsScenario,
    MarkovChainScenario,
    PrevalenceScenario,
    RecordScenario,
    SubsampleScenario,
)
from tests.refused import refused

RECORD, REPLACED = RecordScenario(), RecordScenario(relation="replace")
GROUP = RecordScenario(3, relation="replace")
COME_AND_GO = RecordScenario(3)
LAWS = LawsScenario([(PointMass(0.0), PointMass(1.0))])
CHAIN = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
BELIEF = AttributeScenario("a", level="record", prior=BoundedOdds(4.0))
UNSURE = PrevalenceScenario(None, 0.4, 0.5, law="binomial", event_delta=1e-9)
POOL = np.linspace(0.0, 1.0, 16)[:, None]
SUBSET = SubsampleScenario(POOL, 8, prior="sampled", n_subsets=64)
GAUSSIAN = GaussianNoise(5.0)
BANDED = banded_square_root(2)
CHOICES = _releases(60)["choices by noisy scores (quantiles)"]


def query(n=60, dim=1, **options):
    known = {1: 1.0, 2: 1.0}
    usual = {
        "query": lambda X, y: np.asarray(X, float).mean(axis=0),
        "sensitivity": Sensitivity(add_remove=known, replace=known),
    }
    return QueryRelease(n_records=n, dim=dim, **usual | options)


def told(**options):
    return query(sensitivity=None, **options)


def run(**options):
    usual = {"n_records": 60, "n_steps": 6, "batch_size": 6, "dim": 1}
    return GradientRelease(**usual | options)


def whole(**options):
    return run(**{"sampling": "full_batch", "batch_size": None} | options)


def votes(**options):
    usual = {"n_records": 60, "n_teachers": 10, "n_classes": 2, "n_queries": 3}
    return VoteRelease(**usual | options)


#: Accountant, release, scenario, noise to certify if any, and why it is refused.
CASES = {
    # -- noise of other releases
    "noise of no number": (
        GroupPrivacy(),
        query(),
        RECORD,
        DiscreteLaplaceNoise(5.0),
        Statement("noise.integer_family_for_reals", name="query"),
    ),
    "joint noise of steps": (
        PrivacyLoss(delta=1e-5),
        whole(),
        RECORD,
        L2LaplaceNoise(5.0),
        Statement("noise.family_for_one_vector"),
    ),
    "scales of votes": (
        PrivacyLoss(delta=1e-5),
        votes(),
        RECORD,
        GaussianNoise([5.0, 5.0]),
        Statement("pate.votes_noise_scales_differ"),
    ),
    "votes of a group under heavy tails": (
        PrivacyLoss(delta=1e-5),
        votes(),
        COME_AND_GO,
        GeneralizedCauchyNoise(5.0),
        Statement(
            "pate.votes_noise_not_log_concave",
            name="votes",
            n_touched=3,
            family="generalized_cauchy",
        ),
    ),
    "another norm": (
        PrivacyLoss(delta=1e-5),
        whole(clip_order=2, dim=None),
        RECORD,
        LaplaceNoise(5.0),
        Statement("gradient.clip_order_too_large", clip_order=2, family="laplace"),
    ),
    "bins under laplace": (
        PrivacyLoss(delta=1e-5),
        run(sampling="balls_in_bins", clip_order=1),
        RECORD,
        LaplaceNoise(5.0),
        Statement("sampling.bins_noise_not_gaussian", family="laplace"),
    ),
    "allocation under laplace": (
        RandomAllocation(delta=1e-4),
        run(sampling="balls_in_bins", clip_order=1),
        RECORD,
        LaplaceNoise(5.0),
        Statement("allocation.noise_not_gaussian"),
    ),
    "sampled allocation under laplace": (
        SampledAllocation(delta=1e-3, n_samples=100, random_state=0),
        run(sampling="balls_in_bins", clip_order=1),
        RECORD,
        LaplaceNoise(5.0),
        Statement("allocation.sampled_noise_not_gaussian", family="laplace"),
    ),
    "correlated laplace": (
        PrivacyLoss(delta=1e-5),
        whole(noise_correlation=BANDED, clip_order=1),
        RECORD,
        LaplaceNoise(5.0),
        Statement("correlation.noise_not_gaussian", family="laplace"),
    ),
    "history under laplace": (
        HistoryUniformCap(),
        run(clip_order=1),
        REPLACED,
        LaplaceNoise(5.0),
        Statement("history.noise_not_gaussian"),
    ),
    "slices under laplace": (
        SlicedWasserstein(),
        told(),
        LAWS,
        LaplaceNoise(5.0),
        Statement("sliced.noise_not_gaussian", family="laplace"),
    ),
    "slices without noise": (
        SlicedWasserstein(),
        told(),
        LAWS,
        GaussianNoise(0.0),
        Statement("sliced.noise_scale_not_positive"),
    ),
    "shapes under laplace": (
        ShapedWasserstein(),
        told(),
        LAWS,
        LaplaceNoise(5.0),
        Statement("shaped.noise_not_gaussian"),
    ),
    "shapes of another dimension": (
        ShapedWasserstein(),
        told(),
        LAWS,
        GaussianNoise([1.0, 1.0]),
        Statement("shaped.noise_dimension_mismatch", dim=1, name="query", noise_dim=2),
    ),
    "prior variance under laplace": (
        AttributeGaussian(use_prior_variance=True),
        told(),
        LawsScenario([(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0))]),
        LaplaceNoise(5.0),
        Statement("gaussian.prior_variance_other_noise"),
    ),
    "information under laplace": (
        PAC(),
        query(n=8),
        SUBSET,
        LaplaceNoise(5.0),
        Statement("pac.noise_not_gaussian", family="laplace"),
    ),
    "information of another dimension": (
        PAC(),
        query(n=8),
        SUBSET,
        CorrelatedGaussianNoise(1.0, covariance=np.eye(2)),
        Statement("pac.noise_dimension_mismatch", dim=1, noise_dim=2),
    ),
    "quilts without noise": (
        MarkovQuilt(),
        query(n=6),
        CHAIN,
        LaplaceNoise(0.0),
        Statement("quilt.noise_scale_not_positive"),
    ),
    "iterates under laplace": (
        IterationAmplification(),
        run(),
        RECORD,
        LaplaceNoise(5.0),
        Statement("iteration.iterates_may_be_seen"),
    ),
    # -- records
    "a group of bins": (
        PrivacyLoss(delta=1e-5),
        run(sampling="balls_in_bins"),
        GROUP,
        GAUSSIAN,
        Statement("sampling.group_without_bound", count=3, scheme="balls_in_bins"),
    ),
    "a group in bins": (
        RandomAllocation(delta=1e-4),
        run(sampling="balls_in_bins"),
        GROUP,
        GAUSSIAN,
        Statement("allocation.group_without_bound", count=3, sampling="balls_in_bins"),
    ),
    "a group that comes and goes": (
        PrivacyLoss(delta=1e-5),
        run(sampling="fixed_size"),
        COME_AND_GO,
        GAUSSIAN,
        Statement("sampling.draws_from_changing_count", count=3),
    ),
    "history of records that come": (
        HistoryUniformCap(),
        run(sampling="fixed_size"),
        RECORD,
        GAUSSIAN,
        Statement("history.sampling_reads_changing_count"),
    ),
    "an order and an event": (
        RenyiDP(alpha=4.0, delta=None),
        whole(),
        UNSURE,
        GAUSSIAN,
        Statement("event.count_uncertain_at_order"),
    ),
    "samples and an event": (
        SampledAllocation(delta=1e-3, n_samples=100, random_state=0),
        run(sampling="balls_in_bins"),
        UNSURE,
        GAUSSIAN,
        Statement("allocation.group_without_bound"),
    ),
    "replaced in bins": (
        RandomAllocation(delta=1e-4, method="conditional"),
        run(sampling="balls_in_bins"),
        REPLACED,
        GAUSSIAN,
        Statement("allocation.method_without_replace", method="conditional"),
    ),
    # -- schemes
    "no bins": (
        RandomAllocation(delta=1e-4),
        run(),
        RECORD,
        GAUSSIAN,
        Statement("allocation.scheme_draws_no_bins", sampling="poisson"),
    ),
    "samples of fresh bins": (
        SampledAllocation(delta=1e-3, n_samples=100, random_state=0),
        run(sampling="fresh_bins", n_steps=20),
        RECORD,
        GAUSSIAN,
        Statement("allocation.bins_redrawn_each_epoch"),
    ),
    "history of another scheme": (
        HistoryUniformCap(),
        run(sampling="balls_in_bins"),
        REPLACED,
        GAUSSIAN,
        Statement("history.sampling_scheme_unknown"),
    ),
    "moments of an epoch": (
        HistoryUniformCap(subsampling="log_moment"),
        run(sampling="shuffled_epochs", n_steps=10),
        REPLACED,
        GAUSSIAN,
        Statement("history.shuffled_batches_dependent"),
    ),
    "slices of another dimension": (
        HistoryUniformCap(subsampling="mean_square", slices=((1.0, 0.0), (0.0, 1.0))),
        run(dim=3),
        REPLACED,
        GAUSSIAN,
        Statement("history.slices_dimension_mismatch", profile_dim=2, dim=3),
    ),
    # -- noise that is correlated, or elsewhere
    "correlated steps of a history": (
        HistoryUniformCap(),
        run(noise_correlation=BANDED),
        REPLACED,
        GAUSSIAN,
        Statement("history.noise_correlated"),
    ),
    "correlated steps of a belief": (
        OverlapAmplification(delta=1e-3),
        whole(noise_correlation=BANDED),
        BELIEF,
        GAUSSIAN,
        Statement("overlap.noise_correlated"),
    ),
    "correlated steps of batches": (
        PrivacyLoss(delta=1e-5),
        run(noise_correlation=BANDED),
        RECORD,
        GAUSSIAN,
        Statement("correlation.sampling_scheme_unfit", scheme="poisson"),
    ),
    "correlated steps of quilts": (
        MarkovQuilt(alpha=4.0, noise="gaussian"),
        whole(n_records=6, noise_correlation=BANDED),
        CHAIN,
        GAUSSIAN,
        Statement("correlation.independent_noise_accounted"),
    ),
    "exact bins of correlated steps": (
        RandomAllocation(delta=1e-4, method="exact"),
        run(sampling="balls_in_bins", noise_correlation=BANDED),
        RECORD,
        GAUSSIAN,
        Statement("allocation.noise_correlated"),
    ),
    "updates": (
        PrivacyLoss(delta=1e-5),
        run(noise_position="update"),
        RECORD,
        GAUSSIAN,
        Statement("gradient.noise_on_updates"),
    ),
    "updates of unknown length": (
        HistoryUniformCap(),
        run(noise_position="update"),
        REPLACED,
        GAUSSIAN,
        Statement("history.update_constants_missing"),
    ),
    "a declared length of gradients": (
        HistoryUniformCap(lipschitz=0.1),
        run(),
        REPLACED,
        GAUSSIAN,
        Statement("history.lipschitz_with_gradient_noise"),
    ),
    "quilts of batches at a delta": (
        MarkovQuilt(delta=1e-3, noise="gaussian"),
        run(n_records=6),
        CHAIN,
        GAUSSIAN,
        Statement("quilt.delta_under_sampling"),
    ),
    "quilts of other batches": (
        MarkovQuilt(alpha=4.0, noise="gaussian"),
        run(n_records=6, sampling="fixed_size"),
        CHAIN,
        GAUSSIAN,
        Statement("quilt.near_sets_under_sampling", scheme="fixed_size"),
    ),
    "a run that is seen": (
        IterationAmplification(),
        run(),
        RECORD,
        GAUSSIAN,
        Statement("iteration.iterates_may_be_seen"),
    ),
    # -- choices
    "choices without a pure promise": (
        GroupPrivacy(delta=1e-3),
        CHOICES,
        RECORD,
        GumbelNoise(5.0),
        Statement("selection.pure_promises_alone"),
    ),
    "choices of who knows how many": (
        GroupPrivacy(alpha=math.inf, noise="laplace"),
        CHOICES,
        UNSURE,
        GumbelNoise(5.0),
        Statement("selection.pure_count_uncertain"),
    ),
    # -- what is not known
    "more than the published bound leaves": (
        ApproximateWasserstein(0.01, alpha=4.0, event_delta=0.2, bound="paper"),
        told(),
        LAWS,
        None,
        Statement("event.paper_bound_above_epsilon", epsilon=0.01),
    ),
    "a correction of a sample": (
        PAC(correction="donsker_varadhan", confidence=0.9),
        query(n=8),
        SUBSET,
        GAUSSIAN,
        Statement(
            "pac.correction_needs_exact_covariance", correction="donsker_varadhan"
        ),
    ),
    "no bound in the norm": (
        MarkovQuilt(),
        told(n=6),
        CHAIN,
        LaplaceNoise(5.0),
        Statement("accountant.facts_not_offered", owner="MarkovQuilt"),
    ),
    "no ball": (
        ResidualPAC(certificate="sampled_prior"),
        query(n=8),
        SUBSET,
        GAUSSIAN,
        Statement("pac.ball_missing", name="query"),
    ),
    "sinkhorn of normals": (
        SinkhornWasserstein(),
        told(),
        LawsScenario([(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0))]),
        GAUSSIAN,
        Statement("transport.sinkhorn_points_missing"),
    ),
    "nothing that moves has a shape": (
        ShapedWasserstein(),
        told(),
        LawsScenario([(PointMass(0.0), PointMass(0.0))]),
        None,
        Statement("shaped.secret_does_not_move", name="query"),
    ),
    "nothing that moves has slices": (
        SlicedWasserstein(),
        told(),
        LawsScenario([(PointMass(0.0), PointMass(0.0))]),
        None,
        Statement("sliced.secrets_do_not_move", name="query"),
    ),
    "no length of slices": (
        SlicedWasserstein(),
        told(dim=None),
        LAWS,
        GAUSSIAN,
        Statement("laws.dimension_differs_from_release", name="query"),
    ),
}


def answer(accountant, release, scenario, noise):
    if noise is None:
        return accountant.calibrate(release, scenario, random_state=0)
    return accountant.certify(noise, release, scenario)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_by_its_reason(name):
    accountant, release, scenario, noise, said = CASES[name]
    with refused(ValueError, said.code, **said.parameters):
        answer(accountant, release, scenario, noise)


#: Refused of the release itself, whatever the noise.
_OF_NOISE = ("noise", "scales", "under", "dimension", "norm", "correlated laplace")


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize(
    "name", [name for name in CASES if not any(w in name for w in _OF_NOISE)]
)
def test_no_noise_is_chosen_either(name):
    accountant, release, scenario, _, said = CASES[name]
    with refused(ValueError, said.code, **said.parameters):
        accountant.calibrate(release, scenario, random_state=0)


BAD = {
    "event above delta": (
        ApproximateWasserstein(delta=1e-3, event_delta=2e-3),
        Statement("event.delta_above_delta"),
    ),
    "published bound with delta": (
        ApproximateWasserstein(delta=1e-3, event_delta=1e-4, bound="paper"),
        Statement("event.paper_bound_with_delta"),
    ),
    "all of delta": (
        ApproximateWasserstein(delta=1e-3, event_delta=1e-3, noise="gaussian"),
        Statement("event.delta_takes_all"),
    ),
    "shaped event": (
        ShapedWasserstein(delta=1e-3, event_delta=1e-3),
        Statement("shaped.event_delta_not_below_delta"),
    ),
    "no floor": (
        ShapedWasserstein(floor=0.0),
        Statement("shaped.directions_without_noise_refused"),
    ),
    "degenerate of a number": (
        ShapedWasserstein(allow_degenerate=1),
        Statement("parameter.not_bool"),
    ),
    "order of means": (
        DistributionAwareWasserstein(q=0.5),
        Statement("parameter.q_below_one"),
    ),
    "order of means without end": (
        DistributionAwareWasserstein(q=math.inf),
        Statement("parameter.q_below_one"),
    ),
    "means of the worst": (
        DistributionAwareWasserstein(alpha=math.inf, noise="laplace"),
        Statement("parameter.alpha_infinite_mean_order"),
    ),
    "gaussian moves by their mean": (
        Kantorovich(noise="gaussian"),
        Statement("noise.no_finite_pure_cost"),
    ),
    "variance of a number": (
        AttributeGaussian(use_prior_variance=1),
        Statement("parameter.not_bool"),
    ),
    "pure steps": (
        RenyiDP(alpha=math.inf, delta=None),
        Statement("parameter.alpha_infinite_renyi"),
    ),
    "no promise": (
        RenyiDP(alpha=None, delta=None),
        Statement("parameter.alpha_or_delta_missing"),
    ),
    "two promises": (
        RenyiDP(alpha=4.0, delta=1e-5),
        Statement("parameter.alpha_and_delta_both"),
    ),
    "two promises of quilts": (
        MarkovQuilt(alpha=4.0, delta=1e-5),
        Statement("quilt.alpha_and_delta_both"),
    ),
    "pure history": (
        HistoryUniformCap(alpha=math.inf),
        Statement("history.alpha_infinite"),
    ),
    "weights of no slices": (
        HistoryUniformCap(slice_weights=(1.0,)),
        Statement("history.slice_weights_without_slices"),
    ),
    "slices of every direction": (
        HistoryUniformCap(slices=((1.0,),), slice_weights=(1.0,)),
        Statement("history.slices_without_mean_square"),
    ),
    "pure iterates": (
        IterationAmplification(alpha=math.inf),
        Statement("iteration.alpha_infinite"),
    ),
    "fallback below epsilon": (
        OverlapAmplification(2.0, delta=1e-3, max_fallback=1.0),
        Statement("overlap.max_fallback_below_epsilon"),
    ),
    "pure slices": (
        SlicedWasserstein(alpha=math.inf),
        Statement("history.alpha_infinite"),
    ),
    "exact averages": (
        SlicedWasserstein(aggregation="average", method="exact"),
        Statement("sliced.method_with_average"),
    ),
    "pairs of a number": (
        SlicedWasserstein(per_pair=1),
        Statement("parameter.not_bool"),
    ),
    "support of a number": (
        SlicedWasserstein(support=1.0),
        Statement("sliced.support_not_box_or_ball"),
    ),
    "abstain of a number": (
        SampledAllocation(delta=1e-3, abstain=1),
        Statement("parameter.not_bool"),
    ),
    "confidence of algorithm 1": (
        PAC(method="algorithm1", confidence=0.9),
        Statement("pac.confidence_with_algorithm1"),
    ),
    "confidence of what is certain": (
        PAC(method="waterfill", confidence=0.9),
        Statement("pac.confidence_without_its_method"),
    ),
    "composable of a number": (
        Best(composable=1),
        Statement("parameter.not_bool"),
    ),
    "no candidates": (
        Best(candidates=[]),
        Statement("best.candidates_not_a_list"),
    ),
    "best of the best": (
        Best(candidates=[Best()]),
        Statement("best.candidate_not_an_accountant"),
    ),
    "candidates by class": (
        Best(candidates=[GroupPrivacy]),
        Statement("best.candidate_not_an_accountant"),
    ),
    "beta of a noise": (
        GroupPrivacy(noise=GAUSSIAN, beta=1.5),
        Statement("noise.beta_with_given_noise"),
    ),
    "beta of another family": (
        GroupPrivacy(noise="laplace", beta=1.5),
        Statement("noise.beta_with_other_family", noise="laplace"),
    ),
    "no beta": (
        GroupPrivacy(noise="generalized_gaussian"),
        Statement("noise.beta_missing"),
    ),
    "scales of a noise": (
        GeneralWasserstein(noise=GaussianNoise([1.0, 2.0])),
        Statement("noise.several_scales"),
    ),
    "pure gaussian": (
        GroupPrivacy(alpha=math.inf, noise="gaussian"),
        Statement("noise.family_not_pure", family="gaussian"),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_promise_that_is_none_is_refused(name):
    accountant, said = BAD[name]
    with refused((ValueError, TypeError), said.code, **said.parameters):
        accountant.check()


def test_quilts_are_certified_together_for_one_table_alone():
    accountant, noise = MarkovQuilt(), LaplaceNoise(5.0)
    for parts, words in (
        ([], "quilt.no_release"),
        (
            [(noise, query(n=6)), (noise, query(n=7))],
            "quilt.record_counts_differ",
        ),
    ):
        with refused(ValueError, words):
            accountant.certify_together(parts, CHAIN)


def test_refusals_are_errors_of_what_is_not_supported():
    accountant, release, scenario, noise, _ = CASES["a group of bins"]
    with pytest.raises(UnsupportedError):
        accountant.certify(noise, release, scenario)
