"""What a certificate takes for granted, whole: a sentence less would be a lie."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import Normalizer, StandardScaler

from skpuffer._template._elsewhere import SUMMED_ELSEWHERE
from skpuffer._template._on_grid import (
    CHOSEN_ON_GRID,
    FLOATING_POINT,
    NO_ROOM,
    ON_GRID,
    ROUNDED_ELSEWHERE,
    ROUNDED_SUMS,
    SUMS_ON_GRID,
)
from skpuffer.accountants import GeneralWasserstein, PrivacyLoss
from skpuffer.base import SEEDED, UNTOUCHED_ROWS
from skpuffer.compose import OutputPerturbation, PrivatePipeline, PublicPreprocessing
from skpuffer.distributions import PointMass
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.scenarios import LawsScenario
from skpuffer.schema import Schema
from skpuffer.summary import (
    PrivateCDF,
    PrivateMean,
    PrivateQuantile,
    PrivateStandardScaler,
    PrivateStatistic,
    PrivateSummary,
)

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b"])
BOUNDS = {"bounds": (-1, 1)}
BOOK = Schema({"a": (-1, 1), "b": (-1, 1)})
WITH_TARGET = Schema({"a": (-1, 1), "b": (-1, 1), "y": (0, 1)}, target="y")
LAWS = LawsScenario([(PointMass(np.zeros(4)), PointMass(np.ones(4)))])

RECORDS = (
    "neighbouring tables: one record is added or removed; the number of records (60), "
    "of features, the class labels and every divisor are public"
)
CLIPPED = "values outside the public bounds are clipped to them"
COVERED = f"{ON_GRID}; {ROUNDED_SUMS}"
UNCOVERED = f"{ON_GRID}; {NO_ROOM}"
STATED = (
    "one record moves the released vector by no more than the stated sensitivity "
    "(0.1); the library has not proved it"
)
SHAPES = "the shape of the released arrays and the class labels are public"
CODE_BOOK = "the schema was fixed beforehand and holds nothing of the private data"
CHOICES = (
    "2 choices in 2 rounds, each by scores that move by amounts of a range of at most "
    "1 between neighbouring tables"
)

#: Estimator, table, target, and all that its certificate takes for granted.
CASES = {
    "mean": (
        PrivateMean(**BOUNDS),
        X,
        None,
        [RECORDS, CLIPPED, UNTOUCHED_ROWS, COVERED],
    ),
    "seed": (
        PrivateMean(**BOUNDS, random_state=0),
        X,
        None,
        [RECORDS, CLIPPED, UNTOUCHED_ROWS, FLOATING_POINT, SEEDED],
    ),
    "scaler": (
        PrivateStandardScaler(**BOUNDS),
        X,
        None,
        [RECORDS, CLIPPED, UNTOUCHED_ROWS, COVERED],
    ),
    "quantiles": (
        PrivateQuantile(**BOUNDS),
        X,
        None,
        [RECORDS, CHOICES, CLIPPED, UNTOUCHED_ROWS, CHOSEN_ON_GRID],
    ),
    "distribution": (
        PrivateCDF(**BOUNDS, bins=4),
        X,
        None,
        [
            RECORDS,
            "values outside the public grid are clipped to it",
            UNTOUCHED_ROWS,
            ON_GRID,
        ],
    ),
    "summary": (
        PrivateSummary(**BOUNDS),
        X,
        None,
        [
            RECORDS,
            "values outside the public bounds or grid are clipped to them; the levels "
            "of categorical columns are public, and a value that is none of them "
            "counts as nothing, or at the level of missing values",
            UNTOUCHED_ROWS,
            COVERED,
        ],
    ),
    "statistic": (
        PrivateStatistic(np.ravel, sensitivity=0.1, n_outputs=120),
        X,
        None,
        [
            RECORDS,
            "the shape of the released array is public",
            STATED,
            UNTOUCHED_ROWS,
            COVERED,
        ],
    ),
    "statistic of laws": (
        PrivateStatistic(None, LAWS, GeneralWasserstein(1.0, 4.0)),
        X,
        None,
        [
            "the output of the release 'means and standard deviations' follows one of "
            "the 2 given distributions",
            "the shape of the released array is public",
            UNTOUCHED_ROWS,
            COVERED,
        ],
    ),
    "code book": (
        PrivateMean(schema=BOOK),
        FRAME,
        None,
        [RECORDS, CLIPPED, UNTOUCHED_ROWS, COVERED, CODE_BOOK],
    ),
    "lazy table": (
        PrivateMean(**BOUNDS),
        pl.LazyFrame({"a": X[:, 0], "b": X[:, 1]}),
        None,
        [RECORDS, CLIPPED, SUMMED_ELSEWHERE, UNTOUCHED_ROWS, COVERED],
    ),
    "lazy table and seed": (
        PrivateMean(**BOUNDS, random_state=0),
        pl.LazyFrame({"a": X[:, 0], "b": X[:, 1]}),
        None,
        [
            RECORDS,
            CLIPPED,
            SUMMED_ELSEWHERE,
            UNTOUCHED_ROWS,
            f"{FLOATING_POINT}; {ROUNDED_ELSEWHERE}",
            SEEDED,
        ],
    ),
    "output": (
        OutputPerturbation(Ridge(), sensitivity=0.1, lipschitz=0.2),
        X,
        Y,
        [
            RECORDS,
            SHAPES,
            STATED,
            "it moves by no more than 0.2 for each unit that one record moves in l2; "
            "the library has not proved it",
            UNTOUCHED_ROWS,
            UNCOVERED,
        ],
    ),
    "output, labels of the table": (
        OutputPerturbation(LogisticRegression(), sensitivity=0.1),
        X,
        Y,
        [RECORDS, SHAPES, STATED, UNTOUCHED_ROWS, UNCOVERED],
    ),
    "output, declared labels": (
        OutputPerturbation(LogisticRegression(), sensitivity=0.1, classes=[0, 1]),
        X,
        Y,
        [
            RECORDS,
            SHAPES,
            STATED,
            "a record whose label is missing, or none of the declared classes, is read "
            "as one of the first class",
            UNTOUCHED_ROWS,
            UNCOVERED,
        ],
    ),
    "output, code book": (
        OutputPerturbation(Ridge(), sensitivity=0.1, schema=WITH_TARGET),
        FRAME,
        Y,
        [
            RECORDS,
            SHAPES,
            STATED,
            "a record whose target is missing, or no number, is read as one in the "
            "middle of its bounds",
            UNTOUCHED_ROWS,
            UNCOVERED,
            CODE_BOOK,
        ],
    ),
    "public rows": (
        PublicPreprocessing(
            StandardScaler(), PrivateMean(**BOUNDS), reference=X + 0.01
        ),
        X,
        None,
        [
            RECORDS,
            CLIPPED,
            UNTOUCHED_ROWS,
            COVERED,
            "the preprocessing was fitted on a reference table, which is public, and "
            "maps each record by itself",
        ],
    ),
    "fixed preprocessing": (
        PublicPreprocessing(Normalizer(), PrivateMean(**BOUNDS)),
        X,
        None,
        [
            RECORDS,
            CLIPPED,
            UNTOUCHED_ROWS,
            COVERED,
            "the preprocessing was fixed beforehand, holds nothing of the private data "
            "and maps each record by itself",
        ],
    ),
    "gradients": (
        PrivateLogisticRegression(classes=[0, 1], max_iter=3),
        X,
        Y,
        [
            RECORDS,
            "every step takes all 60 records",
            "rows longer than 1 are scaled down to it",
            "a record whose label is missing, or none of the declared classes, counts "
            "as nothing",
            UNTOUCHED_ROWS,
            f"{SUMS_ON_GRID}; {ROUNDED_SUMS}",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_certificate_says_all_that_it_rests_on(case):
    model, table, target, expected = CASES[case]
    stated = model.fit(table, target).certificate_.assumptions
    assert sorted(stated) == sorted(expected)


def test_steps_of_a_pipeline_say_what_stands_before_them():
    model = PrivatePipeline(
        [
            ("public", StandardScaler()),
            ("one", PrivateStandardScaler(**BOUNDS)),
            ("norms", Normalizer()),
            ("two", PrivateStandardScaler(**BOUNDS)),
        ],
        reference=X + 0.01,
        accountant=PrivacyLoss(1.0, noise="gaussian"),
    ).fit(X)
    own = [RECORDS, CLIPPED, UNTOUCHED_ROWS, COVERED]
    first = (
        "the steps before it ('public') were fixed beforehand or fitted on public "
        "rows, and each maps each record by itself"
    )
    second = (
        "the steps before it ('public', 'one', 'norms') map each record by itself, and "
        "were fixed beforehand, fitted on public rows, or released under certificates "
        "of their own ('one'), to which this one is added: given what they released, "
        "they are public"
    )
    found = {n: sorted(c.assumptions) for n, c in model.certificates_.items()}
    assert found == {"one": sorted([*own, first]), "two": sorted([*own, second])}
    assert set(model.certificate_.assumptions) == {*own, first, second}
