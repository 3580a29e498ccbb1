"""
What the last iterate forgets
=============================

Noisy descent that reads one record a step, and of which only the end is released: the
noise of later steps hides what earlier records moved. How much of that is left when
records depend on each other?

After Pierquin, Bellet, Tommasi and Boussard, *Rényi Pufferfish privacy: general
additive noise mechanisms and privacy amplification by iteration* (2024), Section 6.4,
Figures 5 and 6, and Appendix F. The paper bounds each step by the distance of its own
distributions; the last section shows why that is not enough. Every figure holds plain
differential privacy too, the loss of one record on which no other depends.
"""

# %%
# Constant correlation
# --------------------
# The first record is secret, all others have the same correlation with it, and all are
# jointly Gaussian. The loss is drawn in units of the loss when one step is taken and
# its iterate released. Hiding one record gets easier with every step (differential
# privacy, no correlation); hiding all, harder (a group). Any correlation, however
# small, ends up growing like the group: from nine steps on at a correlation of 0.1.
import math
import os
import warnings

import matplotlib.pyplot as plt
import numpy as np

from skpuffer.exceptions import PrivacyWarning
from skpuffer.privacy import gaussian_prior_shifts, iteration_cost

small = os.environ.get("SKPUFFER_EXAMPLE_SIZE") == "small"
lengths = np.unique(np.geomspace(1, 1000, 12 if small else 60).astype(int))
alpha, scale = 2.0, 1.0
unit = iteration_cost([1.0], scale, alpha, coupling="joint")


def correlated(rho, n_steps):
    """Shifts of the steps when the first record is secret, in units of its own."""
    t = np.arange(1, n_steps + 1)
    return np.where(t == 1, 1.0, rho(t))


def relative_loss(rho, n_steps):
    """Loss of the last iterate over that of a single step."""
    shifts = correlated(rho, n_steps)
    return iteration_cost(shifts, scale, alpha, coupling="joint") / unit


def constant(value):
    return lambda t: value + 0 * t


correlations = {
    "ρ = 1 (a group)": (constant(1.0), "C0-"),
    "ρ = 0.8": (constant(0.8), "C1-"),
    "ρ = 0.2": (constant(0.2), "C2-"),
    "ρ = 0.1": (constant(0.1), "C3-"),
    "ρ = 1/t": (lambda t: 1 / t, "C4--"),
    "ρ = 1/t²": (lambda t: 1 / t**2, "C5--"),
    "ρ = 0 (plain DP)": (constant(0.0), "k:"),
}


def draw(*labels):
    """Loss against the number of steps."""
    _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for label in labels:
        rho, style = correlations[label]
        losses = [relative_loss(rho, int(n)) for n in lengths]
        ax.loglog(lengths, losses, style, label=label)
    ax.set(xlabel="Steps T, one record each", ylabel="Loss, over that of one step")
    ax.legend()
    plt.show()


draw("ρ = 1 (a group)", "ρ = 0.8", "ρ = 0.2", "ρ = 0.1", "ρ = 0 (plain DP)")

# %%
# Correlation that fades
# ----------------------
# If what a record tells of the t-th one after it fades like 1/t or faster, the loss of
# the first record goes to zero with the number of steps all the same.
draw("ρ = 0.1", "ρ = 1/t", "ρ = 1/t²", "ρ = 0 (plain DP)")

# %%
# The numbers behind both figures:
print(f"{'':>20}" + "".join(f"{f'T = {n}':>12}" for n in (10, 100, 1000)))
for label, (rho, _) in correlations.items():
    row = "".join(f"{relative_loss(rho, n):12.6f}" for n in (10, 100, 1000))
    print(f"{label:>20}{row}")

# %%
# The last record
# ---------------
# The figures above are about the first record. A promise is about all, and the last
# one has no later noise to hide in. In a series (correlation 0.5 between neighbours)
# the loss of each record is between that of one record and that of a group. If steps
# contract, as on strongly convex losses, early records are forgotten fast. If iterates
# are projected on a bounded set, not even a group loses more than a constant.
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
