"""What bounds do to a private regression of the diabetes data."""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from skpuffer.compose import PublicPreprocessing
from skpuffer.exceptions import PrivacyWarning
from skpuffer.linear_model import PrivateRidge

warnings.simplefilter("ignore", PrivacyWarning)
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
ridge = PrivateRidge(data_norm=3.0, target_bounds=(25, 346))
scaled = PublicPreprocessing(StandardScaler(), ridge, reference=X[::2])
cut = PublicPreprocessing(
    StandardScaler(),
    PrivateRidge(data_norm=3.0, target_bounds=(-1, 1)),
    reference=X[::2],
)
models = {
    "raw units": ridge,
    "scaled by public rows": scaled,
    "targets above\ntheir bounds": cut,
}
scores = {}
for name, model in models.items():
    fits = [model.fit(X[1::2], y[1::2]).score(X[::2], y[::2]) for _ in range(5)]
    scores[name] = sum(fits) / len(fits)
fig, ax = plt.subplots(figsize=(5.5, 2.2), layout="constrained")
bars = ax.barh(list(scores), list(scores.values()), color=["C1", "C0", "C3"])
ax.bar_label(bars, fmt="%.1f", padding=3)
ax.axvline(0, color="k", lw=1)
ax.set(xlabel="R² on rows that were not fitted", xlim=(-4.6, 1.1))
ax.invert_yaxis()
plt.show()
