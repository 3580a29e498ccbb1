"""Promises that are worth little are warned of, once, before anything is spent."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skpuffer.accountants import PAC, GroupPrivacy, PrivacyLoss
from skpuffer.base import _SAID, announce_weakness
from skpuffer.exceptions import PrivacyWarning, WeakPromiseWarning
from skpuffer.linear_model import PrivateHuberRegressor, PrivateLogisticRegression
from skpuffer.noise import GaussianNoise
from skpuffer.preprocessing import RowNormClipper
from skpuffer.privacy import Certificate
from skpuffer.summary import PrivateMean

X = np.random.default_rng(0).uniform(-1, 1, size=(60, 2))
Y = (X[:, 0] > 0).astype(int)


def said(run):
    """Texts of the warnings of weak promises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(w.message) for w in caught if w.category is WeakPromiseWarning]


def mean(epsilon, delta):
    return PrivateMean(accountant=PrivacyLoss(epsilon, delta), bounds=(-1, 1))


@pytest.mark.parametrize(
    "model, words",
    [
        (mean(1.0, 1 / 60), ["delta=0.0166667 .*records \\(60\\)"]),
        (mean(1.0, 1 / 61), []),
        (mean(10.0, 1e-5), []),
        (mean(10.1, 1e-5), ["epsilon=10.1 is above 10"]),
        (mean(1000.0, 0.5), ["delta=0.5", "epsilon=1000"]),
        (
            PrivateMean(accountant=GroupPrivacy(20.0, 4), bounds=(-1, 1)),
            ["epsilon=20"],
        ),
        (PrivateLogisticRegression(classes=range(51)), ["51 declared.*target_bounds"]),
        (PrivateLogisticRegression(classes=np.arange(51.0)), ["51 declared classes"]),
        (PrivateLogisticRegression(classes=range(50)), []),
        (PrivateLogisticRegression(classes=np.arange(60) + 0.5), []),
        (PrivateLogisticRegression(classes=[f"c{i}" for i in range(60)]), []),
        # labels that are found are no declaration
        (PrivateLogisticRegression(), []),
        (PrivateHuberRegressor(target_bounds=(0, 60)), []),
    ],
)
def test_weak_promises_warn(model, words):
    names = getattr(model, "classes", None)
    y = Y if names is None else np.resize(np.asarray(names), 60)
    found = said(lambda: clone(model).fit(X, y))
    assert len(found) == len(words)
    for text, word in zip(found, words, strict=True):
        assert text.startswith(type(model).__name__)
        with pytest.raises(WeakPromiseWarning, match=word):
            raise WeakPromiseWarning(text)
    classes = {} if names is not None else {"classes": [0, 1]}
    if not isinstance(model, PrivateLogisticRegression):
        classes = {}
    # before anything is spent, so in a preview too
    assert said(lambda: model.preview(60, n_features=2, **classes)) == found


def test_a_mutual_information_is_no_epsilon():
    certificate = Certificate(
        notion="mutual_information", mutual_information=50.0, n_records=5
    )
    assert said(lambda: announce_weakness(PrivateMean(), certificate)) == []
    assert PAC is not None


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_a_search_warns_once(in_pipeline, n_jobs):
    model, name = PrivateLogisticRegression(classes=[0, 1]), "accountant__epsilon"
    if in_pipeline:
        model = make_pipeline(RowNormClipper(), model)
        name = f"privatelogisticregression__{name}"
    search = GridSearchCV(model, {name: [20.0, 50.0]}, cv=3, n_jobs=n_jobs)
    # of two processes each speaks for itself, to its own output
    assert len(said(lambda: search.fit(X, Y))) == 1
    # another search is another decision
    assert len(said(lambda: search.fit(X, Y))) == 1


def test_fits_apart_warn_each():
    model = mean(20.0, 1e-5)
    assert [len(said(lambda: model.fit(X))) for _ in range(2)] == [1, 1]


def test_as_an_error_it_stops_every_fit_before_a_ledger_hears(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(GaussianNoise, "sample", refuse)
    told = []

    class Ledger:
        def setup(self, estimator, context):
            pass

        teardown = setup

        def on_fit_task_begin(self, estimator, context, *, metadata=None, **kwargs):
            told.append(context.task_name)

        on_fit_task_end = on_fit_task_begin

    model = PrivateLogisticRegression(
        accountant=PrivacyLoss(20.0, 1e-5), classes=[0, 1]
    ).set_callbacks(Ledger())
    search = GridSearchCV(
        model, {"accountant__epsilon": [20.0, 50.0]}, cv=3, refit=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        warnings.simplefilter("error", WeakPromiseWarning)
        with pytest.raises(ValueError, match="All the 6 fits failed"):
            search.fit(X, Y)
    assert "release" not in told


def test_what_was_said_is_not_kept_for_ever():
    certificate = Certificate(notion="approximate_dp", epsilon=20.0, n_records=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fit in range(1100):
            announce_weakness(PrivateMean(), certificate, fit)
    assert len(_SAID) <= 1000
