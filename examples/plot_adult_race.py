"""
A census table whose race column is secret
==========================================

The Adult table: predict income from census answers. Race is secret, and other columns
go with it. One-hot encoding, scaling and a model are searched over budgets in one
``GridSearchCV``, under a scenario that says what an attacker may believe. Plain
differential privacy stands beside it everywhere: for the means the scenario needs less
noise, for the model it buys nothing.

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
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, PrivacyLoss
from skpuffer.compose import PublicPreprocessing
from skpuffer.datasets import fetch_adult, load_adult
from skpuffer.exceptions import NoGainWarning
from skpuffer.inspection import PrivacyUtilityDisplay
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.preprocessing import PublicOneHotEncoder
from skpuffer.scenarios import AttributeScenario, RecordScenario, ReferenceTable
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
# applied to the data and to the prior. Each fit would warn (``NoGainWarning``) that
# plain differential privacy promises more for the same noise, as is seen below.
warnings.simplefilter("ignore", NoGainWarning)
prepare = make_column_transformer(
    (
        PublicOneHotEncoder({c: list(public.categories[c]) for c in nominal}),
        nominal,
    ),
    (StandardScaler(), numeric),
)
delta = 1e-5
model = PublicPreprocessing(
    prepare,
    PrivateLogisticRegression(
        scenario, GeneralWasserstein(epsilon=1.0, delta=delta), C=0.01, data_norm=3.0
    ),
)
model.fit(X, y)
print(model.certificate_)

# %%
# The line *gain* says that the scenario bought nothing for this model: answers that go
# with race can differ in every column at once, so the secret moves a record as far as
# any two are apart, and what is promised is differential privacy. Then ask for that:
# without a scenario the model may be trained by noisy gradients, and nothing need be
# assumed of what an attacker believes. The means above are where the scenario pays.
#
# The budget is searched on the public rows that the prior leaves.
cv = StratifiedKFold(3, shuffle=True, random_state=0)
X_public, y_public = public_table.drop(columns="income"), public_table["income"]
search = GridSearchCV(
    model,
    {"estimator__accountant__epsilon": [0.1, 1.0], "estimator__C": [0.001, 0.01]},
    cv=cv,
    error_score="raise",
)
search.fit(X_public[1::2], y_public[1::2])
print("chosen on public data:", search.best_params_, round(search.best_score_, 4))

# %%
# What the bound cost, against a logistic regression without privacy, as it comes, and
# against plain differential privacy at the same (ε, δ), as it comes as well.
differential = PublicPreprocessing(
    prepare,
    PrivateLogisticRegression(
        RecordScenario(relation="replace"), PrivacyLoss(1.0, delta), data_norm=3.0
    ),
    reference=public_table[::2],
)
data = {"X": X_public[1::2], "y": y_public[1::2], "cv": cv, "score_name": "accuracy"}
data["epsilons"] = [0.01, 0.1, 1.0] if small else [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # categories missing from the public table
    display = PrivacyUtilityDisplay.from_estimator(
        model,
        reference=make_pipeline(prepare, LogisticRegression(max_iter=1000)),
        name="Race is secret",
        **data,
    )
    PrivacyUtilityDisplay.from_estimator(
        differential, name="Plain differential privacy", ax=display.ax_, **data
    )
display.ax_.set(
    title="Adult: accuracy against budget", xlabel=f"Budget ε at δ = {delta:g}"
)
plt.tight_layout()
plt.show()
