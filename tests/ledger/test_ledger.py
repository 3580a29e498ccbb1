"""The ledger hears of every release, from wherever it is made, before its noise."""

import copy
import gc
import pickle
import threading
import warnings
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer

from skpuffer.accountants import PrivacyLoss
from skpuffer.compose import OutputPerturbation
from skpuffer.exceptions import (
    BudgetExceededError,
    LedgerRefusal,
    NotComposableError,
    PrivacyLeakWarning,
)
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.model_selection import PrivateGridSearchCV
from skpuffer.preprocessing import RowNormClipper
from skpuffer.privacy import compose
from skpuffer.summary import PrivateMean
from tests.refused import refused, warned

pytestmark = pytest.mark.filterwarnings(
    "ignore::skpuffer.exceptions.PrivacyWarning",
    "ignore:The estimator .* does not support callbacks",
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (60, 2))
Y = np.tile([0, 1], 30)
CEILING = {"approximate_dp": (100.0, 1e-5)}


def mean(epsilon=1.0):
    return PrivateMean(accountant=PrivacyLoss(epsilon, 1e-5), bounds=(-1, 1))


def model():
    return PrivateLogisticRegression(accountant=PrivacyLoss(1.0, 1e-5), max_iter=3)


def search(**settings):
    grid = {"accountant__epsilon": [0.5, 1.0, 2.0]}
    return GridSearchCV(model(), grid, cv=5, **settings)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "budget.db", CEILING)


def test_a_fit_is_entered_before_its_noise(ledger, monkeypatch):
    seen = []
    execute = PrivateMean._execute

    def spied(self, *arguments):
        seen.append(len(ledger.report()))
        return execute(self, *arguments)

    monkeypatch.setattr(PrivateMean, "_execute", spied)
    fitted = mean().set_callbacks(ledger).fit(X)
    assert seen == [1]
    (row,) = ledger.report().itertuples()
    assert (row.estimator, row.epsilon, row.delta) == ("PrivateMean", 1.0, 1e-5)
    assert row.release == fitted.certificate_.release
    assert ledger.total() == fitted.certificate_


def test_in_a_block_every_fit_counts_and_after_it_none(ledger):
    with ledger:
        mean().fit(X)
        thread = threading.Thread(target=lambda: mean().fit(X))
        thread.start()
        thread.join()
        # told of by two ways, and paid for once
        mean().set_callbacks(ledger).fit(X)
    mean().fit(X)
    assert len(ledger.report()) == 3


def test_blocks_may_be_nested_and_ledgers_side_by_side(ledger, tmp_path):
    other = PrivacyLedger(tmp_path / "other.db", CEILING)
    with ledger, ledger, other:
        mean().fit(X)
    with ledger:
        mean().fit(X)
    assert [len(one.report()) for one in (ledger, other)] == [2, 1]


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("way", ["callback", "block"])
def test_every_fit_of_a_search_is_entered(ledger, n_jobs, way):
    chosen = search(n_jobs=n_jobs)
    if way == "callback":
        chosen.set_callbacks(ledger).fit(X, Y)
    else:
        with ledger:
            chosen.fit(X, Y)
    report = ledger.report()
    assert len(report) == 16
    assert (report["estimator"] == "PrivateLogisticRegression in GridSearchCV").sum()
    counts = report.iloc[:-1]["epsilon"].value_counts()
    assert counts.reindex([0.5, 1.0, 2.0]).sum() == 15 and counts.min() >= 5


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_ceiling_of_four_stops_the_fifth_from_any_process(tmp_path, n_jobs):
    certificate = clone(model()).fit(X[:48], Y[:48]).certificate_
    four = compose([certificate], counts=[4], delta=1e-5).epsilon
    ledger = PrivacyLedger(tmp_path / "four.db", {"approximate_dp": (four, 1e-5)})
    # by default an error becomes a score
    looking = GridSearchCV(model(), {"max_iter": [3, 3, 3]}, cv=5, n_jobs=n_jobs)
    with refused(BudgetExceededError, "ledger.ceiling_exceeded"):
        looking.set_callbacks(ledger).fit(X, Y)
    assert not hasattr(looking, "best_estimator_")
    assert len(ledger.report()) == 4
    assert ledger.total().epsilon <= four * (1 + 1e-6)


