"""What hiding a group costs beside hiding one of its members."""

import matplotlib.pyplot as plt

from skpuffer.accountants import Best
from skpuffer.datasets import load_adult
from skpuffer.scenarios import GroupScenario, RecordScenario
from skpuffer.summary import PrivateMean

table, people = load_adult(subset="test").data, load_adult(subset="train").data
mine = people.loc[people["sex"] == "Female", ["age"]]
groups = GroupScenario("sex", prior=table[["sex", "age"]], prior_as="law")
scenarios = {
    "which sex the table is of": groups,
    "one woman's record": RecordScenario(relation="replace"),
    "any records of it": RecordScenario(k=len(mine), relation="replace"),
}
mean = PrivateMean(accountant=Best(delta=1e-5), bounds=(17, 90))
noise = {
    name: mean.set_params(scenario=scenario).fit(mine).mean_std_[0]
    for name, scenario in scenarios.items()
}
fig, ax = plt.subplots(figsize=(6, 2.3), layout="constrained")
bars = ax.barh(list(noise), list(noise.values()), color=["C0", "C1", "C2"])
ax.bar_label(bars, [f"{value:.3g} years" for value in noise.values()], padding=3)
ax.set(xscale="log", xlabel="noise on the mean age, in years")
ax.set_xlim(right=max(noise.values()) * 12)
ax.invert_yaxis()
plt.show()
