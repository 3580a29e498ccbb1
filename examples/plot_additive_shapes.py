"""
Shape functions of an additive model
====================================

An additive model says of each feature how it moves the score: a function that can be
drawn, read and edited. Here it predicts income on the Adult census sample that is
shipped with the library, under plain differential privacy.
"""

# %%
# The code book
# -------------
# What may be known without the private rows: bounds of numbers, which of them are
# amounts with a heavy tail, and the levels of the other columns. Nothing of it is read
# off the table.
import numpy as np

from skpuffer.accountants import PrivacyLoss
from skpuffer.additive import PrivateAdditiveClassifier
from skpuffer.datasets import load_adult
from skpuffer.inspection import ShapeDisplay
from skpuffer.schema import Number, Schema

people, test = load_adult(subset="train"), load_adult(subset="test")
levels = {
    name: list(people.data[name].cat.categories)
    for name in ("marital-status", "occupation", "relationship", "sex")
}
schema = Schema(
    {
        "age": Number(17, 90, integer=True, unit="years"),
        "education-num": Number(1, 16, integer=True),
        "hours-per-week": Number(1, 99, integer=True),
        "capital-gain": Number(0, 100_000, amount=True, bins=32, unit="dollars"),
        **levels,
        "income": ["<=50K", ">50K"],
    },
    target="income",
)
print(schema)

# %%
# The model
# ---------
# Raw columns are read by the code book, in ``fit`` and ``predict`` alike. Everything is
# one mechanism: noisy histograms of the features, and noisy sums of residuals over some
# rounds.
model = PrivateAdditiveClassifier(accountant=PrivacyLoss(2.0, 1e-5), schema=schema)
model.fit(people.data, people.target)
print(model.certificate_)
print(f"accuracy on other people: {model.score(test.data, test.target):.3f}")

# %%
# What it learnt
# --------------
# Each panel is the function of one feature, on the scale of log-odds. Bands are two
# standard errors of the noise that was added, which is known; grey bars are the noisy
# shares of the cells. Where there are few people the band is wide.
ShapeDisplay.from_estimator(model, n_columns=4)

# %%
# Editing it
# ----------
# The functions are released, so whatever is made of them costs no privacy: rounding,
# setting one to zero, or what an expert knows better. A function that must not fall can
# be asked for from the start, by ``monotone_constraints={"education-num": 1}``.
age = model.shape_functions_["age"]
certain = np.abs(age.scores) > 2 * age.standard_errors
model.edit("age", np.round(np.where(certain, age.scores, 0.0), 1))
model.edit("sex", np.zeros_like(model.shape_functions_["sex"].scores))
print(f"accuracy without sex: {model.score(test.data, test.target):.3f}")
ShapeDisplay.from_estimator(model, features=["age", "sex"])
