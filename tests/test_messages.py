"""What is said of private data: column and type, never a value."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from skpuffer.accountants import GeneralWasserstein
from skpuffer.compose import OutputPerturbation, PublicPreprocessing
from skpuffer.exceptions import ScenarioError
from skpuffer.linear_model import PrivateLogisticRegression, PrivateRidge
from skpuffer.preprocessing import PublicOneHotEncoder, RowNormClipper
from skpuffer.scenarios import AttributeScenario
from skpuffer.summary import PrivateMean, PrivateStandardScaler, PrivateSummary
from skpuffer.testing._canaries import NUMBER, TEXT, listen
from tests.refused import refused, says

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

X = np.random.default_rng(0).uniform(-0.5, 0.5, (40, 2))
X[5] = NUMBER, 0.0
Y = np.tile([0, 1], 20)


def refusal(call, *arguments, kind=ValueError):
    """What is said instead of a result, which quotes nothing."""
    with listen() as said:
        call(*arguments)
    assert type(said.error) is kind
    assert not said.songs
    return str(said.error)


def mean():
    return PrivateMean(bounds=(-1, 1))


def test_a_cell_that_is_no_number_is_named_by_its_column():
    table = pd.DataFrame({"age": X[:, 0], "name": [TEXT] * 40})
    message = refusal(mean().fit, table)
    assert "'name'" in message
    assert "dtype" in message
    assert "PublicOneHotEncoder" in message
    cells = X.astype(object)
    cells[3, 1] = {TEXT: 1}
    message = refusal(mean().fit, cells, kind=TypeError)
    assert "column 1" in message
    assert "dtype object" in message
    cells[3, 1] = 10**400
    assert "beyond the range" in refusal(mean().fit, cells)
    dates = table.assign(name=pd.to_datetime("2026-01-01"))
    assert "'name'" in refusal(mean().fit, dates)
    assert "dates" in refusal(mean().fit, dates)


@pytest.mark.parametrize(
    "secret",
    [
        [[TEXT]] * 40,
        [{TEXT: 1}] * 40,
        TEXT,
        {TEXT},
        (text for text in [TEXT]),
        sparse.csr_matrix(np.full((40, 1), NUMBER)),
        pd.Series([[TEXT]] * 40),
        np.ma.masked_equal([NUMBER] * 40, NUMBER),
    ],
)
def test_a_secret_that_is_no_list_of_values(secret):
    prior = pd.DataFrame({"s": [0, 1] * 20, "a": X[:, 0], "b": X[:, 1]})
    believed = AttributeScenario("s", level="record", prior=prior, prior_as="law")
    model = mean().set_params(scenario=believed, accountant=GeneralWasserstein())
    with listen() as said:
        model.fit(pd.DataFrame(X, columns=["a", "b"]), secret=secret)
    assert isinstance(said.error, (TypeError, ValueError))
    # cells that hold objects are values like any others
    unknown = says(said.error, "attribute.values_not_in_prior", column="s")
    assert unknown or "secret" in str(said.error)
    assert not said.songs


@pytest.mark.parametrize(
    "secret, pairs, words",
    [
        ([TEXT] * 40, "all", "'s' has 1"),
        ([TEXT, NUMBER] * 20, [(0, 1)], "names the secret 0"),
    ],
)
def test_an_empirical_prior_is_private(secret, pairs, words):
    believed = AttributeScenario("s", level="record", prior="empirical", pairs=pairs)
    model = mean().set_params(scenario=believed, accountant=GeneralWasserstein())
    frame = pd.DataFrame(X, columns=["a", "b"])

    def fit():
        model.fit(frame, secret=np.array(secret, dtype=object))

    assert words in refusal(fit, kind=ScenarioError)


def test_a_sparse_target():
    for numbers in (np.full((40, 1), NUMBER), np.full((40, 1), NUMBER + 1j)):
        for model in (PrivateLogisticRegression(), PrivateRidge(target_bounds=(0, 1))):
            target = sparse.csr_matrix(numbers)
            assert "sparse" in refusal(model.fit, X, target, kind=TypeError)


def test_what_is_no_table_of_numbers():
    for table, words in (
        (X[:, 0], "got 1D array"),
        (NUMBER, "got scalar array"),
        ({TEXT: X}, "got scalar array"),
        ((row for row in X), "got scalar array"),
        (X + 1j, "Complex data not supported"),
        (X.astype(object) + 1j, "Complex data not supported"),
        (np.ma.masked_greater(X, 0.4), "masked"),
    ):
        assert words in refusal(mean().fit, table)


def test_numbers_of_any_type_are_read():
    expected = np.round(X, 3)
    for table in (
        expected.astype(object),
        expected.astype(str),
        pd.DataFrame(expected).astype(str),
        pd.DataFrame(expected).astype("Float64"),
        pd.DataFrame(expected).astype("category"),
        np.ma.masked_greater(expected, 2.0),
        expected.tolist(),
    ):
        found = RowNormClipper(norm=10.0).fit_transform(table)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("missing", [None, "nan", np.nan, pd.NA, pd.NaT])
def test_a_target_that_is_missing_is_not_fitted(missing):
    target = Y.astype(object)
    target[3] = missing
    model = PrivateRidge(target_bounds=(0, 1))
    message = refusal(model.fit, X, target)
    assert "'y'" in message
    assert not hasattr(model, "coef_")


def test_a_target_that_is_no_number():
    model = PrivateRidge(target_bounds=(0, 1))
    for target in (
        np.full(40, TEXT),
        Y * (NUMBER + 1j),
        np.full(40, np.datetime64("NaT", "D")),
        np.ma.masked_equal(Y, 1),
        [10**400] * 40,
    ):
        assert "'y'" in refusal(model.fit, X, target)
    assert "'y'" in refusal(model.fit, X, [{TEXT}] * 40, kind=TypeError)


def test_labels_that_do_not_go_together():
    mixed = np.where(Y == 1, TEXT, Y.astype(object))
    assert "mixes labels" in refusal(PrivateLogisticRegression().fit, X, mixed)
    missing = np.where(Y == 1, TEXT, None)
    assert "'y'" in refusal(PrivateLogisticRegression().fit, X, missing)


def test_words_of_a_transformer_are_withheld():
    public = pd.DataFrame({"name": ["a", "b"] * 20})
    private = pd.DataFrame({"name": ["a"] * 39 + [TEXT]})
    model = PublicPreprocessing(OneHotEncoder(), mean(), reference=public)
    message = refusal(model.fit, private)
    assert "'transformer' raised ValueError" in message
    assert "n_samples=40" in message
    assert not hasattr(model, "estimator_")


def test_words_of_our_own_transformers_are_passed_on():
    table = pd.DataFrame({"name": ["a"] * 39 + [TEXT]})
    encoder = PublicOneHotEncoder({"name": ["a", "b"]}, unknown="error")
    message = refusal(PublicPreprocessing(encoder, mean()).fit, table)
    assert "'categories' does not name" in message


def test_warnings_of_a_transformer_are_not_passed_on():
    def tell(table):
        warnings.warn(f"seen {table.tolist()}", RuntimeWarning, stacklevel=2)
        return table

    model = PublicPreprocessing(FunctionTransformer(tell), mean())
    with listen() as said:
        model.fit(X)  # where warnings are errors
    assert not said.songs


def test_words_of_an_estimator_are_withheld():
    def quote(fitted):
        raise KeyError(f"{fitted.coef_}, {X}")

    for inner, query in ((Ridge(), quote), (LogisticRegression(solver="no"), "coef_")):
        model = OutputPerturbation(inner, query, sensitivity=0.1)
        assert "withheld" in refusal(model.fit, X, Y)


def test_other_rows_are_not_quoted_either():
    frame = pd.DataFrame(X, columns=["a", "b"])
    bad = frame.astype(object)
    bad.iloc[3, 1] = TEXT
    ridge = OutputPerturbation(Ridge(), ["coef_", "intercept_"], sensitivity=0.1)
    scaler = PrivateStandardScaler(bounds=(-1, 1)).fit(frame)
    for call in (
        ridge.fit(frame, Y).predict,
        PrivateLogisticRegression().fit(frame, Y).predict,
        scaler.transform,
        scaler.inverse_transform,
        RowNormClipper().fit(frame).transform,
    ):
        assert "'b'" in refusal(call, bad)


def test_a_summary_of_strange_cells():
    cells = X.astype(object)
    cells[3, 1] = TEXT
    summary = PrivateSummary(bounds=(-1, 1))
    assert "column 1" in refusal(summary.fit, cells)
    table = pd.DataFrame({"a": cells[:, 1]})
    assert "'a'" in refusal(summary.fit, table)


def test_what_is_not_finite_is_not_given_noise():
    """It is refused for what it is, before any noise is drawn."""

    class Broken(PrivateMean):
        def _release(self, task):
            release = super()._release(task)
            return replace(release, query=lambda X, y: np.full(release.dim, np.inf))

    message = refusal(Broken(bounds=(-1, 1)).fit, X)
    assert "which no noise hides" in message


def test_what_is_not_finite_is_not_released():
    class Broken(PrivateMean):
        def _execute(self, task, release, noise, rng):
            return super()._execute(task, release, noise, rng) * np.nan

    model = Broken(bounds=(-1, 1))
    with refused(ValueError, "release.result_not_finite"):
        model.fit(X)
    assert not hasattr(model, "certificate_")
    model = OutputPerturbation(
        Ridge(), lambda fitted: fitted.coef_ * np.inf, sensitivity=0.1
    )
    assert "NaN or infinity" in refusal(model.fit, X, Y)
