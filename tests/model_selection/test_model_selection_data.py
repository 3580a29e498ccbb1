"""Searches on real tables: Heart, Adult and digits."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skpuffer.accountants import OverlapAmplification, PrivacyLoss
from skpuffer.datasets import fetch_adult, load_heart
from skpuffer.exceptions import ScenarioError
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import PrivateLogisticRegression, PrivateSGDClassifier
from skpuffer.model_selection import PrivateGridSearchCV, PrivateRandomizedSearchCV
from skpuffer.naive_bayes import PrivateGaussianNB
from skpuffer.scenarios import AttributeScenario, BoundedOdds, MarkovChainScenario
from skpuffer.training import Training
from tests.refused import refused


def test_digits_by_noisy_steps():
    X, y = load_digits(return_X_y=True)
    X_fit, X_test, y_fit, y_test = train_test_split(X / 16, y, random_state=0)
    grid = {"alpha": [0.0, 100.0]}
    search = PrivateGridSearchCV(
        PrivateSGDClassifier(
            classes=range(10),
            max_iter=10,
            training=Training(batch_size=256),
            data_norm=4.0,
        ),
        grid,
        accountant=PrivacyLoss(6.0, 1e-4),
        trials="poisson",
        n_trials=16,  # one of the two is never drawn once in 3000 searches
    ).fit(X_fit, y_fit)
    assert search.certificate_.epsilon == 6.0
    # a penalty that leaves nothing of the weights is found not to do
    assert search.best_params_ == {"alpha": 0.0}
    assert search.score(X_test, y_test) > 0.6
    assert abs(search.best_score_ - search.score(X_test, y_test)) < 0.15


def test_heart_by_its_code_book():
    heart = load_heart()
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (6.0, 1e-4)})
    with ledger:
        search = PrivateRandomizedSearchCV(
            PrivateLogisticRegression(schema=heart.schema),
            {"C": loguniform(1e-4, 1e2)},
            n_iter=6,
            accountant=PrivacyLoss(5.0, 1e-4),
        ).fit(heart.data, heart.target)
    assert len(ledger.report()) == 1
    assert ledger.total().epsilon == pytest.approx(5.0, rel=3e-3)
    assert 0.4 < search.score(heart.data, heart.target) <= 1


def test_models_of_other_kinds():
    heart = load_heart()
    numbers = heart.data[["age", "trestbps", "chol", "thalach"]]
    search = PrivateGridSearchCV(
        PrivateGaussianNB(
            bounds=([20, 80, 100, 60], [90, 220, 600, 220]),
            classes=sorted(heart.target.unique()),
        ),
        {"priors": [None, np.full(heart.target.nunique(), 1 / heart.target.nunique())]},
        accountant=PrivacyLoss(5.0, 1e-4),
        scoring="neg_brier_score",
    ).fit(numbers, heart.target)
    assert -2 < search.best_score_ < 1
    assert search.predict(numbers).shape == (len(numbers),)


def test_adult_under_a_belief_about_race(data_dir):
    train = fetch_adult(data_home=data_dir)
    test = fetch_adult(subset="test", data_home=data_dir)
    race = AttributeScenario("race", level="record", prior=BoundedOdds(4.0))
    model = PrivateLogisticRegression(
        scenario=race, schema=train.schema.without("race")
    )
    search = PrivateGridSearchCV(
        model,
        {"C": [1e-5, 1.0]},
        accountant=OverlapAmplification(0.3, delta=1e-6),
        trials="poisson",
        n_trials=4,
    )
    rows = train.data[:6000].drop(columns="race"), train.target[:6000]
    search.fit(*rows)
    certificate = search.certificate_
    assert (certificate.epsilon, certificate.n_records) == (0.3, 6000)
    assert 0.5 < certificate.fallback < 3
    assert search.score(test.data.drop(columns="race"), test.target) > 0.75


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SeededNoiseWarning")
def test_a_record_that_the_scenario_rules_out_is_refused_in_either_part():
    chain = MarkovChainScenario([[0.9, 0.1]] * 2, states=[[0.0, 0.0], [1.0, 1.0]])
    labels = np.tile([0, 1], 20)
    rows = np.column_stack([labels, labels]).astype(float)
    rows[7] = 0.5
    model = PrivateLogisticRegression(scenario=chain)
    for seed in range(4):
        search = PrivateGridSearchCV(
            model,
            {"C": [1.0]},
            accountant=PrivacyLoss(),
            validation_fraction=0.5,
            random_state=seed,
        )
        with refused(ScenarioError, "markov.records_not_states"):
            search.fit(rows, labels)
