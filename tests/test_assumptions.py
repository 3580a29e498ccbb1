"""What a certificate takes for granted, whole: a sentence less would be a lie."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import Normalizer, StandardScaler

from skpuffer._template._reading import (
    SUMMED_ELSEWHERE,
)
from skpuffer.accountants import GeneralWasserstein, PrivacyLoss
from skpuffer.base import REFUSES_MISSING, UNTOUCHED_ROWS
from skpuffer.compose import OutputPerturbation, PrivatePipeline, PublicPreprocessing
from skpuffer.distributions import PointMass
from skpuffer.exceptions import Statement
from skpuffer.kernel.run import (
    CHOSEN_ON_GRID,
    FLOATING_POINT,
    NO_ROOM,
    ON_GRID,
    ROUNDED_ELSEWHERE,
    ROUNDED_SUMS,
    SUMS_ON_GRID,
)
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.privacy._written import SEEDED
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

RECORDS = Statement(
    "assume.neighbouring_tables",
    who=Statement("assume.record_one"),
    what=Statement("assume.record_added_or_removed"),
    n_records=60,
)
CLIPPED = Statement("assume.values_clipped")
COVERED = (ON_GRID, ROUNDED_SUMS)
UNCOVERED = (ON_GRID, NO_ROOM)
STATED = Statement("assume.stated_sensitivity_holds", sensitivity=0.1)
SHAPE = Statement("assume.released_shape_public")
SHAPES = Statement("assume.shapes_and_labels_public")
CODE_BOOK = Statement("assume.schema_fixed_beforehand")
GAPS = Statement("assume.missing_numbers_told", columns=["a", "b"])
CHOICES = Statement(
    "selection.choices_in_rounds_stated", dim=2, n_rounds=2, largest=1.0
)

#: Estimator, table, target, and all that its certificate takes for granted.
CASES = {
    "mean": (
        PrivateMean(**BOUNDS),
        X,
        None,
        [RECORDS, CLIPPED, UNTOUCHED_ROWS, REFUSES_MISSING, *COVERED],
    ),
    "seed": (
        PrivateMean(**BOUNDS, random_state=0),
        X,
        None,
        [RECORDS, CLIPPED, UNTOUCHED_ROWS, REFUSES_MISSING, FLOATING_POINT, SEEDED],
    ),
    "scaler": (
        PrivateStandardScaler(**BOUNDS),
        X,
        None,
        [RECORDS, CLIPPED, UNTOUCHED_ROWS, REFUSES_MISSING, *COVERED],
    ),
    "quantiles": (
        PrivateQuantile(**BOUNDS),
        X,
        None,
        [RECORDS, CHOICES, CLIPPED, UNTOUCHED_ROWS, REFUSES_MISSING, CHOSEN_ON_GRID],
    ),
    "distribution": (
        PrivateCDF(**BOUNDS, bins=4),
        X,
        None,
        [
            RECORDS,
            Statement("assume.values_clipped_to_grid"),
            UNTOUCHED_ROWS,
            REFUSES_MISSING,
            ON_GRID,
        ],
    ),
    "summary": (
        PrivateSummary(**BOUNDS),
        X,
        None,
        [
            RECORDS,
            Statement("assume.values_clipped_levels_public"),
            UNTOUCHED_ROWS,
            REFUSES_MISSING,
            *COVERED,
        ],
    ),
    "statistic": (
        PrivateStatistic(np.ravel, sensitivity=0.1, n_outputs=120),
        X,
        None,
        [
            RECORDS,
            SHAPE,
            STATED,
            UNTOUCHED_ROWS,
            REFUSES_MISSING,
            *COVERED,
        ],
    ),
    "statistic of laws": (
        PrivateStatistic(None, LAWS, GeneralWasserstein(1.0, 4.0)),
        X,
        None,
        [
            Statement(
                "assume.output_follows_given_laws",
                name="means and standard deviations",
                n=2,
            ),
            SHAPE,
            UNTOUCHED_ROWS,
            REFUSES_MISSING,
            *COVERED,
        ],
    ),
    "code book": (
        PrivateMean(schema=BOOK),
        FRAME,
        None,
        [RECORDS, CLIPPED, UNTOUCHED_ROWS, *COVERED, CODE_BOOK, GAPS],
    ),
    "lazy table": (
        PrivateMean(**BOUNDS),
        pl.LazyFrame({"a": X[:, 0], "b": X[:, 1]}),
        None,
        [RECORDS, CLIPPED, SUMMED_ELSEWHERE, UNTOUCHED_ROWS, REFUSES_MISSING, *COVERED],
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
            REFUSES_MISSING,
            FLOATING_POINT,
            ROUNDED_ELSEWHERE,
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
            Statement("assume.lipschitz_unproved", lipschitz=0.2),
            UNTOUCHED_ROWS,
            REFUSES_MISSING,
            *UNCOVERED,
        ],
    ),
    "output, labels of the table": (
        OutputPerturbation(LogisticRegression(), sensitivity=0.1),
        X,
        Y,
        [RECORDS, SHAPES, STATED, UNTOUCHED_ROWS, REFUSES_MISSING, *UNCOVERED],
    ),
    "output, declared labels": (
        OutputPerturbation(LogisticRegression(), sensitivity=0.1, classes=[0, 1]),
        X,
        Y,
        [
            RECORDS,
            SHAPES,
            STATED,
            Statement("assume.unknown_label_read_first"),
            UNTOUCHED_ROWS,
            REFUSES_MISSING,
            *UNCOVERED,
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
            Statement("assume.missing_target_read_middle"),
            UNTOUCHED_ROWS,
            *UNCOVERED,
            CODE_BOOK,
            GAPS,
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
            REFUSES_MISSING,
            *COVERED,
            Statement("assume.preprocessing_fitted_on_reference"),
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
            REFUSES_MISSING,
            *COVERED,
            Statement("assume.preprocessing_fixed_beforehand"),
        ],
    ),
    "gradients": (
        PrivateLogisticRegression(classes=[0, 1], max_iter=3),
        X,
        Y,
        [
            RECORDS,
            Statement("assume.step_takes_all_records", n_records=60),
            Statement("assume.rows_clipped", data_norm=1.0),
            Statement("assume.unknown_label_counts_nothing"),
            UNTOUCHED_ROWS,
            REFUSES_MISSING,
            SUMS_ON_GRID,
            ROUNDED_SUMS,
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_certificate_says_all_that_it_rests_on(case):
    model, table, target, expected = CASES[case]
    stated = model.fit(table, target).certificate_.assumptions
    assert sorted(stated, key=repr) == sorted(expected, key=repr)


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
    own = [RECORDS, CLIPPED, UNTOUCHED_ROWS, REFUSES_MISSING, *COVERED]
    first = Statement("assume.steps_fixed_or_public", steps=["public"])
    second = Statement(
        "assume.steps_released_are_public",
        steps=["public", "one", "norms"],
        released=["one"],
    )
    found = {n: set(c.assumptions) for n, c in model.certificates_.items()}
    assert found == {"one": {*own, first}, "two": {*own, second}}
    assert set(model.certificate_.assumptions) == {*own, first, second}
