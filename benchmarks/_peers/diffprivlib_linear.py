"""Linear regression of diffprivlib (pure epsilon) on given arrays."""

import json
import platform
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
from diffprivlib.models import LinearRegression


def measure(arrays, epsilon, seed):
    model = LinearRegression(
        epsilon=epsilon,
        bounds_X=(arrays["low"], arrays["high"]),
        bounds_y=(-1.0, 1.0),
        random_state=seed,
    )
    start = time.process_time()
    model.fit(arrays["X_train"], arrays["y_train"])
    seconds = time.process_time() - start
    return {
        "epsilon": epsilon,
        "r2": model.score(arrays["X_test"], arrays["y_test"]),
        "cpu_seconds": seconds,
    }


if __name__ == "__main__":
    # its calls of scikit-learn and of SciPy are of an older day
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
            measure(arrays, epsilon, options["seed"]) for epsilon in options["epsilons"]
        ],
    }
    print(json.dumps(answer))
