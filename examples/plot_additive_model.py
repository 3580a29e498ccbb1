"""
Shape functions of a private model
==================================

An additive model is a sum of one function for each column, so that it can be drawn,
read and corrected. Its functions are made of noisy numbers only: whoever has them has
all there is to have, and whatever is done to them afterwards costs no privacy.
"""

# %%
# From a raw table to a certificate
# ---------------------------------
# The Adult census data, texts and gaps as they come: 4000 people that are shipped with
# the library, all 32,561 where the published files are at hand. The code book holds
# the bounds and levels of the publisher's description; nothing of it is read off the
# private rows.
import os
import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.isotonic import isotonic_regression

from skpuffer.accountants import PrivacyLoss
from skpuffer.additive import PrivateAdditiveClassifier
from skpuffer.datasets import fetch_adult, load_adult
from skpuffer.exceptions import PrivacyWarning
from skpuffer.inspection import ShapeDisplay
from skpuffer.linear_model import PrivateLogisticRegression

# seeds are for pages that are the same twice, not for a release
warnings.simplefilter("ignore", PrivacyWarning)

folder = os.environ.get("SKPUFFER_TEST_DATA")
if folder:
    people, others = (
        fetch_adult(subset=subset, data_home=folder) for subset in ("train", "test")
    )
else:
    people, others = load_adult(subset="train"), load_adult(subset="test")
schema = people.schema.without("fnlwgt").without("education")

model = PrivateAdditiveClassifier(schema=schema, random_state=0)
model.fit(people.data, people.target)
print(model.certificate_)

# %%
# What it learnt
# --------------
# *Which columns speak for a high income, and how surely?*
# The score of a person is the sum of the functions; it is the log-odds of an income
# above $50,000. Bands are two standard errors of the noise, known from the accounting.
# Where a cell holds few people, as the grey bars say, the band is wide and the function
# is drawn towards its neighbours.
drawn = [
    "age",
    "education-num",
    "hours-per-week",
    "capital-gain",
    "marital-status",
    "workclass",
]
display = ShapeDisplay.from_estimator(model, features=drawn)
if len(sys.argv) > 1:
    display.figure_.savefig(sys.argv[1])
    print(f"The figure is saved to {sys.argv[1]}")
else:
    plt.show()

# %%
# Correct what should not be there
# --------------------------------
# *What does a function look like once it is corrected by hand?*
# A decision must not rest on sex, and more gain on capital should not count for less:
# where hardly anybody is, noise draws the function. Shape functions are public, so both
# are a matter of writing. The function of sex becomes zero, that of capital-gain the
# nearest one that never falls (``monotone_constraints`` does the latter in the fit).
accuracy = {"as released": model.score(others.data, others.target)}
of_sex, of_gain = (model.shape_functions_[name] for name in ("sex", "capital-gain"))
print(pd.Series(of_sex.scores, index=of_sex.cells[0], name="score of sex").round(2))

rising = isotonic_regression(of_gain.scores, sample_weight=of_gain.masses + 1e-6)
model.edit("capital-gain", rising).edit("sex", np.zeros_like(of_sex.scores))
accuracy["edited"] = model.score(others.data, others.target)

_, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True, layout="constrained")
axes[0].set_ylim(-2, 5)
ShapeDisplay(
    functions=[of_gain, model.shape_functions_["capital-gain"]],
    edges={"capital-gain": model.binning_.edges[schema.names.index("capital-gain")]},
).plot(axes)
for ax, words in zip(axes, ("as released", "edited"), strict=True):
    ax.set_title(f"capital-gain, {words}", fontsize="medium")
plt.show()

# %%
# The columns that go with sex are still there, and so is what they tell of it. Whether
# that may be guessed from the model is a question for a scenario, not for an edit.
#
# Beside a linear model
# ---------------------
# Of the same table by the same code book at the same promise. The fewer the records,
# the less there is to choose between the two.
for epsilon in (0.1, 1.0):
    for kind in (PrivateAdditiveClassifier, PrivateLogisticRegression):
        other = kind(accountant=PrivacyLoss(epsilon), schema=schema, random_state=0)
        other.fit(people.data, people.target)
        name = f"{kind.__name__}, ε = {epsilon:g}"
        accuracy[name] = other.score(others.data, others.target)
print(pd.Series(accuracy, name="accuracy").round(3))
