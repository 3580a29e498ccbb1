"""Processor time of a private summary where the table lies, from stored figures."""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

stored = next(
    found
    for folder in (Path.cwd(), *Path.cwd().parents)
    if (found := folder / "benchmarks" / "results" / "pushdown.csv").exists()
)
figures = pd.read_csv(stored)
engines = {"duckdb": "DuckDB", "polars": "Polars"}
tasks = {"moments": "means and deviations", "histogram": "histograms of 20 bins"}
fig, axes = plt.subplots(
    1, 2, figsize=(7.4, 3.4), sharex=True, sharey=True, layout="constrained"
)
for ax, (task, title) in zip(axes, tasks.items(), strict=True):
    for color, (engine, name) in enumerate(engines.items()):
        asked = (figures["task"] == task) & (figures["engine"] == engine)
        of = figures[asked].sort_values("n_records")
        ax.loglog(of["n_records"], of["seconds"], f"C{color}o-", label=name)
        bare = f"{name} alone, no privacy"
        ax.loglog(of["n_records"], of["bare_seconds"], f"C{color}s:", label=bare)
    ax.set(xlabel="records of five columns", title=title)
axes[0].set_ylabel("processor seconds")
axes[0].legend(frameon=False, fontsize="small")
plt.show()
