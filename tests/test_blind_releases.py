"""With constants in place of exact values, no fit depends on the rows.

What leaves a fit passes through few doors: the sum that noise is added to, the clipped
sums of a training run, and the scores of a choice. Behind closed doors two tables must
leave the same estimator, in every attribute, in its pickle and in its `repr`. A fit
that reads an exact value beside the door differs.
"""

import pickle
import sys
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skpuffer.accountants import OverlapAmplification, PrivacyLoss
from skpuffer.additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from skpuffer.cluster import PrivateKMeans
from skpuffer.compose import PrivatePipeline, PublicPreprocessing
from skpuffer.covariance import PrivateCovariance
from skpuffer.decomposition import PrivatePCA
from skpuffer.ensemble import PATEClassifier
from skpuffer.kernel.run import add_noise
from skpuffer.linear_model import (
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateRidge,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.naive_bayes import PrivateCategoricalNB, PrivateGaussianNB
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.preprocessing import PublicMinMaxScaler
from skpuffer.releases import SelectionRelease
from skpuffer.scenarios import AttributeScenario, BoundedOdds
from skpuffer.schema import Schema
from skpuffer.summary import (
    PrivateBounds,
    PrivateCDF,
    PrivateMean,
    PrivateQuantile,
    PrivateStandardScaler,
    PrivateSummary,
)
from skpuffer.svm import PrivateLinearSVC
from skpuffer.synthesis import PrivateTableSynthesizer
from skpuffer.testing import all_estimators
from skpuffer.testing._canaries import reachable
from skpuffer.testing._estimator_checks import _set
from skpuffer.training import Training, _engine

pytestmark = [
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

N = 80


def shut_add_noise(exact, noise, rng, *, n_records, integer=False):
    """Stand for noise on exact values: numbers by the shape and the scale alone."""
    shape = np.shape(exact)
    spread = 3 * np.asarray(noise.std(), dtype=float) + 1.0
    drawn = spread * np.random.default_rng(len(shape)).normal(1.0, 1.0, shape)
    return np.rint(drawn) if integer else drawn


def shut_choose(self, X, noise, rng):
    return np.linspace(0.1, 0.2, self.dim)


@contextmanager
def shut_clipped_sums(gradients, release, n_jobs):
    yield lambda parameters, index, clipping: np.zeros(gradients.dim)


@pytest.fixture
def shut(monkeypatch):
    """Shut all doors, whichever modules have them by name."""
    doors = 0
    for name, module in list(sys.modules.items()):
        if name.startswith("skpuffer.") and vars(module).get("add_noise") is add_noise:
            monkeypatch.setattr(module, "add_noise", shut_add_noise)
            doors += 1
    assert doors > 3
    monkeypatch.setattr(_engine, "_clipped_sums", shut_clipped_sums)
    monkeypatch.setattr(SelectionRelease, "choose", shut_choose)


def numbers(seed, n=N):
    """Rows of numbers, and a target of two classes that both occur."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    return X, y


COLUMNS = {"age": (0, 100), "sex": ["f", "m"], "size": ["S", "M", "L"]}
SCHEMA = Schema({**COLUMNS, "sick": [False, True]}, target="sick")
PLAIN = Schema(COLUMNS)
AMOUNTS = Schema({**COLUMNS, "pay": (0, 10)}, target="pay")


def table(seed):
    """A table of texts, numbers and gaps, its truth values and its amounts."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(0, 100, N),
            "sex": rng.choice(["f", "m", None], N),
            "size": rng.choice(["S", "M", "L", "?"], N),
        }
    )
    sick = (frame["age"] > rng.uniform(0, 100, N)).to_numpy()
    return frame, sick, rng.uniform(0, 10, N)


def classes_of(seed):
    return table(seed)[:2]


def amounts_of(seed):
    frame, _, pay = table(seed)
    return frame, pay


def rows_of(seed):
    return table(seed)[:1]


UNTOLD = Schema(COLUMNS, size="private")
DECLARED = Schema(COLUMNS, size=90)


