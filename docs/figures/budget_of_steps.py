"""What each step of a pipeline gets of one budget."""

import matplotlib.pyplot as plt
import numpy as np

from skpuffer.accountants import PrivacyLoss
from skpuffer.compose import PrivatePipeline
from skpuffer.decomposition import PrivatePCA
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.summary import PrivateStandardScaler

BUDGET = 2.0
steps = [
    ("scaler", PrivateStandardScaler(bounds=(0, 100))),
    ("pca", PrivatePCA(n_components=3, data_norm=3.0)),
    ("classifier", PrivateLogisticRegression(data_norm=3.0)),
]
pipeline = PrivatePipeline(
    steps, accountant=PrivacyLoss(BUDGET, 1e-5, noise="gaussian")
)
names = [name for name, _ in steps]


def split(shares):
    told = pipeline.set_params(shares=shares)
    found = told.preview(1000, n_features=6, classes=[0, 1]).epsilons
    return [found[name] for name in names]


bars = {
    "divided by three": [BUDGET / 3] * 3,
    "equal shares": split(dict.fromkeys(names, 1)),
    "by expected error, the default": split(None),
}
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
at, width = np.arange(len(names)), 0.27
for i, (label, heights) in enumerate(bars.items()):
    color = ("0.75", "C0", "C1")[i]
    drawn = ax.bar(at + (i - 1) * width, heights, width, color=color, label=label)
    ax.bar_label(drawn, fmt="{:.2f}", fontsize="small", padding=1)
ax.set_xticks(at, names)
ax.set(ylabel=f"ε of the step, of {BUDGET:g} for all")
ax.margins(y=0.3)
ax.legend(frameon=False, fontsize="small", loc="upper left")
plt.show()
