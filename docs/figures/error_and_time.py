"""Error beside peers, and time beside the same work without privacy, as stored."""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

# drawn in the folder of the figures, or in the root of the repository
here = Path.cwd()
root = next(path for path in (here, *here.parents) if (path / "benchmarks").is_dir())
RESULTS = root / "benchmarks" / "results"
everyday = pd.read_csv(RESULTS / "everyday.csv")
quantiles = pd.read_csv(RESULTS / "quantiles.csv")
times = pd.read_csv(RESULTS / "summaries.csv")

# one peer measures each of them
ratio = quantiles["opendp_ratio"].fillna(quantiles["diffprivlib_ratio"])
three = quantiles["quantiles"].astype(str).str.contains(" ")
errors = {
    name: everyday.loc[everyday["statistic"] == name, "ratio"]
    for name in ("mean", "histogram", "variance")
}
errors |= {"one quantile": ratio[~three], "three quartiles": ratio[three]}

task = times["task"].str.partition(",")[0]
spent = {name: times.loc[task == name, "ratio"] for name in task.unique()}

fig, axes = plt.subplots(1, 2, figsize=(8.5, 3), layout="constrained")
for ax, parts in zip(axes, (errors, spent), strict=True):
    for height, values in enumerate(parts.values()):
        ax.plot(values, [height] * len(values), "o", c="C0", alpha=0.5)
    ax.axvline(1, c="0.6", lw=0.8)
    ax.set(xscale="log", ylim=(len(parts) - 0.5, -0.5))
    ax.set_yticks(range(len(parts)), parts)
    ax.minorticks_off()
for ax, ticks, label in zip(
    axes,
    ([0.5, 0.7, 1, 1.5, 2], [0.5, 1, 2, 5]),
    ("error, over that of the best peer", "CPU time, over that without privacy"),
    strict=True,
):
    ax.set_xticks(ticks, ticks)
    ax.set_xlabel(label)
plt.show()
