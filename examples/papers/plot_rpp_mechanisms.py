"""
Four mechanisms and the flu
===========================

Four people of one household, some of whom have the flu. How many is to be released, and
nobody shall learn whether one of them is ill. *Group privacy* hides all four. The
*general* Wasserstein mechanism hides how far the distributions of the count are from
each other given that one person is ill or not, the *approximate* one leaves out a small
mass of far moves, and the *distribution-aware* one takes the mean of what moves cost.
*Plain differential privacy* hides one answer, as if it told nothing of the others: the
least noise, and too little for people who infect each other.

After Pierquin, Bellet, Tommasi and Boussard, *Rényi Pufferfish privacy: general
additive noise mechanisms and privacy amplification by iteration* (2024), Examples 1 to
3 and Figure 1; the flu is from Song, Wang and Chaudhuri, *Pufferfish privacy mechanisms
for correlated data* (2017).
"""

# %%
# The flu
# -------
# *How much noise does each mechanism take to hide who is ill?*
# That 0, 1, 2, 3 or 4 people are ill has probabilities 0.1, 0.15, 0.5, 0.15 and 0.1.
# The distributions given that one of them is well or ill are two apart in W∞. With an
# eighth of the mass of each left out they are one apart; the monotone coupling would
# not show it, it takes the best coupling for that purpose.
import numpy as np
from matplotlib import pyplot as plt

from skpuffer.accountants import (
    ApproximateWasserstein,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
)
from skpuffer.distributions import Discrete
from skpuffer.exceptions import CompositionError
from skpuffer.noise import GeneralizedCauchyNoise
from skpuffer.privacy import compose
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import JointTableScenario, LawsScenario, RecordScenario

ONE = Sensitivity({1: 1.0}, {1: 1.0})
well = Discrete([0, 1, 2, 3], [8, 9, 20, 3])
ill = Discrete([1, 2, 3, 4], [3, 20, 9, 8])
count = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1, sensitivity=ONE)
flu = LawsScenario([(well, ill)])
household = RecordScenario(4, relation="replace")

alpha, epsilons = 4.0, np.geomspace(0.1, 3, 12)
one_person = RecordScenario(relation="replace")
mechanisms = {
    "Group privacy": (GroupPrivacy, household, {}),
    "General": (GeneralWasserstein, flu, {}),
    "Approximate, 1/8 left out": (ApproximateWasserstein, flu, {"event_delta": 0.125}),
    "Distribution-aware": (DistributionAwareWasserstein, flu, {}),
    "Plain differential privacy": (GroupPrivacy, one_person, {}),
}
styles = ["-", "-", "-", "-", "k:"]
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, noise in zip(axes, ("laplace", "gaussian"), strict=True):
    for (label, (kind, scenario, more)), style in zip(
        mechanisms.items(), styles, strict=True
    ):
        scales = [
            kind(epsilon, alpha, noise=noise, **more)
            .calibrate(count, scenario)
            .noise.std()
            for epsilon in epsilons
        ]
        ax.loglog(epsilons, scales, style, label=label)
    ax.set(
        xlabel=f"ε at order {alpha:g}",
        ylabel="Standard deviation (people)",
        title=f"{noise.capitalize()} noise",
    )
axes[0].legend()
plt.show()

# %%
# The approximate promise has a price: it holds outside an event of probability 1/8,
# which is far too much to be of use, and its noise is just that of plain differential
# privacy, as the line *gain* says. What it left out is in its certificate.
accountant = ApproximateWasserstein(1.0, alpha, noise="laplace", event_delta=0.125)
print(accountant.calibrate(count, flu).certificate)

# %%
# Two records of one mind
# -----------------------
# *What does it cost to hide one of two records that go together?*
# Example 1: two binary records with equal chances, and how strongly they go together.
# The number of ones is released, with Cauchy noise at order 2. Any positive correlation
# makes W∞ jump to what a group of two costs; the mean of costs only grows with it. With
# the general mechanism the scenario buys nothing then, and group privacy is the simpler
# promise. At a negative correlation plain differential privacy is enough.
tables = [[0, 0], [0, 1], [1, 0], [1, 1]]
correlations = np.sort(np.r_[np.linspace(-0.96, 0.96, 33), 1e-3])
pair = QueryRelease(query=lambda X, y: X.sum(), n_records=2, dim=1, sensitivity=ONE)
noise = GeneralizedCauchyNoise(1.0)
kinds = {
    "Group privacy": GroupPrivacy,
    "General": GeneralWasserstein,
    "Distribution-aware": DistributionAwareWasserstein,
}
costs = {label: [] for label in kinds}
for rho in correlations:
    alike, unlike = (1 + rho) / 4, (1 - rho) / 4
    scenario = JointTableScenario(tables, [alike, unlike, unlike, alike])
    for label, kind in kinds.items():
        certificate = kind(1.0, 2.0, noise=noise).certify(noise, pair, scenario)
        costs[label].append(certificate.epsilon)
