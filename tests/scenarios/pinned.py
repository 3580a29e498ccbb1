"""What scenarios say of releases under their rarer options, kept in a file.

    python -m tests.scenarios.pinned    # writes tests/oracles/facts.json

An option that is read for one of several priors, one end of a range or one norm alone
changes a number here, and so does a sentence that is dropped. Whether two couplings are
the same one is kept too, for their names are digests.
"""

import functools
import json
import math
import warnings
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pandas as pd

from skpuffer.distributions import Distribution, PointMass
from skpuffer.exceptions import Statement
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    PublicContext,
    QueryRelease,
    Sensitivity,
    Stage,
    VoteRelease,
)
from skpuffer.scenarios import (
    AttributeScenario,
    BayesianNetworkScenario,
    BinnedLaw,
    BlocksScenario,
    BoundedInference,
    BoundedOdds,
    DeclaredOdds,
    DependenceScenario,
    DiffusionScenario,
    GaussianScenario,
    GroupScenario,
    JointTableScenario,
    LawsScenario,
    MarkovChainScenario,
    OutputSamples,
    PrevalenceScenario,
    RecordScenario,
    SimulatorScenario,
    SubsampleScenario,
)
from skpuffer.training import Huber, Logistic, Multinomial
from skpuffer.training._record_gradient import RecordGradient

__all__ = ["VARIANTS", "facts", "near", "read"]

_FILE = Path(__file__).parents[1] / "oracles" / "facts.json"

#: Records of a table unless a scenario says otherwise, and its columns.
N = 6
NAMES = ("a", "b")

#: Numbers of an array that are kept one by one, and not by what they add up to.
_FEW = 6


@dataclass(frozen=True)
class Records:
    """What a record contributes: its numbers, or those times its target."""

    needs_target: bool = False

    def __call__(self, X, y=None):
        X = np.asarray(X, dtype=float)
        return X * np.asarray(y, dtype=float)[:, None] if self.needs_target else X

    def move(self, gaps, norm):
        return np.linalg.norm(gaps, norm, axis=1)


def _halved(shift):
    return min(0.5 * shift, 1.5)


def _spread(X, y=None):
    return np.asarray(X, dtype=float).max(axis=0)


def releases_of(names, n, target, groups):
    """Releases of each kind, some with several coordinates, units and targets."""
    d = len(names)
    facts = {"target_name": "t", "has_target": True, "classes": (0, 1, 2)}
    context = PublicContext(
        n_records=n,
        feature_names=names,
        n_features=d,
        groups=groups,
        **(facts if target else {}),
    )
    known = Sensitivity(
        add_remove={1: 9.0, 2: 8.0}, replace={1: 14.0, 2: 12.0}, relabel={2: 5.0}
    )
    usual = {"n_records": n, "dim": d, "context": context, "sensitivity": known}
    yield (
        "sum",
        QueryRelease(contribution=Records(target), is_sum=True, **usual),
    )
    yield (
        "sum in units",
        QueryRelease(
            contribution=Records(),
            is_sum=True,
            factor=-1.5,
            units=tuple(range(1, d + 1)),
            **usual,
        ),
    )
    yield (
        "smooth",
        QueryRelease(
            query=_spread,
            contribution=Records(),
            modulus=_halved,
            modulus_norm=1.0,
            shift_ceiling=3.0,
            slack=0.01,
            **usual,
        ),
    )
    yield "whole", QueryRelease(query=_spread, **usual)
    yield "unknown", QueryRelease(query=_spread, **usual | {"sensitivity": None})
    matrix = np.linspace(-1, 1, 2 * n * d).reshape(2, -1) ** 3
    plain = {"n_records": n, "dim": 2, "context": context, "query": _spread}
    yield "linear", QueryRelease(linear=matrix, units=(1.0, 2.0), **plain)
    one = Sensitivity(add_remove={1: 2.0, 2: 1.5}, replace={1: 4.0, 2: 2.0})
    stages = Stage("first", d, one, 0.3), Stage("then", d, one, 0.7, times=2)
    yield "stages", AdaptiveRelease(n_records=n, stages=stages, context=context)
    run = {"n_records": n, "n_steps": 2, "context": context, "sampling": "full_batch"}
    yield "run", GradientRelease(**run)
    losses = {"labels": (Logistic(), 2), "three labels": (Multinomial(), 3)}
    losses["targets"] = Huber(), None
    for name, (loss, n_classes) in losses.items() if target else ():
        record = RecordGradient(
            loss=loss, data_norm=2.0, intercept=0.5, n_classes=n_classes
        )
        yield f"run of {name}", GradientRelease(record=record, **run)
    yield (
        "votes",
        VoteRelease(
            n_records=n,
            n_teachers=2,
            n_classes=2,
            n_queries=1,
            context=context,
            groups=groups,
        ),
    )


