"""The main job on real tables: what the budget buys, and what an attacker gets."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, norm
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy
from skpuffer.compose import PublicPreprocessing
from skpuffer.datasets import fetch_adult
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.scenarios import AttributeScenario, ReferenceTable
from skpuffer.summary import PrivateMean, PrivateStandardScaler

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)


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
def adult(data_dir):
    bunch = fetch_adult(data_home=data_dir, download_if_missing=False)
    columns = ["age", "education-num", "hours-per-week"]
    table = bunch.frame[[*columns, "race"]].iloc[:6000].copy()
    table["race"] = table["race"].astype(str)
    table["income"] = (bunch.target.iloc[:6000] == ">50K").astype(int).to_numpy()
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
        fits = [clone(model).set_params(random_state=s).fit(rows) for s in range(20)]
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
    scores = []
    for epsilon in EPSILONS:
        model.set_params(estimator__accountant__epsilon=epsilon)
        scores.append(
            [
                clone(model)
                .set_params(estimator__random_state=seed)
                .fit(rows, target)
                .score(story.public[story.columns], story.public[story.target])
                for seed in range(12)
            ]
        )
    for worse, better in zip(scores, scores[1:], strict=False):
        assert within_two_standard_errors(worse, better)
    assert np.mean(scores[-1]) > np.mean(scores[0])


# -- the attacker -----------------------------------------------------------------------


def mixture_density(points, atoms, masses, std):
    """Density of atoms plus Gaussian noise, at some points."""
    return norm.pdf(points[:, None], loc=atoms[None], scale=std) @ masses


def advantage_lower_bound(true_positives, false_positives, n, level=0.99):
    """Clopper-Pearson lower bound of TPR - FPR at a joint confidence level."""
    tail = (1 - level) / 2
    low = beta.ppf(tail, true_positives, n - true_positives + 1)
    high = beta.ppf(1 - tail, false_positives + 1, n - false_positives)
    return np.nan_to_num(low) - np.nan_to_num(high, nan=1.0)


def bayes_advantage(values, codes, pair, std, n, rng):
    """Advantage of the best guess which of two secrets a record has.

    The attacker knows every other record, the prior and the noise, and sees the mean
    times the number of records, that is the one unknown value plus noise.
    """
    seen, laws = [], []
    for code in pair:
        atoms, counts = np.unique(values[codes == code], return_counts=True)
        masses = counts / counts.sum()
        laws.append((atoms, masses))
        seen.append(rng.choice(atoms, size=n, p=masses) + rng.normal(0, std, size=n))
    guesses = [
        mixture_density(x, *laws[0], std) > mixture_density(x, *laws[1], std)
        for x in seen
    ]
    return advantage_lower_bound(guesses[0].sum(), guesses[1].sum(), n)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_attacker_beats_the_certificate(story, epsilon, n_trials):
    n = n_trials(100_000, least=20_000)
    rng = np.random.default_rng(1)
    rows = story.private[[*story.columns, story.secret]]
    prior = story.public
    secrets = sorted(prior[story.secret].unique())
    codes = prior[story.secret].map({s: i for i, s in enumerate(secrets)}).to_numpy()
    for column in story.columns[:2]:
        model = PrivateMean(
            story.scenario([column]), GeneralWasserstein(epsilon, alpha=4.0)
        ).fit(rows[[column, story.secret]])
        certificate = model.certificate_
        assert certificate.notion == "renyi_pufferfish"
        std = float(np.max(model.noise_.std())) * len(rows)
        allowed = certificate.curve.delta(0.0)  # largest total variation
        measured = [
            bayes_advantage(prior[column].to_numpy(), codes, (i, j), std, n, rng)
            for i in range(len(secrets))
            for j in range(i)
        ]
        assert max(measured) <= allowed


def test_an_attacker_beats_half_the_noise():
    """The test above can fail: two point masses meet the certificate with equality."""
    table = pd.DataFrame({"x": [0.0, 1.0] * 20, "s": [0, 1] * 20})
    scenario = AttributeScenario("s", level="record", prior=table, prior_as="law")
    model = PrivateMean(scenario, GeneralWasserstein(1.0, alpha=4.0)).fit(table)
    rng = np.random.default_rng(0)
    values, codes = table["x"].to_numpy(), table["s"].to_numpy()
    std = float(np.max(model.noise_.std())) * len(table)
    allowed = model.certificate_.curve.delta(0.0)
    measured = bayes_advantage(values, codes, (1, 0), std, 200_000, rng)
    assert allowed * 0.97 < measured <= allowed
    assert bayes_advantage(values, codes, (1, 0), std / 2, 200_000, rng) > allowed


def test_scaler_and_model_under_one_attribute_scenario(diabetes):
    """Released one after the other, nothing may be added up; the scaler's is refused."""
    rows = diabetes.private[[*diabetes.columns, "sex"]]
    scenario = diabetes.scenario()
    scaler = PrivateStandardScaler(scenario, GroupPrivacy(1.0, alpha=4.0)).fit(rows)
    assert scaler.certificate_.composable
    assert scaler.certificate_.gain > 1
    assert scaler.certificate_.coupling_id.startswith("record:sex")
