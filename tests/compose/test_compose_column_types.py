"""One malformed cell in one record must not change which columns are released."""

import io

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skpuffer.accountants import PrivacyLoss
from skpuffer.compose import (
    PrivatePipeline,
    PublicPreprocessing,
    audit_pipeline,
)
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.model_selection import PrivateGridSearchCV
from skpuffer.preprocessing import RowNormClipper

N = 200


def read(seed=0, cell=None, columns="c"):
    """A table read from a file, in which one record may be malformed."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(rng.random((N, 3)).round(3), columns=list("abc")).astype(str)
    if cell is not None:
        rows.loc[7, columns] = cell
    return pd.read_csv(io.StringIO(rows.to_csv(index=False)), keep_default_na=False)


CLEAN, HOSTILE, PUBLIC = read(), read(cell="n/a"), read(seed=1)
ALL_HOSTILE = read(cell="n/a", columns=list("abc"))
Y = np.arange(N) % 2


def numbers(frame):
    return frame.apply(pd.to_numeric, errors="coerce").fillna(0)


def typed_numbers(frame):
    return numbers(frame.select_dtypes("number"))


def filled_numbers(frame):
    """As many columns, whatever types they have."""
    return typed_numbers(frame).reindex(columns=list("abc"), fill_value=0)


def chosen(columns=None, function=numbers):
    columns = columns or make_column_selector(dtype_include="number")
    return ColumnTransformer([("numbers", FunctionTransformer(function), columns)])


#: Types of columns of texts, by the version of pandas.
TEXTS = ["object", "str"] if pd.__version__ >= "3" else ["object"]

SELECTORS = {
    "types": chosen(),
    "excluded": chosen(make_column_selector("a|b|c", dtype_exclude=TEXTS)),
    "function": chosen(lambda frame: list(frame.select_dtypes("number"))),
    "union": FeatureUnion([("part", chosen())]),
    "nested": Pipeline([("outer", FeatureUnion([("part", chosen())]))]),
    "columns": ColumnTransformer([("outer", chosen(), ["a", "b", "c"])]),
}
DECLARED = ["numbers"]


def model():
    return PrivateLogisticRegression(accountant=PrivacyLoss(1.0, 1e-5), classes=[0, 1])


def piped(step, **options):
    options = {"row_wise": DECLARED, **options}
    return PrivatePipeline([("numbers", step), ("model", model())], **options)


def preprocessed(step, **options):
    return PublicPreprocessing(step, model(), **options)


def searched(step, **options):
    inner = Pipeline(
        [("numbers", step), ("model", model().set_params(accountant=None))]
    )
    found = PrivateGridSearchCV(inner, {"model__C": [0.1, 1.0]})
    return found.set_params(row_wise=DECLARED, accountant=PrivacyLoss(1.0, 1e-5))


def released(door, rows):
    """Shape of what is released, None where nothing is."""
    try:
        fitted = door.fit(rows, Y)
    except ValueError:
        return None
    last = fitted.steps_[-1][1] if hasattr(fitted, "steps_") else fitted.estimator_
    return last.coef_.shape


@pytest.mark.parametrize("step", SELECTORS.values(), ids=SELECTORS)
@pytest.mark.parametrize("door", [piped, preprocessed])
def test_types_of_private_columns_choose_nothing(door, step):
    # without public rows nothing is released, on any file
    assert released(door(step), CLEAN) is released(door(step), HOSTILE) is None
    found = [released(door(step, reference=PUBLIC), X) for X in (CLEAN, HOSTILE)]
    assert found == [(1, 3), (1, 3)]
    # the public rows decide, of whatever type the private ones are
    public = PUBLIC.astype({"a": object})
    assert released(door(step, reference=public), HOSTILE) == (1, 2)


@pytest.mark.parametrize("step", SELECTORS.values(), ids=SELECTORS)
def test_the_audit_names_steps_that_choose_columns_by_types(step):
    audit = audit_pipeline(make_pipeline(step, model()))
    assert [leak.name.endswith("numbers") for leak in audit.leaks] == [True]
    assert audit.leaks[0].reason.code == "pipeline.step_columns_chosen_privately"
    with pytest.raises(ValueError, match="types"):
        searched(step).fit(CLEAN, Y)


def test_columns_that_are_chosen_by_name_stay():
    step = chosen(make_column_selector("a|c"))
    assert [released(piped(step), X) for X in (CLEAN, HOSTILE)] == [(1, 2), (1, 2)]
    assert audit_pipeline(make_pipeline(step, model()), row_wise=DECLARED).is_private


@pytest.mark.parametrize("door", [piped, preprocessed, searched])
@pytest.mark.parametrize("X", [CLEAN, HOSTILE, ALL_HOSTILE], ids=["0", "1", "all"])
def test_a_function_that_goes_by_types_is_refused_on_any_rows(door, X):
    for function in (typed_numbers, filled_numbers):
        with pytest.raises(ValueError, match="types|without columns"):
            door(FunctionTransformer(function)).fit(X, Y)
    # the control: one that reads each cell by itself passes
    door(FunctionTransformer(numbers)).fit(X, Y)


def test_names_of_a_clipped_row_need_no_types():
    rows = PrivatePipeline([("clip", RowNormClipper()), ("model", model())])
    assert released(rows, CLEAN) == (1, 3)
