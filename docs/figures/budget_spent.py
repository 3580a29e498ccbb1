"""What equal releases cost together, added up plainly and by their whole curves."""

import matplotlib.pyplot as plt

from skpuffer.accountants import PrivacyLoss
from skpuffer.privacy import compose
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import RecordScenario

release = QueryRelease(
    query=lambda X, y: X.mean(axis=0),
    n_records=1000,
    dim=1,
    sensitivity=Sensitivity(add_remove={1: 1e-3, 2: 1e-3}),
)
fig, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
counts = [1, 2, 4, 8, 16, 32]
ax.loglog(counts, [0.3 * n for n in counts], "k:", label="epsilons added up")
for family, style in (("laplace", "s-"), ("gaussian", "o-")):
    one = PrivacyLoss(0.3, 1e-5, noise=family).calibrate(release, RecordScenario())
    spent = [
        compose([one.certificate] * n).to_approximate(1e-5).epsilon for n in counts
    ]
    ax.loglog(counts, spent, style, label=f"{family} noise, by the curve")
ax.set(xlabel="releases of (0.3, 1e-5) each", ylabel="ε of all, δ = 1e-5")
ax.legend(frameon=False)
plt.show()
