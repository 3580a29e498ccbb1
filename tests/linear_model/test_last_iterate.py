"""Models of whose training nothing but the last iterate leaves."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import scale

from skpuffer.accountants import Best, IterationAmplification, PrivacyLoss
from skpuffer.exceptions import UnsupportedError
from skpuffer.linear_model import (
    PrivateLogisticRegression,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.privacy import Notion
from skpuffer.scenarios import AttributeScenario, BoundedOdds, RecordScenario
from skpuffer.svm import PrivateLinearSVC
from skpuffer.training import Training
from tests.refused import refused, says

pytestmark = [
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.NoGainWarning"),
]

LAST = IterationAmplification(1.0, delta=1e-5)
NORM = 10.0


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


MODELS = {
    "logistic": PrivateLogisticRegression(data_norm=NORM),
    "penalised": PrivateLogisticRegression(data_norm=NORM, C=0.1),
    "in a ball": PrivateLogisticRegression(
        data_norm=NORM, training=Training(radius=2.0)
    ),
    "without an intercept": PrivateLogisticRegression(
        data_norm=NORM, fit_intercept=False
    ),
    "decaying": PrivateSGDClassifier(data_norm=NORM, loss="log_loss"),
    "huber hinge": PrivateLinearSVC(data_norm=NORM, solver="gradient"),
    "dealt": PrivateLogisticRegression(
        data_norm=NORM, training=Training(batch_size=50)
    ),
    "fixed size": PrivateLogisticRegression(
        data_norm=NORM, training=Training(batch_size=200, sampling="fixed_size")
    ),
    "asked for": PrivateLogisticRegression(
        data_norm=NORM, training=Training(momentum=0, average=0)
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_classifiers(cancer, name):
    X, y = cancer
    model = clone(MODELS[name]).set_params(accountant=LAST, random_state=0).fit(X, y)
    release = model.release_
    assert release.published == "result"
    assert release.optimiser.momentum == 0 == release.optimiser.average
    assert release.optimiser.penalise_all
    longest = LAST.longest_step(release)
    assert release.optimiser.learning_rate <= longest
    assert model.certificate_.accountant.startswith("IterationAmplification")
    assert says(model.certificate_.assumptions, "assume.last_iterate_alone_leaves")
    # what the certificate is of is what ran: from the release alone, again
    scenario = RecordScenario()
    noise = LAST.calibrate(release, scenario).noise
    again = LAST.certify(noise, release, scenario)
    assert again.epsilon == pytest.approx(model.certificate_.epsilon)
    if name != "fixed size":  # whose every batch counts as with the record in it
        assert model.score(X, y) > 0.85


def test_dealt_is_what_smaller_batches_are(cancer):
    model = clone(MODELS["dealt"]).set_params(accountant=LAST, random_state=0)
    assert model.fit(*cancer).release_.sampling.name == "shuffled_epochs"
    # unless another way is asked for, which says why it will not do
    model.set_params(training__sampling="poisson", training__learning_rate=6.0)
    with refused(UnsupportedError, "iteration.remedy_other_sampling"):
        model.fit(*cancer)


def test_poisson_batches_take_steps_that_are_short_enough(cancer):
    model = clone(MODELS["dealt"]).set_params(
        accountant=LAST, training__sampling="poisson"
    )
    model.set_params(random_state=0).fit(*cancer)
    assert model.release_.optimiser.learning_rate <= 6.4 * 50 / 569


def test_many_classes_are_not_clipped():
    X, y = load_iris(return_X_y=True)
    X = scale(X)
    model = PrivateLogisticRegression(accountant=LAST, data_norm=4.0, random_state=0)
    model.fit(X, y)
    assert model.release_.clip_norm >= np.sqrt(2 * 1.25)
    assert model.release_.optimiser.learning_rate <= 4 / 1.25
    assert model.certificate_.epsilon == pytest.approx(1.0)
    model.set_params(training__clip_norm=0.5)
    with refused(UnsupportedError, "gradient.several_scores_scaled_down"):
        model.fit(X, y)


@pytest.mark.parametrize("loss", ["squared_error", "huber"])
def test_regressors(loss):
    X, y = load_diabetes(return_X_y=True)
    model = PrivateSGDRegressor(
        accountant=IterationAmplification(4.0, delta=1e-5),
        loss=loss,
        data_norm=4.0,
        target_bounds=(25, 346),
        random_state=0,
    ).fit(scale(X), y)
    assert model.score(scale(X), y) > 0.2
    assert model.release_.optimiser.learning_rate <= 1.6


@pytest.mark.parametrize(
    "model, remedy",
    [
        (PrivateLogisticRegression(training=Training(momentum=0.5)), "momentum=0"),
        (PrivateLogisticRegression(training=Training(average=0.2)), "average=0"),
        (
            PrivateLogisticRegression(training=Training(learning_rate=50.0)),
            "learning_rate=6.399",
        ),
        (PrivateSGDClassifier(loss="hinge"), "'huber_hinge'"),
        (PrivateLinearSVC(loss="hinge", solver="gradient"), "'huber_hinge'"),
        (PrivateMLPClassifier(), "use a linear model"),
        (PrivateMLPClassifier(clip_by="layer"), "use a linear model"),
    ],
)
def test_what_is_refused_before_anything_is_fitted(cancer, model, remedy):
    model = clone(model).set_params(accountant=LAST)
    with pytest.raises(UnsupportedError) as caught:
        model.fit(*cancer)
    assert remedy in str(caught.value)
    assert not hasattr(model, "coef_") and not hasattr(model, "certificate_")


def test_small_moves_are_all_that_is_paid_for(cancer):
    """A secret that moves a record a little, in a ball of the rule's choice."""
    X, y = cancer
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    target = pd.Series(y, name="y")
    near = table[np.linalg.norm(X, axis=1) < 0.9 * NORM]
    rows = near.assign(y=y[near.index]).iloc[:40]
    prior = pd.concat([rows.assign(s=0), rows.assign(s=1, x0=rows["x0"] + 0.2)])
    table, target = table.drop(rows.index), target.drop(rows.index)
    scenario = AttributeScenario(
        "s", level="record", prior=prior, prior_as="law", target="y"
    )
    model = clone(MODELS["logistic"]).set_params(
        accountant=LAST, scenario=scenario, random_state=0
    )
    model.fit(table, target)
    certificate = model.certificate_
    assert certificate.notion is Notion.APPROXIMATE_PUFFERFISH
    assert certificate.gain > 3
    assert model.release_.optimiser.radius is not None
    assert model.score(table, target) > 0.9