def _people(seed, n_secrets=3, n=12, named=True):
    rng = np.random.default_rng(seed)
    secret = np.arange(n) % n_secrets
    frame = pd.DataFrame(
        {
            "secret": secret,
            "a": np.round(rng.uniform(0, 1, n) + (seed + 1) * secret, 3),
            "b": np.round(rng.uniform(-1, 1, n) * (1 + secret), 3),
            "t": rng.integers(0, 2, n),
        }
    )
    return frame if named else frame.to_numpy()


ONE, TWO, FEWER = _people(0), _people(1), _people(2, 2)
PARTS = _people(5, n=36)[["secret", "a", "b"]]


def _attributes():
    level = "record"
    tables = {"one": ONE, "several": [ONE, TWO], "fewer": [ONE, FEWER]}
    for name, prior in tables.items():
        for prior_as in ("law", "support", "sample"):
            yield (
                f"{name}, {prior_as}",
                {"level": level, "prior": prior, "prior_as": prior_as},
            )
    law = {"level": level, "prior": ONE, "prior_as": "law", "target": "t"}
    yield "in order", law | {"prior": [ONE, FEWER, TWO]}
    yield "in another order", law | {"prior": [TWO, ONE, FEWER]}
    yield "a pair", law | {"pairs": [(0, 2)]}
    yield "another pair", law | {"pairs": [(1, 2)]}
    yield "named", law | {"table": "people"}
    yield "support, named", law | {"table": "people", "prior_as": "support"}
    yield "support, a pair", law | {"pairs": [(1, 0)], "prior_as": "support"}
    yield "whole table", law | {"level": "dataset"}
    yield "whole table, support", law | {"level": "dataset", "prior_as": "support"}
    large = [_people(3, 2, 4_000), _people(4, 3, 9_000)]
    near = [table.round(0) for table in large]
    sure = law | {"prior": near, "prior_as": "confidence", "confidence": 0.9}
    yield "confidence", sure
    yield "confidence of one", sure | {"prior": near[1], "pairs": [(0, 1)]}
    for name, prior in {
        "odds": BoundedOdds(4.0),
        "odds but for a share": BoundedOdds(4.0, share=0.1),
        "two beliefs": [BoundedOdds(4.0), BoundedInference(0.8)],
        "two beliefs in another order": [BoundedInference(0.8), BoundedOdds(4.0)],
        "bins": BinnedLaw(PARTS, {"a": [1.0], "b": [0.0]}),
        "bins and odds": BinnedLaw(
            PARTS, {"a": [1.0], "b": [0.0]}, rest=BoundedOdds(1.5)
        ),
        "bins of a column": BinnedLaw(
            PARTS[["secret", "a"]], {"a": [1.0]}, rest=BoundedOdds(1.5)
        ),
        "bins, a column known": BinnedLaw(
            PARTS, {"a": [1.0], "b": [0.0]}, known=("b",)
        ),
        "bins beside odds": [
            BinnedLaw(PARTS, {"a": [1.0], "b": [0.0]}),
            BoundedOdds(1.5),
        ],
        "declared": DeclaredOdds(
            0.4 + 0.02 * np.arange(12) / 12,
            _people(6, 2)[["a", "b"]],
            rest=BoundedOdds(1.5),
        ),
    }.items():
        for extra in ({}, {"table": "people"}):
            yield f"{name} {extra}", {"level": level, "prior": prior} | extra
    for prior_as in ("law", "sample", "support", "confidence"):
        yield (
            f"bins as {prior_as}",
            {
                "level": level,
                "prior": BinnedLaw(PARTS, {"a": [1.0], "b": [0.0]}),
                "prior_as": prior_as,
                "table": "people",
            },
        )
    odds = {"level": "dataset", "prior": BoundedOdds(4.0)}
    yield "odds of all", odds
    yield "odds of all, named", odds | {"table": "people"}


