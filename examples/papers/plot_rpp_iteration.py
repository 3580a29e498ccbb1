"""
What the last iterate forgets, and of whom
==========================================

Noisy descent that reads one record a step, and of which only the end is released: the
noise of later steps hides what earlier records moved. How much of that is left for each
record, and what may be said of records that depend on each other?

After Pierquin, Bellet, Tommasi and Boussard, *Rényi Pufferfish privacy: general
additive noise mechanisms and privacy amplification by iteration* (2024), Section 6.4
and Appendix F; Figures 5 and 6 are in
:ref:`sphx_glr_auto_examples_papers_plot_renyi_pufferfish.py`. The paper bounds each
step by the distance of its own distributions; the last section shows why that is not
enough.
"""

# %%
# The last record
# ---------------
# *How much does the end of a run tell of each record?*
# Figures 5 and 6 are about the first record. A promise is about all, and the last one
# has no later noise to hide in. In a series (correlation 0.5 between neighbours) the
# loss of each record is between that of one record and that of a group. If steps
# contract, as on strongly convex losses, early records are forgotten fast. If iterates
# are projected on a bounded set, not even a group loses more than a constant. The loss
# is drawn in units of the loss when one step is taken and its iterate released.
import math
import os
import warnings

import matplotlib.pyplot as plt
import numpy as np

from skpuffer.exceptions import PrivacyWarning
from skpuffer.privacy import gaussian_prior_shifts, iteration_cost

small = os.environ.get("SKPUFFER_EXAMPLE_SIZE") == "small"
alpha, scale = 2.0, 1.0
unit = iteration_cost([1.0], scale, alpha, coupling="joint")
n_steps = 20 if small else 60
t = np.arange(n_steps)
series = gaussian_prior_shifts(0.5 ** np.abs(t[:, None] - t), gap=1.0)
cases = {
    "A group": (np.ones((n_steps, n_steps)), {}),
    "A group, within a diameter of 2": (np.ones((n_steps, n_steps)), {"diameter": 2.0}),
    "Series": (series, {}),
    "Series, contraction 0.9": (series, {"contraction": 0.9}),
    "One record (plain DP)": (np.eye(n_steps), {}),
}
_, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for (label, (shifts, options)), style in zip(
    cases.items(), ["-", "--", "o-", "v-", "s-"], strict=True
):
    losses = [
        iteration_cost(row, scale, alpha, coupling="joint", **options) / unit
        for row in shifts
    ]
    ax.semilogy(t + 1, losses, style, label=label, markersize=3)
    print(f"{label}: worst record {max(losses):.3f}")
ax.set(
    xlabel="Step that uses the secret record",
    ylabel="Loss, over that of one step",
    ylim=(3e-3, 8000),
)
ax.legend(ncols=2, fontsize="small", loc="upper center")
plt.show()

# %%
# One coupling, not one for each step
# -----------------------------------
# *Is it enough to look at the distribution of each step?*
# A secret sign s, then pairs of records: a fair coin u, and s times the same coin. Each
# of these records is a fair coin, whatever the secret, so the distributions of its step
# do not move at all. The paper's bound counts the first step alone, as plain
# differential privacy of that record does, and promises the less the more pairs there
# are. But the sum of all records gives the secret away: under one sign pairs cancel,
# under the other they do not. The true loss is known in closed form. Shifts under one
# coupling of the whole sequence, which keep u and move s times u, bound it: that is
# group privacy of all records that the sign reaches.
counts = [1, 2, 5, 10, 20]
true, one_by_one, together = [], [], []
for k in counts:
    total = 2 * k + 1
    gaps = np.array([2 + 2 * k, 2 - 2 * k])  # from the one mean where pairs cancel
    true.append(math.log(np.exp(np.outer(gaps, gaps) / total).mean()))
    marginal = np.array([2.0] + [0.0, 0.0] * k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # the point of this section
        one_by_one.append(iteration_cost(marginal, 1.0, 2.0, coupling="independent"))
    moved = np.array([2.0] + [0.0, 2.0] * k)
    together.append(iteration_cost(moved, 1.0, 2.0, coupling="joint"))

_, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.semilogy(counts, together, "o-", label="One coupling of all steps")
ax.semilogy(counts, true, "k.--", label="True loss")
ax.semilogy(counts, one_by_one, "s-", label="Each step on its own: plain DP, not sound")
ax.set_xticks(counts)
ax.set(xlabel="Pairs of records", ylabel="Rényi divergence of order 2 (nats)")
ax.legend()
plt.show()
