"""Gaussian naive Bayes of diffprivlib (pure epsilon) on given arrays."""

import json
import platform
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
from diffprivlib.models import GaussianNB


def measure(arrays, epsilon, seed):
    model = GaussianNB(
        epsilon=epsilon, bounds=(arrays["low"], arrays["high"]), random_state=seed
    )
    start = time.process_time()
    model.fit(arrays["X_train"], arrays["y_train"])
    seconds = time.process_time() - start
    return {
        "setting": "defaults",
        "epsilon": epsilon,
        "accuracy": model.score(arrays["X_test"], arrays["y_test"]),
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
            measure(arrays, epsilon, seed)
            for epsilon in options["epsilons"]
            for seed in options["seeds"]
        ],
    }
    print(json.dumps(answer))
