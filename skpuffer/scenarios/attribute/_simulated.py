"""Samples of the output on tables simulated from an attribute scenario's priors.

For queries that are no function of single records, such as a forest's importances.
What is read off finitely many simulations is an estimate.
"""

from typing import Any

import numpy as np

from skpuffer.releases import QueryRelease
from skpuffer.scenarios._base import finite_output
from skpuffer.scenarios._facts import CoupledSamples, OutputSamples

__all__ = ["coupled_samples", "output_samples"]


def _positions(rows, code, n, rng):
    """Positions of `n` prior rows, drawn given a secret or, for None, any."""
    among = np.arange(len(rows.codes))
    if code is not None:
        among = among[rows.codes == code]
    # inverse transform, one uniform a record: a common generator state couples tables
    return among[(rng.random(n) * len(among)).astype(int)]


def _output(release, rows, chosen):
    y = None if rows.y is None else rows.y[chosen]
    return finite_output(release, rows.X[chosen], y)


def _one_record_differs(rows, codes, n, rng):
    """Tables that differ in one record, which is drawn given each secret."""
    # the first record stands for any: they are independent and alike
    base = _positions(rows, None, n, rng)
    tables = []
    for code in codes:
        table = base.copy()
        table[0] = _positions(rows, code, 1, rng)[0]
        tables.append(table)
    return tables


def _all_records_differ(rows, codes, n, rng):
    """Tables drawn given each secret, from common random numbers."""
    seed = int(rng.integers(2**63))
    return [_positions(rows, code, n, np.random.default_rng(seed)) for code in codes]


_COUPLINGS = {"record": _one_record_differs, "dataset": _all_records_differ}


def coupled_samples(bound: Any, release: QueryRelease) -> CoupledSamples:
    """Outputs on pairs of coupled tables; see :class:`CoupledSamples`."""
    scenario, n = bound.scenario, bound.context.n_records
    couple = _COUPLINGS[scenario.level]
    draws = []
    for prior, rows in enumerate(bound.priors):
        for i, j in bound.pairs:
            if not (np.any(rows.codes == i) and np.any(rows.codes == j)):
                continue
            rng = np.random.default_rng([int(scenario.random_state), prior, i, j])
            outputs = [
                [_output(release, rows, t) for t in couple(rows, (i, j), n, rng)]
                for _ in range(scenario.n_draws)
            ]
            u, v = (np.array(side) for side in zip(*outputs, strict=True))
            draws.append((prior, i, j, u, v))
    return CoupledSamples(
        draws=tuple(draws),
        secrets=bound.secrets,
        certified=False,
        assumptions=(
            *bound.statements(),
            f"{scenario.n_draws} simulated pairs of tables stand for all",
        ),
    )


def output_samples(bound: Any, release: QueryRelease) -> OutputSamples:
    """Outputs on tables drawn given every secret; see :class:`OutputSamples`."""
    scenario, n = bound.scenario, bound.context.n_records
    couple = _COUPLINGS[scenario.level]
    outputs, groups, weights = [], [], []
    for prior, rows in enumerate(bound.priors):
        mass = np.bincount(rows.codes, minlength=len(bound.secrets)) / len(rows.codes)
        for code in np.flatnonzero(mass):
            rng = np.random.default_rng([int(scenario.random_state), prior, code])
            for _ in range(scenario.n_draws):
                (table,) = couple(rows, (code,), n, rng)
                outputs.append(_output(release, rows, table))
                groups.append(code)
                # each secret by its mass under the prior, each prior alike
                weights.append(mass[code] / scenario.n_draws / len(bound.priors))
    return OutputSamples(
        draws=np.array(outputs),
        weights=np.array(weights),
        groups=np.array(groups),
        certified=False,
        assumptions=(
            *bound.statements(),
            f"{len(outputs)} simulated tables stand for the prior",
        ),
    )
