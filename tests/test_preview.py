"""What a preview says of a fit, and that it reads, draws and tells nothing."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import get_tags

from skpuffer._template._preview import UnreadRows
from skpuffer.accountants import (
    DistributionAwareWasserstein,
    GroupPrivacy,
    PrivacyLoss,
)
from skpuffer.cluster import PrivateKMeans
from skpuffer.compose import OutputPerturbation, PublicPreprocessing
from skpuffer.datasets import load_heart
from skpuffer.decomposition import PrivatePCA
from skpuffer.exceptions import UnsupportedError
from skpuffer.linear_model import (
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
)
from skpuffer.linear_model._base_sgd import WARM_STARTED
from skpuffer.naive_bayes import PrivateCategoricalNB
from skpuffer.noise import Noise
from skpuffer.privacy import Preview
from skpuffer.scenarios import (
    AttributeScenario,
    BlocksScenario,
    BoundedOdds,
    GroupScenario,
    MarkovChainScenario,
    RecordScenario,
    SubsampleScenario,
)
from skpuffer.schema import Schema
from skpuffer.summary import PrivateMean, PrivateSummary
from skpuffer.testing import all_estimators
from skpuffer.testing._estimator_checks import _arguments
from skpuffer.training import Training
from tests.refused import refused, says

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

PREVIEWED = [
    e.instance for e in all_estimators() if hasattr(e.instance, "_plan_unread")
]

SEX = pd.Series(["f", "m"] * 30)
TABLE = pd.DataFrame(
    {
        "age": np.linspace(20, 80, 60),
        "sex": SEX,
        "pay": np.linspace(0, 5000, 60) ** 1.0,
    }
)
LABELS = pd.Series(np.arange(60) // 2 % 2, name="good")
SCHEMA = Schema({"age": (18, 90), "sex": ["f", "m"], "pay": (0, 6000)})


def seeded(estimator):
    return clone(estimator).set_params(
        **{
            name: 0
            for name in estimator.get_params()
            if name.rpartition("__")[2] == "random_state"
        }
    )


def compare(estimator, fit_arguments, n_records, **public):
    """Compare a preview with the fit it is of."""
    estimator = seeded(estimator)
    before = copy.deepcopy(vars(estimator))
    preview = estimator.preview(n_records, **public)
    assert set(vars(estimator)) == set(before)
    fitted = clone(estimator).fit(*fit_arguments)
    assert preview.noise == fitted.noise_
    # as plain data: moves of one coupling are the same object or another
    # deviations of ratios follow from what was released
    told = replace(fitted.certificate_, errors=preview.certificate.errors)
    assert preview.certificate.to_dict() == told.to_dict()
    return preview, fitted


@pytest.mark.parametrize("estimator", PREVIEWED, ids=lambda e: type(e).__name__)
def test_a_preview_is_the_fit(estimator):
    classes = {"classes": [0, 1]} if is_classifier(estimator) else {}
    arguments = _arguments(estimator)
    preview, _ = compare(estimator, arguments, 60, n_features=3, **classes)
    twice, _ = compare(estimator, arguments, 60, example=arguments[0][:5], **classes)
    assert preview.certificate == twice.certificate
    # and of another size it is not that one
    other = seeded(estimator).preview(600, n_features=3, **classes)
    assert other.certificate.n_records == 600
    if preview.error is None:
        assert type(estimator).__name__ == "PrivateQuantile"
    else:
        assert np.all(preview.error > 0)


@pytest.mark.parametrize("estimator", PREVIEWED, ids=lambda e: type(e).__name__)
def test_a_preview_is_the_fit_of_a_real_table(estimator):
    data = load_heart()
    table = data.data.select_dtypes("number").dropna(axis=1).astype(float)
    y = (data.target == data.target.iloc[0]).astype(float).rename("sick")
    arguments = (table, y) if get_tags(estimator).target_tags.required else (table,)
    public = {"feature_names": list(table)}
    if is_classifier(estimator):
        public["classes"] = [0.0, 1.0]
    if len(arguments) == 2:
        public["target_name"] = "sick"
    preview, fitted = compare(estimator, arguments, len(table), **public)
    assert preview.certificate.columns == tuple(table)
    for name, held in preview.std.items():
        found = getattr(fitted, f"{name}std_")
        # deviations of spreads are known of what was released alone
        if isinstance(held, pd.DataFrame):
            found = found.reindex_like(held)
        np.testing.assert_array_equal(held, found)


#: Public rows, first of them one that leaves a value out.
PRIOR = pd.DataFrame(
    {
        "sex": [None, "m", "f", "f", "m"] * 20,
        "job": ["a", "b", "b", "a", "b"] * 20,
        "age": np.linspace(20, 80, 100),
        "pay": np.linspace(0, 5000, 100),
    }
).dropna()
NUMBERS = PRIOR.assign(sex=np.where(PRIOR["sex"] == "m", 3.0, 5.0))


@pytest.mark.parametrize(
    "scenario",
    [
        AttributeScenario("sex", level="record", prior=PRIOR, prior_as="law"),
        AttributeScenario("sex", level="dataset", prior=PRIOR, prior_as="law"),
        GroupScenario("sex", prior=PRIOR, prior_as="law"),
        BlocksScenario(
            AttributeScenario("sex", level="dataset", prior=PRIOR, prior_as="law"),
            sizes=2,
        ),
    ],
    ids=repr,
)
def test_texts_of_a_prior_are_known(scenario):
    """Names say which columns there are, and public rows what is in them."""
    table = TABLE.assign(sex="f")
    mean = PrivateMean(
        scenario,
        DistributionAwareWasserstein(1.0, 2.0),
        bounds=([18, 0], [90, 6000]),
    )
    compare(mean, (table,), 60, feature_names=list(table))
    first = PublicPreprocessing(
        OneHotEncoder(sparse_output=False, handle_unknown="ignore"),
        PrivateMean(scenario, DistributionAwareWasserstein(1.0, 2.0), bounds=(0, 1)),
    )
    table = table[["sex"]].assign(job=["a", "b"] * 30)
    preview, _ = compare(first, (table,), 60, feature_names=["sex", "job"])
    assert preview.certificate.columns == ("job",)


@pytest.mark.parametrize("target", [None, 2])
@pytest.mark.parametrize("with_secret", [True, False])
def test_values_of_a_prior_without_names_are_known(target, with_secret):
    rows = NUMBERS[["sex", "age", "pay"]].to_numpy()
    laid_out = rows[:60] * [1, 0.9, 0.9]
    laid_out = laid_out if target is None else laid_out[:, :2]
    mean = PrivateMean(
        AttributeScenario(0, level="record", prior=rows, prior_as="law", target=target),
        DistributionAwareWasserstein(1.0, 2.0),
        bounds=(0, 6000),
    )
    data = laid_out if with_secret else laid_out[:, 1:]
    compare(mean, (data,), 60, n_features=data.shape[1])


def test_every_private_estimator_has_one():
    """Those without release nothing of a table."""
    names = {e.name for e in all_estimators()} - {type(e).__name__ for e in PREVIEWED}
    assert {name.removeprefix("Public") for name in names} == {
        "Binner",
        "Imputer",
        "MinMaxScaler",
        "OneHotEncoder",
        "RowNormClipper",
        # of a search, with the estimators that are in it: among its own tests
        "PrivateGridSearchCV",
        "PrivateRandomizedSearchCV",
    }


@pytest.mark.parametrize(
    "estimator, arguments, public",
    [
        (PrivateSummary(schema=SCHEMA), (TABLE,), {}),
        (
            PrivateSummary(
                statistics=["mean", "std"],
                bounds={"age": (18, 90), "pay": (0, 6000)},
                categories={"sex": ["f", "m"]},
                by="sex",
            ),
            (TABLE,),
            {"feature_names": list(TABLE)},
        ),
        (
            PrivateLogisticRegression(schema=SCHEMA, classes=[0, 1]),
            (TABLE, LABELS),
            {"target_name": "good"},
        ),
        (
            PrivateCategoricalNB(
                categories={"sex": ["f", "m"]},
                bounds={"age": (18, 90), "pay": (0, 6000)},
            ),
            (TABLE, LABELS),
            {
                "feature_names": list(TABLE),
                "classes": [0, 1],
                "target_name": "good",
            },
        ),
        (
            PublicPreprocessing(
                OneHotEncoder(sparse_output=False),
                PrivateLogisticRegression(data_norm=2.0, classes=[0, 1]),
                reference=TABLE[["sex"]][:4],
            ),
            (TABLE[["sex"]], LABELS),
            {"target_name": "good"},
        ),
        (
            PrivateLogisticRegression(
                AttributeScenario("sex", level="record", prior=BoundedOdds(2.0))
            ),
            (TABLE, LABELS),
            {"feature_names": list(TABLE), "classes": [0, 1], "target_name": "good"},
        ),
        (
            PrivateHuberRegressor(data_norm=10.0, target_bounds=(0, 6000)),
            (TABLE[["age"]], TABLE["pay"]),
            {"feature_names": ["age"], "target_name": "pay"},
        ),
        (
            PrivateMean(
                MarkovChainScenario([[0.9, 0.1], [0.2, 0.8]]),
                GroupPrivacy(),
                bounds=(0, 1),
            ),
            (np.arange(60)[:, None] % 2,),
            {"n_features": 1},
        ),
        (
            PrivateMean(
                BlocksScenario(RecordScenario(6), sizes=[6] * 10), bounds=(0, 1)
            ),
            (np.zeros((60, 1)),),
            {"n_features": 1},
        ),
        (
            PrivateLogisticRegression(
                training=Training(warm_start=True), classes=[0, 1]
            ),
            (TABLE[["age", "pay"]] / 1e4, LABELS),
            {"feature_names": ["age", "pay"], "target_name": "good"},
        ),
    ],
    ids=lambda part: type(part).__name__ if hasattr(part, "_plan_unread") else "",
)
def test_names_types_and_scenarios_come_from_public_facts(estimator, arguments, public):
    preview, _ = compare(estimator, arguments, 60, **public)
    assert preview.certificate.certified


def test_preprocessing_reads_made_up_rows_of_the_right_types():
    table = TABLE[["sex"]]
    model = PublicPreprocessing(
        OneHotEncoder(sparse_output=False),
        PrivateLogisticRegression(data_norm=2.0, classes=[0, 1]),
        reference=table[:4],
    )
    said = model.preview(60, feature_names=["sex"]).certificate.assumptions
    # rows that stand for others are no leak of these
    assert says(said, "assume.preprocessing_fitted_on_reference")
    assert model.preview(60).certificate.certified
    fixed = PublicPreprocessing(
        FrozenEstimator(OneHotEncoder(sparse_output=False).fit(table)), model.estimator
    )
    assert fixed.preview(60, example=table[:1]).certificate.certified
    with pytest.raises(ValueError, match="'transformer' raised.*as 'example'"):
        fixed.preview(60, feature_names=["sex"])


def test_a_warm_start_is_seen():
    model = PrivateLogisticRegression(
        training=Training(warm_start=True), classes=[0, 1]
    )
    model.fit(np.eye(40), np.arange(40) % 2)
    again = model.preview(40, n_features=40)
    assert WARM_STARTED in again.certificate.assumptions
    assert again.certificate == model.fit(np.eye(40), np.arange(40) % 2).certificate_


def test_groups_are_public_and_read():
    model = PrivateMean(
        BlocksScenario(RecordScenario(3)), bounds=(0, 1), random_state=0
    )
    groups = np.repeat(np.arange(20), 3)
    preview = model.preview(60, n_features=2, groups=groups)
    fitted = clone(model).fit(np.zeros((60, 2)), groups=groups)
    assert preview.certificate == fitted.certificate_
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.preview(61, n_features=2, groups=groups)


class Refusing:
    """A callback that must not be told."""

    def setup(self, *args, **kwargs):
        raise AssertionError("a callback was told")

    on_fit_task_begin = on_fit_task_end = teardown = setup


@pytest.mark.parametrize("estimator", PREVIEWED, ids=lambda e: type(e).__name__)
def test_nothing_is_read_drawn_told_or_spent(estimator, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("noise was drawn, or something executed")

    # of every family
    monkeypatch.setattr(Noise, "sample", refuse)
    for kind in type(estimator).__mro__:
        if "_execute" in vars(kind):
            monkeypatch.setattr(kind, "_execute", refuse)
    generator = np.random.default_rng(0)
    model = clone(estimator)
    name = min(
        (n for n in model.get_params() if n.rpartition("__")[2] == "random_state"),
        key=len,
    )
    model.set_params(**{name: generator})
    model.set_callbacks(Refusing())
    state = generator.bit_generator.state
    before = dict(vars(model))
    classes = {"classes": [0, 1]} if is_classifier(estimator) else {}
    model.preview(60, n_features=3, **classes)
    assert vars(model) == before
    assert generator.bit_generator.state == state


def test_what_stands_for_the_rows_raises_on_any_access():
    rows = UnreadRows("PrivateMean")
    for access in (
        len,
        list,
        bool,
        np.asarray,
        lambda rows: rows[0],
        lambda rows: rows.shape,
        lambda rows: rows.mean(axis=0),
    ):
        with refused(UnsupportedError, "preview.fit_reads_rows", name="PrivateMean"):
            access(rows)
    copy.copy(rows)


@pytest.mark.parametrize(
    "model, public, error, match",
    [
        (PrivateMean(bounds=(0, 1)), {}, ValueError, "'n_features' is needed"),
        (
            PrivateMean(bounds=(0, 1)),
            {"n_features": 2, "feature_names": ["a", "b"]},
            ValueError,
            "'n_features', 'feature_names'.*give one",
        ),
        (PrivateMean(bounds=(0, 1)), {"n_features": 0}, ValueError, "'n_features'"),
        (PrivateMean(), {"n_features": 2}, UnsupportedError, "'bounds'"),
        (
            PrivateMean(bounds={"a": (0, 1)}),
            {"feature_names": ["a", "b"]},
            ValueError,
            "'bounds'",
        ),
        (
            PrivateLogisticRegression(),
            {"n_features": 2},
            ValueError,
            "'classes' is needed",
        ),
        (
            PrivateLogisticRegression(classes=[0, 1]),
            {"n_features": 2, "classes": [0, 1]},
            ValueError,
            "'classes' is declared",
        ),
        (
            PrivateMean(bounds=(0, 1)),
            {"n_features": 2, "classes": [0, 1]},
            ValueError,
            "'classes' is for classifiers",
        ),
        (PrivateRidge(), {"n_features": 2}, ValueError, "'target_bounds'"),
        *[
            (kind(bounds="empirical"), {"n_features": 2}, UnsupportedError, "'bounds'")
            for kind in (PrivateMean, PrivateSummary, PrivatePCA, PrivateKMeans)
        ],
        (
            PrivateLogisticRegression(data_norm="empirical", classes=[0, 1]),
            {"n_features": 2},
            UnsupportedError,
            "data_norm",
        ),
        (
            PrivateMean(
                AttributeScenario("a", level="record", prior="empirical"),
                DistributionAwareWasserstein(1.0),
            ),
            {"feature_names": ["a", "b"]},
            UnsupportedError,
            "'scenario'.*prior='empirical'",
        ),
        (
            OutputPerturbation(LinearRegression(), sensitivity=0.1),
            {"n_features": 2, "example": np.zeros((1, 2))},
            ValueError,
            "give one",
        ),
        (
            PublicPreprocessing(OneHotEncoder(), LinearRegression()),
            {"n_features": 2},
            TypeError,
            "'estimator' must be a private",
        ),
        (
            PrivateMean(bounds=(0, 1)),
            {"example": np.zeros((0, 2))},
            ValueError,
            "'example'",
        ),
    ],
)
def test_missing_facts_are_named(model, public, error, match):
    with pytest.raises(error, match=match):
        model.preview(50, **public)


@pytest.mark.parametrize("n_records", [0, -1, 2.5, None, "many"])
def test_the_number_of_records_is_checked(n_records):
    with refused(
        (ValueError, TypeError),
        (
            "parameter.count_too_small",
            "parameter.not_real_number",
            "preview.n_records_not_told",
        ),
    ):
        PrivateMean(bounds=(0, 1)).preview(n_records, n_features=1)


def test_parameters_are_checked_as_in_a_fit():
    with refused(ValueError, "parameter.not_positive", name="epsilon"):
        PrivateMean(accountant=PrivacyLoss(-1.0, 1e-5), bounds=(0, 1)).preview(
            50, n_features=1
        )
    with refused(ValueError, "decomposition.too_few_records"):
        PrivatePCA(data_norm=1.0).preview(1, n_features=1)
    with refused(
        ValueError, "preview.fewer_records_than_classes", n_records=2, n_labels=3
    ):
        PrivateLogisticRegression().preview(2, n_features=1, classes=[0, 1, 2])


def test_a_pool_is_its_rows():
    model = PrivateMean(SubsampleScenario(), bounds=(0, 1))
    with refused(UnsupportedError, "preview.noise_set_by_pool"):
        model.preview(50, n_features=1)


def test_the_expected_error_is_that_of_the_noise():
    model = PrivateMean(bounds=(0, [1, 100]), accountant=PrivacyLoss(1.0, 1e-6))
    preview = model.preview(500, n_features=2)
    X = np.full((500, 2), 0.5)
    errors = np.array([model.fit(X).mean_ - 0.5 for _ in range(400)])
    found = np.sqrt(np.mean(errors**2, axis=0))
    # the estimate of a deviation from 400 draws is off by 3.5 %
    ratio = found / preview.error
    assert np.all(np.abs(ratio - 1) < 0.18)
    # with 0.7 times the noise it would be noticed
    assert np.all(np.abs(0.7 * ratio - 1) > 0.18)


def test_errors_of_stages_are_in_their_units():
    model = PrivateKMeans(n_clusters=2, bounds=(-1, 1))
    preview = model.preview(1000, n_features=2)
    release = model._plan_unread(np.zeros((2, 2)), None, n_records=1000).release
    assert preview.error.shape == (release.dim,)
    assert preview.error[0] == release.deviation(0, preview.noise)
    assert preview.error[-1] == release.deviation(
        len(release.stages) - 1, preview.noise
    )


def test_a_preview_shows_itself():
    preview = PrivateMean(bounds=(0, [1, 2])).preview(100, n_features=2)
    assert isinstance(preview, Preview)
    text = str(preview)
    assert text.startswith("Preview of PrivateMean: nothing has been spent")
    assert str(preview.certificate) in text
    assert "each of 2 coordinates" in text
    page = preview._repr_html_()
    assert "<script" not in page and "PrivateMean" in page
    assert preview.certificate._repr_html_() in page
    with pytest.raises(AttributeError):
        preview.noise = None
