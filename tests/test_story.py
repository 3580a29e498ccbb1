"""The main job on real tables: what the budget buys, and what an attacker gets."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy
from skpuffer.compose import PublicPreprocessing
from skpuffer.datasets import load_adult
from skpuffer.exceptions import CompositionError
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.privacy import compose
from skpuffer.scenarios import AttributeScenario, ReferenceTable
from skpuffer.summary import PrivateMean, PrivateStandardScaler
from skpuffer.testing import all_estimators
from skpuffer.testing._estimator_checks import check_noise_is_of_the_certified_scale
from tests.refused import refused

from .attack import SHARE, assert_beaten, assert_within, bayes_score

EPSILONS = (0.1, 1.0, 10.0)


class Story:
    """A table split into a public and a private part, and a secret column."""

    def __init__(self, table, secret, target, columns):
        self.secret, self.target, self.columns = secret, target, columns
        self.public, self.private = table.iloc[::2], table.iloc[1::2]

    def scenario(self, columns=None, **options):
        columns = list(columns or self.columns)
        table = ReferenceTable(self.public[[*columns, self.secret, self.target]])
        options = {"level": "record", "prior_as": "law"} | options
        return AttributeScenario(
            self.secret, prior=table, target=self.target, **options
        )


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    table = X.assign(progresses=(y > 140).astype(int))
    return Story(table, "sex", "progresses", ["age", "bmi", "bp", "s5"])


@pytest.fixture(scope="module")
def adult():
    bunch = load_adult(subset="all")
    columns = ["age", "education-num", "hours-per-week"]
    table = bunch.frame[[*columns, "race"]].copy()
    table["race"] = table["race"].astype(str)
    table["income"] = (bunch.target == ">50K").astype(int).to_numpy()
    return Story(table, "race", "income", columns)


@pytest.fixture(params=["diabetes", "adult"])
def story(request):
    return request.getfixturevalue(request.param)


def within_two_standard_errors(worse, better):
    """Whether paired scores do not fall, beyond two standard errors."""
    gained = np.asarray(better) - np.asarray(worse)
    return gained.mean() >= -2 * gained.std(ddof=1) / np.sqrt(len(gained))


def test_the_error_of_a_mean_falls_with_the_budget(story):
    rows = story.private[[*story.columns, story.secret]]
    truth = rows[story.columns].mean().to_numpy()
    errors = []
    for epsilon in EPSILONS:
        model = PrivateMean(story.scenario(), GeneralWasserstein(epsilon, alpha=4.0))
        fits = [clone(model).set_params(random_state=s).fit(rows) for s in range(5)]
        errors.append(np.mean([np.abs(f.mean_ - truth) for f in fits], axis=0))
    # common random numbers: the same draws, scaled down by the root of the budget; what
    # the bounds clip is an error that no budget removes
    assert np.all(np.diff([e.sum() for e in errors]) < 0)
    assert errors[0].sum() > 3 * errors[-1].sum()


def test_the_score_of_a_model_does_not_fall_with_the_budget(story):
    rows = story.private[[*story.columns, story.secret]]
    target = story.private[story.target]
    model = PublicPreprocessing(
        StandardScaler(),
        PrivateLogisticRegression(
            story.scenario(), GeneralWasserstein(1.0, alpha=4.0), C=0.003, data_norm=2.0
        ),
    )
    # other splits with other noise, so that both chances count in the standard error
    splits = [train_test_split(rows, target, random_state=seed) for seed in range(5)]
    scores = []
    for epsilon in EPSILONS:
        model.set_params(estimator__accountant__epsilon=epsilon)
        scores.append(
            [
                clone(model)
                .set_params(estimator__random_state=seed)
                .fit(X_train, y_train)
                .score(X_test, y_test)
                for seed, (X_train, X_test, y_train, y_test) in enumerate(splits)
            ]
        )
    for worse, better in zip(scores, scores[1:], strict=False):
        assert within_two_standard_errors(worse, better)
    assert np.mean(scores[-1]) > np.mean(scores[0])


# -- the attacker ---------------------------------------------------------------------


def record_worlds(table, column, secret, pair, noise):
    """Samplers of one unknown value plus noise given two secrets, and the best score.

    The attacker knows the prior, the noise and every other record: what is left of a
    mean is the value of one record, whose secret he guesses.
    """
    laws = []
    for value in pair:
        atoms = table.loc[table[secret] == value, column]
        atoms, counts = np.unique(atoms, return_counts=True)
        laws.append((atoms, counts / counts.sum()))

    def sampler(atoms, masses):
        return lambda n, rng: rng.choice(atoms, n, p=masses) + noise.sample(n, rng)

    return *(sampler(*law) for law in laws), bayes_score(noise, *laws[0], *laws[1])


def attack_mean(story, column, accountant, check, share=1.0, **options):
    """Attack a private mean of one column, for each pair of secrets."""
    rows = story.private[[column, story.secret]]
    model = PrivateMean(story.scenario([column]), accountant).fit(rows)
    # the noise of one record's value: that of the mean, times the number of records
    noise = model.noise_.with_scale(float(model.noise_.scale[0]) * len(rows) * share)
    for pair in combinations(sorted(story.public[story.secret].unique()), 2):
        *worlds, score = record_worlds(story.public, column, story.secret, pair, noise)
        check(model.certificate_, *worlds, score=score, **options)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_attacker_beats_the_certificate(story, epsilon):
    options = {"n_draws": 20_000, "rng": np.random.default_rng(1)}
    for column in story.columns[:2]:
        accountant = GeneralWasserstein(epsilon, alpha=4.0)
        attack_mean(story, column, accountant, assert_within, **options)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_attacker_beats_the_certificate_at_length(story, epsilon, noise, n_trials):
    options = {
        "n_draws": n_trials(400_000, least=20_000),
        "rng": np.random.default_rng(2),
    }
    for column in story.columns:
        accountant = GeneralWasserstein(epsilon, alpha=4.0, noise=noise)
        attack_mean(story, column, accountant, assert_within, **options)


def test_an_attacker_beats_less_noise():
    """The tests above can fail: two point masses meet the certificate with equality."""
    # 41 public and 40 private rows: a prior of the same rows would be no prior
    values = [0.0, 0.0, 1.0, 1.0] * 20 + [0.0]
    table = pd.DataFrame({"x": values, "s": np.array(values, dtype=int)})
    story = Story(table.assign(t=0), "s", "t", ["x"])
    accountant = GeneralWasserstein(1.0, alpha=4.0)
    for share, check in ((1.0, assert_within), (SHARE, assert_beaten)):
        options = {"n_draws": 100_000, "rng": np.random.default_rng(0)}
        attack_mean(story, "x", accountant, check, share, **options)


#: Transformers that draw no noise.
PUBLIC = (
    "PublicBinner",
    "PublicImputer",
    "PublicMinMaxScaler",
    "PublicOneHotEncoder",
    "RowNormClipper",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry",
    [entry for entry in all_estimators() if entry.name not in PUBLIC],
    ids=lambda entry: entry.name,
)
def test_noise_is_of_the_certified_scale_over_many_fits(entry, n_trials):
    n_fits = n_trials(4000, least=100)
    check_noise_is_of_the_certified_scale(entry.instance, n_fits=n_fits)


def test_scaler_and_model_under_one_attribute_scenario(diabetes):
    """One coupling of one scenario adds up; two maps of its records are two of them."""
    rows = diabetes.private[[*diabetes.columns, "sex"]]
    accountant = GroupPrivacy(epsilon=1.0, alpha=4.0)
    scenario = diabetes.scenario(table="patients")
    scaler = PrivateStandardScaler(scenario, accountant)
    scaler.set_output(transform="pandas")
    first, second = (clone(scaler).fit(rows).certificate_ for _ in range(2))
    assert first.gain > 1
    assert compose([first, second]).epsilon == pytest.approx(2.0)
    # the prior's rows go through the public scaler too: one scenario, other units
    model = PublicPreprocessing(
        StandardScaler(),
        PrivateLogisticRegression(scenario, accountant, C=0.003),
    ).fit(rows, diabetes.private["progresses"])
    with refused(CompositionError, "compose.couplings_differ"):
        compose([first, model.certificate_])
