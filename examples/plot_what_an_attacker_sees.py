"""
What an attacker sees, before and after
=======================================

The mean working week of 400 people is published. An attacker knows the hours of 399 of
them. What does the mean tell him of the race of the last one?
"""

# %%
# The job
# -------
# Others of the same kind are public: their race, and their hours. The scenario says
# that one person's race is secret, and that the attacker believes of people what these
# rows say. The promise is ε = 1 and δ = 1e-5.
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import laplace

from skpuffer.accountants import Best
from skpuffer.audit import largest_accuracy
from skpuffer.datasets import load_adult
from skpuffer.scenarios import AttributeScenario, RecordScenario
from skpuffer.summary import PrivateMean

public, people = load_adult(subset="test").data, load_adult(subset="train").data[:400]


def answers(table):
    return table[["hours-per-week"]].assign(white=table["race"] == "White")


race = AttributeScenario("white", level="record", prior=answers(public), prior_as="law")
promise = Best(epsilon=1.0, delta=1e-5)
ours = PrivateMean(race, promise, bounds=(1, 99)).fit(answers(people))
print(ours.certificate_)

# %%
# Plain differential privacy
# --------------------------
# The same mean at the same (ε, δ), where a record comes or goes and where one is
# replaced. In hours, the standard deviation of the noise of each:
plain, replaced = (
    PrivateMean(RecordScenario(relation=relation), promise, bounds=(1, 99)).fit(
        people[["hours-per-week"]]
    )
    for relation in ("add_remove", "replace")
)
models = {"race is secret": ours, "plain DP": plain, "plain DP, replaced": replaced}
noise = pd.Series({name: float(model.mean_std_[0]) for name, model in models.items()})
print(noise.round(4))

# %%
# What the attacker makes of it
# -----------------------------
# He subtracts the 399 whom he knows, and asks how probable the rest is for either race,
# by the public rows. Before he looks the odds are even to him. Without noise he reads
# the hours of the last person, and some tell the race for certain: nobody of the other
# races has them. With noise many hours are possible, and none is sure.
table = answers(public)
hours = np.arange(1, 100)
law = {
    white: np.bincount(rows["hours-per-week"], minlength=100)[1:] / len(rows)
    for white, rows in table.groupby("white")
}
known = people["hours-per-week"][:-1].sum()
means = (known + hours) / len(people)


def belief(seen, scale=None):
    """How probable it is that the last person is white, by a mean that was seen."""
    if scale is None:
        likely = law[True], law[False]
    else:
        kernel = laplace.pdf(seen[:, None], means, scale)
        likely = kernel @ law[True], kernel @ law[False]
    with np.errstate(invalid="ignore"):
        return likely[0] / (likely[0] + likely[1])  # no number where neither has it


before = belief(means)
right = (1 + np.abs(law[True] - law[False]).sum() / 2) / 2
certain = np.isin(before, [0, 1]).sum()
print(f"before: right {right:.3f} of the time, and certain by {certain} values")
print(f"after: right at most {largest_accuracy(ours.certificate_):.3f} of the time")

# %%
# The picture
# -----------
# *What does the attacker believe once he has seen the mean?*
# The same promise twice. To hide what goes with race takes a few minutes of noise, and
# to hide everything of the last person more than three times as many.
fig, axes = plt.subplots(1, 3, figsize=(9, 3.1), sharey=True, layout="constrained")
axes[0].plot(means, before, "o", color="C3", ms=4)
axes[0].set_title("Before: the exact mean", fontsize=10)
axes[0].set_ylabel("he believes: white")
low, high = 1 / (1 + np.e), np.e / (1 + np.e)
for ax, name, title in (
    (axes[1], "race is secret", "After: race is secret"),
    (axes[2], "plain DP", "After: plain DP"),
):
    grid = np.linspace(means[39] - 0.5, means[39] + 0.5, 201)
    ax.plot(grid, belief(grid, noise[name] / np.sqrt(2)), color="C0", lw=2)
    ax.axhspan(low, high, color="C0", alpha=0.12, lw=0, label="what ε = 1 allows")
    ax.set_title(f"{title}, ± {60 * noise[name]:.0f} minutes", fontsize=10)
for ax in axes:
    ax.axhline(0.5, color="0.6", lw=1, ls=":", label="before he looked")
    ax.set_ylim(-0.05, 1.05)
    ax.set_xlabel("the mean he sees, in hours")
    ax.spines[["top", "right"]].set_visible(False)
handles, labels = axes[1].get_legend_handles_labels()
fig.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
if len(sys.argv) > 1 and sys.argv[1].endswith(".svg"):
    plt.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "skpuffer"}
    fig.savefig(sys.argv[1], metadata={"Date": None})
plt.show()
