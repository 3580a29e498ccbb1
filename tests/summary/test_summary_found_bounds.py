"""Bounds that are released first, within the fit that uses them."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skpuffer.accountants import GroupPrivacy, PrivacyLoss
from skpuffer.additive import PrivateAdditiveRegressor
from skpuffer.cluster import PrivateKMeans
from skpuffer.compose import PrivatePipeline
from skpuffer.covariance import PrivateCovariance
from skpuffer.decomposition import PrivatePCA
from skpuffer.exceptions import (
    BudgetExceededError,
    CompositionError,
    UnsupportedError,
)
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import PrivateLinearRegression
from skpuffer.model_selection import PrivateGridSearchCV
from skpuffer.naive_bayes import PrivateCategoricalNB, PrivateGaussianNB
from skpuffer.privacy import compose
from skpuffer.scenarios import DependenceScenario, RecordScenario
from skpuffer.schema import Number, Schema
from skpuffer.summary import (
    PrivateBounds,
    PrivateCDF,
    PrivateMean,
    PrivateQuantile,
    PrivateStandardScaler,
    PrivateSummary,
    _found_bounds,
)
from tests.engines import lazy_frame
from tests.refused import refused

RNG = np.random.default_rng(0)
N = 3000
TABLE = pd.DataFrame(
    {
        "id": np.arange(N) // 3,
        "g": RNG.choice(["a", "b"], N),
        "x": RNG.exponential(1000, N),
        "z": RNG.normal(5, 1, N),
    }
)
X = TABLE[["x", "z"]]
Y = (TABLE.x > 700).astype(float)
ESTIMATORS = [
    (PrivateMean, {}),
    (PrivateStandardScaler, {}),
    (PrivateQuantile, {}),
    (PrivateQuantile, {"resolution": [20.0, 0.5]}),
    (PrivateCDF, {"bins": 20}),
    (PrivateSummary, {"statistics": ["mean", "std", "median"]}),
    (PrivateCovariance, {}),
    (PrivateLinearRegression, {"target_bounds": (0, 1)}),
    (PrivateGaussianNB, {"classes": [0, 1]}),
    (PrivateCategoricalNB, {"classes": [0, 1]}),
    (PrivatePCA, {}),
    (PrivateKMeans, {}),
    (PrivateAdditiveRegressor, {"target_bounds": (0, 1), "n_rounds": 3}),
]


@pytest.mark.parametrize("kind, parameters", ESTIMATORS)
def test_bounds_and_what_is_within_them_share_one_budget(kind, parameters):
    model = kind(bounds=PrivateBounds(), **parameters).fit(X, Y)
    found = model.certificate_
    assert found.n_releases == 2 and found.certified
    assert 0.99 < found.epsilon <= 1 and found.delta == 1e-5
    low, high = model.found_bounds_["x"]
    assert low < 700 < high <= 2**16
    # the parameter stays what it was
    assert isinstance(model.bounds, PrivateBounds)
    assert model.accountant_.epsilon == 1
    if kind not in (PrivateGaussianNB, PrivateCategoricalNB):
        planned = clone(model).preview(N, n_features=2).certificate
        assert planned.epsilon == pytest.approx(found.epsilon, rel=1e-3)


def test_a_mean_errs_little_more_than_with_the_right_bounds():
    low, high = TABLE.x.min(), TABLE.x.max()
    wide = (-500 * (high - low), 500 * (high - low))

    def errors(bounds):
        model = PrivateMean(bounds=bounds)
        return [model.fit(X[["x"]]).mean_[0] - TABLE.x.mean() for _ in range(7)]

    found, right = errors(PrivateBounds(bounds=wide)), errors((low, high))
    # of 200 draws it is 2.7; without bounds it is 1,000
    assert np.median(np.abs(found)) < 40 * np.median(np.abs(right))


def test_statistics_are_of_names_and_of_columns_that_are_no_numbers():
    model = PrivateSummary(
        accountant=PrivacyLoss(50.0),
        statistics=["mean", "count"],
        by="g",
        columns=["x", "z"],
        categories={"g": ["a", "b"]},
        bounds=PrivateBounds(),
    ).fit(TABLE)
    expected = TABLE.groupby("g")[["x", "z"]].mean()
    for name in "xz":
        means = model.result_[(name, "mean")]
        np.testing.assert_allclose(means, expected[name], rtol=0.05)
    # of others nothing is paid for
    assert set(model.found_bounds_) == {"x", "z"}


def test_a_code_book_is_narrowed():
    book = Schema({"x": Number(-1e6, 1e6, missing=True), "z": (-1e6, 1e6)})
    table = X.assign(x=X.x.where(RNG.random(N) < 0.8))
    model = PrivateMean(accountant=PrivacyLoss(20.0), schema=book)
    model.set_params(bounds=PrivateBounds()).fit(table)
    assert model.mean_[0] == pytest.approx(table.x.mean(), rel=0.05)
    assert model.found_bounds_["x"][1] <= 2**16
    assert model.schema is book


@pytest.mark.parametrize("weight", ["row", "unit"])
def test_units_and_weights_go_with_it(weight):
    people = RecordScenario(unit="id", max_rows=2)
    model = PrivateMean(
        people,
        PrivacyLoss(40.0),
        bounds=PrivateBounds(),
        weight=weight,
        weight_bounds=(0, 2),
    )
    model.fit(TABLE[["id", "x", "z"]], sample_weight=np.ones(N))
    np.testing.assert_allclose(model.mean_, X.mean(), rtol=0.2)
    assert set(model.found_bounds_) == {"x", "z"}


@pytest.mark.parametrize("accountant", [PrivacyLoss(2.0), GroupPrivacy(2.0)])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_parts_add_up_to_what_is_certified(relation, accountant, monkeypatch):
    """By what each part released, at noise that promises no more than it says."""
    held = []
    taken = _found_bounds._take_over
    monkeypatch.setattr(
        _found_bounds, "_take_over", lambda *parts: held.append(parts) or taken(*parts)
    )
    scenario = RecordScenario(relation=relation)
    model = PrivateMean(scenario, accountant, bounds=PrivateBounds()).fit(X)
    _, within, finder = held[0]
    whole = model.certificate_
    at = {"alpha": whole.alpha} if whole.delta in (None, 0) else {"delta": whole.delta}
    parts = [finder.certificate_, within.certificate_]
    assert compose(parts, **at).epsilon == pytest.approx(whole.epsilon)
    assert whole.epsilon <= 2.0
    # with 0.7 of the noise the same releases cost more than the budget
    less = [
        part.accountant_.certify(
            part.noise_.with_scale(0.7 * np.asarray(part.noise_.scale)),
            release,
            scenario,
        )
        for part, release in zip(
            (finder, within), _releases(scenario, held), strict=True
        )
    ]
    assert compose(less, **at).epsilon > 2.0 * 1.2


def _releases(scenario, held):
    """What both parts released."""
    _, within, finder = held[0]
    found = []
    for part in (finder, within):
        told = clone(part)
        told.scenario = scenario
        found.append(told._plan_unread(X[:4], None, n_records=N).release)
    return found


def test_no_bounds_change_what_is_promised():
    """Of any bounds that may be found, noise is in proportion to them."""
    plans = [
        PrivateStandardScaler(None, PrivacyLoss(0.5, noise="laplace"), bounds=bounds)
        ._plan_unread(X[:4], None, n_records=N)
        .certificate
        for bounds in [(-1, 1), {"x": (0, 2**14), "z": (-4, 0.5)}, (-(2**-20), 2**40)]
    ]
    curves = [plan.to_dict()["curve"] for plan in plans]
    for one, other in itertools.combinations(curves, 2):
        assert one != other and _found_bounds._same(one, other)
    less = PrivateStandardScaler(
        None, PrivacyLoss(0.51, noise="laplace"), bounds=(0, 1)
    )
    other = less._plan_unread(X[:4], None, n_records=N).certificate
    assert not _found_bounds._same(curves[0], other.to_dict()["curve"])


def test_a_promise_that_depends_on_the_bounds_is_stopped():
    class Liar(PrivateMean):
        def _release(self, task):
            found = super()._release(task)
            more = 1.0 if found.context.bounds.high[0] == 1000 else 1.1
            return replace(found, sensitivity=found.sensitivity.times(more))

    # the noise would hide it, but it is not the one that was planned
    model = Liar(accountant=GroupPrivacy(1.0, alpha=np.inf))
    with refused(UnsupportedError, "bounds.finder_changes_promise"):
        model.set_params(bounds=PrivateBounds()).fit(X)
    assert not hasattr(model, "certificate_")


def test_ledgers_hear_of_both(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", {"approximate_dp": (1.5, 1e-5)})
    model = PrivateMean(bounds=PrivateBounds()).set_callbacks(ledger).fit(X)
    assert ledger.total().epsilon == pytest.approx(model.certificate_.epsilon)
    with pytest.raises(BudgetExceededError):
        model.fit(X)


def test_bounds_may_have_a_budget_of_their_own():
    own = PrivateBounds(accountant=PrivacyLoss(0.1, 1e-6))
    model = PrivateMean(bounds=own).fit(X)
    assert 0.99 < model.certificate_.epsilon <= 1
    # nothing is left of it
    with refused(ValueError, "budget.no_part_small_enough"):
        own = PrivateBounds(accountant=PrivacyLoss(2.0, 1e-6))
        PrivateMean(bounds=own).fit(X)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_one_seed_for_both_is_no_certificate():
    model = PrivateMean(bounds=PrivateBounds(), random_state=0).fit(X)
    assert model.certificate_.seeded and not model.certificate_.certified


def test_a_step_of_a_pipeline_may_find_its_bounds():
    half = GroupPrivacy(0.5, alpha=np.inf)
    pipeline = PrivatePipeline(
        [
            ("scaler", PrivateStandardScaler(None, half, bounds=PrivateBounds())),
            (
                "model",
                PrivateLinearRegression(
                    None, half, bounds=(-5, 5), target_bounds=(0, 1)
                ),
            ),
        ]
    ).fit(X, Y)
    assert pipeline.certificate_.n_releases == 3
    assert pipeline.certificate_.epsilon <= 1.0 * (1 + 1e-6)


@pytest.mark.parametrize(
    "fit, code",
    [
        (
            lambda: PrivateMean(bounds=PrivateBounds()).fit(
                lazy_frame("polars", X[:9])
            ),
            "bounds.finder_of_lazy",
        ),
        (
            lambda: PrivateGridSearchCV(
                PrivateLinearRegression(bounds=PrivateBounds(), target_bounds=(0, 1)),
                {"fit_intercept": [True, False]},
                accountant=PrivacyLoss(1.0),
            ).fit(X, Y),
            "bounds.finder_of_part",
        ),
        (
            lambda: PrivateSummary(
                by="g", statistics=["mean"], columns=["x"], bounds=PrivateBounds()
            ).fit(TABLE),
            "bounds.finder_of_part",
        ),
    ],
)
def test_what_finds_no_bounds_says_so(fit, code):
    with refused(UnsupportedError, code):
        fit()


def test_promises_that_do_not_add_up_find_no_bounds():
    with pytest.raises(CompositionError):
        PrivateMean(DependenceScenario(0.1), bounds=PrivateBounds()).fit(X)


def test_only_bounds_are_found():
    for wrong in (PrivateMean(), PrivateBounds):
        with pytest.raises(ValueError, match="bounds"):
            PrivateMean(bounds=wrong).fit(X)
    with pytest.raises(ValueError, match="bounds"):
        PrivateBounds(bounds=PrivateBounds()).fit(X)


def test_bounds_of_a_mixed_table_keep_its_names_and_texts():
    table = TABLE.assign(yes=TABLE.x > 700)
    model = PrivateBounds(accountant=PrivacyLoss(20.0)).fit(table)
    low, high = model.bounds_
    assert np.isnan(low).tolist() == [False, True, False, False, True]
    mapped = model.transform(table)
    assert mapped.columns.tolist() == table.columns.tolist()
    pd.testing.assert_frame_equal(mapped[["g", "yes"]], table[["g", "yes"]])
    assert np.abs(mapped[["id", "x", "z"]].to_numpy()).max() <= 1
    assert model.to_schema().names == ("id", "x", "z")
