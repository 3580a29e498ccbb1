"""Mean, variance and histogram of OpenDP (pure epsilon) on a given column.

A statistic without noise is computed once, by OpenDP's own transformation, and what
OpenDP releases of it is drawn again and again.
"""

import json
import platform
import sys
from importlib.metadata import version

import numpy as np
import opendp.prelude as dp

dp.enable_features("contrib")


def parts(x, bounds, bins):
    """Transformation, argument and distance of neighbours of each statistic."""
    # of tables of one known size, two that differ in one record are two changes apart
    sized = dp.vector_domain(dp.atom_domain(bounds=bounds, nan=False), size=len(x))
    space = sized, dp.symmetric_distance()
    edges = np.linspace(*bounds, bins + 1)
    codes = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, bins - 1)
    cells = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    count = dp.t.make_count_by_categories(
        *cells, categories=list(range(bins)), null_category=False
    )
    return {
        "mean": (dp.t.make_mean(*space), x, 2),
        "variance": (dp.t.make_variance(*space, ddof=1), x, 2),
        "histogram": (count, codes.tolist(), 1),
    }


def measured(transformation, argument, d_in, epsilon, n_draws):
    """Mean squares of the errors of each draw."""
    exact = transformation(argument)
    d_out = transformation.map(d_in)
    space = transformation.output_domain, transformation.output_metric

    def make(scale):
        return dp.m.make_laplace(*space, scale=scale)

    noisy = make(dp.binary_search_param(make, d_in=d_out, d_out=epsilon))
    draws = [noisy(exact) for _ in range(n_draws)]
    squares = np.square(np.subtract(draws, exact)).reshape(n_draws, -1)
    return squares.mean(axis=1).tolist()


if __name__ == "__main__":
    with np.load(sys.argv[1]) as stored:
        x = stored["x"]
    asked = json.loads(sys.argv[2])
    found = parts(x, tuple(map(float, asked["bounds"])), asked["bins"])
    rows = [
        {
            "statistic": statistic,
            "epsilon": epsilon,
            "squares": measured(*part, epsilon, asked["n_draws"][statistic]),
        }
        for statistic, part in found.items()
        for epsilon in asked["epsilons"]
    ]
    told = {
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "peer": version("opendp"),
    }
    print(json.dumps({"versions": told, "rows": rows}))
