"""Compatibility table of accountants, scenarios and releases."""

from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skpuffer.distributions import PointMass
from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import Floats, check_count
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    Optimiser,
    QueryRelease,
    SelectionRelease,
    Sensitivity,
    Stage,
    VoteRelease,
)
from skpuffer.scenarios import (
    AttributeScenario,
    BayesianNetworkScenario,
    BlocksScenario,
    BoundedOdds,
    DependenceScenario,
    DiffusionScenario,
    GaussianScenario,
    GroupScenario,
    JointTableScenario,
    LawsScenario,
    MarkovChainScenario,
    PrevalenceScenario,
    RecordScenario,
    Scenario,
    SimulatorScenario,
    SubsampleScenario,
)

from ._base import bind, known_accountants


# at module level: contributions are hashed, and a lambda is another one at each call
def _identity(X: ArrayLike, y: Any) -> Floats:
    return np.asarray(X, dtype=float)


def _mean(X: ArrayLike, y: Any) -> Floats:
    mean: Floats = np.asarray(X, dtype=float).mean(axis=0)
    return mean


@dataclass(frozen=True)
class _SmoothRecord:
    """Facts of a linear model's gradients, whose steps bring no two runs apart.

    Of records that may become any others, as in the other runs here.
    """

    curvature = 1.0
    intercept = 0.0

    def clipped(self, clip_norm: float, radius: float | None) -> None:
        """Return None: nothing is known of moves."""

    def step_obstacle(self, clip_norm: float) -> None:
        """Return None: there is none."""

    def label_move(self, clip_norm: float) -> float:
        """Return the largest distance of two clipped gradients."""
        return 2 * clip_norm

    def pair_costs(self, X: Any, y: Any, release: GradientRelease) -> Floats:
        """Return the largest distance for any two records."""
        most: Floats = np.full((len(X), len(X)), 2 * release.total_clip_norm)
        return most


@dataclass(frozen=True)
class _Scores:
    """Scores of one choice, of which a record moves any by one."""

    dim = 1
    is_finite = True
    on_grid = False

    def ranges(self, relation: str) -> tuple[float, ...]:
        """Return the range of the moves."""
        return (2.0,)

    def choose(self, X: Any, noise: Any, rng: np.random.Generator) -> Floats:
        """Choose the first of two candidates or the other."""
        scores = np.array([0.0, np.sum(X)]) + noise.sample(2, rng)
        return np.array([float(np.argmax(scores))])


def _releases(
    n: int = 2,
) -> dict[str, QueryRelease | GradientRelease | VoteRelease | SelectionRelease]:
    """One release of each kind that estimators make, of one coordinate.

    Of two records unless said, as is enough to see how a fact is used.
    """
    known = Sensitivity(add_remove={1: 1 / n, 2: 1 / n})
    return {
        "sum over records (mean, histogram, …)": QueryRelease(
            contribution=_identity,
            is_sum=True,
            factor=1 / n,
            n_records=n,
            dim=1,
            sensitivity=known,
        ),
        "smooth in each record (regularised models)": QueryRelease(
            query=_mean,
            contribution=_identity,
            modulus=abs,
            n_records=n,
            dim=1,
            sensitivity=known,
        ),
        "linear in the records, with its matrix": QueryRelease(
            query=_mean, linear=np.full((1, n), 1 / n), n_records=n, dim=1
        ),
        "any query, with a sensitivity": QueryRelease(
            query=_mean, n_records=n, dim=1, sensitivity=known
        ),
        "any query, without one": QueryRelease(query=_mean, n_records=n, dim=1),
        "several sums in turn, each after the noisy ones before": AdaptiveRelease(
            n_records=n,
            stages=(Stage("first", 1, known, 0.5), Stage("second", 1, known, 0.5)),
        ),
        "gradients, sampling='full_batch'": GradientRelease(
            n_records=n, n_steps=2, sampling="full_batch"
        ),
        "gradients, sampling='poisson'": GradientRelease(
            n_records=n, n_steps=2, batch_size=n // 2
        ),
        "gradients of a linear model, whose last iterate leaves": GradientRelease(
            n_records=n,
            n_steps=2,
            sampling="full_batch",
            published="result",
            optimiser=Optimiser(learning_rate=1.0),
            record=_SmoothRecord(),
        ),
        "choices by noisy scores (quantiles)": SelectionRelease(
            n_records=n, scores=(_Scores(),)
        ),
        "votes of teachers": VoteRelease(
            n_records=n, n_teachers=2, n_classes=2, n_queries=1
        ),
    }


