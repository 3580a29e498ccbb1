"""Tables simulated from an attribute scenario's priors.

For queries that are no function of single records, such as a forest's importances.
What is read off finitely many simulations is an estimate.
"""

import numpy as np

from skpuffer.scenarios._base import finite_output
from skpuffer.scenarios._facts import CoupledSamples, OutputSamples

__all__ = ["paired_draws", "query_cloud"]


def _positions(rows, code, n, rng):
    """Positions of `n` prior rows given a secret, or any of them for None."""
    among = np.arange(len(rows.codes))
    if code is not None:
        among = among[rows.codes == code]
    # one uniform a record: the same generator state couples the two worlds of a pair
    return among[(rng.random(n) * len(among)).astype(int)]


def _output(release, rows, chosen):
    y = None if rows.y is None else rows.y[chosen]
    return finite_output(release, rows.X[chosen], y)


def _one_record_differs(rows, codes, n, rng):
    """Two tables with a secret record each; all other records are the same."""
    base = _positions(rows, None, n, rng)
    tables = []
    for code in codes:
        table = base.copy()
        table[0] = _positions(rows, code, 1, rng)[0]
        tables.append(table)
    return tables


def _all_records_differ(rows, codes, n, rng):
    """Two tables drawn given one secret each, from common random numbers."""
    seed = int(rng.integers(2**63))
    return [_positions(rows, code, n, np.random.default_rng(seed)) for code in codes]


_COUPLINGS = {"record": _one_record_differs, "dataset": _all_records_differ}


def paired_draws(bound, release):
    """Run a release on pairs of simulated tables; see :class:`CoupledSamples`."""
    scenario, n = bound.scenario, bound.context.n_records
    couple = _COUPLINGS[scenario.level]
    draws = []
    for prior, rows in enumerate(bound.priors):
        for i, j in bound.pairs:
            if not (np.any(rows.codes == i) and np.any(rows.codes == j)):
                continue
            rng = np.random.default_rng([scenario.random_state, prior, i, j])
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


def query_cloud(bound, release):
    """Run a release on tables simulated with every secret: :class:`OutputSamples`."""
    scenario, n = bound.scenario, bound.context.n_records
    couple = _COUPLINGS[scenario.level]
    outputs, groups, weights = [], [], []
    for prior, rows in enumerate(bound.priors):
        mass = np.bincount(rows.codes, minlength=len(bound.secrets)) / len(rows.codes)
        for code in np.flatnonzero(mass):
            rng = np.random.default_rng([scenario.random_state, prior, code])
            for _ in range(scenario.n_draws):
                (table,) = couple(rows, (code,), n, rng)
                outputs.append(_output(release, rows, table))
                groups.append(code)
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
