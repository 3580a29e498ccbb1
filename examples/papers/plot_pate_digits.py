"""
Teachers vote, a student listens
================================

Private aggregation of teacher ensembles (PATE): the private table is dealt to teachers
who learn apart from each other, they vote on public rows, the votes get noise, and a
student learns from what was released. Any classifier of scikit-learn can be a teacher.

After Papernot et al. (2017), *Semi-supervised knowledge transfer for deep learning from
private training data*, and Papernot et al. (2018), *Scalable private learning with
PATE*, on the small digits of scikit-learn, with 50 and with 250 teachers. Which shape
of noise names the winner best is told in
:ref:`sphx_glr_auto_examples_papers_plot_generalized_gaussian.py`."""

# %%
# The tables
# ----------
# Three quarters are private. Half of the rest are public rows without labels, the other
# half is for testing.
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skpuffer.accountants import PrivacyLoss
from skpuffer.ensemble import PATEClassifier
from skpuffer.exceptions import QueryBudgetError

small = os.environ.get("SKPUFFER_EXAMPLE_SIZE") == "small"

X, y = load_digits(return_X_y=True)
X = X / 16  # the range of a pixel is public
X_private, X_rest, y_private, y_rest = train_test_split(
    X, y, test_size=0.25, stratify=y, random_state=0
)
X_public, X_test, _, y_test = train_test_split(
    X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0
)
print(f"{len(X_private)} private rows, {len(X_public)} public, {len(X_test)} for tests")

# %%
# One ensemble
# ------------
# Fifty teachers with 27 images each. The student may be asked as often as one likes: it
# has seen public rows and released votes only.
model = PATEClassifier(
    n_teachers=50,
    student="histograms",
    unlabeled=X_public,
    n_queries=200,
    accountant=PrivacyLoss(epsilon=8.0, delta=1e-5),
)
model.fit(X_private, y_private)
print(model.certificate_)
print(f"noise of {model.noise_.std():.1f} votes, of {model.n_teachers}")
print(f"accuracy {model.score(X_test, y_test):.3f}")

# %%
# How many teachers does a budget need?
# -------------------------------------
# A record has one vote, whatever the number of teachers, so the noise is the same for
# 50 teachers and for 250, and 250 votes outweigh it five times as well. But a table of
# this size leaves each of the 250 only five images to learn from. Two kinds of
# students: one that learns from the labels that win (``'supervised'``), and one that
# smooths the noisy counts over all public rows (``'histograms'``).
budgets = [1.0, 2.0, 8.0] if small else [0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
n_repeats = 2 if small else 10
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
rows = []
for ax, student in zip(axes, ("supervised", "histograms"), strict=True):
    for n_teachers in (50, 250):
        scores = np.empty((len(budgets), n_repeats))
        for i, epsilon in enumerate(budgets):
            one = PATEClassifier(
                n_teachers=n_teachers,
                student=student,
                unlabeled=X_public,
                n_queries=200,
                accountant=PrivacyLoss(epsilon, delta=1e-5),
            )
            for j in range(n_repeats):
                scores[i, j] = one.fit(X_private, y_private).score(X_test, y_test)
        mean, std = scores.mean(axis=1), scores.std(axis=1)
        (line,) = ax.plot(budgets, mean, "o-", label=f"{n_teachers} teachers")
        ax.fill_between(
            budgets, mean - std, mean + std, color=line.get_color(), alpha=0.2, lw=0
        )
        rows.append((student, n_teachers, *mean.round(3)))
    ax.set(xscale="log", xlabel="Budget ε at δ = 1e-5", title=student, ylim=(0, 1))
    ax.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
    ax.set_xticks([], minor=True)
axes[0].set_ylabel("Accuracy of the student")
axes[1].legend(loc="lower right")
plt.show()
print(pd.DataFrame(rows, columns=["student", "teachers", *budgets]).to_string())

# %%
# At ε = 8 fifty teachers are enough, and better at larger budgets, as each sees more.
# At ε = 2 the noise has a standard deviation of 40 votes: fifty teachers who all agree
# are just one of those ahead, too few for a plain student. Teachers that are 170 would
# be ahead as far as fifty are at ε = 8, if the table were large enough for them; the
# 250 here with five images each are weak, but better than too few. What helps besides
# is fewer queries, or a student that puts noisy counts together.
#
# Without public rows
# -------------------
# Then the teachers answer themselves, each answer with noise, as many as were paid for.
asked = PATEClassifier(n_teachers=50, n_queries=20, accountant=PrivacyLoss(8.0, 1e-5))
asked.fit(X_private, y_private)
answers = asked.predict(X_test[:20])
print(f"{np.mean(answers == y_test[:20]):.2f} of 20 answers are right")
try:
    asked.predict(X_test[20:21])
except QueryBudgetError as error:
    print("one more:", error)
