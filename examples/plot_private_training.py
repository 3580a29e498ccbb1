"""
Training with noisy gradients
=============================

A classifier of handwritten digits, trained so that nobody can tell whether any one
image was among those it learnt from. Nothing is tuned: the number of steps, the clip
norm and the step size follow from public facts. Then: what each way of choosing batches
costs, and what the budget bought.
"""

# %%
# The table
# ---------
# Pixels lie between 0 and 16, which is public, so they can be centred without looking
# at the data. Rows are scaled down to a public norm within `fit`.
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit, cross_val_score

from skpuffer.accountants import PrivacyLoss, RenyiDP
from skpuffer.inspection import PrivacyUtilityDisplay
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.noise import GaussianNoise
from skpuffer.releases import SAMPLING_SCHEMES, GradientRelease
from skpuffer.scenarios import RecordScenario
from skpuffer.svm import PrivateLinearSVC

small = os.environ.get("SKPUFFER_EXAMPLE_SIZE") == "small"

X, y = load_digits(return_X_y=True)
X = (X - 8) / 64  # an image of extreme pixels has norm one
print(f"{len(X)} images of {X.shape[1]} pixels")

# %%
# A private classifier
# --------------------
# All ten classes are trained in one release. What was accounted is what ran.
model = PrivateLogisticRegression(accountant=PrivacyLoss(epsilon=1.0, delta=1e-5))
model.fit(X, y)
release = model.release_
print(model.certificate_)
print(
    f"{release.n_steps} sums of gradients, each at most {release.clip_norm:.3g} long, "
    f"with noise of standard deviation {model.noise_.scale:.3g}"
)

# %%
# What a way of choosing batches costs
# ------------------------------------
# The same noise and the same number of epochs. A secret coin for each record hides who
# took part; dealing out shuffled batches is not credited with anything.
rows = []
for sampling in SAMPLING_SCHEMES:
    full = sampling == "full_batch"
    run = GradientRelease(
        n_records=10_000,
        batch_size=None if full else 100,
        n_steps=10 if full else 1000,
        sampling=sampling,
    )
    # as much noise in the mean gradient of an epoch as any other
    noise = GaussianNoise(scale=20.0 if full else 2.0)
    for relation in ("add_remove", "replace"):
        scenario = RecordScenario(relation=relation)
        exact = PrivacyLoss(delta=1e-5).certify(noise, run, scenario)
        rows.append((sampling, relation, exact.epsilon))
table = pd.DataFrame(rows, columns=["sampling", "relation", "epsilon"])
print(table.pivot(index="sampling", columns="relation", values="epsilon").round(3))

# %%
# Counting the loss itself is tighter than counting its Rényi moments.
run = GradientRelease(n_records=10_000, batch_size=100, n_steps=1000)
for accountant in (PrivacyLoss(delta=1e-5), RenyiDP(delta=1e-5)):
    certificate = accountant.certify(GaussianNoise(1.0), run, RecordScenario())
    print(f"{type(accountant).__name__}: epsilon = {certificate.epsilon:.3f}")

# %%
# What the budget bought
# ----------------------
# *How accurate is the model, at which budget?*
# Accuracy against budget, beside the same kind of model without privacy.
cv = StratifiedShuffleSplit(n_splits=2 if small else 10, random_state=0)
display = PrivacyUtilityDisplay.from_estimator(
    model,
    X,
    y,
    epsilons=[0.25, 0.5, 1.0, 2.0, 4.0, 8.0],
    reference=LogisticRegression(C=100.0, max_iter=2000),
    cv=cv,
    score_name="accuracy",
    name="logistic regression",
)
machine = PrivateLinearSVC(accountant=PrivacyLoss(epsilon=1.0, delta=1e-5))
scores = cross_val_score(machine, X, y, cv=cv)
print(f"a support vector machine at epsilon 1: {np.mean(scores):.3f}")
display.ax_.set_title("Digits: accuracy against budget")
plt.tight_layout()
plt.show()