COVARIANCE = pd.DataFrame(
    [[2.0, 0.8, 0.4], [0.8, 1.0, 0.3], [0.4, 0.3, 1.5]], columns=["s", "a", "b"]
)
TWO_SECRETS = pd.DataFrame(
    [
        [2.0, 0.2, 0.8, 0.4],
        [0.2, 1.0, 0.1, 0.5],
        [0.8, 0.1, 1, 0.3],
        [0.4, 0.5, 0.3, 2],
    ],
    columns=["s", "z", "a", "b"],
)
STEADY = 0.6 ** np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
SERIES = np.kron(STEADY, [[1.0, 0.3], [0.3, 2.0]])


def _gaussians():
    of_one = {"covariance": COVARIANCE, "secret": "s"}
    both = {"covariance": TWO_SECRETS, "secret": ["s", "z"]}
    for level in ("record", "dataset"):
        yield f"box, {level}", of_one | {"domain": (0, 2), "level": level}
        yield f"ball, {level}", both | {"domain": 1.0, "shape": "ball", "level": level}
    yield "two secrets in a box", both | {"domain": ([0, -1], [2, 3])}
    for table in (None, "people"):
        yield (
            f"points, {table}",
            both
            | {
                "domain": [[0, 0], [1, 0], [-0.5, 3]],
                "shape": "points",
                "table": table,
            },
        )
    yield (
        "points in another order",
        both | {"domain": [[1, 0], [-0.5, 3], [0, 0]], "shape": "points"},
    )
    yield "with a mean", of_one | {"domain": (0, 2), "mean": [1.0, 2.0, 3.0]}
    series = {"covariance": SERIES, "covariance_of": "records", "columns": list(NAMES)}
    for name, extra in {
        "box": {"secret": "a", "domain": (0, 2)},
        "ball": {"domain": 1.0, "shape": "ball"},
        "ball, protected": {"domain": 1.0, "shape": "ball", "protected": [2, 0]},
        "ball, others": {"domain": 1.0, "shape": "ball", "protected": [1, 3]},
        "larger ball": {"domain": 2.0, "shape": "ball", "table": "people"},
    }.items():
        yield f"series, {name}", series | extra


SLOW, FAST = [[0.95, 0.05], [0.1, 0.9]], [[0.6, 0.4], [0.5, 0.5]]
LONG = 100


def _chains():
    states = {"states": [[0.0, 1.0], [2.0, -1.0]]}
    for pairs in ("same_index", "all"):
        yield f"one, {pairs}", states | {"transition": SLOW, "pairs": pairs}
    for name, both in {"two": [SLOW, FAST], "two turned": [FAST, SLOW]}.items():
        yield name, states | {"transition": both}
    yield "at the start", states | {"transition": SLOW, "initial": [1.0, 0.0]}
    yield "at one time", states | {"transition": SLOW, "protected": [3]}
    yield "in no event", states | {"transition": SLOW, "event_delta": 0.0}


def _long_chains():
    states = {"states": [[0.0], [1.0]], "event_delta": 1e-3}
    for name, extra in {
        "one": {"transition": SLOW},
        "another": {"transition": FAST},
        "two": {"transition": [FAST, SLOW]},
        "two turned": {"transition": [SLOW, FAST]},
        "all pairs": {"transition": SLOW, "pairs": "all"},
        "named": {"transition": SLOW, "table": "people"},
        "at some times": {"transition": SLOW, "protected": [5, 6]},
        "at other times": {"transition": SLOW, "protected": [50, 51]},
        "from the first": {"transition": SLOW, "initial": [1.0, 0.0]},
        "rarer": {"transition": SLOW, "event_delta": 1e-8},
    }.items():
        yield name, states | extra


def _prevalences():
    for relation in ("replace", "relabel"):
        for column in (None, "a") if relation == "replace" else (None,):
            usual = {"column": column, "relation": relation, "value": 1}
            yield f"counts of {column}, {relation}", usual | {"low": 1, "high": 4}
            yield f"rates of {column}, {relation}", usual | {"low": 0.3, "high": 0.6}
            for rare in (1e-9, 0.05):
                yield (
                    f"chances of {column}, {relation}, {rare}",
                    usual
                    | {"low": 0.3, "high": 0.6, "law": "binomial", "event_delta": rare},
                )


def _draw(secret, rng):
    return rng.normal(secret, size=(N, 2))


def _draw_pair(one, other, rng):
    noise = rng.normal(size=(N, 2))
    return noise + one, noise + other


