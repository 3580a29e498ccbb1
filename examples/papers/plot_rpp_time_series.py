"""
Time series: quilts against groups
==================================

A house records its power and a sensor what an old person does. Each reading gives its
neighbours away, so hiding one reading means hiding what it tells of the others. *Group
privacy* hides the whole series and leaves nothing of it. The *Markov quilt mechanism*
hides the readings nearby and pays for what the far ones still tell; the *Wasserstein
mechanism* compares the distributions of what is released. *Plain differential privacy*
of one reading stands beside them: the least noise, but neighbours tell what it hides.

After Song, Wang and Chaudhuri, *Pufferfish privacy mechanisms for correlated data*
(2017), on other data of the same kind: one house in Sceaux, by the hour for four years
and by the minute for 26 days (Hebrail and Berard), and activities of fourteen older
people wearing a sensor (Shinmoto Torres, Visvanathan and Ranasinghe, 2016). They are
read from the directory that the environment variable ``SKPUFFER_TEST_DATA`` names.
Without one, the beginning of the power series is used, a year of hours and a week of
minutes, which is shipped with the library; the activities are not, and are left out.
"""

# %%
# Real series
# -----------
# Readings of power fall into equal bins. Activities are resampled to one every five
# seconds, trial after trial.
import math
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, MarkovQuilt
from skpuffer.datasets import (
    fetch_activity,
    fetch_household_power,
    load_household_power,
)
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import MarkovChainScenario
from skpuffer.summary import PrivateSummary

small = os.environ.get("SKPUFFER_EXAMPLE_SIZE") == "small"
where = os.environ.get("SKPUFFER_TEST_DATA")


def activities(frame, step=5.0):
    """What a person does, by number, every so many seconds, trial after trial."""
    parts = []
    for _, trial in frame.groupby("trial", sort=False, observed=True):
        seconds = trial["time_s"].to_numpy()
        grid = np.arange(0.0, seconds.max() + 1e-9, step)
        last = np.searchsorted(seconds, grid, side="right") - 1
        parts.append(trial["activity"].to_numpy()[last] - 1)
    return np.concatenate(parts)


def binned(values, width, n_bins):
    """Numbers of equal bins; what lies beyond the last falls into it."""
    return np.minimum((values / width).astype(int), n_bins - 1)


if where:
    by_hour = fetch_household_power("hours", data_home=where)
    by_minute = fetch_household_power("minutes_26_days", data_home=where)
else:
    by_hour, by_minute = load_household_power("hours"), load_household_power("minutes")
# mean power of each reading, in kW
hours = by_hour.data["Global_active_power_filled"].to_numpy() / 60
minutes = by_minute.target.dropna().to_numpy()
width = 0.8 if small else 0.2
n_bins = math.ceil(9.2 / width)
series = {
    "Power by the hour": (binned(hours, 0.5, 10), 10, 0.5),
    "Power by the minute": (binned(minutes, width, n_bins), n_bins, width),
}
if where:
    doing = fetch_activity(data_home=where).frame
    series["Activity"] = (activities(doing), 4, None)

# %%
# What is believed
# ----------------
# The chain is learnt from the first half, which is taken as public; the second half is
# what is released. Every transition is counted once more than it was seen. Without
# that, one that was never seen would be impossible, and a record that is there after
# all would give its neighbour away with certainty: the influence of a quilt one step
# away is infinite then.


def learnt(codes, k):
    """Transition probabilities, each transition counted once more."""
    counts = np.ones((k, k))
    np.add.at(counts, (codes[:-1], codes[1:]), 1)
    return counts / counts.sum(axis=1, keepdims=True)


cases = {}
for name, (codes, k, step) in series.items():
    half = len(codes) // 2
    chain = learnt(codes[:half], k)
    slowest = np.sort(np.abs(np.linalg.eigvals(chain)))[-2]
    print(f"{name}: {half} readings, {k} states, second eigenvalue {slowest:.3f}")
    cases[name] = (chain, codes[half:], step)

