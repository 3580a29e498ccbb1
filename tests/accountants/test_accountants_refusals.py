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
from skpuffer.exceptions import UnsupportedError
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
        "hides whole numbers only, and the release 'query' is not known to be one",
    ),
    "joint noise of steps": (
        PrivacyLoss(delta=1e-5),
        whole(),
        RECORD,
        L2LaplaceNoise(5.0),
        "is for one vector, by accountants that read no more than how far it moves",
    ),
    "scales of votes": (
        PrivacyLoss(delta=1e-5),
        votes(),
        RECORD,
        GaussianNoise([5.0, 5.0]),
        "takes noise of one scale for all classes",
    ),
    "votes of a group under heavy tails": (
        PrivacyLoss(delta=1e-5),
        votes(),
        COME_AND_GO,
        GeneralizedCauchyNoise(5.0),
        "for 3 votes that move at once under generalized_cauchy noise",
    ),
    "another norm": (
        PrivacyLoss(delta=1e-5),
        whole(clip_order=2, dim=None),
        RECORD,
        LaplaceNoise(5.0),
        "gradients are clipped in the 2-norm, which is not enough for laplace noise",
    ),
    "bins under laplace": (
        PrivacyLoss(delta=1e-5),
        run(sampling="balls_in_bins", clip_order=1),
        RECORD,
        LaplaceNoise(5.0),
        "are accounted for under Gaussian noise only, not laplace noise",
    ),
    "allocation under laplace": (
        RandomAllocation(delta=1e-4),
        run(sampling="balls_in_bins", clip_order=1),
        RECORD,
        LaplaceNoise(5.0),
        "records in bins are accounted for with Gaussian noise only",
    ),
    "sampled allocation under laplace": (
        SampledAllocation(delta=1e-3, n_samples=100, random_state=0),
        run(sampling="balls_in_bins", clip_order=1),
        RECORD,
        LaplaceNoise(5.0),
        "samples Gaussian noise only, and this is laplace noise",
    ),
    "correlated laplace": (
        PrivacyLoss(delta=1e-5),
        whole(noise_correlation=BANDED, clip_order=1),
        RECORD,
        LaplaceNoise(5.0),
        "is accounted for with Gaussian noise only, and this is laplace noise",
    ),
    "history under laplace": (
        HistoryUniformCap(),
        run(clip_order=1),
        REPLACED,
        LaplaceNoise(5.0),
        "HistoryUniformCap accounts for Gaussian noise only",
    ),
    "slices under laplace": (
        SlicedWasserstein(),
        told(),
        LAWS,
        LaplaceNoise(5.0),
        "SlicedWasserstein accounts for Gaussian noise, and this is laplace noise",
    ),
    "slices without noise": (
        SlicedWasserstein(),
        told(),
        LAWS,
        GaussianNoise(0.0),
        "must have a positive scale along every direction",
    ),
    "shapes under laplace": (
        ShapedWasserstein(),
        told(),
        LAWS,
        LaplaceNoise(5.0),
        "measures moves in the norm of Gaussian noise",
    ),
    "shapes of another dimension": (
        ShapedWasserstein(),
        told(),
        LAWS,
        GaussianNoise([1.0, 1.0]),
        "'noise' must have 1 coordinates, as the release 'query' has. Got 2",
    ),
    "prior variance under laplace": (
        AttributeGaussian(use_prior_variance=True),
        told(),
        LawsScenario([(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0))]),
        LaplaceNoise(5.0),
        "must be GaussianNoise, which adds to a Gaussian output",
    ),
    "information under laplace": (
        PAC(),
        query(n=8),
        SUBSET,
        LaplaceNoise(5.0),
        "is accounted for under Gaussian noise, and this is laplace noise",
    ),
    "information of another dimension": (
        PAC(),
        query(n=8),
        SUBSET,
        CorrelatedGaussianNoise(1.0, covariance=np.eye(2)),
        "'noise' must have 1 coordinates, as the release has. Got 2",
    ),
    "quilts without noise": (
        MarkovQuilt(),
        query(n=6),
        CHAIN,
        LaplaceNoise(0.0),
        "must have positive scales: without noise on every coordinate no quilt helps",
    ),
    "iterates under laplace": (
        IterationAmplification(),
        run(),
        RECORD,
        LaplaceNoise(5.0),
        "all that the run makes may be seen of it",
    ),
    # -- records
    "a group of bins": (
        PrivacyLoss(delta=1e-5),
        run(sampling="balls_in_bins"),
        GROUP,
        GAUSSIAN,
        "for a group of 3 records under sampling='balls_in_bins'",
    ),
    "a group in bins": (
        RandomAllocation(delta=1e-4),
        run(sampling="balls_in_bins"),
        GROUP,
        GAUSSIAN,
        "for a group of 3 records under sampling='balls_in_bins'",
    ),
    "a group that comes and goes": (
        PrivacyLoss(delta=1e-5),
        run(sampling="fixed_size"),
        COME_AND_GO,
        GAUSSIAN,
        "the number of records changes when a group of 3 comes or goes",
    ),
    "history of records that come": (
        HistoryUniformCap(),
        run(sampling="fixed_size"),
        RECORD,
        GAUSSIAN,
        "the number of records changes when one comes or goes",
    ),
    "an order and an event": (
        RenyiDP(alpha=4.0, delta=None),
        whole(),
        UNSURE,
        GAUSSIAN,
        "a promise at an order has no room for the rest",
    ),
    "samples and an event": (
        SampledAllocation(delta=1e-3, n_samples=100, random_state=0),
        run(sampling="balls_in_bins"),
        UNSURE,
        GAUSSIAN,
        "no estimate is made of the rest|for a group of",
    ),
    "replaced in bins": (
        RandomAllocation(delta=1e-4, method="conditional"),
        run(sampling="balls_in_bins"),
        REPLACED,
        GAUSSIAN,
        "method='conditional' has no bound of a record that is replaced",
    ),
    # -- schemes
    "no bins": (
        RandomAllocation(delta=1e-4),
        run(),
        RECORD,
        GAUSSIAN,
        "records draw no bins under sampling='poisson'",
    ),
    "samples of fresh bins": (
        SampledAllocation(delta=1e-3, n_samples=100, random_state=0),
        run(sampling="fresh_bins", n_steps=20),
        RECORD,
        GAUSSIAN,
        "records draw their bins anew in each epoch",
    ),
    "history of another scheme": (
        HistoryUniformCap(),
        run(sampling="balls_in_bins"),
        REPLACED,
        GAUSSIAN,
        "is new to it; use sampling='poisson' or 'fixed_size'",
    ),
    "moments of an epoch": (
        HistoryUniformCap(subsampling="log_moment"),
        run(sampling="shuffled_epochs", n_steps=10),
        REPLACED,
        GAUSSIAN,
        "the batches of one shuffled epoch depend on each other",
    ),
    "slices of another dimension": (
        HistoryUniformCap(subsampling="mean_square", slices=((1.0, 0.0), (0.0, 1.0))),
        run(dim=3),
        REPLACED,
        GAUSSIAN,
        "'slices' has directions of 2 coordinates, and its steps have 3",
    ),
    # -- noise that is correlated, or elsewhere
    "correlated steps of a history": (
        HistoryUniformCap(),
        run(noise_correlation=BANDED),
        REPLACED,
        GAUSSIAN,
        "its noise is correlated across steps, and independent noise",
    ),
    "correlated steps of a belief": (
        OverlapAmplification(delta=1e-3),
        whole(noise_correlation=BANDED),
        BELIEF,
        GAUSSIAN,
        "its noise is correlated across steps, and independent noise",
    ),
    "correlated steps of batches": (
        PrivacyLoss(delta=1e-5),
        run(noise_correlation=BANDED),
        RECORD,
        GAUSSIAN,
        "under sampling='poisson' independent noise is what is accounted for",
    ),
    "correlated steps of quilts": (
        MarkovQuilt(alpha=4.0, noise="gaussian"),
        whole(n_records=6, noise_correlation=BANDED),
        CHAIN,
        GAUSSIAN,
        "its noise is correlated across steps",
    ),
    "exact bins of correlated steps": (
        RandomAllocation(delta=1e-4, method="exact"),
        run(sampling="balls_in_bins", noise_correlation=BANDED),
        RECORD,
        GAUSSIAN,
        "what is exact is known of independent noise only",
    ),
    "updates": (
        PrivacyLoss(delta=1e-5),
        run(noise_position="update"),
        RECORD,
        GAUSSIAN,
        "its noise is added to the updates, in the unit of the parameters",
    ),
    "updates of unknown length": (
        HistoryUniformCap(),
        run(noise_position="update"),
        REPLACED,
        GAUSSIAN,
        "how far a gradient moves these is not known",
    ),
    "a declared length of gradients": (
        HistoryUniformCap(lipschitz=0.1),
        run(),
        REPLACED,
        GAUSSIAN,
        "no step size makes a sum move less; use lipschitz=None",
    ),
    "quilts of batches at a delta": (
        MarkovQuilt(delta=1e-3, noise="gaussian"),
        run(n_records=6),
        CHAIN,
        GAUSSIAN,
        "near sets of every size would have to be composed at every order",
    ),
    "quilts of other batches": (
        MarkovQuilt(alpha=4.0, noise="gaussian"),
        run(n_records=6, sampling="fixed_size"),
        CHAIN,
        GAUSSIAN,
        "near sets of every size would have to be composed under sampling='fixed_size'",
    ),
    "a run that is seen": (
        IterationAmplification(),
        run(),
        RECORD,
        GAUSSIAN,
        "all that the run makes may be seen of it",
    ),
    # -- choices
    "choices without a pure promise": (
        GroupPrivacy(delta=1e-3),
        CHOICES,
        RECORD,
        GumbelNoise(5.0),
        "accounts for the choices of the release .* by pure promises alone",
    ),
    "choices of who knows how many": (
        GroupPrivacy(alpha=math.inf, noise="laplace"),
        CHOICES,
        UNSURE,
        GumbelNoise(5.0),
        "only where the number of records that differ is certain",
    ),
    # -- what is not known
    "more than the published bound leaves": (
        ApproximateWasserstein(0.01, alpha=4.0, event_delta=0.2, bound="paper"),
        told(),
        LAWS,
        None,
        "bound='paper' adds .* so a budget of epsilon=0.01 cannot be reached",
    ),
    "a correction of a sample": (
        PAC(correction="donsker_varadhan", confidence=0.9),
        query(n=8),
        SUBSET,
        GAUSSIAN,
        "correction='donsker_varadhan' needs the covariance of the release",
    ),
    "no bound in the norm": (
        MarkovQuilt(),
        told(n=6),
        CHAIN,
        LaplaceNoise(5.0),
        "MarkovQuilt|Nothing bounds how far one record moves",
    ),
    "no ball": (
        ResidualPAC(certificate="sampled_prior"),
        query(n=8),
        SUBSET,
        GAUSSIAN,
        "needs a ball that holds every output of the release 'query'",
    ),
    "sinkhorn of normals": (
        SinkhornWasserstein(),
        told(),
        LawsScenario([(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0))]),
        GAUSSIAN,
        "needs the points and masses of the output's distributions",
    ),
    "nothing that moves has a shape": (
        ShapedWasserstein(),
        told(),
        LawsScenario([(PointMass(0.0), PointMass(0.0))]),
        None,
        "does not move the release 'query' at all under the scenario",
    ),
    "nothing that moves has slices": (
        SlicedWasserstein(),
        told(),
        LawsScenario([(PointMass(0.0), PointMass(0.0))]),
        None,
        "do not move the release 'query' along any slice",
    ),
    "no length of slices": (
        SlicedWasserstein(),
        told(dim=None),
        LAWS,
        GAUSSIAN,
        "needs to know how long the release 'query' is|'laws' describes an output",
    ),
}


