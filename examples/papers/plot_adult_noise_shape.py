"""
Does the shape of the noise matter in training?
===============================================

Training by noisy gradients with generalised Gaussian noise instead of Gaussian noise: a
perceptron with two layers on the Adult table, for several shapes β under one budget.
The finding of Rinberg, Shumailov, Singhal, Cummings and Papernot, *Beyond Laplace and
Gaussian: exploring the generalized Gaussian mechanism for private machine learning*
(Figures 4 and 9 to 19): β has a weak effect, and about 2 is best. Here with accounting
that holds for whole gradients.

The table is read from the directory that the environment variable
``SKPUFFER_TEST_DATA`` names; without one, the sample of it that is shipped with the
library is used: 4000 private and 2000 public rows.
"""

# %%
# The table
# ---------
# Columns are scaled by the published test file, which stands for public rows here.
import os
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skpuffer.accountants import PrivacyLoss
from skpuffer.datasets import fetch_adult, load_adult
from skpuffer.exceptions import UnsupportedError
from skpuffer.inspection import equivalent_noises
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.noise import GeneralizedGaussianNoise
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario

small = os.environ.get("SKPUFFER_EXAMPLE_SIZE") == "small"
where = os.environ.get("SKPUFFER_TEST_DATA")
adult = partial(fetch_adult, data_home=where) if where else load_adult
public, private = adult(subset="test"), adult(subset="train")

numeric = ["age", "education-num", "hours-per-week", "capital-gain", "capital-loss"]
nominal = ["workclass", "marital-status", "occupation", "relationship", "sex"]
encoder = OneHotEncoder(
    categories=[list(public.categories[c]) for c in nominal],
    handle_unknown="ignore",
    sparse_output=False,
)
prepare = make_column_transformer((encoder, nominal), (StandardScaler(), numeric))
X_public = prepare.fit_transform(public.frame)
X = prepare.transform(private.frame)
y, y_public = ((bunch.target == ">50K").to_numpy() for bunch in (private, public))
if small:
    X, y = X[:4000], y[:4000]
print(f"{X.shape[0]} private rows, {X.shape[1]} columns")

# %%
# A perceptron for each shape
# ---------------------------
# The same budget for all; steps and step sizes are by the library's rule. Noise of
# shape β up to 2 measures a gradient in the norm of order β, and gradients are clipped
# in it; above 2 in l2. The accounting is for gradients that point anywhere, not for one
# coordinate.
shapes = [1, 1.5, 2, 3] if small else [1, 1.25, 1.5, 1.75, 2, 2.5, 3]
budgets = [1.0] if small else [0.3, 1.0]
n_repeats = 2 if small else 3
scores = np.empty((len(budgets), len(shapes), n_repeats))
rows = []
for i, epsilon in enumerate(budgets):
    for j, beta in enumerate(shapes):
        model = PrivateMLPClassifier(
            accountant=PrivacyLoss(
                epsilon, delta=1e-5, noise="generalized_gaussian", beta=beta
            ),
            hidden_size=16,
            data_norm=3.0,
        )
        for k in range(n_repeats):
            scores[i, j, k] = model.fit(X, y).score(X_public, y_public)
        release = model.release_
        rows.append(
            (
                epsilon,
                beta,
                release.clip_order,
                release.n_steps,
                model.noise_.std() / release.clip_norm,
                scores[i, j].mean(),
            )
        )
columns = ["epsilon", "shape", "norm", "steps", "std / clip norm", "accuracy"]
table = pd.DataFrame(rows, columns=columns)
print(table.round(4).to_string(index=False))

# %%
# From β = 1.5 on the effect is weak. Clipping in l1, which Laplace noise (β = 1) takes,
# leaves less of a gradient of many coordinates. The line without privacy is a
# perceptron of scikit-learn.
ceiling = MLPClassifier((16,), early_stopping=True, random_state=0)
ceiling = ceiling.fit(X, y).score(X_public, y_public)
figure, ax = plt.subplots(layout="constrained")
for epsilon, each in zip(budgets, scores, strict=True):
    mean, std = each.mean(axis=1), each.std(axis=1)
    ax.errorbar(shapes, mean, std, fmt="o-", capsize=3, label=f"ε = {epsilon:g}")
ax.axhline(ceiling, color="0.3", linestyle="--", label="Without privacy")
ax.axhline(1 - y_public.mean(), color="0.6", linestyle=":", label="Always the majority")
ax.set(xlabel="Shape β", ylabel="Accuracy", title="Adult, δ = 1e-5")
ax.legend()
plt.show()

# %%
# The last word on a choice of β belongs to its cost: chosen by accuracy on private rows
# it is another release. By the noise alone, which is public, it is free: for one
# coordinate and so many steps, this is the standard deviation each shape needs.
for noise in equivalent_noises(1.0, 1e-5, shapes, n_steps=release.n_steps):
    print(f"β = {noise.beta:g}: {noise.std() / noise.scale:.3f} s = {noise.std():.2f}")

# %%
# What is refused
# ---------------
# The paper clips in the norm of order β also above 2, and accounts for one coordinate.
# There is no bound for that which holds in every dimension, so it is refused.
run = GradientRelease(
    n_records=1000, n_steps=10, sampling="full_batch", clip_order=3.0, dim=4034
)
noise = GeneralizedGaussianNoise(10.0, beta=3.0)
try:
    PrivacyLoss().certify(noise, run, RecordScenario())
except (UnsupportedError, ValueError) as error:
    print(error)
