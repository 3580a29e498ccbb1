"""
A census table whose race column is secret
==========================================

The Adult table: predict income from census answers. Race is secret, and other columns
go with it. A scenario says what an attacker may believe: what people of either race may
answer, for means, and how well race can be guessed from the answers, for a model. Plain
differential privacy stands beside it everywhere.

The table is read from the directory that the environment variable
``SKPUFFER_TEST_DATA`` names; without one, the sample of it that is shipped with the
library is used: 4000 private and 2000 public rows.
"""

# %%
# The table
# ---------
# The published test file stands for the public reference sample, the training file is
# the private table.
import os
import warnings
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import (
    GeneralWasserstein,
    GroupPrivacy,
    OverlapAmplification,
)
from skpuffer.compose import PublicPreprocessing
from skpuffer.datasets import fetch_adult, load_adult
from skpuffer.exceptions import NoGainWarning
from skpuffer.inspection import PrivacyUtilityDisplay
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.preprocessing import PublicOneHotEncoder
from skpuffer.scenarios import (
    AttributeScenario,
    BoundedOdds,
    DeclaredOdds,
    RecordScenario,
    ReferenceTable,
)
from skpuffer.summary import PrivateMean, PrivateSummary

small = os.environ.get("SKPUFFER_EXAMPLE_SIZE") == "small"
where = os.environ.get("SKPUFFER_TEST_DATA")
adult = partial(fetch_adult, data_home=where) if where else load_adult
public, private = adult(subset="test"), adult(subset="train")

numeric = ["age", "education-num", "hours-per-week", "capital-gain", "capital-loss"]
nominal = ["workclass", "marital-status", "occupation", "relationship", "sex"]


def table(bunch, n=None):
    """Features of interest, the secret, and income as 0/1."""
    frame = bunch.frame[[*numeric, *nominal, "race"]].copy()
    frame["income"] = (bunch.target == ">50K").astype(int).to_numpy()
    return frame if n is None else frame.iloc[:n]


n = 4000 if small else None
public_table, private_table = table(public, n), table(private, n)
X, y = private_table.drop(columns="income"), private_table["income"]

# %%
# Means that hide race
# --------------------
# Each person's race is secret. Age, years of schooling and working hours differ between
# races, but only so far: the noise covers how far one person's answers move when the
# race changes, as it does in the reference sample.
reference = ReferenceTable(public_table[::2])
scenario = AttributeScenario(
    "race", level="record", prior=reference, prior_as="law", target="income"
)
answers = ["age", "education-num", "hours-per-week"]
means = {}
for column in answers:
    prior = ReferenceTable(public_table[[column, "race"]])
    one = AttributeScenario("race", level="record", prior=prior, prior_as="law")
    bounds = tuple(float(b) for b in public.bounds[column])
    ours = PrivateMean(one, GeneralWasserstein(1.0, alpha=4), bounds=bounds)
    plain = PrivateMean(
        RecordScenario(relation="replace"), GroupPrivacy(1.0, alpha=4), bounds=bounds
    )
    ours.fit(X[[column]]), plain.fit(X[[column]])
    means[column] = {
        "released": ours.mean_[0],
        "noise": float(np.max(ours.noise_.std())),
        "noise of DP": float(np.max(plain.noise_.std())),
        "gain": ours.certificate_.gain,
    }
print(pd.DataFrame(means).T.round(4))

# %%
# By group, as a cross-table: rates and counts of disjoint groups share one budget.
by_group = PrivateSummary(
    RecordScenario(relation="replace"),
    GroupPrivacy(epsilon=1.0, delta=1e-5),
    statistics={"income": ["rate"]},
    by=["sex", "relationship"],
    columns=["income"],
    bounds={"income": (0, 1)},
    categories={c: list(public.categories[c]) for c in ("sex", "relationship")},
).fit(private_table.drop(columns="race"))
print(by_group.to_crosstab("count").round(0))

# %%
# A model that hides race
# -----------------------
# Categories and scales are public: the code book's and the reference table's. Both are
# applied to the data and to the prior. With the reference sample as the prior the fit
# would warn (``NoGainWarning``) that plain differential privacy promises more for the
# same noise, as is seen below.
warnings.simplefilter("ignore", NoGainWarning)
prepare = make_pipeline(
    make_column_transformer(
        (
            PublicOneHotEncoder({c: list(public.categories[c]) for c in nominal}),
            nominal,
        ),
        (StandardScaler(), numeric),
    ),
    StandardScaler(with_std=False),
)
delta = 1e-5
by_table = PublicPreprocessing(
    prepare,
    PrivateLogisticRegression(
        scenario, GeneralWasserstein(epsilon=1.0, delta=delta), C=0.01, data_norm=2.0
    ),
).fit(X, y)
print("times less noise than differential privacy:", by_table.certificate_.gain)

# %%
# A table of possible answers buys nothing for a model: answers that go with race can
# differ in every column at once, so the secret moves a record as far as any two are
# apart. What does buy something is how *rarely* they tell of race. The public rows say
# so, and need no income for it: the odds of race given the other answers, by a public
# classifier, and income shifts these odds within a range of two. Whoever holds this
# belief is kept to the budget, and everybody else to the fallback.
X_public = public_table.drop(columns=["income", "race"])
propensity = make_pipeline(prepare, LogisticRegression(max_iter=1000))
propensity.fit(X_public, public_table["race"] == "White")
two_races = X.assign(race=X["race"] == "White")
declared = AttributeScenario(
    "race",
    level="record",
    prior=DeclaredOdds(propensity, X_public, rest=BoundedOdds(2.0)),
)
print(declared.explain([0.1, 0.3, 1.0]).round(3).T)

# %%
model = PublicPreprocessing(
    prepare,
    PrivateLogisticRegression(
        declared, OverlapAmplification(epsilon=0.1, delta=delta), data_norm=2.0
    ),
    reference=X_public,
)
model.fit(two_races, y)
print(model.certificate_)

# %%
# *What did the bound cost?*
# What the bound cost, of 1000 people, against a logistic regression without privacy and
# against plain differential privacy at the same (ε, δ). The numbers are the fallback at
# each budget.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # categories missing from the public table
    display = PrivacyUtilityDisplay.from_estimator(
        model,
        two_races,
        y,
        epsilons=[0.1, 1.0] if small else [0.03, 0.1, 0.3, 1.0],
        baseline="dp",
        reference=make_pipeline(
            make_column_transformer((prepare, [*numeric, *nominal])),
            LogisticRegression(max_iter=1000),
        ),
        cv=ShuffleSplit(2 if small else 10, train_size=1000, random_state=0),
        name="Race is secret",
        score_name="Accuracy",
        std_display_style=None,
    )
display.ax_.set(
    title="1000 people of the Adult table", xlabel=f"Budget ε at δ = {delta:g}"
)
plt.tight_layout()
plt.show()

# %%
# These public rows happen to have incomes. Where they do, look at a model fitted on
# them alone: of the same people it is as good as any private one.
alone = make_pipeline(prepare, LogisticRegression(max_iter=1000))
alone.fit(X_public, public_table["income"])
print("fitted on public rows alone:", round(alone.score(X.drop(columns="race"), y), 3))