plain = GroupPrivacy(1.0, 2.0, noise=noise).certify(noise, pair, one_person)
figure, ax = plt.subplots(layout="constrained")
for label, style in zip(kinds, ["--", "-", "-"], strict=True):
    ax.plot(correlations, costs[label], style, label=label)
ax.axhline(plain.epsilon, color="k", linestyle=":", label="Plain differential privacy")
ax.set(
    xlabel="Correlation of the two records",
    ylabel="ε at order 2, Cauchy noise of scale 1",
)
ax.legend()
plt.show()

# %%
# A rare value
# ------------
# Example 2: the average of two independent records that are 1, 2 or, once in a
# thousand, 100. All values are secret, so 1 and 100 must look alike, and their averages
# are 49.5 apart. Leaving out three thousandths changes nothing, because the promise is
# about each secret: how rarely a *secret* occurs does not help. (The paper has 98 and
# 1.) If only 1 and 2 are to look alike, the distance is one half. Plain differential
# privacy of records in [1, 100] covers 49.5 as well: with all values secret and records
# independent the scenario buys nothing, so take that.
values, masses = [1, 2, 100], [500, 499, 1]
tables = [[a, b] for a in values for b in values]
chances = [p * q for p in masses for q in masses]
independent = JointTableScenario(tables, chances)
average = QueryRelease(query=lambda X, y: X.mean(), n_records=2, dim=1)
mean_given = [Discrete((v + np.array(values)) / 2, masses) for v in values]
one_or_two = LawsScenario([tuple(mean_given[:2])])
for what, accountant, scenario in (
    ("all values", GeneralWasserstein(), independent),
    (
        "all values, 0.003 left out",
        ApproximateWasserstein(event_delta=0.003),
        independent,
    ),
    ("1 and 2 only", GeneralWasserstein(), one_or_two),
):
    found = accountant.calibrate(average, scenario).certificate
    print(f"{what}: {found.sensitivity:g}")
print(f"plain differential privacy: {(max(values) - min(values)) / 2:g}")

# %%
# Records of different ranges
# ---------------------------
# Example 3: the sum of a record in [0, 1] and one in [0, 5], however they depend on
# each other, here as strongly as can be. Group privacy counts the larger range twice,
# plain differential privacy once.
extremes = JointTableScenario([[0, 0], [1, 5]], [0.5, 0.5])
wide = Sensitivity({1: 5.0}, {1: 5.0})
total = QueryRelease(query=lambda X, y: X.sum(), n_records=2, dim=1, sensitivity=wide)
for what, accountant, scenario in (
    ("General", GeneralWasserstein(), extremes),
    ("Group privacy", GroupPrivacy(), extremes),
    ("Plain differential privacy", GroupPrivacy(), one_person),
):
    found = accountant.calibrate(total, scenario).certificate
    print(f"{what}: {found.sensitivity:g}")

# %%
# No adding up
# ------------
# Two people toss a coin in secret: the second tells it, the third tells whether it was
# heads times a secret sign. Each by itself says nothing of the sign, and needs no
# noise; both together give it away. Certificates that compare distributions of one
# output are therefore never added up. (Those of plain differential privacy are, but
# they are about the second and the third person, and say nothing of the sign.)
signs = JointTableScenario(
    [[s, u, s * u] for s in (-1, 1) for u in (-1, 1)], [1, 1, 1, 1], protected=[0]
)
certificates = []
for who in (1, 2):
    told = QueryRelease(query=lambda X, y, who=who: X[who], n_records=3, dim=1)
    certificates.append(GeneralWasserstein().calibrate(told, signs).certificate)
print([certificate.sensitivity for certificate in certificates])
try:
    compose(certificates)
except CompositionError as error:
    print(error)
both = QueryRelease(query=lambda X, y: X[1:], n_records=3, dim=2)
print(GeneralWasserstein().calibrate(both, signs).certificate.sensitivity)
