"""
A private summary and a private classifier
==========================================

A clinic holds a table of patients. One column, ``sex``, is secret, and the other
columns give it away. The clinic wants to publish the mean and spread of some columns,
and a classifier, so that nobody can tell a patient's sex from what is published better
than a stated bound allows. And it wants to see what the bound cost, and whether plain
differential privacy would not do as well.
"""

# %%
# The table
# ---------
# The diabetes table of scikit-learn. One half stands for a public reference sample,
# what an attacker may know about such patients; the other half is private.
import os
import sys

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, PrivacyLoss
from skpuffer.compose import PublicPreprocessing
from skpuffer.inspection import PrivacyUtilityDisplay
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.preprocessing import RowNormClipper
from skpuffer.scenarios import AttributeScenario, RecordScenario, ReferenceTable
from skpuffer.summary import PrivateSummary

small = os.environ.get("SKPUFFER_EXAMPLE_SIZE") == "small"

X, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
y = (progression > 140).rename("progresses")
public, private = X.iloc[::2], X.iloc[1::2]
y_public, y_private = y.iloc[::2], y.iloc[1::2]

# %%
# What is secret
# --------------
# Each patient's sex, whatever goes with it. The attacker believes that patients are
# like those of the reference table, which is taken as exactly his belief:
# ``prior_as="law"``.
reference = ReferenceTable(public[::2].assign(progresses=y_public[::2]))
scenario = AttributeScenario(
    "sex", level="record", prior=reference, prior_as="law", target="progresses"
)

# %%
# A private summary
# -----------------
# Mean and spread of three columns in one release. The column ``sex`` is in the table;
# the estimator drops it. The bounds of the columns are those of the public table.
summary = PrivateSummary(
    scenario,
    GeneralWasserstein(epsilon=1.0, alpha=4),
    statistics=["mean", "std"],
    columns=["bmi", "bp", "s5"],
).fit(private)

exact = private[["bmi", "bp", "s5"]].agg(["mean", "std"])
print(pd.concat({"released": summary.result_, "exact (private!)": exact}).round(2))

# %%
# What was promised, in which notion, under which assumptions:
print(summary.certificate_)

# %%
# Ordinary differential privacy protects more, the whole record, and needs more noise:
plain = PrivateSummary(
    RecordScenario(relation="replace"),
    GroupPrivacy(epsilon=1.0, alpha=4),
    statistics=["mean", "std"],
    columns=["bmi", "bp", "s5"],
    bounds={c: (public[c].min(), public[c].max()) for c in ["bmi", "bp", "s5"]},
).fit(private)
ratio = plain.certificate_.sensitivity / summary.certificate_.sensitivity
print(f"noise of differential privacy over noise of this scenario: {ratio:.2f}")

# %%
# A private classifier
# --------------------
# Will the disease progress? Features are scaled on the public table, which
# ``PublicPreprocessing`` does to the data and to the prior alike.
delta = 1e-5
model = PublicPreprocessing(
    StandardScaler(),
    PrivateLogisticRegression(
        scenario, GeneralWasserstein(epsilon=1.0, delta=delta), C=0.003, data_norm=3.0
    ),
)
model.fit(private, y_private)
print(model.certificate_)

# %%
# The line *gain* says what the scenario bought for this model: not much. Among ten
# columns and the target there are nearly always two records as different as can be, and
# the worst two decide. The summary above is where the scenario pays.
#
# Choosing the budget
# -------------------
# Scores on held-out rows are not private, so the search runs on the public table.
cv = RepeatedStratifiedKFold(n_splits=4, n_repeats=2 if small else 8, random_state=0)
search = GridSearchCV(
    model,
    {"estimator__accountant__epsilon": [0.3, 1.0, 3.0], "estimator__C": [0.003, 0.01]},
    cv=cv,
    error_score="raise",
)
search.fit(public[1::2], y_public[1::2])  # the prior has the others
print("chosen on public data:", search.best_params_)

# %%
# What the bound cost
# -------------------
# Accuracy against budget, with the ceiling of the same model without privacy: without
# the column ``sex``, on rows of the same length. Beside it plain differential privacy
# at the same (ε, δ), on the same columns: the whole record is hidden, and training by
# noisy gradients may be used.
without_sex = make_column_transformer(("drop", ["sex"]), remainder=StandardScaler())
ceiling = make_pipeline(without_sex, RowNormClipper(3.0), LogisticRegression(C=0.003))
differential = PublicPreprocessing(
    without_sex,
    PrivateLogisticRegression(
        RecordScenario(relation="replace"), PrivacyLoss(1.0, delta), data_norm=3.0
    ),
    reference=public[::2],
)
data = {"X": public[1::2], "y": y_public[1::2], "cv": cv, "score_name": "accuracy"}
data["epsilons"] = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
display = PrivacyUtilityDisplay.from_estimator(
    model, reference=ceiling, name="The column sex is secret", **data
)
PrivacyUtilityDisplay.from_estimator(
    differential, name="Plain differential privacy", ax=display.ax_, **data
)
display.ax_.set(title="Accuracy against budget", xlabel=f"Budget ε at δ = {delta:g}")
plt.tight_layout()
if len(sys.argv) > 1:
    plt.savefig(sys.argv[1])
    print(f"The figure is saved to {sys.argv[1]}")
else:
    plt.show()

# %%
# Where either classifier is better than a coin, plain differential privacy is about as
# good as the scenario, or better. It protects the whole record and assumes nothing of
# what an attacker believes: for this classifier take it. The summary is where the
# scenario pays.
