"""
Noises that are equally private
===============================

Between Laplace and Gaussian noise, and beyond, there is a family: generalised Gaussian
noise, with density proportional to ``exp(-(|x| / s)**β)``. For each shape β there is
a least scale s that keeps a promise. Are some shapes better than others?

The figures are those of Rinberg, Shumailov, Singhal, Cummings and Papernot, *Beyond
Laplace and Gaussian: exploring the generalized Gaussian mechanism for private machine
learning* (Figures 1, 2 and 5), computed exactly instead of by sampling.
"""

# %%
# One number, released once
# -------------------------
# The records move it by at most one. All these noises keep (1.5, 1e-5)-differential
# privacy, but they do not look alike.
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skpuffer.accountants import PrivacyLoss
from skpuffer.inspection import EquivalentNoiseDisplay, equivalent_noises, lightest_tail
from skpuffer.noise import GeneralizedGaussianNoise
from skpuffer.papers import SampledPrivacyLoss
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario

small = os.environ.get("SKPUFFER_EXAMPLE_SIZE") == "small"

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
display = EquivalentNoiseDisplay.from_budget(epsilon=1.5, delta=1e-5, ax=left)
display.plot(right, kind="log_density")
plt.show()

table = {"scale": display.scales, "standard deviation": display.stds}
print(pd.DataFrame(table, index=pd.Index(display.betas, name="shape")).round(4))

# %%
# The scale says little. A larger shape takes a larger scale, and in this regime a
# larger standard deviation as well: for a single release Laplace noise disturbs least.
#
# How the budget grows as the scale falls
# ---------------------------------------
# Exact curves of one release; the dotted line is a budget of 4.
figure, ax = plt.subplots(layout="constrained")
scales = np.geomspace(0.2, 6, 25 if small else 100)
shapes = (1, 1.25, 1.5, 2, 3, 4)
colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(shapes)))
for beta, colour in zip(shapes, colours, strict=True):
    noises = [GeneralizedGaussianNoise(scale, beta=beta) for scale in scales]
    epsilons = [noise.epsilon(1e-5, 1.0) for noise in noises]
    ax.plot(scales, epsilons, color=colour, label=f"β = {beta:g}")
ax.axhline(4.0, color="0.3", linestyle=":")
ax.set(xscale="log", ylim=(0, 12), xlabel="Scale s", ylabel="ε at δ = 1e-5")
ax.set_xticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
ax.set_xticks([], minor=True)
ax.set_title("One release that a record moves by at most 1")
ax.legend()
plt.show()

# %%
# Tails: once, and many times under one promise
# ---------------------------------------------
# The chance that the noise exceeds a threshold τ. For one release Laplace noise is the
# lightest at every threshold. For many releases under the same promise it is not:
# losses add up to something nearly Gaussian, and a shape between Laplace and Gaussian
# has the lightest far tail.
shapes = np.linspace(1, 4, 7 if small else 13)
runs = {
    "one release": {},
    "100 releases, sampling rate 0.01": {"n_steps": 100, "sampling_rate": 0.01},
}
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, (name, run) in zip(axes, runs.items(), strict=True):
    display = EquivalentNoiseDisplay.from_budget(
        epsilon=1.5, delta=1e-5, betas=shapes, kind="tail", ax=ax, **run
    )
    ax.set_title(name)
    for threshold, tails in zip(display.thresholds, display.tails.T, strict=True):
        best = display.betas[np.argmin(tails)]
        print(f"{name}, τ = {threshold:g}: β = {best:g} of these is lightest")
plt.show()

# %%
# A search over all shapes. It looks at nothing private, so it costs no budget; a choice
# by validation scores would.
best = lightest_tail(1.5, 1e-5, 4.0, n_steps=100, sampling_rate=0.01)
print(f"lightest beyond 4: β = {best.noise.beta:.2f}, chance {best.probability:.2g}")

# %%
# The standard deviation tells the same. Under ever more releases the budget is spent on
# the Fisher information of the noise; of all noises with one variance the Gaussian has
# the least. That is why β about 2 is hard to beat in training.
figure, ax = plt.subplots(layout="constrained")
for n_steps in (1, 10, 1000):
    noises = equivalent_noises(1.0, 1e-5, shapes, n_steps=n_steps)
    stds = np.array([noise.std() for noise in noises])
    name = "1 release" if n_steps == 1 else f"{n_steps} releases"
    ax.plot(shapes, stds / stds.min(), marker="o", markersize=4, label=name)
ax.set(xlabel="Shape β", ylabel="Standard deviation, least = 1", ylim=(0.9, 4))
ax.set_title("Which shape disturbs least depends on how often it is used")
ax.legend()
plt.show()

# %%
# Why there is nothing to sample
# ------------------------------
# The paper estimates privacy losses by sampling. The same number by the sampled and by
# the exact accountant; the sampled one's certificate says that it is an estimate.
release = GradientRelease(n_records=100, n_steps=1, sampling="full_batch", dim=1)
noise = GeneralizedGaussianNoise(1.0, beta=1.5)
n_samples = 10_000 if small else 1_000_000
sampled = [
    SampledPrivacyLoss(n_samples=n_samples).certify(noise, release, RecordScenario())
    for _ in range(5)
]
print("sampled:", [round(certificate.epsilon, 3) for certificate in sampled])
exact = PrivacyLoss().certify(noise, release, RecordScenario())
print("exact:  ", round(exact.epsilon, 5))
print("promised?", sampled[0].certified)

# %%
# The bound on the sampling error that goes with it leaves delta uncertain by far more
# than any delta one would ask for:
eta, tau = SampledPrivacyLoss.error_bound(
    1, mesh=1e-3, half_width=10, n_samples=1e7, slack=5e-3, deviation=2e-2
)
print(f"ten million samples: delta to within {eta:.2f}, epsilon to within {tau:.2f}")
