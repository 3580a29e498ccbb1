"""
A synthetic table beside its source
===================================

A company holds answers of 4000 people and wants to hand a table to its analysts that
looks like theirs, with the same columns and levels, and is nobody's. How much of it may
be believed?
"""

# %%
# The code book
# -------------
# The Adult census sample that is shipped with the library. Bounds and levels are
# public: they are those of the questionnaire, and nothing of them is read off the rows.
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skpuffer.datasets import load_adult
from skpuffer.inspection import MarginalDisplay
from skpuffer.schema import Category, Number, Schema
from skpuffer.synthesis import PrivateTableSynthesizer

people, others = load_adult(subset="train"), load_adult(subset="test")
numbers = {
    "age": Number(17, 90, integer=True, missing=False),
    "education-num": Number(1, 16, integer=True, missing=False),
    "hours-per-week": Number(1, 99, integer=True, missing=False),
    "capital-gain": Number(0, 100_000, integer=True, amount=True, missing=False),
}
names = ["workclass", "marital-status", "occupation", "relationship", "sex"]
levels = {
    name: Category(people.categories[name], missing_level=name in names[::2])
    for name in names
}
income = Category(["<=50K", ">50K"], missing_level=False)
schema = Schema({**numbers, **levels, "income": income}, target="income")
print(schema.select([*numbers, "sex"]))

private, test = (
    bunch.data[[*numbers, *names]].assign(income=bunch.target)
    for bunch in (people, others)
)

# %%
# The synthetic table
# -------------------
# One release at (1, 1e-5)-differential privacy; rows may then be drawn as often as
# wanted. A tree links each column to the one it depends on most, among those of high
# income and among the others.
synthesizer = PrivateTableSynthesizer(schema=schema).fit(private)
print(synthesizer.certificate_)
print(synthesizer.tree_)
synthetic = synthesizer.sample(random_state=0)
print(synthetic.head())

# %%
# What it keeps
# -------------
# *How near are the synthetic rows to the real ones?*
# One column and a pair, as released, as sampled and, for the owner's eyes alone, as it
# really is. The last is not covered by any promise, and a warning says so.
figure, axes = plt.subplots(1, 2, figsize=(11, 4.5))
for columns, ax in (("education-num", axes[0]), (["relationship", "income"], axes[1])):
    MarginalDisplay.from_estimator(
        synthesizer, columns, synthetic=synthetic, real=private, ax=ax
    )
plt.tight_layout()
if len(sys.argv) > 1:
    plt.savefig(sys.argv[1])
    print(f"The figure is saved to {sys.argv[1]}")
else:
    plt.show()


# %%
# What models learn of it
# -----------------------
# A model that was trained on synthetic rows, tested on real ones of other people,
# beside one that was trained on the private rows.
def auc(rows):
    """Area under the ROC curve, on rows that were not seen."""
    logarithm = make_pipeline(FunctionTransformer(np.log1p), StandardScaler())
    one_hot = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer(
        (StandardScaler(), list(numbers)[:3]),
        (logarithm, ["capital-gain"]),
        (one_hot, names),
    )
    model = make_pipeline(columns, LogisticRegression(max_iter=1000))
    model.fit(rows, rows["income"] == ">50K")
    chance = model.predict_proba(test)[:, 1]
    return roc_auc_score(test["income"] == ">50K", chance)


print(
    pd.Series(
        {"synthetic rows": auc(synthetic), "private rows": auc(private)}, name="AUC"
    ).round(3)
)

# %%
# What no tree holds is lost, such as what depends on three columns at once: a synthetic
# table is for finding questions and testing programs, and the answers that count are
# released by an estimator of their own.
