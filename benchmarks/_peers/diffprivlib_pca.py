"""Principal components of diffprivlib (pure epsilon) on given arrays."""

import json
import platform
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
from diffprivlib.models import PCA


def measure(arrays, epsilon, seed, n_components):
    # it clips about its noisy mean, so no row in bounds is further than the diagonal
    norm = float(np.linalg.norm(arrays["high"] - arrays["low"])) / 2
    model = PCA(
        n_components,
        epsilon=epsilon,
        bounds=(arrays["low"], arrays["high"]),
        data_norm=norm,
        random_state=seed,
    )
    start = time.process_time()
    model.fit(arrays["X_train"])
    seconds = time.process_time() - start
    return {
        "epsilon": epsilon,
        "components": model.components_.tolist(),
        "cpu_seconds": seconds,
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with np.load(sys.argv[1]) as stored:
        arrays = dict(stored)
    options = json.loads(sys.argv[2])
    answer = {
        "versions": {
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "scikit-learn": version("scikit-learn"),
            "peer": version("diffprivlib"),
        },
        "rows": [
            measure(arrays, epsilon, seed, options["n_components"])
            for epsilon in options["epsilons"]
            for seed in options["seeds"]
        ],
    }
    print(json.dumps(answer))
