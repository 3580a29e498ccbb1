"""A binned law of a public third: columns, bins and scale are chosen on its rows."""

import os
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedKFold
from sklearn.preprocessing import TargetEncoder

from benchmarks._rows import DELTA, EPSILONS, NAMES, NUMBERS, PLAIN, unit_rows
from skpuffer.accountants import OverlapAmplification, PrivacyLoss
from skpuffer.datasets import fetch_adult, load_heart, load_student
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.scenarios import AttributeScenario, BinnedLaw
from skpuffer.training import LinearGradients, Logistic, train

LABEL = "label"
BELIEVING, ALONE = "binned law", "public rows alone"
#: What is added to the name of a promise of differential privacy on the coded rows.
CODED = ", coded"
#: Accuracies to be reached at the smallest epsilon, and the least gain of noise over
#: what the law gives as a whole.
LEAST = {"diabetes": 0.730, "heart": 0.746, "student": 0.679, "adult": 0.821}
LEAST_GAIN = 1.4
#: Folds of the public rows are dealt anew for simulated fits until so many are scored,
#: within limits.
_SCORED = 3000
#: Of the ridge regression that ranks columns, in rows.
_PENALTY = 100


# -- the tables ----------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A table with its label, and how many rows are public and private."""

    name: str
    frame: pd.DataFrame
    secret: str
    n_public: int
    n_private: int