def answer(accountant, release, scenario, noise):
    if noise is None:
        return accountant.calibrate(release, scenario, random_state=0)
    return accountant.certify(noise, release, scenario)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_by_its_reason(name):
    accountant, release, scenario, noise, words = CASES[name]
    with pytest.raises(ValueError, match=words):
        answer(accountant, release, scenario, noise)


#: Refused of the release itself, whatever the noise.
_OF_NOISE = ("noise", "scales", "under", "dimension", "norm", "correlated laplace")


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
@pytest.mark.parametrize(
    "name", [name for name in CASES if not any(w in name for w in _OF_NOISE)]
)
def test_no_noise_is_chosen_either(name):
    accountant, release, scenario, _, words = CASES[name]
    with pytest.raises(ValueError, match=words):
        accountant.calibrate(release, scenario, random_state=0)


BAD = {
    "event above delta": (
        ApproximateWasserstein(delta=1e-3, event_delta=2e-3),
        "'event_delta' .0.002. must not exceed 'delta' .0.001., of which it is a part",
    ),
    "published bound with delta": (
        ApproximateWasserstein(delta=1e-3, event_delta=1e-4, bound="paper"),
        "bound='paper' goes with a Rényi order 'alpha'",
    ),
    "all of delta": (
        ApproximateWasserstein(delta=1e-3, event_delta=1e-3, noise="gaussian"),
        "'event_delta' takes all of 'delta', which leaves a pure promise",
    ),
    "shaped event": (
        ShapedWasserstein(delta=1e-3, event_delta=1e-3),
        "'event_delta' .0.001. must be below 'delta'",
    ),
    "no floor": (ShapedWasserstein(floor=0.0), "leaves directions without noise"),
    "degenerate of a number": (
        ShapedWasserstein(allow_degenerate=1),
        "'allow_degenerate' must be True or False",
    ),
    "order of means": (DistributionAwareWasserstein(q=0.5), "'q' must be in the range"),
    "order of means without end": (
        DistributionAwareWasserstein(q=math.inf),
        "'q' must be in the range",
    ),
    "means of the worst": (
        DistributionAwareWasserstein(alpha=math.inf, noise="laplace"),
        "a mean of infinite order is the worst case",
    ),
    "gaussian moves by their mean": (
        Kantorovich(noise="gaussian"),
        "'noise' must have a finite pure cost",
    ),
    "variance of a number": (
        AttributeGaussian(use_prior_variance=1),
        "'use_prior_variance' must be True or False",
    ),
    "pure steps": (RenyiDP(alpha=math.inf, delta=None), "'alpha' must be finite"),
    "no promise": (
        RenyiDP(alpha=None, delta=None),
        "One of the parameters 'delta' and 'alpha' is needed",
    ),
    "two promises": (
        RenyiDP(alpha=4.0, delta=1e-5),
        "'alpha' and 'delta' name two kinds of promise",
    ),
    "two promises of quilts": (
        MarkovQuilt(alpha=4.0, delta=1e-5),
        "'alpha' and 'delta' name two kinds of promise",
    ),
    "pure history": (HistoryUniformCap(alpha=math.inf), "'alpha' must be finite"),
    "weights of no slices": (
        HistoryUniformCap(slice_weights=(1.0,)),
        "'slice_weights' weighs the 'slices', of which there are none",
    ),
    "slices of every direction": (
        HistoryUniformCap(slices=((1.0,),), slice_weights=(1.0,)),
        "'slices' goes with subsampling='mean_square'",
    ),
    "pure iterates": (
        IterationAmplification(alpha=math.inf),
        "'alpha' must be finite: Gaussian noise keeps no pure promise",
    ),
    "fallback below epsilon": (
        OverlapAmplification(2.0, delta=1e-3, max_fallback=1.0),
        "'max_fallback' must be at least 'epsilon'",
    ),
    "pure slices": (SlicedWasserstein(alpha=math.inf), "'alpha' must be finite"),
    "exact averages": (
        SlicedWasserstein(aggregation="average", method="exact"),
        "'method' is of the joint promise",
    ),
    "pairs of a number": (
        SlicedWasserstein(per_pair=1),
        "'per_pair' must be True or False",
    ),
    "support of a number": (
        SlicedWasserstein(support=1.0),
        "'support' must be a Box or a Ball",
    ),
    "abstain of a number": (
        SampledAllocation(delta=1e-3, abstain=1),
        "'abstain' must be True or False",
    ),
    "confidence of algorithm 1": (
        PAC(method="algorithm1", confidence=0.9),
        "'confidence' cannot be kept by method='algorithm1'",
    ),
    "confidence of what is certain": (
        PAC(method="waterfill", confidence=0.9),
        "'confidence' goes with method='confidence'",
    ),
    "composable of a number": (
        Best(composable=1),
        "'composable' must be True or False",
    ),
    "no candidates": (
        Best(candidates=[]),
        "'candidates' must be a list of accountants",
    ),
    "best of the best": (
        Best(candidates=[Best()]),
        "'candidates' must hold accountants other than Best",
    ),
    "candidates by class": (
        Best(candidates=[GroupPrivacy]),
        "'candidates' must hold accountants other than Best",
    ),
    "beta of a noise": (
        GroupPrivacy(noise=GAUSSIAN, beta=1.5),
        "a noise that is given as one has its own shape",
    ),
    "beta of another family": (
        GroupPrivacy(noise="laplace", beta=1.5),
        "'beta' goes with noise='generalized_gaussian'. Got noise='laplace'",
    ),
    "no beta": (
        GroupPrivacy(noise="generalized_gaussian"),
        "'beta', the shape of generalised Gaussian noise, is needed",
    ),
    "scales of a noise": (
        GeneralWasserstein(noise=GaussianNoise([1.0, 2.0])),
        "'noise' must have a single scale, which calibration replaces",
    ),
    "pure gaussian": (
        GroupPrivacy(alpha=math.inf, noise="gaussian"),
        "'alpha' is infinite .a pure promise., which gaussian noise cannot keep",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_promise_that_is_none_is_refused(name):
    accountant, words = BAD[name]
    with pytest.raises((ValueError, TypeError), match=words):
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