def test_beliefs_about_a_record(cancer):
    """A coded table: of its records it is known which they may be."""
    X, y = cancer
    table = pd.DataFrame(X[:, :3], columns=["a", "b", "c"]).assign(
        s=(X[:, 3] > 0).astype(int)
    )
    scenario = AttributeScenario("s", level="record", prior=BoundedOdds(4.0))
    model = PrivateLogisticRegression(
        scenario, LAST, data_norm=4.0, random_state=0, solver="gradient"
    )
    model.fit(table, y)
    assert model.certificate_.epsilon == pytest.approx(1.0)


def test_best_of_several_runs(cancer):
    """It takes a long run that forgets where that is asked for, else the others."""
    X, y = cancer
    best = Best(1.0, delta=1e-5)
    model = PrivateLogisticRegression(
        accountant=best,
        C=0.05,
        data_norm=NORM,
        fit_intercept=False,
        training=Training(n_steps=400, learning_rate=6.0),
        random_state=0,
    )
    model.fit(X, y)
    assert str(model.certificate_.choice).startswith("PrivacyLoss")
    assert model.release_.record is None
    model.set_params(training__momentum=0, training__average=0).fit(X, y)
    assert str(model.certificate_.choice).startswith("IterationAmplification")
    # an intercept that is not penalised forgets nothing
    model.set_params(fit_intercept=True).fit(X, y)
    assert not str(model.certificate_.choice).startswith("IterationAmplification")
    # but in a ball it is
    model.set_params(training__radius=0.5, C=None, training__n_steps=5000).fit(X, y)
    assert str(model.certificate_.choice).startswith("IterationAmplification")


def test_long_runs_cost_no_more(cancer):
    """With a penalty on every parameter the noise levels off."""
    X, y = cancer
    scales = {}
    for accountant in (LAST, PrivacyLoss(1.0, 1e-5)):
        for n_steps in (100, 400):
            model = PrivateLogisticRegression(
                accountant=accountant,
                data_norm=NORM,
                C=0.05,
                training=Training(
                    n_steps=n_steps,
                    learning_rate=6.0,
                    momentum=0,
                    average=0,
                    clip_norm=0.3,
                ),
                random_state=0,
            ).fit(X, y)
            name = type(accountant).__name__, n_steps
            found = accountant.calibrate(model.release_, RecordScenario())
            scales[name] = found.noise.scale
    last = [scales["IterationAmplification", n] for n in (100, 400)]
    every = [scales["PrivacyLoss", n] for n in (100, 400)]
    assert last[1] == pytest.approx(last[0], rel=1e-3)
    assert every[1] == pytest.approx(2 * every[0])
    assert every[1] > 5 * last[1]