def test_no_error_score_hides_a_refusal(tmp_path):
    ledger = PrivacyLedger(tmp_path / "small.db", {"approximate_dp": (0.1, 1e-5)})
    with pytest.raises(BudgetExceededError):
        cross_val_score(model().set_callbacks(ledger), X, Y, error_score=0.0)
    with ledger, pytest.raises(BudgetExceededError):
        cross_val_score(make_pipeline(RowNormClipper(), model()), X, Y, cv=3)
    # nor does anything else that catches whatever is an Exception
    assert not issubclass(LedgerRefusal, Exception)
    assert not len(ledger.report())


def test_a_refused_estimator_is_not_fitted(tmp_path):
    ledger = PrivacyLedger(tmp_path / "small.db", {"approximate_dp": (1.0, 1e-5)})
    fitted = mean().set_callbacks(ledger).fit(X)
    with pytest.raises(BudgetExceededError):
        fitted.fit(X)
    assert not hasattr(fitted, "certificate_") and not hasattr(fitted, "mean_")


def several(n, **parameters):
    """Classifiers side by side, in an ensemble that passes no callbacks on."""
    members = [(f"model{i}", model()) for i in range(n)]
    return VotingClassifier(members, **parameters)


def test_where_callbacks_are_not_passed_on_a_fit_is_heard_of(ledger):
    pipeline = make_pipeline(RowNormClipper(), OneVsRestClassifier(model()))
    pipeline.set_callbacks(ledger).fit(X, Y)
    assert len(ledger.report()) == 1
    with ledger:
        several(3, n_jobs=2).fit(X, Y)
    assert len(ledger.report()) == 4
    # when all is done nobody listens
    model().fit(X, Y)
    assert len(ledger.report()) == 4


def test_members_that_an_ensemble_seeds_are_refused(ledger):
    # scikit-learn draws a seed of 31 bits for each member
    with ledger, refused(LedgerRefusal, "ledger.release_noise_from_seed"):
        BaggingClassifier(model(), 2, bootstrap=False).fit(X, Y)
    assert len(ledger.report()) == 0


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_where_callbacks_are_not_passed_on_copies_elsewhere_are_heard_of(
    ledger, backend
):
    voting = several(2, n_jobs=2)
    pipeline = make_pipeline(RowNormClipper(), voting)
    with joblib.parallel_config(backend):
        pipeline.set_callbacks(ledger).fit(X, Y)
    assert len(ledger.report()) == 2
    # neither they nor their like take anything along when all is done
    voting.estimators_[0].fit(X, Y)
    clone(voting).fit(X, Y)
    assert not any(hasattr(one, "_skl_callbacks") for _, one in voting.estimators)
    assert len(ledger.report()) == 2


def test_within_a_search_over_processes_too(ledger):
    grid = {"votingclassifier__voting": ["hard", "soft"]}
    pipeline = make_pipeline(RowNormClipper(), several(2))
    found = GridSearchCV(pipeline, grid, cv=2, n_jobs=2, refit=False)
    found.set_callbacks(ledger).fit(X, Y)
    assert len(ledger.report()) == 2 * 2 * 2


def test_in_a_block_private_searches_of_other_processes_are_heard_of(ledger):
    private = PrivateGridSearchCV(
        PrivateLogisticRegression(max_iter=3, classes=[0, 1]),
        {"C": [1.0, 2.0]},
        accountant=PrivacyLoss(1.0, 1e-5),
    )
    with ledger:
        cross_val_score(private, X, Y, cv=2, n_jobs=2, error_score="raise")
    assert len(ledger.report()) == 2


@pytest.mark.filterwarnings("default::skpuffer.exceptions.PrivacyWarning")
def test_what_no_certificate_covers_is_warned_of(ledger):
    steps = make_pipeline(MinMaxScaler(), model())
    with (
        warned(PrivacyLeakWarning, "ledger.estimator_part_not_covered"),
        warned(PrivacyLeakWarning, "pipeline.unnoised_step_before"),
        refused(NotComposableError, "ledger.release_is_estimate"),
    ):
        steps.set_callbacks(ledger).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        make_pipeline(Normalizer(), model()).set_callbacks(ledger).fit(X, Y)


