"""
A hospital whose patients live together
=======================================

A hospital publishes how many of its patients have an illness. They live in households
of four, and whoever lives with somebody ill is more often ill. Nobody shall learn from
the number whether a patient is ill. What does the rest of the household tell?
"""

# %%
# The patients
# ------------
# Made, as no such table may be shipped: 1000 households of four. The first of a
# household is ill with probability 0.2, and each other with 0.5 if the first is and
# with 0.05 if not. That is public knowledge, as of an illness that is known.
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skpuffer.accountants import Best
from skpuffer.audit import distinguishing_attack, largest_auc
from skpuffer.exceptions import PrivacyWarning
from skpuffer.scenarios import BlocksScenario, JointTableScenario, RecordScenario
from skpuffer.summary import PrivateMean

MEMBERS, HOUSEHOLDS = 4, 1000
FIRST, IF_ILL, IF_NOT = 0.2, 0.5, 0.05
rng = np.random.default_rng(0)


def households(n, first=None):
    """Draw n households; the first of each is ill or not as asked for."""
    head = rng.random(n) < FIRST if first is None else np.full(n, first)
    chance = np.where(head, IF_ILL, IF_NOT)[:, None]
    return np.column_stack([head, rng.random((n, MEMBERS - 1)) < chance]).astype(float)


patients = pd.DataFrame({"ill": households(HOUSEHOLDS).ravel()})
print(patients["ill"].mean().round(3))

# %%
# Three promises
# --------------
# Each at (0.5, 1e-5). *One patient* is plain differential privacy of one record: it
# counts on the others being independent of him, which they are not. *Any household*
# hides all four, whatever they are. *As it spreads* knows how the illness goes through
# a household, table by table.
tables = (
    np.array(np.meshgrid(*[[0, 1]] * MEMBERS, indexing="ij")).reshape(MEMBERS, -1).T
)
chance = np.where(tables[:, :1] == 1, IF_ILL, IF_NOT)
masses = np.where(tables[:, 0] == 1, FIRST, 1 - FIRST)
masses = masses * np.where(tables[:, 1:] == 1, chance, 1 - chance).prod(axis=1)
promises = {
    "one patient": RecordScenario(relation="replace"),
    "any household": RecordScenario(k=MEMBERS, relation="replace"),
    "as it spreads": BlocksScenario(JointTableScenario(tables, masses), sizes=MEMBERS),
}
warnings.simplefilter("ignore", PrivacyWarning)  # of what gains nothing; see the table
fitted = {
    name: PrivateMean(scenario, Best(epsilon=0.5, delta=1e-5), bounds=(0, 1)).fit(
        patients
    )
    for name, scenario in promises.items()
}
noise = {name: float(mean.mean_std_[0]) for name, mean in fitted.items()}

# %%
# An attack
# ---------
# The attacker knows all other households, so what is left of the number is the count of
# one household and the noise. Is its first member ill? He compares counts of households
# with and without, each with noise of its own.
ill, well = (households(20_000, first).sum(axis=1) for first in (True, False))
rows = {}
for name, mean in fitted.items():
    size = HOUSEHOLDS * MEMBERS
    seen = [
        count + size * mean.noise_.sample((len(count), 1), rng)[:, 0]
        for count in (ill, well)
    ]
    rows[name] = {
        "noise, patients": size * noise[name],
        "attack": distinguishing_attack(*seen).auc,
        "allowed": largest_auc(mean.certificate_),
    }
found = pd.DataFrame(rows).T
print(found.round(3))

# %%
# *What does each noise cost, and does an attack get more than it allows?*
# Noise that counts on independence lets more be told of a patient than its ε says:
# whoever is ill is often not the only one at home. Whoever can say how the illness
# spreads takes three quarters of the noise that hides any household.
broken = found["attack"] > found["allowed"]
print("keeps its promise of a patient:", (~broken).to_dict())
fig, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True, layout="constrained")
axes[0].barh(found.index, found["noise, patients"], color="C0")
axes[0].set_xlabel("noise on the number of ill patients")
axes[1].barh(found.index, found["attack"] - 0.5, left=0.5, color="C3", label="attack")
axes[1].plot(found["allowed"], found.index, "kD", label="allowed")
axes[1].set_xlabel("area under the attacker's curve; 0.5 is guessing")
axes[0].invert_yaxis()
fig.legend(loc="outside lower center", ncols=2, frameon=False)
plt.show()
