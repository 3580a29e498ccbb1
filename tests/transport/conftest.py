"""Brute force that knows nothing of sorted couplings or of flows."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment


@pytest.fixture(scope="session")
def oracles():
    path = Path(__file__).parents[1] / "oracles" / "transport.json"
    return json.loads(path.read_text("utf-8"))


@pytest.fixture(scope="session")
def brute_force():
    """W_p from a cost matrix and counts: atoms are repeated, then assigned."""

    def distance(costs, u_counts, v_counts, p):
        n, m = int(np.sum(u_counts)), int(np.sum(v_counts))
        shared = math.gcd(n, m)
        n, m = n // shared, m // shared
        rows = np.repeat(np.arange(len(u_counts)), np.asarray(u_counts) * m)
        columns = np.repeat(np.arange(len(v_counts)), np.asarray(v_counts) * n)
        costs = np.asarray(costs, dtype=float)[np.ix_(rows, columns)]
        if np.isfinite(p):
            chosen = linear_sum_assignment(costs**p)
            return np.mean(costs[chosen] ** p) ** (1 / p)
        for threshold in np.unique(costs):
            beyond = (costs > threshold).astype(float)
            if beyond[linear_sum_assignment(beyond)].sum() == 0:
                return threshold
        raise AssertionError("the largest cost lets all mass through")

    return distance
