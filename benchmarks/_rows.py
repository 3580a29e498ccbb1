"""Rows in the unit ball, budgets, and what beliefs are compared with."""

import pandas as pd

from skpuffer.scenarios import RecordScenario

EPSILONS = (0.1, 0.3, 1.0)
DELTA = 1e-5
NUMBERS = ["age", "education-num", "hours-per-week", "capital-gain", "capital-loss"]
NAMES = ["workclass", "marital-status", "occupation", "relationship", "sex"]
PLAIN = {
    "DP, replace": RecordScenario(relation="replace"),
    "DP, add/remove": RecordScenario(),
}


def unit_rows(frame, public):
    """Rows in the unit ball: numbers z-scored and clipped, others one-hot, centred."""
    numbers = frame.select_dtypes("number")
    z = (numbers - numbers[public].mean()) / numbers[public].std().replace(0, 1)
    parts = [z.clip(-2, 2)]
    if numbers.shape[1] < frame.shape[1]:
        encoded = pd.get_dummies(frame.drop(columns=numbers.columns), dtype=float)
        parts.append(encoded - encoded[public].mean())
    rows = pd.concat(parts, axis=1) / 2
    return rows.set_axis([f"x{i}" for i in range(rows.shape[1])], axis=1)
