"""What a Rényi promise is as an (epsilon, delta) promise, by its order."""

import math

import matplotlib.pyplot as plt
import numpy as np

from skpuffer.accountants import GroupPrivacy
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import RecordScenario

DELTA = 1e-5
release = QueryRelease(
    query=lambda X, y: X.mean(axis=0),
    n_records=1000,
    dim=1,
    sensitivity=Sensitivity(add_remove={1: 1e-3}, replace={1: 1e-3, 2: 1e-3}),
)
orders = np.geomspace(1.5, 128, 25)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharex=True, layout="constrained")
for budget, colour in ((0.1, "C0"), (1.0, "C1"), (4.0, "C2")):
    curve, alone, noise = [], [], []
    for alpha in orders:
        accountant = GroupPrivacy(epsilon=budget, alpha=alpha, noise="gaussian")
        found = accountant.calibrate(release, RecordScenario(relation="replace"))
        curve.append(found.certificate.to_approximate(DELTA).epsilon)
        alone.append(
            budget + math.log1p(-1 / alpha) - math.log(DELTA * alpha) / (alpha - 1)
        )
        noise.append(float(np.max(found.noise.std())) * 1000)
    axes[0].loglog(orders, curve, color=colour, label=f"Rényi ε = {budget:g}")
    axes[0].loglog(orders, alone, color=colour, ls=":", lw=1)
    axes[1].loglog(orders, noise, color=colour)
axes[0].set(xlabel="order α", ylabel=f"ε at δ = {DELTA:g}")
axes[1].set(xlabel="order α", ylabel="noise, in moves of the output")
fig.legend(loc="outside lower center", ncols=3, frameon=False)
plt.show()
