"""Mean, variance and histogram of diffprivlib (pure epsilon) on a given column.

A statistic is released once, by diffprivlib's own function; the mechanism it makes for
that, and what it gives it, are kept and drawn from again and again.
"""

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
from diffprivlib.tools import histograms, utils  # noqa: E402


def kept(module, name, uses):
    """Put a mechanism in the place of a module's own that keeps what it is used for."""
    mechanism = getattr(module, name)

    class Kept(mechanism):
        def randomise(self, value):
            uses.append((self, value))
            return super().randomise(value)

    setattr(module, name, Kept)
    return mechanism


def measured(module, name, release, exact, n_draws):
    """Mean squares of the errors of each draw."""
    uses = []
    mechanism = kept(module, name, uses)
    release()
    setattr(module, name, mechanism)
    draws = [
        [mechanism.randomise(made, value) for made, value in uses]
        for _ in range(n_draws)
    ]
    return np.square(np.subtract(draws, np.ravel(exact))).mean(axis=1).tolist()


def statistics(x, bounds, bins):
    """Where the mechanism of each statistic is, its release and its exact value."""
    counts = np.histogram(x, bins, bounds)[0]
    return {
        "mean": (
            (utils, "LaplaceTruncated"),
            lambda e: tools.mean(x, epsilon=e, bounds=bounds),
            x.mean(),
        ),
        "variance": (
            (utils, "LaplaceBoundedDomain"),
            lambda e: tools.var(x, epsilon=e, bounds=bounds),
            x.var(),
        ),
        "histogram": (
            (histograms, "GeometricTruncated"),
            lambda e: tools.histogram(x, epsilon=e, bins=bins, range=bounds),
            counts,
        ),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with np.load(sys.argv[1]) as stored:
        x = stored["x"]
    asked = json.loads(sys.argv[2])
    found = statistics(x, tuple(asked["bounds"]), asked["bins"])
    rows = []
    for statistic, (place, release, exact) in found.items():
        for epsilon in asked["epsilons"]:

            def once(release=release, epsilon=epsilon):
                return release(epsilon)

            squares = measured(*place, once, exact, asked["n_draws"][statistic])
            row = {"statistic": statistic, "epsilon": epsilon, "squares": squares}
            rows.append(row)
    told = {
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "peer": version("diffprivlib"),
    }
    print(json.dumps({"versions": told, "rows": rows}))
