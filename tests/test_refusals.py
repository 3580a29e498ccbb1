"""What learning under a scenario refuses: by name, with a remedy, and in time.

Each row is one fit that must not be. All are refused before anything private is
computed with or noise is drawn; the refusal quotes no private value, and nothing is
fitted.
"""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skpuffer.accountants import OverlapAmplification, PrivacyLoss, RenyiDP
from skpuffer.ensemble import PATEClassifier
from skpuffer.linear_model import (
    PrivateLogisticRegression,
    PrivateSGDClassifier,
    PrivateSGDRegressor,
)
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.scenarios import (
    AttributeScenario,
    BinnedLaw,
    BlocksScenario,
    BoundedInference,
    BoundedOdds,
    DeclaredOdds,
    MarkovChainScenario,
    RecordScenario,
)
from skpuffer.svm import PrivateLinearSVC
from skpuffer.testing._canaries import NUMBER, TEXT, listen
from skpuffer.training import Training

N = 40
X = pd.DataFrame(
    {
        "a": np.linspace(-0.5, 0.5, N),
        "b": np.tile([0.0, 0.25], N // 2),
        "s": np.repeat(["f", TEXT], N // 2),
    }
)
X.loc[3, "a"] = NUMBER
Y = np.tile([0, 1, 1, 0], N // 4)

rng = np.random.default_rng(0)
PUBLIC = pd.DataFrame(
    {
        "a": rng.choice([0.0, 0.2], 60),
        "b": rng.choice([0.0, 0.25], 60),
        "y": rng.integers(0, 2, 60),
        "s": rng.integers(0, 2, 60),
    }
)
BELIEF = AttributeScenario("s", level="record", prior=BoundedOdds(4.0))
#: Which forgets within few records, and so does not within all.
CHAIN = MarkovChainScenario([[0.6, 0.4], [0.4, 0.6]], event_delta=1e-6)


def under(prior, model=PrivateSGDClassifier, accountant=None, column="s", **options):
    """Model under a belief about a record's secret."""
    told = {k: options.pop(k) for k in ("target", "prior_as") if k in options}
    scenario = AttributeScenario(column, level="record", prior=prior, **told)
    accountant = OverlapAmplification(0.3) if accountant is None else accountant
    return model(scenario=scenario, accountant=accountant).set_params(**options)


def believed(**options):
    return under(BoundedOdds(4.0), **options)


def odds(rows=PUBLIC[["a", "b"]], guess=None, **options):
    guess = np.linspace(0.3, 0.6, 60) if guess is None else guess
    options = {"rest": BoundedOdds(2.0)} | options
    return under(DeclaredOdds(guess, rows, **options))


def binned(columns, **options):
    return under(BinnedLaw(PUBLIC[columns], **options), target="y")


def teachers(scenario, n_teachers=4):
    return PATEClassifier(
        n_teachers=n_teachers,
        n_queries=1,
        scenario=scenario,
        accountant=PrivacyLoss(4.0, 1e-3),
        classes=[0, 1],
    )


def households(relation="replace"):
    return BlocksScenario(RecordScenario(2, relation))


def started(**options):
    """Model that goes on from coefficients, or from another fit."""
    start = {"init": (np.full((1, 2), 9.0), [0.0])}
    return PrivateSGDClassifier(training=Training(n_steps=1, **start | options))


def replacing():
    """A start whose promise, of replaced records, does not add up with others."""
    other = PrivateSGDClassifier(
        RecordScenario(relation="replace"), training=Training(n_steps=1)
    )
    return other.fit(X[["a", "b"]], Y)


PAIRS = np.repeat(np.arange(N // 2), 2)
LARGE = np.maximum(np.arange(N) - 19, 0)

#: What is fitted, the parameter that the refusal names, the remedy that it gives.
REFUSED = {
    # losses whose gradients no ball bounds, and what is not projected
    "hinge with a ball": (
        partial(believed, model=PrivateLinearSVC, loss="hinge", training__radius=2.0),
        "'radius'.*corner",
        "huber_hinge",
    ),
    "hinge by output": (
        partial(believed, model=PrivateLinearSVC, loss="hinge", solver="output"),
        "'loss'.*corner",
        "solver='gradient'",
    ),
    "a ball of the output": (
        lambda: PrivateLogisticRegression(
            solver="output", training=Training(radius=2.0)
        ),
        "'radius' is for gradients",
        "solver='gradient'",
    ),
    "a ball of rows of any norm": (
        lambda: PrivateLogisticRegression(
            data_norm="empirical", training=Training(radius=2.0)
        ),
        "'radius' is for gradients",
        "public 'data_norm'",
    ),
    "a schedule of the output": (
        lambda: PrivateLogisticRegression(
            solver="output", training=Training(schedule="cosine")
        ),
        "'schedule' is for gradients",
        "schedule=None",
    ),
    "norms of layers that are clipped together": (
        lambda: PrivateMLPClassifier(training=Training(clip_norm=(0.5, 0.5))),
        "'clip_norm' has a norm for each layer",
        "clip_by='layer'",
    ),
    "norms of other layers": (
        lambda: PrivateMLPClassifier(
            training=Training(clip_norm=(0.5,) * 3), clip_by="layer"
        ),
        "'clip_norm' must be one norm or a pair",
        "hidden and the output layer",
    ),
    "noise of layers that are clipped together": (
        lambda: PrivateMLPClassifier(noise_by="layer"),
        "'noise_by' is 'layer'",
        "clip_by='layer'",
    ),
    "start outside of the ball": (
        partial(started, radius=1.0),
        "'init'.*outside of the ball",
        "larger 'radius'",
    ),
    # starts
    "start that does not add up": (
        lambda: started(init=replacing()),
        "'init' cannot be added",
        "give its coefficients as a pair",
    ),
    "start of another shape": (
        partial(started, init=(np.zeros((1, 3)), [0.0])),
        "'init' must hold coef_",
        r"shape \(1, 2\)",
    ),
    "start of the output": (
        lambda: PrivateLogisticRegression(
            solver="output", training=Training(init=(np.zeros((1, 2)), [0.0]))
        ),
        "'init' is for gradients",
        "init=None",
    ),
    # how many records differ
    "an uncertain count in a Rényi promise": (
        lambda: PrivateSGDClassifier(
            CHAIN,
            RenyiDP(1.0, alpha=4, delta=None),
            training=Training(batch_size=5, n_steps=2),
        ),
        "event_delta",
        "event_delta=0|give a delta",
    ),
    "a delta that the event uses up": (
        lambda: PrivateSGDClassifier(
            CHAIN, RenyiDP(1.0, delta=1e-7), training=Training(batch_size=5, n_steps=2)
        ),
        "event_delta|'delta'",
        "event_delta|larger",
    ),
    "batches of a fixed size of records that come and go": (
        lambda: PrivateSGDClassifier(
            RecordScenario(2),
            training=Training(sampling="fixed_size", batch_size=5, n_steps=2),
        ),
        "number of records changes",
        "replaced",
    ),
    # blocks
    "a block larger than a share": (
        lambda: teachers(households()),
        "'groups' has a group of 20 records",
        "fewer teachers",
    ),
    "blocks that come and go": (
        lambda: teachers(households("add_remove")),
        "'relation'.*'add_remove'",
        "'replace'",
    ),
    "blocks without ids": (
        lambda: teachers(households()),
        "'sizes' is None",
        "groups=ids",
    ),
    "ids that repeat, of records": (
        lambda: teachers(RecordScenario()),
        "'groups' has ids that repeat",
        "BlocksScenario",
    ),
    "ids that repeat, under a belief": (
        believed,
        "'groups' has ids that repeat",
        "BlocksScenario",
    ),
    # beliefs
    "odds below one": (partial(under, BoundedOdds(0.5)), "'w'", r"range \[1, inf"),
    "odds of one": (partial(under, BoundedOdds(1.0)), "'w' is 1", "above one"),
    "a share of all": (
        partial(under, BoundedOdds(4.0, share=1.0)),
        "'share'",
        r"range \[0, 1\)",
    ),
    "a guess like a coin's": (
        partial(under, BoundedInference(0.5)),
        "'auc'",
        "above 0.5",
    ),
    "a belief that suffices": (
        partial(under, BoundedOdds(1.2)),
        "alone is within the budget",
        "'epsilon'.*if_belief_suffices",
    ),
    "a fallback below the budget": (
        partial(believed, accountant=OverlapAmplification(0.3, max_fallback=0.1)),
        "'max_fallback'",
        "at least 'epsilon'",
    ),
    "a rate that contradicts": (partial(odds, rate=0.9), "'rate' says", "mean"),
    "odds without rows": (partial(odds, rows=None), "'rows' of DeclaredOdds", "table"),
    "odds that are not fitted": (
        partial(odds, guess=LogisticRegression()),
        "'propensity' must be",
        "fitted",
    ),
    "odds by the secret": (
        partial(odds, guess="s"),
        "'propensity'",
        "secret itself is none",
    ),
    "a column that is not covered": (
        partial(binned, ["a", "y", "s"]),
        "has 'b', of which",
        "'rest'|rest=",
    ),
    "a target that is not covered": (
        partial(odds, rest=None),
        "has the target, of which",
        "'rest'|rest=",
    ),
    "a secret that is the target": (
        partial(believed, column="y"),
        "'column'",
        "target",
    ),
    "a secret by its position": (
        partial(believed, column=2),
        "'column'",
        "name",
    ),
    "a rest with a share": (
        partial(odds, rest=BoundedOdds(2.0, share=0.1)),
        "'rest'",
        "no 'share'",
    ),
}

#: What is given to `fit` besides the table.
GIVEN = {
    "a block larger than a share": {"groups": LARGE},
    "blocks that come and go": {"groups": PAIRS},
    "ids that repeat, of records": {"groups": PAIRS},
    "ids that repeat, under a belief": {"groups": PAIRS},
}


class Ran(BaseException):
    """Something private was computed with."""


def tried(model, monkeypatch, **given):
    """What a fit says, which must not go so far as to run its release."""

    def ran(*_, **__):
        raise Ran

    monkeypatch.setattr(type(model), "_execute", ran)
    # only a scenario of this secret leaves it out by itself
    table = X if getattr(model.scenario, "column", "y") == "s" else X[["a", "b"]]
    if model.scenario is CHAIN:
        table = X[["b"]] * 4
    with listen() as said:
        model.fit(table, pd.Series(Y, name="y"), **given)
    return said


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused(name, monkeypatch):
    make, parameter, remedy = REFUSED[name]
    model = make()
    said = tried(model, monkeypatch, **GIVEN.get(name, {}))
    assert isinstance(said.error, ValueError | TypeError)
    message = str(said.error)
    for words in (parameter, remedy):
        assert re.search(words, message), message
    assert not said.songs
    assert not hasattr(model, "certificate_")


@pytest.mark.parametrize(
    "make",
    [
        believed,
        odds,
        partial(started, radius=30.0),
        lambda: PrivateSGDClassifier(
            CHAIN, PrivacyLoss(), training=Training(n_steps=2)
        ),
        lambda: PrivateSGDRegressor(
            BELIEF, OverlapAmplification(), target_bounds=(0, 1)
        ),
        lambda: PrivateMLPClassifier(BELIEF, OverlapAmplification()),
        lambda: teachers(RecordScenario()),
    ],
)
def test_what_is_right_runs(make, monkeypatch):
    """The control: the same table is fitted where nothing is wrong."""
    with pytest.raises(Ran):
        tried(make(), monkeypatch)