def _scenarios(n: int = 2) -> dict[str, Scenario]:
    """One scenario of each kind, for tables of so many records, an even number."""
    # one row a pair of secret and value: small, with every secret in it
    table = pd.DataFrame({"secret": [0, 0, 1, 1], "value": [0.0, 0.5, 0.5, 1.0]})

    def draw(secret: int, rng: np.random.Generator) -> Floats:
        return rng.normal(secret, size=(n, 1))

    def draw_pair(a: int, b: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        # one noise for both secrets: the two draws are coupled
        noise = rng.normal(size=(n, 1))
        return noise + a, noise + b

    # the level decides which facts there are, so both have rows of their own
    def attribute(level: str) -> AttributeScenario:
        return AttributeScenario("secret", level=level, prior=table, prior_as="law")

    chain = MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]])
    # what lists its records by name or every table describes a few of them: a block
    network = BayesianNetworkScenario(
        parents={"one": (), "other": ("one",)},
        tables={"one": [0.5, 0.5], "other": [[0.9, 0.1], [0.2, 0.8]]},
    )
    pair = JointTableScenario([[0, 0], [1, 1]], [0.5, 0.5])
    return {
        "RecordScenario": RecordScenario(),
        "PrevalenceScenario": PrevalenceScenario(None, n // 2 - 1, n // 2),
        "AttributeScenario, level='record'": attribute("record"),
        "AttributeScenario, level='dataset'": attribute("dataset"),
        "AttributeScenario, a declared belief": AttributeScenario(
            "secret", level="record", prior=BoundedOdds(4.0)
        ),
        "GroupScenario": GroupScenario("secret", prior=table, prior_as="law"),
        "SimulatorScenario, draw (an estimate)": SimulatorScenario(
            draw, secrets=[0, 1]
        ),
        "SimulatorScenario, draw_pair (an estimate)": SimulatorScenario(
            draw, draw_pair, secrets=[0, 1]
        ),
        "MarkovChainScenario": chain,
        "BlocksScenario of a chain": BlocksScenario(chain, sizes=n // 2),
        "BlocksScenario of a BayesianNetworkScenario": BlocksScenario(network, sizes=2),
        "BlocksScenario of a JointTableScenario": BlocksScenario(pair, sizes=2),
        "GaussianScenario": GaussianScenario(
            covariance=np.eye(n), covariance_of="records", domain=(0, 1)
        ),
        "DiffusionScenario": DiffusionScenario(
            1.0, times=np.arange(1, n + 1), diameter=1.0
        ),
        "DependenceScenario": DependenceScenario(distance=0.5),
        "LawsScenario": LawsScenario([(PointMass(0.0), PointMass(1.0))]),
        "SubsampleScenario": SubsampleScenario(
            np.linspace(0.0, 1.0, 2 * n)[:, None], n, prior="sampled", n_subsets=2
        ),
    }


def compatibility_table(n_records: int = 1000) -> tuple[dict[str, Any], ...]:
    """Return which accountant answers for which release under which scenario.

    It is for an (epsilon, 1e-5) promise, from what accountants need and scenarios
    provide.

    Parameters
    ----------
    n_records : int, default=1000
        Records of the table, an even number from 2: small tables may be refused less.

    Returns
    -------
    rows : tuple of dict
        With keys 'accountant', 'scenario', 'release', 'works' and 'reason': the name of
        the fact the accountant works from, or why it cannot.

    Examples
    --------
    >>> from skpuffer.accountants import compatibility_table
    >>> row = compatibility_table(n_records=2)[0]
    >>> sorted(row)
    ['accountant', 'reason', 'release', 'scenario', 'works']
    """
    check_count(n_records=n_records, least=2)
    if n_records % 2:
        raise value_error("parameter.n_records_odd", n_records=n_records)
    return tuple(dict(row) for row in _table(int(n_records)))


# some accounts are made in full to find out whether they can be: asked once
@lru_cache(maxsize=2)
def _table(n: int) -> list[dict[str, Any]]:
    # the same accountants that a refusal names as remedies
    accountants = [kind(delta=1e-5) for kind in known_accountants() if kind.recommended]
    rows = []
    for scenario_name, scenario in _scenarios(n).items():
        for release_name, release in _releases(n).items():
            # bound once, so that all work from the facts found for the first
            bound = bind(scenario, release)
            for accountant in accountants:
                asked: Any = release
                # as estimators do, by the norm that bounds the noise's own
                if isinstance(release, GradientRelease):
                    order = accountant.clip_order
                    # facts of clipped gradients are about their l2 norm
                    record = release.record if order == 2 else None
                    asked = replace(release, clip_order=order, record=record)
                answer = accountant.supports(asked, bound)
                # the fact is found by the accountant's own rule, not by a copy of it
                fact = accountant._need(asked, bound).__name__ if answer else None
                # plain values: the table is printed in the documentation
                rows.append(
                    {
                        "accountant": type(accountant).__name__,
                        "scenario": scenario_name,
                        "release": release_name,
                        "works": bool(answer),
                        "reason": fact or str(answer.reason),
                    }
                )
    return sorted(rows, key=itemgetter("accountant"))
