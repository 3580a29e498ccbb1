"""Compatibility table of accountants, scenarios and releases."""

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skpuffer.distributions import PointMass
from skpuffer.releases import GradientRelease, QueryRelease, Sensitivity, VoteRelease
from skpuffer.scenarios import (
    AttributeScenario,
    BayesianNetworkScenario,
    BlocksScenario,
    BoundedOdds,
    DependenceScenario,
    DiffusionScenario,
    GaussianScenario,
    JointTableScenario,
    LawsScenario,
    MarkovChainScenario,
    RecordScenario,
    Scenario,
    SimulatorScenario,
)
from skpuffer.utils._types import Floats

from ._base import bind, known_accountants

__all__ = ["compatibility_table"]


# at module level: contributions are hashed, and a lambda is another one at each call
def _identity(X: ArrayLike, y: Any) -> Floats:
    return np.asarray(X, dtype=float)


def _mean(X: ArrayLike, y: Any) -> Floats:
    mean: Floats = np.asarray(X, dtype=float).mean(axis=0)
    return mean


def _releases() -> dict[str, QueryRelease | GradientRelease | VoteRelease]:
    """One small release of each kind that estimators make."""
    # Two records and one coordinate: the table shows which facts meet, not how large
    # they are, and every cell of it asks an accountant.
    known = Sensitivity(add_remove={1: 0.5, 2: 0.5})
    return {
        "sum over records (mean, histogram, …)": QueryRelease(
            contribution=_identity,
            is_sum=True,
            factor=0.5,
            n_records=2,
            dim=1,
            sensitivity=known,
        ),
        "smooth in each record (regularised models)": QueryRelease(
            query=_mean,
            contribution=_identity,
            modulus=abs,
            n_records=2,
            dim=1,
            sensitivity=known,
        ),
        "linear in the records, with its matrix": QueryRelease(
            query=_mean, linear=np.full((1, 2), 0.5), n_records=2, dim=1
        ),
        "any query, with a sensitivity": QueryRelease(
            query=_mean, n_records=2, dim=1, sensitivity=known
        ),
        "any query, without one": QueryRelease(query=_mean, n_records=2, dim=1),
        "gradients, sampling='full_batch'": GradientRelease(
            n_records=2, n_steps=2, sampling="full_batch"
        ),
        "gradients, sampling='poisson'": GradientRelease(
            n_records=2, n_steps=2, batch_size=1
        ),
        "votes of teachers": VoteRelease(
            n_records=2, n_teachers=2, n_classes=2, n_queries=1
        ),
    }


def _scenarios() -> dict[str, Scenario]:
    """One small scenario of each kind."""
    # one row a pair of secret and value: small, with every secret in it
    table = pd.DataFrame({"secret": [0, 0, 1, 1], "value": [0.0, 0.5, 0.5, 1.0]})

    def draw(secret: int, rng: np.random.Generator) -> Floats:
        return rng.normal(secret, size=(2, 1))

    def draw_pair(a: int, b: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        # one noise for both secrets: the two draws are coupled
        noise = rng.normal(size=(2, 1))
        return noise + a, noise + b

    # the level decides which facts there are, so both have rows of their own
    def attribute(level: str) -> AttributeScenario:
        return AttributeScenario("secret", level=level, prior=table, prior_as="law")

    # blocks are made of the same chain, so that their rows can be compared
    chain = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
    return {
        "RecordScenario": RecordScenario(),
        "AttributeScenario, level='record'": attribute("record"),
        "AttributeScenario, level='dataset'": attribute("dataset"),
        "AttributeScenario, a declared belief": AttributeScenario(
            "secret", level="record", prior=BoundedOdds(4.0)
        ),
        "SimulatorScenario, draw": SimulatorScenario(draw, secrets=[0, 1]),
        "SimulatorScenario, draw_pair": SimulatorScenario(
            draw, draw_pair, secrets=[0, 1]
        ),
        "MarkovChainScenario": chain,
        "BayesianNetworkScenario": BayesianNetworkScenario(
            parents={"one": (), "other": ("one",)},
            tables={"one": [0.5, 0.5], "other": [[0.9, 0.1], [0.2, 0.8]]},
        ),
        "GaussianScenario": GaussianScenario(
            covariance=np.eye(2), covariance_of="records", domain=(0, 1)
        ),
        "DiffusionScenario": DiffusionScenario(1.0, times=(1, 2), diameter=1.0),
        "DependenceScenario": DependenceScenario(distance=0.5),
        "JointTableScenario": JointTableScenario([[0, 0], [1, 1]], [0.5, 0.5]),
        "BlocksScenario of a chain": BlocksScenario(chain, sizes=1),
        "LawsScenario": LawsScenario([(PointMass(0.0), PointMass(1.0))]),
    }


# some accounts are made in full to find out whether they can be: asked once
@lru_cache(maxsize=1)
def compatibility_table() -> tuple[dict[str, Any], ...]:
    """Return which accountant answers for which release under which scenario.

    Read off what accountants need and scenarios provide.

    Returns
    -------
    rows : tuple of dict
        With keys 'accountant', 'scenario', 'release', 'works' and 'reason': the name of
        the fact the accountant works from, or why it cannot.

    Examples
    --------
    >>> from skpuffer.accountants import compatibility_table
    >>> row = compatibility_table()[0]
    >>> sorted(row)
    ['accountant', 'reason', 'release', 'scenario', 'works']
    """
    rows = []
    # the same accountants that a refusal names as remedies
    for kind in (kind for kind in known_accountants() if kind.recommended):
        for scenario_name, scenario in _scenarios().items():
            for release_name, release in _releases().items():
                # default parameters, as the table is about kinds of accountants
                accountant = kind()
                answer = accountant.supports(release, scenario)
                reason = answer.reason
                # the fact is found by the accountant's own rule, not by a copy of it
                if answer:
                    bound = bind(scenario, release)
                    reason = accountant._need(release, bound).__name__
                # plain values: the table is printed in the documentation
                rows.append(
                    {
                        "accountant": kind.__name__,
                        "scenario": scenario_name,
                        "release": release_name,
                        "works": bool(answer),
                        "reason": reason,
                    }
                )
    return tuple(rows)