# %%
# How much noise
# --------------
# Of power the mean is released, of activities the share of time spent lying. All three
# mechanisms add Laplace noise, whose mean absolute size is its scale; what the bins
# change comes on top, and is small. The distributions of a long series are computed in
# a window around the secret, outside of which something is left out with a probability
# of a millionth; its certificate says so. Where even these are out of reach (power by
# the minute) the Wasserstein mechanism counts the records of the window. Group privacy
# covers all n readings one by one, so plain differential privacy takes 1/n of its
# noise.
epsilons = [0.2, 1.0, 5.0] if small else [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
pure = {"alpha": math.inf, "noise": "laplace"}
mechanisms = {
    "Group privacy": (GroupPrivacy(**pure), {"event_delta": 0.0}),
    "Markov quilts, by the gap": (
        MarkovQuilt(method="approximate", noise="laplace"),
        {},
    ),
    "Markov quilts, exact": (MarkovQuilt(noise="laplace"), {}),
    "Wasserstein": (GeneralWasserstein(**pure), {"event_delta": 1e-6}),
}


PLAIN = "Plain differential privacy"


def contribution(step):
    """What a reading adds: its power, at the middle of the bin, or whether one lies."""
    if step is None:
        return lambda X, y: (X == 2).astype(float)
    return lambda X, y: (X + 0.5) * step


sizes, truths = {}, {}
for name, (chain, codes, step) in cases.items():
    n, adds = len(codes), contribution(step)
    truths[name] = float(adds(codes, None).mean())
    release = QueryRelease(
        contribution=adds, is_sum=True, factor=1 / n, n_records=n, dim=1
    )
    for label, (accountant, options) in mechanisms.items():
        scenario = MarkovChainScenario(chain, **options)
        sizes[name, label] = [
            accountant.set_params(epsilon=epsilon)
            .calibrate(release, scenario)
            .noise.scale
            for epsilon in epsilons
        ]
    sizes[name, PLAIN] = [size / n for size in sizes[name, "Group privacy"]]
table = pd.DataFrame(sizes, index=pd.Index(epsilons, name="epsilon")).T
at_one = table[1.0].unstack()[[*mechanisms, PLAIN]].loc[list(cases)]
print("Mean size of the noise at epsilon = 1, over that of group privacy:")
print(at_one.div(at_one["Group privacy"], axis=0).round(6).to_string())

# %%
# *Whose noise leaves anything of the series?*
# The grey line is what is released itself: noise above it leaves nothing.
n_series = len(cases)
figure, axes = plt.subplots(
    1, n_series, figsize=(2 + 3 * n_series, 4), layout="constrained", sharex=True
)
styles = dict(zip([*mechanisms, PLAIN], ["s--", "v-", "o-", "D-", "k:"], strict=True))
for ax, (name, (_, codes, step)) in zip(axes, cases.items(), strict=True):
    for label, style in styles.items():
        ax.loglog(epsilons, sizes[name, label], style, label=label, markersize=4)
    ax.axhline(truths[name], color="0.6", linewidth=6, alpha=0.5, zorder=0)
    ax.set_title(f"{name}, {len(codes)} readings")
    ticks = [0.2, 1.0, 5.0] if small else [0.1, 1.0, 10.0]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_xlabel("ε")
    ax.set_ylabel("Mean size of the noise" + (" (share)" if step is None else " (kW)"))
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %%
# A release
# ---------
# *What is left of a house's hours at ε = 1?*
# How often the house draws how much, as shares of the hours at ε = 1, by an estimator.
# A changed reading moves two shares. With group privacy the noise alone is as large as
# twice everything there is to share. Plain differential privacy would take the noise
# that is printed last: far less, for a promise about one reading on which no other
# depends.
chain, codes, step = cases["Power by the hour"]
n, k = len(codes), len(chain)
X = pd.DataFrame({"power": codes.astype(float)})
shares, bars = {"Exact": np.bincount(codes, minlength=k) / n}, {}
for label in ("Markov quilts, exact", "Group privacy"):
    accountant, options = mechanisms[label]
    summary = PrivateSummary(
        MarkovChainScenario(chain, **options),
        accountant.set_params(epsilon=1.0),
        statistics=["histogram"],
        bins=np.arange(k + 1) - 0.5,
    ).fit(X)
    shares[label] = summary.result_["power"].to_numpy() / n
    bars[label] = summary.noise_.scale / n
    print(f"{label}: {summary.certificate_}")
print("Mean size of the noise in a share:")
for label, size in {**bars, PLAIN: bars["Group privacy"] / n}.items():
    print(f"{label}: {size:.2g}")

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
at = np.arange(k)
ax.bar(at, shares.pop("Exact"), 0.7, color="0.8", label="Exact")
for i, (label, values) in enumerate(shares.items()):
    ax.errorbar(
        at + 0.3 * (i - 0.5),
        values,
        bars[label],
        fmt=["o", "s"][i],
        color=["C2", "C0"][i],
        capsize=4,
        label=label,
    )
ax.axhline(0, color="0.3", linewidth=0.8)
ax.set_xticks(at, [f"{step * b:g}" for b in at])
ax.set(xlabel="Mean power of the hour, from … kW", ylabel="Share of the hours")
ax.set_title("One release at ε = 1, with the noise's mean size")
ax.legend(loc="upper left", ncols=3)
ax.margins(y=0.2)
plt.show()