def tables():
    """Diabetes, heart and Student, in thirds; and Adult, where its files are."""

    def table(name, X, secret, y, *sizes):
        frame = X.assign(**{LABEL: np.asarray(y, int)}).dropna().reset_index(drop=True)
        return Table(name, frame, secret, *(sizes or (len(frame) // 3,) * 2))

    X, progress = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    yield table("diabetes", X, "sex", progress > 140)
    heart = load_heart()
    yield table("heart", heart.data, "sex", heart.target > 0)
    student = load_student("portuguese")
    X = student.data.drop(columns=["G1", "G2"])
    yield table("student", X, "sex", student.target >= 12)
    directory = os.environ.get("SKPUFFER_TEST_DATA")
    if directory:
        X, y = fetch_adult(data_home=directory, return_X_y=True)
        race = np.where(X["race"] == "White", "white", "other")
        X = X[NUMBERS].join(X[NAMES].astype(object).fillna("unknown")).assign(race=race)
        yield table("adult", X, "race", y.astype(str) == ">50K", 16_000, 1000)


class Split:
    """Public, private and other rows of a table, and what the public ones tell."""

    def __init__(self, table, seed):
        self.table = table
        ends = np.cumsum([table.n_public, table.n_private])
        order = np.random.default_rng(seed).permutation(len(table.frame))
        self.public, self.private, self.held_out = np.split(order, ends)
        features = table.frame.drop(columns=[table.secret, LABEL])
        self.y = table.frame[LABEL].to_numpy()
        self.raw = unit_rows(features, np.isin(np.arange(len(order)), self.public))
        self.numbers = self._with_rates(features)
        known = self.numbers.loc[self.public].assign(**{LABEL: self.y[self.public]})
        related = known.loc[:, known.nunique() > 1].corr("spearman")
        self.ranked = {
            True: ranked(related, np.inf),
            False: ranked(related, _PENALTY / len(known)),
        }

    def _with_rates(self, features):
        """Categories as the rate of the label that they have on public rows."""
        numeric = features.select_dtypes("number").columns
        names = features.columns.difference(numeric)
        if not len(names):
            return features
        encoder = TargetEncoder(target_type="binary", random_state=0)
        encoder.fit(features.loc[self.public, names], self.y[self.public])
        rates = encoder.transform(features[names])
        return features.assign(**dict(zip(names, rates.T, strict=True)))


def ranked(related, penalty, n_columns=4):
    """Columns by what they tell of the label, given the correlations of all.

    Forward, by ridge regression; a penalty without end is each column alone.
    """
    told = related[LABEL].drop(LABEL)
    if penalty == np.inf:
        return told.abs().nlargest(n_columns).index.tolist()

    def explained(names):
        inner = related.loc[names, names].to_numpy() + penalty * np.eye(len(names))
        return told[names] @ np.linalg.solve(inner, told[names])

    found = []
    for _ in range(n_columns):
        others = told.index.difference(found, sort=False)
        found.append(max(others, key=lambda name: explained([*found, name])))
    return found


# -- the models ----------------------------------------------------------------------


class Model:
    """Logistic regression on rows of a split, in the unit ball."""

    def __init__(self, split, X, scenario, accountant, choice, **options):
        self.X, self.y, self.choice = X, split.y, choice
        self.private = PrivateLogisticRegression(scenario, accountant, **options)
        self.whole = np.nan

    def fit(self, index, seed):
        self.private.set_params(random_state=seed)
        self.private.fit(self.X.loc[index], self.y[index])

    def score(self, index):
        return self.private.score(self.X.loc[index], self.y[index])

    def simulated(self, split):
        """Accuracy of private fits among public rows, drawn to the private number.

        Noise follows from the law and the number of records: it is set once, and the
        same run is executed on folds.
        """
        rng, size = np.random.default_rng(0), len(split.private)
        # which rows does not matter
        self.fit(rng.choice(split.public, size), 0)
        release, noise = self.private.release_, self.private.noise_
        y, rows = self.y[split.public], self.X.loc[split.public].to_numpy()
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1), 1)[:, None]
        constant = 0.5 * self.private.fit_intercept
        scores = []
        deals = min(10, max(2, _SCORED // len(rows)))
        folds = RepeatedKFold(n_splits=5, n_repeats=deals, random_state=0)
        for known, rest in folds.split(rows):
            drawn = rng.choice(known, size)
            gradients = LinearGradients(
                Logistic(), rows[drawn], y[drawn], intercept_scale=constant
            )
            coef, intercept = gradients.split(train(gradients, release, noise, rng))
            scores.append(np.mean((rows[rest] @ coef[0] + intercept > 0) == y[rest]))
        return float(np.mean(scores))


def raw(split, epsilon, relation):
    """Differential privacy on raw features, with library defaults."""
    accountant = PrivacyLoss(epsilon, DELTA)
    return Model(split, split.raw, PLAIN[relation], accountant, "raw")


@dataclass(frozen=True)
class Choice:
    """What is chosen on public rows."""

    n_columns: int = 3
    n_bins: int = 3
    # columns by what each tells of the label alone, or beside those before it
    alone: bool = True
    # of equally distant bins: from -1 to 1, or z-scored
    corners: bool = True
    # without one, a record and its opposite with the other label are one and the same
    intercept: bool = False


#: Of equals the first is taken.
OPTIONS = {
    "alone": (True, False),
    "corners": (True, False),
    "n_columns": (3, 2, 4),
    "n_bins": (3, 2, 4),
    "intercept": (False, True),
}


def coded(split, epsilon, choice):
    """Few columns in few bins, and the law of the public rows as the belief."""
    columns, secret = split.ranked[choice.alone][: choice.n_columns], split.table.secret
    codes = split.numbers[columns].apply(
        lambda values: np.searchsorted(
            edges(values[split.public].to_numpy(), choice.n_bins), values
        ).astype(float)
    )
    known = codes.loc[split.public]
    if choice.corners:
        codes = 2 * codes / known.max() - 1
    else:
        codes = (codes - known.mean()) / known.std()
    X = codes / np.sqrt(len(columns))
    of = split.table.frame.loc[split.public, [secret, LABEL]]
    law = BinnedLaw(X.loc[split.public].join(of))
    scenario = AttributeScenario(secret, level="record", prior=law, target=LABEL)
    accountant = OverlapAmplification(epsilon, delta=DELTA, if_belief_suffices="cap")
    scale = "corners" if choice.corners else "z-scores"
    what = f"{' '.join(columns)}; {choice.n_bins} bins; {scale}"
    model = Model(split, X, scenario, accountant, what, fit_intercept=choice.intercept)
    # of noise, if no pair of records is nearer than any other
    model.whole = float(scenario.explain(epsilon, delta=DELTA)["gain"].iloc[0])
    return model


def plain(split, epsilon, choice, relation):
    """Differential privacy on the same coded rows, whatever is believed."""
    X, accountant = coded(split, epsilon, choice).X, PrivacyLoss(epsilon, DELTA)
    options = {"fit_intercept": choice.intercept}
    return Model(split, X, PLAIN[relation], accountant, "coded", **options)


def edges(values, n_bins):
    """Edges of bins of about equal mass: one at least, as there are two values."""
    shares = np.arange(1, n_bins) / n_bins
    below = values[values < values.max()].max()
    found = np.quantile(values, shares, method="lower")
    return np.unique(np.minimum(found, below))


def chosen(split):
    """Columns, bins and scale by simulated fits at the smallest epsilon."""
    scores = {}

    def score(choice):
        if choice not in scores:
            scores[choice] = coded(split, EPSILONS[0], choice).simulated(split)
        return scores[choice]

    best, last = Choice(), None
    # one after the other, until none is changed
    while best != last:
        last = best
        for name, values in OPTIONS.items():
            best = max((replace(best, **{name: value}) for value in values), key=score)
    return best


def believing(split, epsilon, choice):
    """The model of coded rows, or of raw ones if that is no worse on public rows."""
    models = raw(split, epsilon, "DP, replace"), coded(split, epsilon, choice)
    return max(models, key=lambda model: model.simulated(split))


def one_split(table, seed, epsilons, n_draws):
    """Accuracies of one split, by epsilon and promise."""
    split, rows = Split(table, seed), []
    choice = chosen(split)
    known = split.raw.loc[split.public], split.y[split.public]
    alone = LogisticRegression(max_iter=1000).fit(*known)
    others = split.raw.loc[split.held_out], split.y[split.held_out]
    for epsilon in epsilons:
        found = {
            "data": table.name,
            "n": table.n_private,
            "epsilon": epsilon,
            "split": seed,
        }
        models = {name: raw(split, epsilon, name) for name in PLAIN}
        models[BELIEVING] = believing(split, epsilon, choice)
        models |= {name + CODED: plain(split, epsilon, choice, name) for name in PLAIN}
        for promise, model in models.items():
            for draw in range(n_draws):
                # the same for all promises, another in each split
                model.fit(split.private, 1000 * seed + draw)
                certificate = model.private.certificate_
                rows.append(
                    found
                    | {
                        "promise": promise,
                        "accuracy": model.score(split.held_out),
                        "gain": certificate.gain,
                        "gain_of_the_whole": model.whole,
                        "fallback": certificate.fallback,
                        "choice": model.choice,
                    }
                )
        rows.append(found | {"promise": ALONE, "accuracy": alone.score(*others)})
    return rows
