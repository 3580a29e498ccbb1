"""
Records that depend on each other: Gaussian, Markov, Langevin
=============================================================

What one record gives away of the others, in three cases where it can be written down.
There are two yardsticks at the same budget. *Plain differential privacy* hides one
record but not what the others tell of it. *Group privacy*, differential privacy of the
whole series, hides that too, and takes the most noise.

After Pierquin, Bellet, Tommasi and Boussard, *Rényi Pufferfish privacy: general
additive noise mechanisms and privacy amplification by iteration* (2024), Section 6 and
Appendix F; quilts after Song, Wang and Chaudhuri, *Pufferfish privacy mechanisms for
correlated data* (2017).
"""

# %%
# Jointly Gaussian records
# ------------------------
# A series whose records t steps apart have correlation ρ to the power of t. One value
# is secret, in an interval of length two; given another value all other records move by
# a known amount and vary as before. The mean without bounds has an exact answer, in
# which moves may cancel. With bounds, moves are clipped record by record and added up.
# A logistic regression pays for each record by how far it moves; its labels are public,
# and it is given them that the series is Gaussian.
import math

import matplotlib.pyplot as plt
import numpy as np

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, MarkovQuilt
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import (
    DiffusionScenario,
    GaussianScenario,
    MarkovChainScenario,
    RecordScenario,
)
from skpuffer.summary import PrivateMean

n = 100
times = np.arange(n)
budget = {"epsilon": 1.0, "alpha": 4.0}
everyone = RecordScenario(n, relation="replace")
rng = np.random.default_rng(0)
y = rng.integers(0, 2, size=n)
X = (0.8 * (2 * y - 1) + rng.normal(size=n))[:, None]
persistences = np.r_[-0.9, -0.6, -0.3, 0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 0.995]
models = {
    "Mean": PrivateMean(accountant=GeneralWasserstein(**budget)),
    "Mean within bounds": PrivateMean(
        accountant=GroupPrivacy(**budget), bounds=(-2, 2)
    ),
    "Logistic regression": PrivateLogisticRegression(
        accountant=GroupPrivacy(**budget), data_norm=2.0
    ),
}
moved = {label: [] for label in models}
for rho in persistences:
    scenario = GaussianScenario(
        covariance=rho ** np.abs(times[:, None] - times),
        covariance_of="records",
        domain=(-1, 1),
    )
    for label, model in models.items():
        certificate = model.set_params(scenario=scenario).fit(X, y).certificate_
        moved[label].append(certificate.sensitivity)

# %%
# *How far does one value move a series, by how its neighbours go with it?*
# Against hiding the whole series, group privacy. The mean without bounds knows no such
# thing; it is set against that within bounds, in the same units. The dotted line is
# plain differential privacy of values in [-2, 2]: below it the scenario needs less, as
# its secret lies in half of that. Where a curve nears one the scenario is worth little:
# there group privacy costs about as much, and need not know the correlation.
_, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
for label, style in zip(models, ["-", "--", "-."], strict=True):
    whole = models["Mean within bounds" if label == "Mean" else label]
    group = whole.set_params(scenario=everyone).fit(X, y).certificate_.sensitivity
    unit = 2.0 if label == "Mean" else 1.0  # bounded means are in half-ranges
    ax.plot(persistences, np.array(moved[label]) / unit / group, style, label=label)
# additive noise covers the records that differ one by one: one of n is 1 / n of all
ax.axhline(1 / n, color="0.6", linestyle=":", label="Plain differential privacy")
ax.set(
    yscale="log",
    xlabel="Correlation ρ of neighbours",
    ylabel="Distance, against the whole series",
    title=f"Gaussian series of {n} records",
)
ax.legend(fontsize="small")

# %%
# A Markov chain
# --------------
# *How much noise does a chain take, by its length?*
# Two states, left with probabilities 0.1 and 0.2; the number of visits to the second is
# released with Laplace noise at ε = 1. The distributions of the count are exact: in W∞
# they are 5, 6, 7, 7, 6 visits apart for 5 to 100 records. The distance is driven by
# what is barely possible, so it does not grow steadily. Quilts need more noise, and no
# distributions. Of five records nothing is gained over group privacy, by quilts not
# even of twenty: it is the better promise then, as it assumes no chain.
transition = [[0.9, 0.1], [0.2, 0.8]]
lengths = [5, 10, 20, 50, 100, 200, 500]
pure = {"epsilon": 1.0, "alpha": math.inf, "noise": "laplace"}
accountants = {
    "Group privacy": GroupPrivacy(**pure),
    "Quilts, by the gap": MarkovQuilt(1.0, method="approximate", noise="laplace"),
    "Quilts, exact": MarkovQuilt(1.0, noise="laplace"),
    "Wasserstein": GeneralWasserstein(**pure),
}
scales = {label: [] for label in accountants}
chain = MarkovChainScenario(transition, event_delta=0)
for length in lengths:
    visits = QueryRelease(
        contribution=lambda X, y: X, is_sum=True, n_records=length, dim=1
    )
    for label, accountant in accountants.items():
        scales[label].append(accountant.calibrate(visits, chain).noise.scale)
print("W_inf:", dict(zip(lengths, scales["Wasserstein"], strict=True)))
_, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
for label, style in zip(accountants, ["s--", "v-", "o-", "D-"], strict=True):
    ax.loglog(lengths, scales[label], style, label=label, markersize=4)
# one record changes the count by one, whatever the others do
ax.axhline(1.0, color="0.6", linestyle=":", label="Plain differential privacy")
ax.set(
    xlabel="Records",
    ylabel="Scale of the noise (visits)",
    title="Two-state chain, ε = 1",
)
ax.legend(fontsize="small")

# %%
# A Langevin diffusion
# --------------------
# *How fast do two paths with the same noise come together?*
# A path that drifts towards a minimum and is shaken by noise; the secret is where it
# started. Two paths with the same noise come closer by exp(-Ct) where the potential
# curves by C at least, and the Ornstein-Uhlenbeck process comes no closer. The printed
# bound has exp(-2Ct), which the process exceeds.
curvature, diameter = 0.5, 2.0
seconds = np.linspace(0.5, 6, 12)
paths = DiffusionScenario(curvature=curvature, times=seconds, diameter=diameter)
steps = 400
dt = seconds[-1] / steps
shake = math.sqrt(2 * dt) * np.random.default_rng(1).normal(size=steps)
ends = np.array([1.0, -1.0])
found = [ends]
for kick in shake:
    found.append(found[-1] * math.exp(-curvature * dt) + kick)
found = np.array(found)
_, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
ax.semilogy(
    np.linspace(0, seconds[-1], steps + 1),
    np.abs(np.diff(found, axis=1)),
    label="Two paths, the same noise",
    color="0.6",
    linewidth=4,
)
ax.semilogy(seconds, paths.record_shifts(), "o", label="Bound")
ax.semilogy(
    seconds, diameter * np.exp(-2 * curvature * seconds), "--", label="Bound as printed"
)
ax.set(xlabel="Time", ylabel="Distance", title="Ornstein-Uhlenbeck process")
ax.legend(fontsize="small")
plt.show()

# %%
# The mean of the path's records then moves by the mean of these bounds. It is a linear
# query, so no bounds of the records are needed. Plain differential privacy has no noise
# for it at any budget: without bounds one record may move the mean anywhere.
mean = PrivateMean(paths, GeneralWasserstein(**budget)).fit(X[:12])
print(mean.certificate_)