BINARY = [[0.7, 0.3], [0.2, 0.8]]
NETWORK = {
    "parents": {"p": (), "q": ("p",), "r": ("q",)},
    "tables": {"p": [0.5, 0.5], "q": BINARY, "r": BINARY},
}
OTHER_TABLES = NETWORK["tables"] | {"r": [[0.9, 0.1], [0.1, 0.9]]}
WORLDS = np.array([[0, 0, 1], [1, 0, 0], [1, 1, 2], [0, 2, 2]], dtype=float)
POOL = np.column_stack([np.arange(8), np.arange(8) ** 2 / 10.0])
LABELS = np.arange(8) % 2


def _variants():
    """Scenario, number of records, names, whether there is a target, and groups."""
    for relation in ("add_remove", "replace", "relabel"):
        for k in (1, 3):
            yield f"records {k} {relation}", RecordScenario(k, relation), {"target": 1}
    for name, options in _attributes():
        count = {"names": ("a",)} if "confidence" in name else {}
        yield f"attribute, {name}", AttributeScenario("secret", **options), count
        if name in ("one, law", "several, support", "whole table, support"):
            given = AttributeScenario("secret", **options | {"target": "t"})
            yield f"attribute, {name}, target", given, {"target": 1}
    unnamed = AttributeScenario(
        0, level="record", prior=_people(0, named=False), prior_as="law", target=3
    )
    yield "attribute by position", unnamed, {"names": None}
    for n_worlds in (None, 4):
        for name, prior in {
            "one": ONE,
            "two": [ONE, TWO],
            "turned": [TWO, ONE],
            "fewer": [FEWER, ONE],
        }.items():
            for prior_as in ("law", "sample"):
                given = GroupScenario(
                    "secret", prior=prior, prior_as=prior_as, n_worlds=n_worlds
                )
                yield f"group, {name}, {prior_as}, {n_worlds}", given, {}
    for name, options in _gaussians():
        yield f"gaussian, {name}", GaussianScenario(**options), {}
    for name, options in _chains():
        yield f"chain, {name}", MarkovChainScenario(**options), {}
    for name, options in _long_chains():
        given = MarkovChainScenario(**options)
        yield f"long chain, {name}", given, {"n": LONG, "names": ("a",)}
    for name, options in _prevalences():
        yield f"prevalence, {name}", PrevalenceScenario(**options), {"target": 1}
    for pairs in ("same_index", "all"):
        for norm in (1, 2, math.inf):
            yield (
                f"dependence {pairs} {norm}",
                DependenceScenario(0.25, norm=norm, pairs=pairs),
                {},
            )
    laws = [
        (PointMass([0.0, 0]), PointMass([1.0, 3])),
        (PointMass([0.0, 0]), PointMass([2.0, 1])),
    ]
    yield "laws", LawsScenario(laws), {}
    yield "laws turned", LawsScenario(laws[::-1]), {}
    yield (
        "diffusion",
        DiffusionScenario(1.0, np.arange(1, N + 1), 1.5),
        {"names": ("a",)},
    )
    rising = DiffusionScenario(0.3, np.arange(1, N + 1) ** 2, 1.5, table="people")
    yield "diffusion, named", rising, {"names": ("a",)}
    for name, options in {
        "one belief": {"probabilities": [1, 2, 3, 4]},
        "two beliefs": {"probabilities": [[1, 2, 3, 4], [0.7, 0.1, 0.1, 0.1]]},
        "beliefs turned": {"probabilities": [[0.7, 0.1, 0.1, 0.1], [1, 2, 3, 4]]},
        "some impossible": {"probabilities": [0.3, 0.0, 0.3, 0.4]},
        "hardly possible": {"probabilities": [1 - 3e-9, 1e-9, 1e-9, 1e-9]},
        "all pairs": {"probabilities": [1, 2, 3, 4], "pairs": "all"},
        "a record": {"probabilities": [1, 2, 3, 4], "protected": [2]},
    }.items():
        given = JointTableScenario(WORLDS, **options)
        yield f"tables, {name}", given, {"n": 3, "names": ("a",)}
    for name, options in {
        "one": {},
        "two": {"tables": [NETWORK["tables"], OTHER_TABLES]},
        "two turned": {"tables": [OTHER_TABLES, NETWORK["tables"]]},
        "a node": {"protected": ["r"]},
        "no quilts": {"max_quilt": 1},
    }.items():
        given = BayesianNetworkScenario(**NETWORK | options)
        yield f"network, {name}", given, {"n": 3, "names": ("a",)}
    for name, options in {
        "draws": {},
        "pairs": {"draw_pair": _draw_pair},
        "pairs, sure": {"draw_pair": _draw_pair, "confidence": 0.9},
        "some pairs": {"draw_pair": _draw_pair, "pairs": [(0, 2)]},
    }.items():
        given = SimulatorScenario(_draw, secrets=[0, 1, 2], n_draws=40, **options)
        yield f"simulator, {name}", given, {"names": ("a", "b")}
    for prior in ("enumerated", "sampled"):
        for name, options in {
            "dataset": {},
            "record": {"secret": "record"},
            "groups": {"secret": "groups", "groups": np.arange(8) // 3},
            "functions": {"secret": "groups", "groups": lambda mask: mask[:3].sum()},
            "strata": {"stratify": True, "pool": (POOL, LABELS)},
            "seed": {"random_state": 1},
        }.items():
            usual = {"pool": POOL, "size": 4, "prior": prior, "n_subsets": 9}
            given = SubsampleScenario(**usual | options)
            count = {"n": 4, "names": None, "target": name == "strata"}
            yield f"subsample, {prior}, {name}", given, count
    yield from _blocks()


def _blocks():
    """Blocks of which the second, or the first, is the worst."""
    chain = {"states": [[0.0], [1.0]], "event_delta": 1e-4}
    whole = {"level": "dataset", "prior_as": "support", "prior": ONE}
    parts = {
        "records": RecordScenario(4),
        "replaced records": RecordScenario(5, "replace"),
        "chain": MarkovChainScenario(SLOW, **chain),
        "named chain": MarkovChainScenario(SLOW, table="people", **chain),
        "all pairs": MarkovChainScenario(SLOW, pairs="all", **chain),
        "a household": AttributeScenario("secret", **whole),
        "a household's law": AttributeScenario(
            "secret", **whole | {"prior_as": "law", "target": "t"}
        ),
        "a household, surely": AttributeScenario(
            "secret",
            **whole
            | {
                "prior": _people(3, 2, 9_000)[["secret", "a"]].round(0),
                "prior_as": "confidence",
                "confidence": 0.9,
            },
        ),
        "odds": AttributeScenario("secret", level="dataset", prior=BoundedOdds(4.0)),
        "odds, named": AttributeScenario(
            "secret", level="dataset", prior=BoundedOdds(4.0), table="people"
        ),
        "box": GaussianScenario(
            covariance=TWO_SECRETS, secret=["s", "z"], domain=([0, -1], [2, 3])
        ),
        "chances": PrevalenceScenario(
            "a", 0.2, 0.5, law="binomial", value=1, event_delta=0.05
        ),
        "draws": SimulatorScenario(
            lambda secret, rng: rng.normal(secret, size=(2, 2)),
            secrets=[0, 1],
            n_draws=20,
        ),
    }
    for name, part in parts.items():
        names = {"names": ("a",)} if name.endswith(("chain", "pairs", "surely")) else {}
        for sizes in (2, [1, 3, 2], [3, 2, 1], [2, 4]):
            yield f"blocks {sizes}, {name}", BlocksScenario(part, sizes), names
        groups = (0, 1, 0, 1, 1, 2)
        yield (
            f"blocks by groups, {name}",
            BlocksScenario(part),
            names | {"groups": groups},
        )
        if "chain" in name or "chances" in name:
            long = {"n": LONG, **names}
            for sizes in ([40, 60], [60, 40]):
                yield f"blocks {sizes}, {name}", BlocksScenario(part, sizes), long


#: Scenarios and what a table has, by name.
VARIANTS = {name: (scenario, about) for name, scenario, about in _variants()}


def _told(value, known):
    """Plain data of what a fact holds, and names of couplings by their first places."""
    if isinstance(value, Statement):
        return str(value)
    if isinstance(value, bool | np.bool_ | type(None)):
        return value if value is None else bool(value)
    if isinstance(value, str):
        return known.setdefault(value, len(known)) if known is not None else value
    if isinstance(value, Distribution):
        support = getattr(value, "points", None)
        if support is None:
            held = {k: v for k, v in vars(value).items() if not k.startswith("_")}
            return [type(value).__name__, _told(held, None)]
        weights = getattr(value, "weights", ())
        weights = [float(w) for w in (() if weights is None else weights)]
        return [type(value).__name__, _told(support, None), _told(weights, None)]
    if hasattr(value, "to_dict"):
        return _told(value.to_dict(), None)
    if isinstance(value, dict):
        return {str(k): _told(v, known) for k, v in value.items()}
    if isinstance(value, int | float | np.number):
        return float(f"{value:.7g}")
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        flat = np.ravel(value).astype(float)
        if len(flat) > _FEW:
            places = np.cos(np.arange(len(flat)))
            return [len(flat), *_told([flat.sum(), flat @ places, flat[0]], None)]
        return [_told(one, None) for one in flat.tolist()]
    if isinstance(value, list | tuple):
        held = [_told(one, known) for one in value]
        if len(held) > 2 * _FEW:
            return [len(held), *held[:3], *held[-3:]]
        return held
    if callable(value):
        return _told(np.asarray(value(3, 0)), None)
    return str(value)


#: Of facts, what names couplings and records.
_NAMES = ("coupling_id", "record")


def _row(fact, known):
    row = {}
    for field in fields(fact):
        value = getattr(fact, field.name)
        named = field.name in _NAMES and isinstance(value, str)
        held = _told(value, known if named else None)
        if held not in (None, [], False, 0.0, ""):
            row[field.name] = held
    return row


@functools.cache
def facts(name):
    """Return each fact of a variant by kind, release and norm, or the refusal.

    Couplings are numbered in the order in which they are met.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _facts(*VARIANTS[name])


def _facts(scenario, about):
    known = {}
    names, n = about.get("names", NAMES), about.get("n", N)
    found = {}
    for kind_of_release, release in releases_of(
        ("a", "b") if names is None else names,
        n,
        about.get("target"),
        about.get("groups"),
    ):
        if n == LONG and kind_of_release not in ("sum", "run", "votes", "whole"):
            continue
        if names is None:
            context = replace(release.context, feature_names=None)
            release = replace(release, context=context)
        try:
            bound = scenario.bind(release.context)
            kinds = sorted(bound.provides(release), key=lambda kind: kind.__name__)
        except (ValueError, TypeError) as error:
            found[kind_of_release] = f"{type(error).__name__}: {error}"
            continue
        found[kind_of_release] = [kind.__name__ for kind in kinds]
        for kind in kinds:
            # gradients are clipped in one norm, and outputs that are drawn have none
            several = isinstance(release, QueryRelease) and kind is not OutputSamples
            for norm in (1, 2, math.inf) if several else (2,):
                key = f"{kind_of_release} | {kind.__name__} | {norm}"
                try:
                    row = _row(bound.fact(kind, release, norm), known)
                except ValueError as error:
                    row = f"{type(error).__name__}: {error}"
                # a fact in another norm is kept where it differs
                before = found.get(f"{kind_of_release} | {kind.__name__} | 1")
                if row != before:
                    found[key] = row
    return found


def near(one, other, rel=1e-4):
    """Whether plain data is the same but for the last digits of its numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            near(one[key], other[key], rel) for key in one
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            near(a, b, rel) for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=rel, abs_tol=1e-13)
    return one == other


