"""Mean, variance and histogram of diffprivlib (pure epsilon) on a given column."""

import json
import platform
import sys
import types
import warnings
from importlib.metadata import version

import numpy as np

# its models need an older scikit-learn, its tools none
sys.modules.setdefault("diffprivlib.models", types.ModuleType("models"))
from diffprivlib import tools  # noqa: E402


def drawers(x, bounds, bins):
    """Exact value and private draw of each statistic."""
    counts = np.histogram(x, bins, bounds)[0]
    return {
        "mean": (x.mean(), lambda e: tools.mean(x, epsilon=e, bounds=bounds)),
        "variance": (x.var(), lambda e: tools.var(x, epsilon=e, bounds=bounds)),
        "histogram": (
            counts,
            lambda e: tools.histogram(x, epsilon=e, bins=bins, range=bounds)[0],
        ),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with np.load(sys.argv[1]) as stored:
        x = stored["x"]
    asked = json.loads(sys.argv[2])
    found = drawers(x, tuple(asked["bounds"]), asked["bins"])
    rows = []
    for statistic, (exact, draw) in found.items():
        for epsilon in asked["epsilons"]:
            draws = [draw(epsilon) for _ in range(asked["n_draws"])]
            squares = np.square(np.subtract(draws, exact)).reshape(len(draws), -1)
            row = {"statistic": statistic, "epsilon": epsilon}
            rows.append(row | {"squares": squares.mean(axis=1).tolist()})
    told = {
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "peer": version("diffprivlib"),
    }
    print(json.dumps({"versions": told, "rows": rows}))
