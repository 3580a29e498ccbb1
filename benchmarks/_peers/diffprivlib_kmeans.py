"""k-means of diffprivlib (pure epsilon) on given rows within [-1, 1]."""

import json
import platform
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
from diffprivlib.models import KMeans


def measure(rows, n_clusters, epsilon, seed):
    model = KMeans(n_clusters, epsilon=epsilon, bounds=(-1.0, 1.0), random_state=seed)
    start = time.process_time()
    model.fit(rows)
    seconds = time.process_time() - start
    squares = [np.square(rows - c).sum(axis=1) for c in model.cluster_centers_]
    return {
        "epsilon": epsilon,
        "seed": seed,
        "inertia": float(np.min(squares, axis=0).sum()),
        "cpu_seconds": seconds,
    }


if __name__ == "__main__":
    # its calls of scikit-learn are of an older day
    warnings.simplefilter("ignore")
    with np.load(sys.argv[1]) as stored:
        rows = stored["rows"]
    options = json.loads(sys.argv[2])
    answer = {
        "versions": {
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "scikit-learn": version("scikit-learn"),
            "peer": version("diffprivlib"),
        },
        "rows": [
            measure(rows, options["n_clusters"], epsilon, seed)
            for epsilon in options["epsilons"]
            for seed in range(options["seeds"])
        ],
    }
    print(json.dumps(answer))