def read():
    """Return what is kept, by variant."""
    told = json.loads(_FILE.read_text(encoding="utf-8"))
    rows, sentences = told["rows"], told["sentences"]
    for row in rows:
        if isinstance(row, dict) and "assumptions" in row:
            row["assumptions"] = [sentences[at] for at in row["assumptions"]]
    return {
        name: {key: rows[at] for key, at in found.items()}
        for name, found in told["variants"].items()
    }


def _write():
    rows, sentences, variants = {}, {}, {}
    for name in VARIANTS:
        found, variants[name] = facts(name), {}
        for key, row in found.items():
            if isinstance(row, dict) and "assumptions" in row:
                at = [
                    sentences.setdefault(s, len(sentences)) for s in row["assumptions"]
                ]
                row = row | {"assumptions": at}
            variants[name][key] = rows.setdefault(json.dumps(row), len(rows))
    parts = {
        "variants": ",\n".join(
            f"{json.dumps(name)}: {json.dumps(found)}"
            for name, found in variants.items()
        ),
        "rows": ",\n".join(rows),
        "sentences": ",\n".join(map(json.dumps, sentences)),
    }
    _FILE.write_text(
        f'{{"variants": {{\n{parts["variants"]}\n}},\n"rows": [\n{parts["rows"]}\n],\n'
        f'"sentences": [\n{parts["sentences"]}\n]}}\n',
        encoding="utf-8",
    )


if __name__ == "__main__":
    _write()
