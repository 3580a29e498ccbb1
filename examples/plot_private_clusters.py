"""
Clusters of private records
===========================

k-means by noisy counts and sums. It begins with centres spread over the public bounds,
never with records, and five noisy rounds move them to where records are. All rounds
together are one release with one certificate.
"""

# %%
# The records
# -----------
# Five groups in a square whose bounds are public.
import os
import warnings

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from skpuffer.accountants import OverlapAmplification, PrivacyLoss
from skpuffer.cluster import PrivateKMeans
from skpuffer.exceptions import PrivacyWarning
from skpuffer.scenarios import AttributeScenario, BoundedOdds, RecordScenario

# seeds are for pages that are the same twice, not for a release
warnings.simplefilter("ignore", PrivacyWarning)

small = os.environ.get("SKPUFFER_EXAMPLE_SIZE") == "small"
X, _ = make_blobs(500 if small else 5000, centers=5, random_state=0)
BOUNDS = (-14, 14)

# %%
# Centres at three budgets
# ------------------------
# *How far from the centres without privacy are those that are released?*
# Crosses are released, circles are the centres without privacy. The points, and the
# cell of each, stay with the curator.
exact = KMeans(5, n_init=10, random_state=0).fit(X)
fig, axes = plt.subplots(
    1, 3, figsize=(9, 4), sharex=True, sharey=True, layout="compressed"
)
for ax, epsilon in zip(axes, (0.03, 0.1, 1.0), strict=True):
    model = PrivateKMeans(
        5, bounds=BOUNDS, accountant=PrivacyLoss(epsilon), random_state=1
    ).fit(X)
    ax.scatter(*X.T, s=2, c=model.predict(X), cmap="tab10", alpha=0.4)
    without = ax.scatter(
        *exact.cluster_centers_.T, s=60, facecolors="none", edgecolors="k"
    )
    released = ax.scatter(*model.cluster_centers_.T, s=80, c="k", marker="x")
    # scores are in half-ranges of the bounds
    inertia = -model.score(X) * 14**2 / exact.inertia_
    ax.set(title=f"ε = {epsilon:g}: {inertia:.2f} × the inertia", aspect="equal")
fig.legend(
    [released, without],
    ["centres released", "without privacy"],
    loc="outside lower center",
    ncols=2,
    frameon=False,
)
plt.show()
print(model.certificate_)

# %%
# What a scenario makes of it
# ---------------------------
# Households of four pay four times as much. Where one column is the secret, and the
# others are believed to shift its odds by no more than a factor of four, all rounds are
# amplified at once. Standard deviations of the noise in a count, of the last round:
secret = AttributeScenario("smoker", level="record", prior=BoundedOdds(4.0))
promises = {
    "one record": (RecordScenario(), PrivacyLoss(0.3)),
    "a household of four": (RecordScenario(k=4), PrivacyLoss(0.3)),
    "one secret column": (secret, OverlapAmplification(0.3)),
}
table = pd.DataFrame(X, columns=["east", "north"])
for name, (scenario, accountant) in promises.items():
    model = PrivateKMeans(5, scenario=scenario, accountant=accountant, bounds=BOUNDS)
    print(f"{name}: {model.fit(table).counts_std_:.1f} records")
