"""Nothing is released by the word of a search: what leaves is proved from its noise."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from skpuffer.accountants import (
    PAC,
    Accountant,
    Best,
    GeneralWasserstein,
    GroupPrivacy,
    PrivacyLoss,
    RenyiDP,
    ResidualPAC,
    SampledAllocation,
)
from skpuffer.compose import OutputPerturbation, PrivatePipeline
from skpuffer.ensemble import PATEAggregator, PATEClassifier
from skpuffer.exceptions import PrivacyWarning, UncertifiedError, stated
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import PrivateSGDClassifier
from skpuffer.releases import VoteRelease
from skpuffer.scenarios import AttributeScenario, RecordScenario, SubsampleScenario
from skpuffer.summary import PrivateMean, PrivateStandardScaler
from skpuffer.testing import all_estimators
from skpuffer.training import Training
from tests.refused import refused

from .accountants.contract import lying

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 3))
Y = np.arange(60) % 2
PUBLIC = pd.DataFrame({"group": np.arange(200) % 2, "x": RNG.uniform(-1, 1, 200)})
TABLE = pd.DataFrame({"group": Y, "x": X[:, 0]})
POOL = RNG.normal(size=(8, 1))

ATTRIBUTE = AttributeScenario("group", level="record", prior=PUBLIC, prior_as="law")
SUBSETS = SubsampleScenario(POOL, 4, prior="enumerated")


@pytest.fixture(autouse=True)
def silent():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        yield


def times(share):
    """A search that finds so much of the noise that is needed."""

    def lie(made):
        scale = share * np.asarray(made.noise.scale)
        return replace(made, noise=made.noise.with_scale(scale))

    return lie


PRIVATE = [
    entry
    for entry in all_estimators()
    if "random_state" in entry.instance.get_params(deep=True)
]


@pytest.mark.parametrize("entry", PRIVATE, ids=lambda entry: entry.name)
def test_no_estimator_believes_a_search(entry, tmp_path, monkeypatch):
    model = clone(entry.instance)
    before = set(vars(model))
    arguments = (X, Y) if get_tags(model).target_tags.required else (X,)
    found = Accountant.calibrate

    def half(self, *asked):
        return times(0.5)(found(self, *asked))

    monkeypatch.setattr(Accountant, "calibrate", half)
    with PrivacyLedger(tmp_path / "a.db", {"approximate_dp": (1e3, 1e-2)}) as ledger:
        with refused(UncertifiedError, "certificate.noise_costs_above_parameter"):
            model.fit(*arguments)
        assert len(ledger.report()) == 0
    assert set(vars(model)) <= before


class Heard:
    """A listener that counts what is released."""

    max_propagation_depth = None

    def __init__(self):
        self.certificates = []

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context, *, metadata=None):
        if context.task_name == "release":
            self.certificates.append(metadata["certificate"])

    def on_fit_task_end(self, estimator, context, *, metadata=None): ...


def mean(accountant=None, **options):
    return PrivateMean(bounds=(-1, 1), accountant=accountant, **options)


def trained(accountant, **options):
    return PrivateSGDClassifier(
        accountant=accountant, training=Training(batch_size=10, **options)
    )


def of_subsets(accountant):
    return OutputPerturbation(
        StandardScaler(), query=["mean_"], scenario=SUBSETS, accountant=accountant
    )


# an estimator by an accountant, the accountant, and what is fitted
DOORS = {
    "mean": (mean, PrivacyLoss(), (X,)),
    "order": (mean, GroupPrivacy(alpha=4.0), (X,)),
    "pipeline": (
        lambda accountant: PrivatePipeline(
            [("scale", PrivateStandardScaler(bounds=(-1, 1))), ("mean", mean())],
            accountant=accountant,
        ),
        PrivacyLoss(1.0, 1e-6),
        (X,),
    ),
    "training": (trained, RenyiDP(), (X, Y)),
    "sampled": (
        lambda accountant: trained(accountant, sampling="balls_in_bins"),
        SampledAllocation(1.0, 1e-3, n_samples=2000),
        (X, Y),
    ),
    "votes": (
        lambda accountant: PATEClassifier(
            LogisticRegression(), n_teachers=3, accountant=accountant
        ),
        PrivacyLoss(),
        (X, Y),
    ),
    "distributions": (
        lambda accountant: mean(accountant, scenario=ATTRIBUTE),
        GeneralWasserstein(alpha=4.0),
        (TABLE,),
    ),
    "best": (
        lambda accountant: mean(accountant, scenario=ATTRIBUTE),
        Best(alpha=4.0),
        (TABLE,),
    ),
    "information": (of_subsets, PAC(0.1), (POOL[:4],)),
    "draws": (of_subsets, ResidualPAC(0.1, n_draws=4000), (POOL[:4],)),
}


#: Doors whose certificates rest on draws, which are made anew each time.
SIMULATED = {"sampled", "information", "draws"}


@pytest.mark.parametrize("door", DOORS)
def test_lies_are_caught_at_every_door_and_the_truth_passes(door):
    make, accountant, arguments = DOORS[door]
    name = "budget" if hasattr(accountant, "budget") else "epsilon"
    budget = getattr(accountant, name)
    heard = Heard()
    # what a cache may keep: found for another budget
    kept = []
    more = clone(accountant).set_params(**{name: 2 * budget})
    make(lying(more, lambda made: kept.append(made) or made)).fit(*arguments)
    for lie in (times(0.01), times(0.999), lambda made: kept[-1]):
        model = make(lying(accountant, lie)).set_callbacks(heard)
        with refused(
            UncertifiedError,
            (
                "certificate.noise_costs_above_parameter",
                "release.noise_dimension_mismatch",
            ),
        ):
            model.fit(*arguments)
        assert not hasattr(model, "certificate_")
    assert not heard.certificates
    model = make(lying(accountant, lambda made: made)).set_callbacks(heard)
    told = model.fit(*arguments).certificate_
    spent = told.epsilon if name == "epsilon" else told.mutual_information
    assert heard.certificates and 0.9 * budget <= spent <= budget * (1 + 1e-6)


@pytest.mark.parametrize("door", sorted(DOORS.keys() - SIMULATED))
def test_nothing_that_a_search_says_of_its_noise_is_stated(door):
    make, accountant, arguments = DOORS[door]

    def lie(made):
        told = made.certificate
        size = None if told.sensitivity is None else told.sensitivity / 3
        said = {"sensitivity": size, "assumptions": ("all is well",), "curve": None}
        return replace(made, certificate=replace(told, epsilon=0.1, **said))

    lied, true = (
        make(lying(accountant, each)).fit(*arguments).certificate_
        for each in (lie, lambda made: made)
    )
    for name in ("notion", "assumptions", "sensitivity", "norm", "delta", "source"):
        assert getattr(lied, name) == getattr(true, name)
    # room for the grid is made anew, and differs by less than the noise is known to
    assert lied.epsilon == pytest.approx(true.epsilon, rel=1e-6)


def test_votes_that_were_counted_elsewhere_are_answered_with_proved_noise():
    heard, votes = Heard(), {"n_teachers": 50, "n_classes": 3, "n_queries": 5}
    short = lying(PrivacyLoss(), times(0.5))
    lied = PATEAggregator(accountant=short, **votes).set_callbacks(heard)
    with refused(UncertifiedError, "certificate.noise_costs_above_parameter"):
        lied.aggregate([[50, 0, 0]])
    assert not heard.certificates and not hasattr(lied, "noise_")
    true = PATEAggregator(accountant=PrivacyLoss(), **votes).calibrate()
    release = VoteRelease(n_records=50, **votes)
    again = PrivacyLoss().certify(true.noise_, release, RecordScenario())
    assert true.certificate_.epsilon == 1.0
    assert again.epsilon == pytest.approx(1.0, rel=1e-6)


def test_an_accountant_needs_only_its_two_public_methods():
    """What a subclass writes over is what is asked, also where it asks for more."""

    class Twice(PrivacyLoss):
        def calibrate(self, release, scenario, random_state=None):
            return times(2.0)(super().calibrate(release, scenario, random_state))

        def certify(self, noise, release, scenario):
            return super().certify(noise, release, scenario).assuming("twice")

    plain, twice = (mean(each).fit(X) for each in (PrivacyLoss(), Twice()))
    assert twice.noise_.scale == pytest.approx(2 * np.asarray(plain.noise_.scale))
    assert (
        twice.certificate_.epsilon < 0.6
        and stated("twice") in twice.certificate_.assumptions
    )


def test_best_asks_its_own_candidates_whoever_is_said_to_have_found_the_noise():
    class Generous(GeneralWasserstein):
        def certify(self, noise, release, scenario):
            told = super().certify(noise, release, scenario)
            return replace(told, epsilon=min(told.epsilon, self.epsilon))

    make, accountant, arguments = DOORS["best"]
    for other in Generous(alpha=4.0), GeneralWasserstein(9.0, alpha=4.0), None:

        def fitted(share, other=other):
            def lie(made):
                return replace(times(share)(made), accountant=other)

            return make(lying(accountant, lie)).fit(*arguments)

        with pytest.raises(UncertifiedError, match="Nothing is released"):
            fitted(0.99)
        assert fitted(1.0).certificate_.epsilon == accountant.epsilon


def twice(name):
    """A certificate that states twice a number."""
    return lambda told: replace(told, **{name: 2 * getattr(told, name)})


@pytest.mark.parametrize(
    "kind, name", [(PrivacyLoss, "epsilon"), (PrivacyLoss, "delta"), (RenyiDP, "delta")]
)
def test_a_proof_above_any_number_of_the_budget_is_refused(kind, name):
    class Above(kind):
        def certify(self, noise, release, scenario):
            return twice(name)(super().certify(noise, release, scenario))

    with pytest.raises(UncertifiedError, match=f"{name}="):
        mean(Above(**{"epsilon": 1.0, "delta": 1e-5})).fit(X)


@pytest.mark.parametrize("kind", [PrivacyLoss, GroupPrivacy, GeneralWasserstein])
@pytest.mark.parametrize("noise", ["auto", "gaussian", "laplace"])
def test_facts_are_of_the_norm_of_the_noise(kind, noise):
    """A choice between families asks for the same fact in two norms."""
    released = []

    class Asked(kind):
        def calibrate(self, release, scenario, random_state=None):
            released.append(release)
            return super().calibrate(release, scenario, random_state)

    # so small a delta that Laplace noise is the least
    accountant = kind(1.0, delta=1e-9, noise=noise)
    shift = np.repeat(PUBLIC.group.to_numpy()[:, None], 4, axis=1) / 2
    public = pd.DataFrame(shift - 0.25, columns=list("abcd")).assign(group=PUBLIC.group)
    scenario = AttributeScenario("group", level="record", prior=public, prior_as="law")
    table = pd.DataFrame(RNG.uniform(-1, 1, (60, 4)), columns=list("abcd"))
    asked = Asked(**accountant.get_params(deep=False))
    model = mean(asked, scenario=scenario).fit(table.assign(group=Y))
    again = accountant.certify(model.noise_, released[0], scenario)
    # a little less than the budget, for what rounding takes
    assert 0.98 < again.epsilon <= 1 + 1e-6
    assert model.certificate_.epsilon == 1.0
