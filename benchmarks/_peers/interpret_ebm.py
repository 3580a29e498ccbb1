"""Explainable boosting with differential privacy, of InterpretML, on given arrays.

Its code book is ours: bounds of numbers, levels of the others. The classifier takes two
classes only.
"""

import json
import platform
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
from interpret.privacy import (
    DPExplainableBoostingClassifier,
    DPExplainableBoostingRegressor,
)
from sklearn.metrics import log_loss, r2_score, roc_auc_score


def _frame(values, options):
    """Rows with text for levels, as its own data frames have."""
    frame = pd.DataFrame(values)
    for k in options["levels"]:
        codes = frame[k].astype(int)
        frame[k] = codes.astype(str)
    return frame


def measure(arrays, epsilon, options):
    regression = options["target_bounds"] is not None
    make = (
        DPExplainableBoostingRegressor
        if regression
        else DPExplainableBoostingClassifier
    )
    extra = {"privacy_target_min": options["target_bounds"][0]} if regression else {}
    if regression:
        extra["privacy_target_max"] = options["target_bounds"][1]
    bounds = {int(k): tuple(pair) for k, pair in options["bounds"].items()}
    model = make(
        feature_types=[
            "nominal" if k in options["levels"] else "continuous"
            for k in range(arrays["X_train"].shape[1])
        ],
        privacy_bounds=bounds,
        epsilon=epsilon,
        delta=options["delta"],
        n_jobs=1,
        random_state=options["seed"],
        **extra,
    )
    X, X_test = (_frame(arrays[name], options) for name in ("X_train", "X_test"))
    start = time.process_time()
    model.fit(X, arrays["y_train"])
    row = {
        "setting": "defaults",
        "epsilon": epsilon,
        "cpu_seconds": time.process_time() - start,
    }
    y = arrays["y_test"]
    if regression:
        return {**row, "r2": r2_score(y, model.predict(X_test))}
    p = model.predict_proba(X_test)[:, 1]
    return {
        **row,
        "accuracy": float(np.mean((p > 0.5) == y)),
        "auc": roc_auc_score(y, p),
        "log_loss": log_loss(y, p),
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
            "peer": version("interpret-core"),
        },
        "rows": [measure(arrays, epsilon, options) for epsilon in options["epsilons"]],
    }
    print(json.dumps(answer))
