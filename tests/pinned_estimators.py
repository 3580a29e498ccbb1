"""What estimators promise, plan and execute under each option, kept in a file.

    python -m tests.pinned_estimators            # writes tests/oracles/estimators.json
    python -m tests.pinned_estimators --check    # prints what differs from the file

Every public estimator is fitted with each of its parameters changed in turn, under
scenarios of several kinds, to a small table that is awkward: values beyond all bounds
and on them, gaps, levels that nobody listed, ties, groups of unequal size. Noise is
drawn as zero. Kept are the certificate with all that it takes for granted, the release
as it was proved, and what was added up: the exact vectors that noise was going to be
added to, and the scale of that noise. So an option that is read in one place and
forgotten in another changes a number here, and a record that is counted twice does too.

A new estimator or a new value of an option needs no line here where
`_parameter_constraints` says what it may be. After a wanted change the file is written
anew, and its difference is read.
"""

import contextlib
import dataclasses
import functools
import json
import math
import re
import sys
import warnings
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Ridge

from skpuffer import base
from skpuffer.accountants import (
    Best,
    GroupPrivacy,
    MarkovQuilt,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.compose import OutputPerturbation, PrivatePipeline, PublicPreprocessing
from skpuffer.exceptions import Statement
from skpuffer.kernel import run as kernel_run
from skpuffer.linear_model import PrivateLogisticRegression, PrivateRidge
from skpuffer.noise import Noise
from skpuffer.preprocessing import PublicMinMaxScaler
from skpuffer.releases import (
    AdaptiveRelease,
    GradientRelease,
    SelectionRelease,
    Sensitivity,
    VoteRelease,
)
from skpuffer.scenarios import (
    AttributeScenario,
    BlocksScenario,
    BoundedOdds,
    GroupScenario,
    MarkovChainScenario,
    PrevalenceScenario,
    RecordScenario,
)
from skpuffer.schema import Number, Schema
from skpuffer.summary import PrivateStandardScaler
from skpuffer.testing import all_estimators
from skpuffer.testing._suite import statements_in
from skpuffer.training import Training, _engine
from skpuffer.utils._sklearn import Interval, StrOptions
from tests.engines import lazy_frame

__all__ = [
    "ESTIMATORS",
    "ROOMS",
    "differences",
    "fit",
    "fits",
    "moves",
    "read",
    "room_of",
]

_FILE = Path(__file__).parent / "oracles" / "estimators.json"

# -- the table -----------------------------------------------------------------------

#: Records of the table, and its columns.
N = 24
NAMES = ["a", "b", "c"]

#: Households of unequal size, whose records do not lie together.
GROUPS = np.array([0, 1, 0, 2, 2, 2] * 4) + np.repeat([0, 3], 12)


def _numbers():
    rng = np.random.default_rng(7)
    X = np.round(rng.uniform(-1.2, 1.2, (N, 3)), 2)
    # on the bounds and beyond them, at nothing, twice the same
    X[:7] = [
        [-10, 10, 10],
        [10, -10, 0],
        [1e3, -1e3, 12],
        [0, 0, 0],
        [-0.5, 0.25, 40],
        [-0.5, 0.25, 40],
        [1, -1, 1],
    ]
    return pd.DataFrame(X, columns=NAMES)


#: Rare and common labels, and amounts beyond the ends of their range.
LABELS = pd.Series((np.arange(N) % 4 == 0).astype(int), name="t")
AMOUNTS = pd.Series(np.round(np.linspace(-1.6, 1.3, N) ** 3, 3), name="t")

CODES = {
    "a": (-5, 5),
    "b": ["x", "y", "z"],
    "c": Number(0, 10, missing=[40]),
    "d": [False, True],
    "e": Number(0, 1000, amount=True),
}
SCHEMAS = {
    "labels": Schema({**CODES, "t": [0, 1]}, target="t"),
    "amounts": Schema({**CODES, "t": (-1, 2)}, target="t"),
    None: Schema(CODES),
}


def _coded():
    """The table as raw cells: levels that are not listed, gaps and large amounts."""
    X, places = _numbers(), np.arange(N)
    X.loc[[3, 8], "a"] = np.nan
    texts, truths = ["x", "y", "y", "?", None, "z"], [True, False, True, None, True]
    X["b"] = pd.Series([texts[i % 6] for i in places], dtype=object)
    X["d"] = pd.Series([truths[i % 5] for i in places], dtype=object)
    X["e"] = np.where(places % 7 == 3, np.nan, places**3 / 5.0)
    return X


def _declared(kind):
    gaps = dict.fromkeys([3, 5], None)
    if kind == "labels":
        return LABELS.astype(object).where(~LABELS.index.isin(gaps), None)
    return AMOUNTS.where(~AMOUNTS.index.isin(gaps))


# -- scenarios -----------------------------------------------------------------------

_PEOPLE = pd.DataFrame(
    {
        "secret": np.arange(12) % 2,
        "a": np.round(np.linspace(-1, 1, 12) + 0.4 * (np.arange(12) % 2), 2),
        "b": np.round(np.cos(np.arange(12)), 2),
        "c": np.round(np.sin(np.arange(12)) ** 2, 2),
        "t": np.arange(12) // 2 % 2,
    }
)
_STATES = [[0.0, 1.0, 0.5], [1.0, -1.0, 2.0]]

#: Scenario and accountant, by name. Under the first two every option is tried.
SCENARIOS = {
    "records": (RecordScenario(), PrivacyLoss(1.0, 1e-5)),
    "replaced": (RecordScenario(2, "replace"), RenyiDP(2.0, 1e-5)),
    "belief": (
        AttributeScenario("secret", level="record", prior=BoundedOdds(3.0)),
        Best(1.0, delta=1e-4),
    ),
    "labels": (RecordScenario(1, "relabel"), PrivacyLoss(1.0, 1e-5)),
    "law": (
        AttributeScenario(
            "secret", level="record", prior=_PEOPLE, prior_as="law", target="t"
        ),
        Best(1.0, delta=1e-4),
    ),
    "group": (
        GroupScenario("secret", prior=_PEOPLE, prior_as="law", target="t"),
        Best(1.0, delta=1e-4),
    ),
    "blocks": (
        BlocksScenario(RecordScenario(6, "replace")),
        PrivacyLoss(1.0, 1e-5),
    ),
    "units": (
        RecordScenario(unit="id", max_rows=2),
        PrivacyLoss(1.0, 1e-5),
    ),
    "chain": (
        MarkovChainScenario([[0.6, 0.4], [0.5, 0.5]], states=_STATES, event_delta=1e-6),
        MarkovQuilt(1.0, math.inf),
    ),
    "prevalence": (
        PrevalenceScenario(None, 5, 8),
        PrivacyLoss(1.0, 1e-4),
    ),
}
EVERY_OPTION = ("records", "replaced")

# -- options -------------------------------------------------------------------------

#: Values of parameters whose constraints do not say which are sensible, by name.
BY_NAME = {
    "bounds": [(-1.0, 1.0), {"a": (0, 1), "b": (-2, 5), "c": (-1, 3)}],
    "target_bounds": [(-2.0, 0.5)],
    "categories": [{"b": [-1.0, 0.25, 1.0]}],
    "classes": [[0, 1, 2], [1, 0]],
    "interactions": [[("a", "b")]],
    "monotone_constraints": [{"a": 1, "b": -1}],
    "amounts": [["c"]],
    "n_amount_bins": [],
    "n_bins": [3],
    "n_rounds": [2],
    "bins": [5, [-1.0, 0.0, 2.0]],
    "priors": [[0.3, 0.7]],
    "center": [0.5, [1.0, 0.0, -1.0]],
    "n_components": [1],
    "quantiles": [0.9, [0.1, 0.5]],
    "resolution": [0.5, [0.1, 0.5, 1.0]],
    "n_clusters": [3],
    "class_weight": [{0: 1.0, 1: 3.0}],
    "clip_norm": [0.3],
    "noise_correlation": ["banded_square_root"],
    "units": [[1.0, 2.0, 0.5]],
    "sensitivity": [Sensitivity(add_remove={1: 0.5, 2: 0.3}, replace={1: 1.0})],
    "by": ["b", "d"],
    "columns": [["a", "c"]],
    "statistics": [
        ["median", "var"],
        ["histogram", "quantile"],
        ["rate"],
        {"a": ["mean"], "b": ["std"]},
    ],
    "target": ["a"],
    "max_cells": [9],
    "n_samples": [5],
    "radius": [0.5],
    "init": [(np.ones((1, 3)), np.zeros(1))],
    # nothing of these reaches a promise or a row
    **dict.fromkeys(["scenario", "verbose", "n_jobs", "random_state"], []),
    "schema": [],
    "accountant": [],
    "training": [],
    "student": [],
    "estimator": [],
    "row_wise": [],
    "query": [],
    "statistic": [],
    "unlabeled": [],
    "param_grid": [],
    "param_distributions": [],
    "reference": [],
    "transformer": [],
}

#: Accountants that take noise of other families.
ACCOUNTANTS = {
    "smaller": PrivacyLoss(0.4, 1e-6),
    "pure": GroupPrivacy(1.0, alpha=math.inf, noise="laplace"),
    "order": RenyiDP(1.0, None, alpha=4.0),
    # by which more is learnt, and in other ways
    "large": PrivacyLoss(50.0, 1e-3),
    "large, pure": GroupPrivacy(50.0, alpha=math.inf, noise="laplace"),
}

#: Options of a run that some models have defaults of their own for.
_OF_EACH_MODEL = {
    f"training__{name}" for name in ("batch_size", "clip_norm", "init", "radius")
}

#: Options together, of the estimators that have all of them.
TOGETHER = [
    {"training__sampling": "full_batch", "class_weight": {0: 1.0, 1: 3.0}},
    {"training__sampling": "fixed_size", "training__batch_size": 5},
    {"training__batch_size": 5, "fit_intercept": False},
    {"training__batch_size": 6, "training__n_steps": 3, "training__clip_norm": 0.2},
    {
        "training__noise_correlation": "banded_square_root",
        "training__batch_size": 6,
        "training__average": 0.5,
    },
    {"solver": "output", "class_weight": {0: 1.0, 1: 3.0}},
    {"solver": "output", "fit_intercept": False},
    {"solver": "moments", "fit_intercept": False},
    {"clip_by": "layer", "noise_by": "layer"},
    {"clip_by": "layer", "training__clip_norm": (0.3, 0.6)},
    {"by": "b", "categories": {"b": [-1.0, 0.25, 1.0]}},
    {
        "by": "b",
        "categories": {"b": [-1.0, 0.25, 1.0]},
        "statistics": ["count", "mean", "histogram"],
    },
    {"with_mean": False, "with_std": True, "bounds": (-1.0, 1.0)},
    {"data_norm": 2.0, "bounds": None, "center": 0.5, "n_components": 1},
    {"data_norm": 2.0, "bounds": None, "estimate_mean": False},
]

#: Options of single estimators.
_MEAN = {"statistic": lambda X: np.clip(X, -1, 1).mean(axis=0)}
OF_ONE = {
    "PrivateStatistic": [_MEAN, _MEAN | {"units": [1.0, 2.0, 0.5]}],
    "PATEClassifier": [
        {"threshold": 2.0},
        {"threshold": 2.0, "max_answers": 3},
        {"n_teachers": 6, "n_queries": 5},
    ],
    "OutputPerturbation": [{"query": "coef_"}, {"canonical": "sort"}],
    "PrivateKMeans": [{"schedule": [1.0, 2.0]}],
    "PrivateTableSynthesizer": [{"shares": (0.3, 0.3, 0.4)}],
    "PrivatePipeline": [{"shares": {"scale": 1.0, "model": 3.0}}],
    "PrivateGridSearchCV": [
        {"trials": "each", "n_trials": None},
        {"param_grid": {"C": [0.1, 0.2, 0.3]}},
    ],
}


def _steps():
    return [
        ("scale", PrivateStandardScaler(bounds=(-1, 1))),
        ("model", PrivateLogisticRegression(classes=[0, 1])),
    ]


def _pipelines():
    accountant = PrivacyLoss(2.0, 1e-5)
    pipeline = PrivatePipeline(_steps(), accountant=accountant)
    yield "PrivatePipeline", pipeline
    public = ("unit", PublicMinMaxScaler(bounds=(-1, 1)))
    yield (
        "PrivatePipeline of public steps",
        PrivatePipeline([public, *_steps()[1:]], accountant=accountant),
    )
    yield (
        "PublicPreprocessing of a regression",
        PublicPreprocessing(public[1], PrivateRidge(target_bounds=(-1, 1))),
    )
    yield (
        "OutputPerturbation of a ridge",
        OutputPerturbation(Ridge(), query=["coef_"], sensitivity=0.2),
    )


def _is_private(estimator):
    return any(name.endswith("accountant") for name in estimator.get_params())


#: Usual options of an estimator, where its own take long or release little.
_PUBLIC_ROWS = np.round(np.random.default_rng(3).uniform(-1, 1, (9, 3)), 2)
USUAL = {
    "PrivateCDF": {"bins": 8},
    "PATEClassifier": {"unlabeled": _PUBLIC_ROWS, "n_queries": 9},
}


#: Options of maps that learn nothing, whose constraints nobody states.
_PLAIN_SCHEMA = {"schema": SCHEMAS[None]}
OF_MAPS = {
    "PublicBinner": [
        {"bins": {"a": [-1.0, 0.0, 1.0]}},
        {"bins": {"a": [-1.0, 0.0, 1.0]}, "encode": "onehot"},
        _PLAIN_SCHEMA,
        _PLAIN_SCHEMA | {"n_bins": 3, "encode": "onehot"},
    ],
    "PublicImputer": [
        {"fill": {"a": -1.0}},
        {"fill": {"a": -1.0}, "missing": [0.0]},
        _PLAIN_SCHEMA,
    ],
    "PublicMinMaxScaler": [
        {"bounds": {"a": (0, 1), "b": (-2, 5), "c": (-1, 3)}},
        {"feature_range": (-1, 1)},
        _PLAIN_SCHEMA | {"bounds": None},
    ],
    "PublicOneHotEncoder": [
        {"categories": {"a": [1.0, -0.5]}},
        {"categories": {"a": [1.0, -0.5]}, "unknown": "error"},
        {"categories": {"b": ["x", "y", "z"]}},
        {"categories": {"b": ["x", "y", "z"]}, "missing": "zero"},
        {"categories": {"b": ["x", "y", "z"]}, "sparse_output": True},
    ],
    "RowNormClipper": [{"norm": 0.5}, {"ord": 1}, {"ord": math.inf}, {"ord": 3}],
}

#: Estimators by name, as they are found.
ESTIMATORS = {
    entry.name: clone(entry.instance).set_params(**USUAL.get(entry.name, {}))
    for entry in all_estimators()
    if _is_private(entry.instance) or hasattr(entry.instance, "transform")
} | dict(_pipelines())


def room_of(name):
    """Return the package that an estimator is in."""
    return type(ESTIMATORS[name]).__module__.split(".")[1]


ROOMS = sorted({room_of(name) for name in ESTIMATORS})


def _values(name, constraints, default):
    """Values of a parameter that differ from its default."""
    made = list(BY_NAME.get(name, ()))
    for allowed in constraints if isinstance(constraints, list) else ():
        if isinstance(allowed, StrOptions):
            made += sorted(allowed.options, key=str)
        elif allowed == "boolean":
            made += [True, False]
        elif isinstance(allowed, Interval) and name not in BY_NAME:
            made.append(_within(allowed, default))
    return [value for value in made if not _same(value, default)]


def _within(interval, default):
    """A number of an interval that is not the default."""
    whole = interval.type.__name__ == "Integral"
    usual = default if isinstance(default, int | float) else (4 if whole else 0.7)
    if whole:
        return usual + 2
    value = 0.5 * usual if usual else 0.3
    return value if value in interval else 2 * usual


def _same(value, default):
    return type(value) is type(default) and np.array_equal(
        np.asarray(value, dtype=object), np.asarray(default, dtype=object)
    )


def _parts(estimator):
    """Parameters with constraints, those of default parts by nested names too."""
    kind = type(estimator)
    for name, default in estimator.get_params(deep=False).items():
        yield name, kind._parameter_constraints.get(name), default
        if name == "training":
            for inner, value in Training().get_params().items():
                of_training = Training._parameter_constraints[inner]
                yield f"training__{inner}", of_training, value


def options(estimator):
    """Yield a name and parameters for each option, the usual ones first."""
    yield "usual", {}
    for name, constraints, default in _parts(estimator):
        bare = name.rpartition("__")[2]
        for value in _values(bare, constraints, default):
            yield f"{name}={_brief(value)}", {name: value}
    known = estimator.get_params()
    has_training = "training" in known
    for params in TOGETHER:
        if all(
            name in known or (name.startswith("training__") and has_training)
            for name in params
        ):
            yield ", ".join(f"{k}={_brief(v)}" for k, v in params.items()), params


def _brief(value):
    text = re.sub(r"\s+", " ", str(value))
    return text if len(text) < 60 else f"{type(value).__name__} of {len(text)}"


@dataclass
class Variant:
    """One fit: an estimator with options, its table and what is public of it."""

    estimator: BaseEstimator
    X: object
    y: object
    fit_params: dict = field(default_factory=dict)
    is_seeded: bool = True
    is_fitted_twice: bool = False
    start: BaseEstimator | None = None


def _target(estimator):
    if not estimator.__sklearn_tags__().target_tags.required:
        return None
    kind = estimator.__sklearn_tags__().estimator_type
    return AMOUNTS if kind == "regressor" else LABELS


def _under(estimator, scenario, accountant, **params):
    """A clone with a scenario and an accountant, wherever these are parameters."""
    fresh = clone(estimator)
    known = fresh.get_params()
    inner = "estimator__" if "estimator__scenario" in known else ""
    wanted = {
        "accountant": accountant,
        f"{inner}scenario": scenario,
        "estimator__accountant": accountant,
        "random_state": 0,
        "estimator__random_state": 0,
    }
    if "accountant" in known:  # of the search, and not of its candidates
        wanted.pop("estimator__accountant")
    if "validation_fraction" in known:
        wanted.pop("estimator__random_state")
    fresh.set_params(**{k: v for k, v in wanted.items() if k in known})
    if "training" in known:
        steps = {"training__n_steps": 2} if "training__n_steps" not in params else {}
        fresh.set_params(**steps)
    if "classes" in known and known["classes"] is None and fresh.schema is None:
        fresh.set_params(classes=[0, 1])
    return fresh.set_params(**params)


def variants(name):
    """Yield a key and a variant for each option and scenario of an estimator."""
    estimator = ESTIMATORS[name]
    if not _is_private(estimator):
        for params in ({}, *OF_MAPS.get(name, ())):
            of_texts = "b" in params.get("categories", ()) or "schema" in params
            X = _coded() if of_texts else _numbers()
            model = clone(estimator).set_params(**params)
            option = _told_options(params) or "usual"
            yield f"records | {option}", functools.partial(Variant, model, X, None)
        return
    of_one = [(_told_options(p), p) for p in OF_ONE.get(name, ())]
    for scenario in SCENARIOS:
        every = scenario in EVERY_OPTION
        chosen = [*options(estimator), *of_one] if every else [("usual", {})]
        for option, params in chosen:
            # runs are the same in all models, in most of their options
            run, alone = option.startswith("training__"), name == "PrivateSGDClassifier"
            some = option.partition("=")[0] in _OF_EACH_MODEL and scenario == "records"
            if run and not (alone or some):
                continue
            made = functools.partial(_variant, estimator, scenario, params)
            yield f"{scenario} | {option}", made
    for option, accountant in ACCOUNTANTS.items():
        for scenario in EVERY_OPTION if "large" in option else ("records",):
            made = functools.partial(_variant, estimator, scenario, {}, accountant)
            yield f"{scenario} | accountant {option}", made
    if "schema" in estimator.get_params(deep=False):
        for option, params in options(estimator):
            # what a code book says as well
            if not _TOLD_BY_CODES & params.keys() and not option.startswith("train"):
                made = functools.partial(_by_schema, estimator, "records", params)
                yield f"records by schema | {option}", made
        for scenario in ("replaced", "belief", "blocks"):
            made = functools.partial(_by_schema, estimator, scenario, {})
            yield f"{scenario} by schema | usual", made
    for option, make in _TABLES.items():
        yield f"records | {option}", functools.partial(make, estimator)
    if "training" in estimator.get_params():
        yield "records | warm start", functools.partial(_warm, estimator)
        yield "records | fitted start", functools.partial(_from_fitted, estimator)
        yield "records | seeded start", functools.partial(_from_fitted, estimator, 0)


def _told_options(params):
    return ", ".join(
        f"{k}={'a function' if callable(v) else _brief(v)}" for k, v in params.items()
    )


def _variant(estimator, scenario, params, accountant=None):
    of, usual = SCENARIOS[scenario]
    model = _under(estimator, of, accountant or usual, **params)
    X = _numbers()
    if getattr(of, "column", None) == "secret":
        X["secret"] = (
            np.zeros(N, dtype=int) if "group" in scenario else np.arange(N) % 2
        )
    if getattr(of, "unit", None) == "id":
        X["id"] = GROUPS
    if scenario == "chain":
        X = pd.DataFrame(np.array(_STATES)[np.arange(N) % 3 % 2], columns=NAMES)
    groups = {"groups": GROUPS} if scenario == "blocks" else {}
    return Variant(model, X, _target(model), groups)


#: Parameters that a code book stands for.
_TOLD_BY_CODES = {"bounds", "categories", "classes", "target_bounds", "unlabeled"}


def _by_schema(estimator, scenario, params):
    y = _target(estimator)
    kind = None if y is None else "labels" if y is LABELS else "amounts"
    none = dict.fromkeys(_TOLD_BY_CODES & estimator.get_params().keys())
    of, usual = SCENARIOS[scenario]
    fresh = clone(estimator).set_params(schema=SCHEMAS[kind], **none)
    model = _under(fresh, of, usual, **params)
    X = _coded()
    if getattr(of, "column", None) == "secret":
        X["secret"] = np.arange(N) % 2
    groups = {"groups": GROUPS} if scenario == "blocks" else {}
    return Variant(model, X, None if y is None else _declared(kind), groups)


def _unseeded(estimator):
    made = _variant(estimator, "records", {})
    known = made.estimator.get_params()
    none = {k: None for k in ("random_state", "estimator__random_state") if k in known}
    made.estimator.set_params(**none)
    made.is_seeded = False
    return made


def _unnamed(estimator):
    """Without names, and the secret at a position."""
    made = _variant(estimator, "belief", {})
    scenario = AttributeScenario(
        3, level="dataset", prior=BoundedOdds(2.0), table="people"
    )
    made.estimator = _under(estimator, scenario, Best(1.0, delta=1e-4))
    made.X = made.X.to_numpy()
    made.X[:, 3] = 1.0
    made.y = None if made.y is None else made.y.to_numpy()
    return made


def _of_classes_found(estimator):
    made = _variant(estimator, "records", {})
    if "classes" in made.estimator.get_params(deep=False):
        made.estimator.set_params(classes=None)
    return made


def _lazy(estimator):
    """Held by an engine, which sums it up."""
    made = _variant(estimator, "records", {})
    table = made.X if made.y is None else made.X.assign(t=made.y)
    made.X, made.y = lazy_frame("polars", table), None if made.y is None else "t"
    return made


def _twice(estimator, **params):
    made = _variant(estimator, "records", params)
    made.is_fitted_twice = True
    return made


def _warm(estimator):
    made = _twice(estimator, training__warm_start=True)
    # what has a seed adds up with nothing
    made.estimator.set_params(random_state=None)
    made.is_seeded = False
    return made


def _from_fitted(estimator, random_state=None):
    """From a fitted model with a promise of its own."""
    made = _variant(estimator, "records", {})
    start = clone(made.estimator).set_params(random_state=random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start.fit(made.X, made.y)
    made.start = start
    made.estimator.set_params(random_state=None)
    made.is_seeded = False
    return made


#: How a table comes, and is fitted to.
_TABLES = {
    "no seed": _unseeded,
    "no names": _unnamed,
    "classes found": _of_classes_found,
    "lazy": _lazy,
    "fitted twice": _twice,
}


# -- doors ---------------------------------------------------------------------------


_TRUE = {name: getattr(kernel_run, name) for name in ("add_noise", "noisy_scores")}


@functools.cache
def _modules_with_doors(n_modules):
    """Modules that know a door, and its name: looked for as modules are imported."""
    return [
        (module, name)
        for path, module in list(sys.modules.items())
        if path.startswith("skpuffer.")
        for name, true in _TRUE.items()
        if vars(module).get(name) is true
    ]


@dataclass
class Doors:
    """What passes each door of a fit: where noise is added, and what is proved of it.

    Parameters
    ----------
    transcript : list or None
        What left each door of another fit, which leaves this one again.
    plans : list or None
        Calibration and release of that fit, which are those of this one.
    """

    transcript: list | None = None
    plans: list | None = None
    runs: list = field(default_factory=list)
    calibrations: list = field(default_factory=list)
    passed: list = field(default_factory=list)
    drawn: list = field(default_factory=list)
    said: list = field(default_factory=list)

    def through(self, kind, exact, scale):
        """Let an exact value pass, or what left the same door before."""
        exact = np.array(exact, dtype=float)
        at = len(self.passed)
        self.passed.append((kind, exact, scale))
        if self.transcript is None or at >= len(self.transcript):
            return exact
        return self.transcript[at][1]

    @contextlib.contextmanager
    def open(self):
        """Have every fit go through these doors."""
        others = {"add_noise": self._add_noise, "noisy_scores": self._noisy_scores}
        with contextlib.ExitStack() as stack:
            for module, name in _modules_with_doors(len(sys.modules)):
                stack.enter_context(mock.patch.object(module, name, others[name]))
            patch = functools.partial(mock.patch.object)
            stack.enter_context(patch(kernel_run, "run", self._run))
            stack.enter_context(patch(base, "proved", self._proved))
            stack.enter_context(patch(_engine, "_clipped_sums", self._clipped_sums))
            stack.enter_context(patch(Noise, "sample", self._sampler()))
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                yield self
            self.said = said

    def _add_noise(self, exact, noise, rng, *, n_records, integer=False):
        value = self.through("sum", exact, noise.scale)
        self.drawn.append((noise.family, noise.scale, np.shape(exact)))
        assert not integer or np.array_equal(value, np.rint(value))
        return value

    def _noisy_scores(self, scores, noise, rng):
        self.drawn.append((noise.family, noise.scale, np.shape(scores)))
        return self.through("scores", scores, noise.scale)

    def _sampler(doors):
        def sample(noise, shape, rng=None):
            doors.drawn.append((noise.family, noise.scale, shape))
            return np.zeros(shape)

        return sample

    @contextlib.contextmanager
    def _clipped_sums(self, gradients, release, n_jobs):
        def clipped(parameters, index, clipping):
            exact = gradients.clipped_sum(parameters, index, clipping)
            size = None if index is None else len(index)
            return self.through(f"batch of {size}", exact, clipping.total_clip_norm)

        yield clipped

    def _run(self, certificate, noise, release, execute, rng, tell):
        at = len(self.runs)
        self.runs.append((certificate, noise, release))
        tell()
        if self.plans is not None and release.n_records != N and _is_sum(release):
            # the same release of fewer rows: their number is public
            release = self.plans[at][1]
            return execute.func(execute.args[0], release, noise, rng)
        return execute(noise, rng)

    def _proved(self, accountant, release, bound, rng, *args, **options):
        if self.plans is None:
            found = _PROVED(accountant, release, bound, rng, *args, **options)
        else:
            found = self.plans[len(self.calibrations)][0]
        self.calibrations.append(found)
        return found


_PROVED = base.proved


def _is_sum(release):
    """Whether a release adds up contributions, or makes several sums in turn."""
    return getattr(release, "is_sum", False) or isinstance(release, AdaptiveRelease)


def fitted(variant, doors):
    """Fit a variant through doors."""
    model = clone(variant.estimator)
    arguments = [variant.X] if variant.y is None else [variant.X, variant.y]
    if variant.start is not None:  # which a clone would forget
        model.set_params(training__init=variant.start)
    if variant.is_fitted_twice:
        with Doors().open():
            model.fit(*arguments, **variant.fit_params)
    with doors.open():
        model.fit(*arguments, **variant.fit_params)
    return model


# -- plain data ----------------------------------------------------------------------

#: Numbers of an array that are kept one by one, and not by what they add up to.
_FEW = 6

_DIGEST = re.compile(r"[0-9a-f]{12,}")

#: Of certificates, what is told apart.
_APART = ("curve", "events", "assumptions", "coupling_id", "record", "choice", "source")
#: Deviations that follow from what was released.
_APART += ("errors",)


def _number(value):
    value = float(value)
    if math.isnan(value) or math.isinf(value):
        return str(value)
    value = float(f"{value:.9g}")
    return int(value) if value.is_integer() and abs(value) < 1e9 else value


def plain(value, depth=0):
    """Return plain data of what is public: numbers with nine digits, no functions."""
    if isinstance(value, Statement):
        return {value.code: {k: plain(v, 1) for k, v in value.parameters.items()}}
    if value is None or isinstance(value, bool | np.bool_):
        return value if value is None else bool(value)
    if isinstance(value, str):
        return _DIGEST.sub("#", value)
    if isinstance(value, int | float | np.number):
        return _number(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return digest(value)
    if isinstance(value, dict):
        return {str(plain(k)): plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple | set | np.ndarray):
        held = sorted(value, key=str) if isinstance(value, set) else list(value)
        with contextlib.suppress(ValueError, TypeError):
            array = np.asarray(held)
            if array.dtype.kind in "iuf" and array.size > _FEW:
                return digest(array)
        return [plain(one, depth + 1) for one in held]
    if is_dataclass(value) and depth < 4:
        return {type(value).__name__: _fields(value, depth)}
    if isinstance(value, BaseEstimator):
        return _DIGEST.sub("#", re.sub(r"\s+", " ", repr(value)))
    return type(value).__name__


def _fields(value, depth=0):
    held = {}
    for one in fields(value):
        if one.name in ("context", "query", "feature_map"):
            continue
        told = plain(getattr(value, one.name), depth + 1)
        if told not in (None, [], {}, False, ""):
            held[one.name] = told
    return held


def digest(array):
    """Numbers of an array; of a long one its shape, sum, norm and a mixed sum."""
    array = np.asarray(array, dtype=float)
    flat = array.ravel()
    if flat.size <= _FEW:
        return [_number(v) for v in flat]
    finite = np.where(np.isfinite(flat), flat, 0.0)
    mixed = finite @ np.cos(np.arange(flat.size))
    norm = np.linalg.norm(finite)
    sums = [finite.sum(), norm, mixed, np.abs(finite).max()]
    return [list(array.shape), *map(_number, sums)]


_GAPS = np.array([[0.3, 0.0, 0.0], [1.0, -0.5, 0.2], [7.0, 7.0, 7.0]])


def _release(release):
    told = {type(release).__name__: _fields(release)}
    contribution = getattr(release, "contribution", None)
    if hasattr(contribution, "move"):
        with contextlib.suppress(ValueError, TypeError, IndexError):
            told["moves"] = [
                digest(contribution.move(_GAPS, p)) for p in (1, 2, math.inf)
            ]
    modulus = getattr(release, "modulus", None)
    if callable(modulus):
        told["modulus"] = [_number(modulus(s)) for s in (0.1, 1.0, 50.0)]
    for scores in getattr(release, "scores", ()):
        told.setdefault("ranges", []).append(
            [plain(scores.ranges(r)) for r in ("add_remove", "replace")]
        )
    return told


def _curve(certificate):
    curve, told = certificate.curve, []
    if curve is None:
        return None
    for asked, at in (
        ("delta", 0.1),
        ("delta", 1.0),
        ("epsilon", 1e-4),
        ("renyi", 3.0),
    ):
        try:
            told.append(_number(getattr(curve, asked)(at)))
        except (ValueError, TypeError, NotImplementedError, AttributeError) as error:
            told.append(type(error).__name__)
    return [type(curve).__name__, *told]


def certificate_row(certificate, known):
    told = {
        f"certificate.{one.name}": plain(getattr(certificate, one.name))
        for one in fields(certificate)
        if one.name not in _APART
    }
    told = {k: v for k, v in told.items() if v not in (None, [], False, "")}
    coupling = certificate.coupling_id
    if coupling is not None:
        told["coupling"] = [plain(coupling), known.setdefault(coupling, len(known))]
    if certificate.record is not None:
        told["record"] = known.setdefault(certificate.record, len(known))
    told["source"] = plain(certificate.source)
    told["choice"] = plain(certificate.choice)
    told["curve"] = _curve(certificate)
    told["assumptions"] = [plain(one) for one in certificate.assumptions]
    return told


def error_row(error):
    codes = sorted({s.code for s in statements_in(error)})
    return {"refused": [type(error).__name__, *codes]}


def row(variant, known, doors):
    """Return what is kept of one variant, by field."""
    try:
        model = fitted(variant, doors)
    except Exception as error:  # a refusal is kept as well
        return error_row(error)
    if not hasattr(model, "certificate_"):
        return _mapped(model, variant.X)
    told = certificate_row(model.certificate_, known)
    noise = getattr(model, "noise_", None)
    told["noise"] = None if noise is None else [noise.family, digest(noise.scale)]
    # which candidates a search tries is drawn
    if variant.is_seeded or not hasattr(model, "best_params_"):
        told["releases"] = [_release(release) for _, _, release in doors.runs]
    if variant.is_seeded and len(doors.runs) > 1:
        told["parts"] = [
            [plain(c.epsilon), plain(c.delta), n.family, digest(n.scale)]
            for c, n, _ in doors.runs
        ]
    told["warned"] = sorted(
        {s.code for said in doors.said for s in statements_in(said.message)}
    )
    told["attributes"] = sorted(
        name for name in vars(model) if name.endswith("_") or name.startswith("_")
    )
    if variant.is_seeded:
        told["executed"] = _executed(doors, model)
        told["drawn"] = _drawn(doors)
    return told


def _mapped(model, X):
    """What a map makes of each row by itself, column by column."""
    try:
        made = model.transform(X)
    except (ValueError, TypeError) as error:
        return error_row(error)
    made = pd.DataFrame(made.toarray() if hasattr(made, "toarray") else made)
    # texts are as they came
    numbers = made.apply(pd.to_numeric, errors="coerce")
    columns = numbers.fillna(-9.0).to_numpy(dtype=float).T
    ends = [digest([column.min(), column.max()]) for column in columns]
    return {"executed": [*map(digest, columns), ends]}


def _executed(doors, model):
    passed = doors.passed
    told = [[kind, *digest(exact)] for kind, exact, _ in passed[:3]]
    if len(passed) > 3:
        rest = np.concatenate([np.ravel(exact) for _, exact, _ in passed[3:]])
        told.append([f"{len(passed) - 3} more", *digest(rest)])
    if type(model).__name__.startswith("PrivateAdditive"):
        # After the first, sums are in a basis of eigenvectors, and each machine has its
        # own where some are equal: what that leaves alone is the norm.
        told[1:] = [[kind, shape, norm] for kind, shape, _, norm, *_ in told[1:]]
    return told


def _drawn(doors):
    """Families, scales and numbers of what was drawn, equal ones together."""
    told = {}
    for family, scale, shape in doors.drawn:
        key = json.dumps([family, digest(scale)])
        told[key] = told.get(key, 0) + int(np.prod(shape))
    return [[*json.loads(key), size] for key, size in told.items()]


# -- moves ---------------------------------------------------------------------------


def _changed(variant, at, cells, label):
    X, y = variant.X.copy(), None if variant.y is None else variant.y.copy()
    if cells is not None:
        for name, value in zip(NAMES, cells, strict=True):
            if name == "b" and "d" in X:  # of a table with a code book
                X.loc[at, "b"], X.loc[at, "d"] = "xyz"[int(value)], bool(value > 0)
                X.loc[at, "e"] = 1e6 * value
                continue
            X[name] = X[name].astype(float)
            X.loc[at, name] = value
    if label is not None and y is not None:
        y.loc[at] = label
    return dataclasses.replace(variant, X=X, y=y)


def _without(variant, at):
    keep = np.arange(N) != at
    y = None if variant.y is None else variant.y[keep].reset_index(drop=True)
    return dataclasses.replace(variant, X=variant.X[keep].reset_index(drop=True), y=y)


def neighbours(variant):
    """Yield a relation and a table for each way in which one record is moved."""
    y = variant.y
    low, high = (None, None) if y is None else (y.dropna().min(), y.dropna().max())
    yield "add_remove", _without(variant, N - 1)
    yield "replace", _changed(variant, N - 1, [-1e3, -1.0, -1e3], high)
    yield "replace", _changed(variant, 2, [-1e3, 0.25, 1e3], low)
    yield "replace", _changed(variant, 2, [0.0, 1.0, 0.0], high)
    if y is not None:
        yield "relabel", _changed(variant, 4, None, high)
        yield "relabel", _changed(variant, 4, None, low)


def pairs(variant):
    """Yield two tables that differ in two records of one household, to either side."""
    y = variant.y
    labels = (None, None) if y is None else (y.dropna().min(), y.dropna().max())
    for cells in ([1e3, 1.0, 1e3], [0.0, 1.0, 0.0]):
        low, high = variant, variant
        for at in (3, 4):
            low = _changed(low, at, [-cell for cell in cells], labels[0])
            high = _changed(high, at, cells, labels[1])
        yield low, high


def is_moved(name, key):
    """Whether the moves of a variant are looked at: under an option that they heed."""
    scenario, _, option = key.partition(" | ")
    together = option == "usual" or ", " in option
    if scenario.removesuffix(" by schema") not in ("records", "replaced", "blocks"):
        return False
    if option in _TABLES or option.endswith(" start"):
        return False
    # under the others every option is looked at
    if scenario != "records" and not together:
        return False
    # of outputs of foreign code nothing is known but what its user says
    if "sensitivity" in ESTIMATORS[name].get_params(deep=False):
        return False
    if not _is_private(ESTIMATORS[name]):
        return False
    part = option.partition("=")[0]
    if part.startswith("training__") and name != "PrivateSGDClassifier":
        return part.endswith("clip_norm")
    if part.startswith("training__"):
        return part.endswith(("sampling", "clip_norm", "batch_size"))
    if name.startswith("PrivatePipeline") or "SearchCV" in name:
        return False
    # teachers are dealt and fitted anew
    return name != "PATEClassifier" or part in ("usual", "threshold")


def moves(variant, doors):
    """Yield how far each neighbour moves what is executed, and what is stated.

    Later sums are taken after the same noisy earlier ones, as in the proof.

    Parameters
    ----------
    variant : Variant
    doors : Doors
        That it has gone through.
    """
    if len(doors.runs) != 1 or len(doors.calibrations) != 1:
        return
    certificate, _, release = doors.runs[0]
    plans = [(doors.calibrations[0], release)]
    # candidates between the values of a table are others in another one
    by_rows = isinstance(release, SelectionRelease) and not release.is_finite
    if by_rows or not certificate.certified:
        return
    # batches, and parts of teachers, are drawn by the number of records
    is_drawn = isinstance(release, VoteRelease) or any(
        re.match(r"batch of \d", kind) for kind, *_ in doors.passed
    )
    is_one = certificate.relation == "add_remove" or not certificate.coupling_count
    for relation, other in neighbours(variant) if is_one else ():
        if relation == "add_remove" and (is_drawn or variant.fit_params):
            continue
        beside = Doors(transcript=doors.passed, plans=plans)
        fitted(other, beside)
        yield relation, *_compared(release, relation, doors.passed, beside.passed)
    count = certificate.coupling_count or 1
    if count > 1 and certificate.relation == "replace":
        yield from _moves_of_two(variant, certificate, release, plans, is_drawn)


def _moves_of_two(variant, certificate, release, plans, is_drawn):
    stated, norm = certificate.sensitivity, certificate.norm or 2.0
    if is_drawn:
        # of one record, as its chance to be in a batch is its own
        stated = 4.0 * getattr(release, "total_clip_norm", 1.0)
    for low, high in pairs(variant):
        one = Doors(plans=plans)
        fitted(low, one)
        two = Doors(transcript=one.passed, plans=plans)
        fitted(high, two)
        gaps = _gaps(release, one.passed, two.passed)
        lengths = [float(np.linalg.norm(gap, norm)) for gap in gaps]
        yield "two", max(lengths, default=0.0), stated


def _gaps(release, ours, theirs):
    """Moves of what passed the doors, in the units in which they are stated."""
    units = release.unit_array if hasattr(release, "unit_array") else 1.0
    if isinstance(release, GradientRelease | AdaptiveRelease):
        units = 1.0
    gaps = [
        np.ravel((one - other) / units)
        for (_, one, _), (_, other, _) in zip(ours, theirs, strict=False)
        if one.shape == other.shape
    ]
    if isinstance(release, AdaptiveRelease):
        # of which the noise of each is in its own unit
        return [np.concatenate(gaps)]
    return gaps


def _compared(release, relation, ours, theirs):
    """Largest move of what passed the doors, and what is stated of it."""
    gaps = _gaps(release, ours, theirs)
    if isinstance(release, GradientRelease):
        # fewer records have another divisor, after which steps are other ones
        first = slice(1 if relation == "add_remove" else None)
        times = 1 if relation == "add_remove" else 2
        # in units of the clip norm of each step, which may follow from the number
        norms = [one[2] for one in ours[first]]
        if norms != [other[2] for other in theirs[first]]:
            return 0.0, 0.0
        lengths = [
            np.linalg.norm(gap, release.clip_order) / norm
            for gap, norm in zip(gaps[first], norms, strict=True)
        ]
        return float(max(lengths)), times
    if isinstance(release, VoteRelease):
        return float(max((np.abs(gap).sum() for gap in gaps), default=0.0)), 2.0
    if isinstance(release, SelectionRelease):
        of = "add_remove" if relation == "add_remove" else "replace"
        stated = max(max(scores.ranges(of)) for scores in release.scores)
        return float(max(np.ptp(gap) for gap in gaps)) * ours[0][2], stated
    if release.sensitivity is None:
        return 0.0, 0.0
    adaptive = isinstance(release, AdaptiveRelease)
    found = []
    for norm in (release.norm,) if adaptive else (1.0, 2.0, math.inf):
        stated = release.sensitivity.value(relation, norm, release.dim)
        stated += release.total_slack(norm)
        found.append((float(np.linalg.norm(gaps[0], norm)), stated))
    return max(found, key=lambda pair: pair[0] / pair[1] if pair[1] else pair[0])


# -- the file ------------------------------------------------------------------------


@functools.cache
def fits(name):
    """Return what is kept of an estimator and its fits, by variant.

    Parameters
    ----------
    name : str
        Of `ESTIMATORS`.

    Returns
    -------
    rows : dict of {str: dict}
    fitted : dict of {str: (Variant, Doors)}
        Of those whose moves are looked at.
    """
    known, rows, kept = {}, {}, {}
    for key, make in variants(name):
        variant, doors = make(), Doors()
        rows[key] = row(variant, known, doors)
        if "refused" not in rows[key] and is_moved(name, key):
            kept[key] = variant, doors
    return rows, kept


def fit(name, key):
    """Return one variant of an estimator, and the doors that it has gone through."""
    variant, doors = dict(variants(name))[key](), Doors()
    fitted(variant, doors)
    return variant, doors


def _against(base, told):
    """Fields in which a row differs from the usual one of its scenario."""
    if "refused" in told or "refused" in base:
        return told
    gone = {key: "gone" for key in base if key not in told}
    return gone | {k: v for k, v in told.items() if base.get(k, "none") != v}


def short(rows):
    """Return rows with those fields only in which they differ from the usual ones."""
    told = {}
    for key, one in rows.items():
        scenario, _, option = key.partition(" | ")
        usual = rows[f"{scenario} | usual"]
        told[key] = one if option == "usual" else _against(usual, one)
    return told


def whole(told):
    """Return rows as they were before they were made short."""
    rows = {}
    for key, one in told.items():
        scenario, _, option = key.partition(" | ")
        usual = told[f"{scenario} | usual"]
        if option != "usual" and "refused" not in one and "refused" not in usual:
            one = {k: v for k, v in {**usual, **one}.items() if v != "gone"}
        rows[key] = one
    return rows


def near(one, other, rel=1e-6):
    """Whether plain data is the same but for the last digits of its numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            near(one[key], other[key], rel) for key in one
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            near(a, b, rel) for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=rel, abs_tol=1e-9)
    return one == other


#: Fields of which many rows have the same entries, which are numbered.
_SHARED = ("assumptions", "attributes", "releases", "executed", "drawn", "warned")


@functools.cache
def read():
    """Return what is kept, by estimator, variant and field."""
    told = json.loads(_FILE.read_text(encoding="utf-8"))
    shared = told.pop("shared")
    for rows in told.values():
        for one in rows.values():
            for part in set(_SHARED) & set(one):
                if one[part] != "gone":
                    one[part] = [shared[at] for at in one[part]]
    return {name: whole(rows) for name, rows in told.items()}


def differences(name):
    """Return what is not as it is kept, in lines of estimator, option and field."""
    ours, kept = fits(name)[0], read().get(name, {})
    lines = []
    for key in dict.fromkeys([*kept, *ours]):
        one, other = ours.get(key, {}), kept.get(key, {})
        for part in dict.fromkeys([*other, *one]):
            a, b = one.get(part), other.get(part)
            if not near(a, b):
                lines.append(f"{name} | {key} | {part}: {a!r}, and it was {b!r}")
    return lines


def _line(name, held):
    told = json.dumps(held, sort_keys=True, separators=(",", ":"))
    return f"{json.dumps(name)}: {told}"


def _write():
    numbers, lines = {}, []

    def numbered(part, value):
        if part not in _SHARED or value == "gone":
            return value
        told = [json.dumps(one, sort_keys=True, separators=(",", ":")) for one in value]
        return [numbers.setdefault(one, len(numbers)) for one in told]

    for name in sorted(ESTIMATORS):
        rows = {
            key: {part: numbered(part, value) for part, value in one.items()}
            for key, one in sorted(short(fits(name)[0]).items())
        }
        inner = ",\n".join(f"  {_line(key, one)}" for key, one in rows.items())
        lines.append(f" {json.dumps(name)}: {{\n{inner}\n }}")
    shared = ",\n".join(f"  {one}" for one in numbers)
    lines.append(f' "shared": [\n{shared}\n ]')
    _FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    if "--check" in sys.argv:
        print(*(line for name in ESTIMATORS for line in differences(name)), sep="\n")
    else:
        _write()