def test_a_callback_that_fails_leaves_nobody_listening(ledger):
    with refused(ValueError, "bounds.low_not_below_high", name="bounds"):
        PrivateMean(bounds=(1, -1)).set_callbacks(ledger).fit(X)
    mean().fit(X)
    assert not len(ledger.report())


def test_what_is_fitted_within_a_release_is_none(ledger):
    with warnings.catch_warnings(), ledger:
        warnings.simplefilter("ignore")
        outer = OutputPerturbation(
            mean(), "mean_", accountant=PrivacyLoss(1.0, 1e-5), sensitivity=2.0
        )
        outer.fit(X)
    (row,) = ledger.report().itertuples()
    assert row.estimator == "OutputPerturbation"


def test_ledgers_are_shared_by_copies(ledger):
    fitted = mean().set_callbacks(ledger)
    assert copy.deepcopy(ledger) is copy.copy(ledger) is ledger
    assert pickle.loads(pickle.dumps(ledger)) is ledger
    for twin in (
        clone(fitted),
        copy.deepcopy(fitted),
        pickle.loads(pickle.dumps(fitted)),
    ):
        twin.fit(X)
    assert len(ledger.report()) == 3


def _fit_elsewhere(estimator):
    return estimator.fit(X)


def test_a_ledger_in_memory_is_of_one_process():
    ledger = PrivacyLedger(":memory:", CEILING)
    joblib.Parallel(2, backend="threading")(
        joblib.delayed(_fit_elsewhere)(mean().set_callbacks(ledger)) for _ in range(4)
    )
    assert len(ledger.report()) == 4
    with refused(LedgerRefusal, "ledger.release_cannot_be_paid"):
        search(n_jobs=2).set_callbacks(ledger).fit(X, Y)
    # what is only looked at may go anywhere
    fitted = mean().set_callbacks(ledger).fit(X)
    assert pickle.loads(pickle.dumps(fitted)).certificate_ == fitted.certificate_
    assert len(ledger.report()) == 5


def test_only_releases_with_certificates_are_entered(ledger):
    for name, metadata in (("release", None), ("release", {}), ("fit", {})):
        task = SimpleNamespace(task_name=name, parent=None)
        ledger.on_fit_task_begin(mean(), task, metadata=metadata)
    assert not len(ledger.report())


def test_an_estimate_is_refused(ledger):
    estimated = mean().fit(X).certificate_.as_estimate("for the test")
    with refused(NotComposableError, "ledger.release_is_estimate"):
        ledger.enter(estimated)


def test_what_is_entered_by_hand(ledger):
    certificate = mean().fit(X).certificate_
    ledger.enter(certificate, count=3, estimator="a table in print")
    assert set(ledger.report()["estimator"]) == {"a table in print"}
    assert ledger.total() == compose([certificate], counts=[3], delta=1e-5)
    with refused(TypeError, "ledger.entry_not_certificate"):
        ledger.enter(1.0)
    with refused(ValueError, "parameter.count_too_small", name="count"):
        ledger.enter(certificate, count=0)


def test_how_it_shows_itself(ledger, capsys):
    from skpuffer.ledger.__main__ import main

    assert "No release" in str(ledger)
    with ledger:
        mean().fit(X)
    shown = ledger._repr_html_()
    assert "<table" in shown and "PrivateMean" in shown
    assert main([ledger.path]) == 0
    assert capsys.readouterr().out.strip() == str(ledger).strip()
    assert main([ledger.path, "--csv"]) == 0
    assert capsys.readouterr().out.count("\n") == 3
    assert main([ledger.path + ".no"]) == 1
    assert "There is no ledger" in capsys.readouterr().err
    certificate = mean().fit(X).certificate_
    ledger.enter(certificate, estimator="<script>")
    assert "<script>" not in ledger._repr_html_()
    totals = ledger.totals()
    assert totals.loc[0, "spent"] == ledger.total().epsilon
    assert totals.loc[0, "releases"] == 2


def test_a_ledger_that_is_forgotten_closes_its_file(tmp_path):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ResourceWarning)
        PrivacyLedger(tmp_path / "forgotten.db", {"pure_dp": 1.0})
        gc.collect()
    assert not said