def of_any_size(seed):
    """Tables of other numbers of records."""
    frame = table(seed)[0]
    return (frame if seed else frame.iloc[: N // 2],)


def classes_of_any_size(seed):
    _, sick = classes_of(seed)
    return of_any_size(seed)[0], sick[: None if seed else N // 2]


def amounts_of_any_size(seed):
    _, pay = amounts_of(seed)
    return of_any_size(seed)[0], pay[: None if seed else N // 2]


STATISTICS = ["count", "size", "mean", "std", "median", "histogram"]

#: Of which the number of records is not known either.
SIZED = {
    f"{name}, {schema.size}": (clone(model).set_params(schema=schema), of_any_size)
    for schema in (UNTOLD, DECLARED)
    for name, model in {
        "mean": PrivateMean(),
        "scaler": PrivateStandardScaler(),
        "covariance": PrivateCovariance(),
        "distributions": PrivateCDF(),
        "quantile": PrivateQuantile(),
        "bounds": PrivateBounds(),
        "synthesizer": PrivateTableSynthesizer(),
        "summary": PrivateSummary(statistics=STATISTICS),
        "sums by groups": PrivateSummary(statistics=["count", "sum"], by="sex"),
    }.items()
}
SIZED |= {
    f"{name}, {size}": (
        model(schema=Schema({**COLUMNS, target: held}, target=target, size=size)),
        made,
    )
    for size in ("private", 90)
    for name, model, target, held, made in (
        (
            "naive Bayes",
            PrivateCategoricalNB,
            "sick",
            [False, True],
            classes_of_any_size,
        ),
        ("least squares", PrivateLinearRegression, "pay", (0, 10), amounts_of_any_size),
    )
}
NUMBER = PrivateSummary(statistics="count", columns=["sex"], schema=UNTOLD)
SIZED["number of records"] = NUMBER, of_any_size

BELIEF = {
    "scenario": AttributeScenario("sex", level="record", prior=BoundedOdds(2.0)),
    "accountant": OverlapAmplification(epsilon=0.5),
}

#: Estimators with options, and how their tables are made from a seed.
VARIANTS = {
    "additive": (PrivateAdditiveClassifier(schema=SCHEMA), classes_of),
    "additive, pairs": (
        PrivateAdditiveClassifier(schema=SCHEMA, interactions="all"),
        classes_of,
    ),
    "additive, amounts": (PrivateAdditiveRegressor(schema=AMOUNTS), amounts_of),
    "naive Bayes": (PrivateCategoricalNB(schema=SCHEMA), classes_of),
    "Gaussian naive Bayes": (PrivateGaussianNB(schema=SCHEMA), classes_of),
    "synthesizer": (PrivateTableSynthesizer(schema=PLAIN), rows_of),
    "clusters": (PrivateKMeans(3, schema=PLAIN), rows_of),
    "components": (PrivatePCA(2, schema=PLAIN), rows_of),
    "scaler": (PrivateStandardScaler(schema=PLAIN), rows_of),
    "quantiles": (
        PrivateQuantile(quantiles=[0.1, 0.5, 0.9], bounds=(-1, 1)),
        lambda seed: numbers(seed)[:1],
    ),
    "distribution": (
        PrivateCDF(bounds=(-1, 1)),
        lambda seed: numbers(seed)[:1],
    ),
    "mean under a belief": (PrivateMean(**BELIEF, schema=PLAIN), rows_of),
    "logistic under a belief": (
        PrivateLogisticRegression(**BELIEF, schema=SCHEMA),
        classes_of,
    ),
    "logistic, output": (
        PrivateLogisticRegression(schema=SCHEMA, solver="output"),
        classes_of,
    ),
    "support vectors": (PrivateLinearSVC(schema=SCHEMA), classes_of),
    "perceptron": (PrivateMLPClassifier(schema=SCHEMA, max_iter=3), classes_of),
    "SGD": (
        PrivateSGDClassifier(schema=SCHEMA, training=Training(n_steps=5)),
        classes_of,
    ),
    "SGD, averaged": (
        PrivateSGDClassifier(
            training=Training(n_steps=5, average=True), classes=[0, 1]
        ),
        numbers,
    ),
    "SGD, amounts": (
        PrivateSGDRegressor(schema=AMOUNTS, training=Training(n_steps=5)),
        amounts_of,
    ),
    "Huber": (PrivateHuberRegressor(schema=AMOUNTS), amounts_of),
    "ridge, moments": (PrivateRidge(schema=AMOUNTS, solver="moments"), amounts_of),
    "least squares": (PrivateLinearRegression(schema=AMOUNTS), amounts_of),
    "ridge, gradients": (PrivateRidge(schema=AMOUNTS, solver="gradient"), amounts_of),
    "summary by groups": (
        PrivateSummary(
            statistics=["count", "mean", "std", "median", "histogram"],
            schema=PLAIN,
            by="sex",
        ),
        rows_of,
    ),
    "student": (
        PATEClassifier(
            LogisticRegression(),
            n_teachers=4,
            unlabeled=numbers(7)[0],
            classes=[0, 1],
            n_queries=20,
        ),
        numbers,
    ),
    "public preprocessing": (
        PublicPreprocessing(
            PublicMinMaxScaler(bounds=(-1, 1)),
            PrivateLogisticRegression(classes=[0, 1]),
        ),
        numbers,
    ),
    "pipeline": (
        PrivatePipeline(
            [
                ("scale", PrivateStandardScaler(bounds=(-1, 1))),
                ("model", PrivateLogisticRegression(classes=[0, 1])),
            ],
            accountant=PrivacyLoss(1.0),
        ),
        numbers,
    ),
}

VARIANTS |= SIZED

CASES = VARIANTS | {
    entry.name: (entry.instance, numbers)
    for entry in all_estimators()
    if any(name.endswith("accountant") for name in entry.instance.get_params())
}


def released(estimator, arguments, epsilon=50.0):
    """All that somebody who is given a fitted estimator has, by name."""
    fresh = _set(estimator, random_state=0)
    known = fresh.get_params()
    if known.get("accountant", 0) is None:
        fresh.set_params(accountant=PrivacyLoss(epsilon, 1e-5))
    elif epsilon < 1 and "accountant__epsilon" in known:
        fresh.set_params(accountant__epsilon=epsilon)
    fresh.fit(*arguments)
    for name in getattr(fresh, "_curator_only", ()):
        vars(fresh).pop(name, None)
    return {
        "repr": repr(fresh),
        "pickle": pickle.dumps(fresh),
        **reachable(vars(fresh)),
    }


def test_nothing_but_what_is_noisy_depends_on_the_rows(shut, case_name):
    estimator, make = CASES[case_name]
    # little noise, so that what is exact decides more; and so much that nothing is
    # learnt, for which some have another way
    for epsilon in (50.0,) if case_name in VARIANTS else (50.0, 0.01):
        one, other = (released(estimator, make(seed), epsilon) for seed in (0, 1))
        assert one.keys() == other.keys()
        differing = [
            name
            for name, value in one.items()
            if not np.array_equal(value, other[name], equal_nan=is_float(value))
        ]
        assert not differing


def is_float(value):
    return getattr(np.asarray(value).dtype, "kind", "") == "f"


def pytest_generate_tests(metafunc):
    if "case_name" in metafunc.fixturenames:
        metafunc.parametrize("case_name", CASES)


@pytest.mark.parametrize(
    "name", ["additive", "clusters", "SGD", "quantiles", "pipeline"]
)
def test_with_open_doors_the_rows_show(name):
    """The control: the same two tables leave different estimators."""
    estimator, make = CASES[name]
    one, other = (released(estimator, make(seed)) for seed in (0, 1))
    assert one["pickle"] != other["pickle"]


@pytest.mark.parametrize("name", SIZED)
def test_a_public_number_of_records_shows(shut, name):
    """The control: behind closed doors too, it is in the certificate."""
    estimator, make = SIZED[name]
    known = estimator.schema.to_dict() | {"size": "public"}
    told = clone(estimator).set_params(schema=Schema.from_dict(known))
    if name == "number of records":
        told.set_params(statistics=["rate"])
    one, other = (released(told, make(seed)) for seed in (0, 1))
    assert one["pickle"] != other["pickle"]
