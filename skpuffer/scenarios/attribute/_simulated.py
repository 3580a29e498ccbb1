"""Samples of the output on tables simulated from an attribute scenario's priors.

For queries that are no function of single records, such as a forest's importances.
What is read off finitely many simulations is an estimate.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.facts import CoupledSamples, OutputSamples
from skpuffer.kernel.numbers import Floats
from skpuffer.releases import QueryRelease
from skpuffer.scenarios._simulation import (
    fresh_generator,
    remembered_simulation,
    run_tables,
)

__all__ = ["coupled_samples", "output_samples", "positions"]


def positions(rows: Any, code: int | None, n: int, rng: Any) -> Any:
    """Draw the positions of prior rows, with repeats.

    Parameters
    ----------
    rows : PriorRows
    code : int or None
        Secret that is given; None is any.
    n : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int of shape (n,)
    """
    among = np.arange(len(rows.codes))
    if code is not None:
        among = among[rows.codes == code]
    # inverse transform, one uniform a record: a common generator state couples tables
    return among[(rng.random(n) * len(among)).astype(int)]


def _run(bound, release, draws, n_tables) -> Floats:
    """Outputs on tables of prior rows, as they are drawn."""
    tables = (
        ("", rows.X[chosen], None if rows.y is None else rows.y[chosen])
        for rows, chosen in draws
    )
    options = {"n_jobs": bound.scenario.n_jobs, "verbose": bound.scenario.verbose}
    return run_tables(release, tables, n_tables, **options)


def _outputs(bound, release, draws, n_tables, *made_of) -> Floats:
    """Outputs on tables of prior rows, remembered by what they are drawn from."""
    scenario = bound.scenario

    def find():
        return _run(bound, release, draws(), n_tables)

    made_of = (
        "prior_tables",
        *made_of,
        scenario.level,
        int(scenario.random_state),
        int(scenario.n_draws),
        bound.context.n_records,
        len(bound.secrets),
        # of rows and secrets, by content
        tuple(rows.digest for rows in bound.priors),
    )
    return remembered_simulation(scenario, release, made_of, find)


def _one_record_differs(rows, codes, n, rng):
    """Tables that differ in one record, which is drawn given each secret."""
    # the first record stands for any: they are independent and alike
    base = positions(rows, None, n, rng)
    tables = []
    for code in codes:
        table = base.copy()
        table[0] = positions(rows, code, 1, rng)[0]
        tables.append(table)
    return tables


def _all_records_differ(rows, codes, n, rng):
    """Tables drawn given each secret, from common random numbers."""
    seed = int(rng.integers(2**63))
    return [positions(rows, code, n, np.random.default_rng(seed)) for code in codes]


_COUPLINGS = {"record": _one_record_differs, "dataset": _all_records_differ}


def coupled_samples(bound: Any, release: QueryRelease) -> CoupledSamples:
    """Outputs on pairs of coupled tables; see :class:`CoupledSamples`."""
    scenario, n = bound.scenario, bound.context.n_records
    couple, n_draws = _COUPLINGS[scenario.level], int(scenario.n_draws)
    known = [
        (prior, i, j)
        for prior, rows in enumerate(bound.priors)
        for i, j in bound.pairs
        if np.any(rows.codes == i) and np.any(rows.codes == j)
    ]

    def draws() -> Iterator[Any]:
        for prior, i, j in known:
            rows = bound.priors[prior]
            rng = np.random.default_rng([int(scenario.random_state), prior, i, j])
            for _ in range(n_draws):
                for chosen in couple(rows, (i, j), n, rng):
                    yield rows, chosen

    outputs = _outputs(bound, release, draws, 2 * len(known) * n_draws, "pairs", known)
    found = outputs.reshape(len(known), n_draws, 2, -1)
    return CoupledSamples(
        draws=tuple(
            (*at, one[:, 0], one[:, 1]) for at, one in zip(known, found, strict=True)
        ),
        secrets=bound.secrets,
        certified=False,
        assumptions=(
            *bound.statements(),
            Statement("assume.simulated_pairs_stand_for_all", n_draws=scenario.n_draws),
        ),
    )


def output_samples(bound: Any, release: QueryRelease) -> OutputSamples:
    """Outputs on tables drawn given every secret; see :class:`OutputSamples`."""
    scenario, n = bound.scenario, bound.context.n_records
    couple, n_draws = _COUPLINGS[scenario.level], int(scenario.n_draws)
    masses = [
        np.bincount(rows.codes, minlength=len(bound.secrets)) / len(rows.codes)
        for rows in bound.priors
    ]
    known = [
        (prior, int(code))
        for prior, mass in enumerate(masses)
        for code in np.flatnonzero(mass)
    ]

    def draws() -> Iterator[Any]:
        for prior, code in known:
            rows = bound.priors[prior]
            rng = np.random.default_rng([int(scenario.random_state), prior, code])
            for _ in range(n_draws):
                (chosen,) = couple(rows, (code,), n, rng)
                yield rows, chosen

    outputs = _outputs(bound, release, draws, len(known) * n_draws, "single", known)
    # each secret by its mass under the prior, each prior alike
    weights = [masses[prior][code] / n_draws / len(masses) for prior, code in known]

    def again(n_fresh: int, rng: Any) -> Floats:
        fresh = fresh_generator(rng)

        def draws() -> Iterator[Any]:
            for _ in range(n_fresh):
                rows = bound.priors[fresh.integers(len(bound.priors))]
                # as likely as its share of the rows, where all records share it
                code = fresh.choice(rows.codes) if scenario.level == "dataset" else None
                yield rows, positions(rows, code, n, fresh)

        return _run(bound, release, draws(), n_fresh)

    return OutputSamples(
        draws=outputs,
        weights=np.repeat(weights, n_draws),
        groups=np.repeat([code for _, code in known], n_draws),
        again=again,
        # of a sample, tables are drawn of another law than the attacker's belief; of
        # several beliefs the attacker holds one
        certified=bound.prior_as == "law" and len(bound.priors) == 1,
        assumptions=(
            *bound.statements(),
            Statement(
                "assume.simulated_tables_stand_for_prior", n_outputs=len(outputs)
            ),
        ),
    )
