"""What is left for one trial where a search keeps the budget, by its candidates."""

import math

import matplotlib.pyplot as plt
import numpy as np

from skpuffer.accountants import PrivacyLoss
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.model_selection import PrivateGridSearchCV
from skpuffer.privacy_loss import GaussianCurve

BUDGET, DELTA = 2.0, 1e-5


def curve_of(n_candidates, **trials):
    search = PrivateGridSearchCV(
        PrivateLogisticRegression(data_norm=3.0),
        {"C": np.geomspace(1e-3, 1, n_candidates).tolist()},
        accountant=PrivacyLoss(BUDGET, DELTA),
        **trials,
    )
    return search.preview(4000, n_features=5, classes=[0, 1]).certificate.curve


def of_a_trial(n_candidates, trials):
    """Two trials for each candidate, on average."""
    found = curve_of(n_candidates, trials=trials, n_trials=2 * n_candidates)
    return found.curve.epsilon(DELTA)


def of_the_grid(n_candidates):
    """Each candidate once; all scores are released, and composed."""
    return GaussianCurve(WHOLE / math.sqrt(n_candidates)).epsilon(DELTA)


WHOLE = curve_of(2, trials="each").mu
counts = [2, 4, 8, 16]
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for trials, style in (("geometric", "o-"), ("poisson", "s-")):
    left = [of_a_trial(n, trials) for n in counts]
    ax.loglog(counts, left, style, label=f"private search, {trials}")
ax.loglog(counts, [of_the_grid(n) for n in counts], "^--", label="plain grid, composed")
ax.loglog(counts, [BUDGET / n for n in counts], "k:", label="plain grid, added up")
ticks = [0.1, 0.2, 0.5, 1, 2]
ax.set_xticks(counts, counts)
ax.set_yticks(ticks, ticks)
ax.minorticks_off()
ax.set(xlabel="candidates", ylabel=f"ε of one trial, of {BUDGET:g} for all")
ax.legend(frameon=False, fontsize="small")
plt.show()
