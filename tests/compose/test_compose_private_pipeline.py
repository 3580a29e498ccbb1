"""Pipelines that are private as a whole: what each step is fitted on."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from skpuffer.accountants import OverlapAmplification, PrivacyLoss
from skpuffer.cluster import PrivateKMeans
from skpuffer.compose import (
    PrivatePipeline,
    PublicPreprocessing,
    make_private_pipeline,
)
from skpuffer.datasets import fetch_adult
from skpuffer.decomposition import PrivatePCA
from skpuffer.exceptions import (
    Statement,
    WeakPromiseWarning,
)
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import PrivateLogisticRegression, PrivateRidge
from skpuffer.naive_bayes import PrivateGaussianNB
from skpuffer.preprocessing import (
    PublicMinMaxScaler,
    PublicOneHotEncoder,
    RowNormClipper,
)
from skpuffer.scenarios import (
    AttributeScenario,
    BlocksScenario,
    BoundedOdds,
    RecordScenario,
)
from skpuffer.schema import Schema
from skpuffer.summary import PrivateMean, PrivateStandardScaler
from skpuffer.testing import _estimator_checks as checks
from tests.refused import refused, says

from .pipelines import (
    PUBLIC,
    X,
    Y,
    in_polars,
    logistic,
    made_up,
    mixed,
    pipeline,
    scaler,
    tables,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.WeakPromiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]

# -- what each step is fitted on -------------------------------------------------------


def test_it_is_what_fits_by_hand_are():
    model = pipeline().set_params(scaler__random_state=0, model__random_state=1)
    model.fit(X, Y)
    budgets = {
        name: PrivacyLoss(epsilon, 1e-5, noise="gaussian")
        for name, epsilon in model.epsilons_.items()
    }
    first = scaler(accountant=budgets["scaler"], random_state=0).fit(X)
    last = logistic(accountant=budgets["model"], random_state=1)
    last.fit(first.transform(X), Y)
    np.testing.assert_array_equal(model[0].mean_, first.mean_)
    np.testing.assert_array_equal(model["model"].coef_, last.coef_)
    np.testing.assert_array_equal(model.predict(X), last.predict(first.transform(X)))
    np.testing.assert_array_equal(model.classes_, [0, 1])
    assert model.score(X, Y) == last.score(first.transform(X), Y)
    assert is_classifier(model) and not hasattr(model, "transform")
    # the given steps stay unfitted
    for step in model.named_steps.values():
        with pytest.raises(NotFittedError):
            step.predict(X) if hasattr(step, "predict") else step.transform(X)


def test_public_steps_are_fitted_on_public_rows():
    model = PrivatePipeline(
        [("one", StandardScaler()), ("pca", PCA(2)), ("model", logistic())],
        reference=PUBLIC,
    ).fit(X, Y)
    by_hand = StandardScaler().fit(PUBLIC)
    np.testing.assert_allclose(model["one"].mean_, by_hand.mean_)
    pca = PCA(2).fit(by_hand.transform(PUBLIC))
    np.testing.assert_allclose(model["pca"].components_, pca.components_)
    fixed = Statement("assume.steps_fixed_or_public", steps=["one", "pca"])
    assert fixed in model.certificate_.assumptions
    # it is what PublicPreprocessing does
    other = PublicPreprocessing(
        make_pipeline(StandardScaler(), PCA(2)), logistic(), reference=PUBLIC
    ).fit(X, Y)
    assert other.certificate_.epsilon == model.certificate_.epsilon == 1
    assert other.noise_ == model.noises_["model"]


def test_public_steps_behind_a_private_one_read_public_rows_that_it_mapped():
    model = PrivatePipeline(
        [("private", scaler()), ("public", MinMaxScaler()), ("model", logistic())],
        reference=PUBLIC,
    ).fit(X, Y)
    mapped = model["private"].transform(PUBLIC)
    np.testing.assert_array_equal(model["public"].data_min_, mapped.min(axis=0))
    said = model.certificates_["model"].assumptions
    assert says(
        said,
        "assume.steps_released_are_public",
        steps=["private", "public"],
        released=["private"],
    )


def test_columns_go_their_own_ways():
    as_frame = in_polars
    table, y = tables()
    model = PrivatePipeline(
        [
            ("columns", mixed()),
            ("inner", make_pipeline("passthrough", PolynomialFeatures(2))),
            ("model", logistic(data_norm=3.0)),
        ],
        accountant=PrivacyLoss(4.0, 1e-5),
        reference=made_up(),
    )
    model.fit(as_frame(table), y)
    assert list(model.certificates_) == ["columns__numbers", "model"]
    assert 4 * (1 - 2e-3) < model.certificate_.epsilon <= 4
    columns = model[0]
    private = columns.named_transformers_["numbers"]
    assert private.feature_names_in_.tolist() == ["age", "chol"]
    assert abs(private.mean_[0] - table["age"].mean()) < 5
    assert columns.named_transformers_["codes"].categories_[0][0] == "type 1"
    assert model.predict(as_frame(table)).shape == y.shape
    assert model.get_feature_names_out()[:3].tolist() == [
        "1",
        "numbers__age",
        "numbers__chol",
    ]
    for named in ({}, {"feature_names": list(table)}):
        preview = model.preview(len(table), classes=[0, 1], **named)
        assert preview.certificate.epsilon == model.certificate_.epsilon
        assert preview.epsilons == model.epsilons_


def test_unions_and_selected_columns_of_arrays():
    union = FeatureUnion(
        [
            (
                "scaled",
                make_pipeline(PolynomialFeatures(1, include_bias=False), scaler()),
            ),
            ("pca", PrivatePCA(n_components=2, data_norm=2.0)),
            ("none", "drop"),
        ]
    )
    columns = ColumnTransformer(
        [
            ("some", scaler(), [0, 1]),
            ("behind", make_pipeline(RowNormClipper(1.0), scaler()), [1, 2]),
            ("rest", "passthrough", [2]),
        ]
    )
    model = PrivatePipeline(
        [("union", union), ("columns", columns), ("model", logistic())]
    )
    model.fit(X, Y)
    assert list(model.certificates_) == [
        "union__scaled__privatestandardscaler",
        "union__pca",
        "columns__some",
        "columns__behind__privatestandardscaler",
        "model",
    ]
    assert model.certificate_.n_releases == 5
    assert 1 - 2e-3 < model.certificate_.epsilon <= 1
    assert model[:2].transform(X).shape == (400, 5)
    assert model.predict(X).shape == (400,)


def test_frames_between_steps():
    """Private steps see arrays, whatever the steps before them return."""
    frame = pd.DataFrame(X, columns=list("abc"))
    model = PrivatePipeline(
        [
            ("clip", PublicMinMaxScaler((-1, 1)).set_output(transform="pandas")),
            (
                "columns",
                ColumnTransformer([("two", scaler(), make_column_selector("a|b"))]),
            ),
            ("last", scaler().set_output(transform="pandas")),
        ]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", WeakPromiseWarning)
        out = model.fit(frame).transform(frame.iloc[5:9])
    assert list(out.columns) == ["two__a", "two__b"]
    assert out.index.tolist() == [5, 6, 7, 8]
    back = model.set_output(transform="default").transform(frame)
    assert isinstance(back, np.ndarray)
    model = PrivatePipeline([("a", scaler()), ("b", scaler())]).fit(frame)
    np.testing.assert_allclose(
        model.inverse_transform(model.transform(frame)), frame, atol=1e-9
    )
    assert model.fit_transform(frame).shape == frame.shape
    assert get_tags(model).transformer_tags is not None


def test_a_schema_reads_the_raw_table_of_a_first_private_step():
    table, y = tables()
    schema = Schema(
        {"age": (20, 90), "chol": (100, 600), "cp": [f"type {i}" for i in range(1, 5)]}
    )
    model = PrivatePipeline(
        [("scaler", PrivateStandardScaler(schema=schema)), ("model", logistic())],
        accountant=PrivacyLoss(4.0),
    ).fit(table, y)
    assert model.predict(table).shape == y.shape
    assert len(model.get_feature_names_out()) == len(model["scaler"].mean_) > 5
    preview = model.preview(len(table), classes=[0, 1])
    assert preview.certificate.epsilon == model.certificate_.epsilon


def test_a_belief_speaks_of_raw_columns_behind_public_steps():
    """As in PublicPreprocessing: the scenario's prior goes the same way."""
    table, y = tables()
    public = made_up().assign(smokes=np.arange(80) % 2)
    told = table.assign(smokes=np.arange(len(table)) % 2)
    scenario = AttributeScenario("smokes", level="record", prior=public, prior_as="law")
    mean = PrivateMean(bounds=(-3, 3))
    steps = ColumnTransformer(
        [("n", StandardScaler(), ["age", "chol"]), ("c", "drop", ["cp"])]
    )
    model = PrivatePipeline(
        [("columns", steps), ("mean", mean)], scenario=scenario, reference=public
    ).fit(told)
    other = PublicPreprocessing(
        steps, clone(mean).set_params(scenario=scenario), reference=public
    ).fit(told)
    assert model.certificate_.epsilon == other.certificate_.epsilon
    assert model.noises_["mean"] == other.noise_
    assert model.n_features_in_ == 3


def test_blocks_of_records():
    groups = np.repeat(np.arange(200), 2)
    model = pipeline(scenario=BlocksScenario(RecordScenario(k=2)))
    model.fit(X, Y, groups=groups)
    assert 2 * (1 - 2e-3) < model.certificate_.epsilon <= 2
    assert all("Blocks" in c.scenario for c in model.certificates_.values())
    preview = model.preview(400, n_features=3, classes=[0, 1], groups=groups)
    assert preview.certificate.epsilon == model.certificate_.epsilon


# -- a preview -------------------------------------------------------------------------


def test_a_preview_is_the_fit():
    model = pipeline()
    before = vars(model).copy()
    preview = model.preview(400, n_features=3, classes=[0, 1])
    assert vars(model) == before
    model.fit(X, Y)
    assert preview.certificate == model.certificate_
    assert preview.epsilons == model.epsilons_
    for name, step in preview.steps.items():
        assert step.noise == model.noises_[name]
    assert "nothing has been spent" in str(preview)
    for text in (str(preview), preview._repr_html_()):
        assert "scaler" in text and "PrivateLogisticRegression" in text
    with refused(ValueError, "preview.columns_not_told"):
        model.preview(400, classes=[0, 1])
    with refused(ValueError, "preview.classes_not_told"):
        model.preview(400, n_features=3)


def test_weak_promises_are_told_once_and_before_anything_is_spent():
    model = pipeline(epsilon=30.0, delta=0.01)
    with pytest.warns(WeakPromiseWarning) as caught:
        model.fit(X, Y)
    said = [str(one.message) for one in caught]
    assert len(said) == len(set(said)) > 1
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (np.inf, 0.01)})
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeakPromiseWarning)
        with ledger, pytest.raises(WeakPromiseWarning):
            model.fit(X, Y)
    assert len(ledger.report()) == 0


# -- real data -------------------------------------------------------------------------


def test_heart_disease_under_one_budget():
    table, y = tables()
    model = PrivatePipeline(
        [("columns", mixed()), ("model", logistic(data_norm=3.0))],
        accountant=PrivacyLoss(8.0, 1e-4),
        reference=made_up(),
        random_state=0,
    ).fit(table, y)
    assert model.score(table, y) > 0.6


# -- scikit-learn ----------------------------------------------------------------------


@parametrize_with_checks(
    [
        PrivatePipeline(
            [
                ("scaler", PrivateStandardScaler(bounds=(-10, 10))),
                ("model", logistic()),
            ],
            accountant=PrivacyLoss(5.0, 1e-5),
        ),
        PrivatePipeline(
            [
                ("clip", RowNormClipper()),
                ("scaler", PrivateStandardScaler(bounds=(-10, 10))),
            ]
        ),
        make_private_pipeline(RowNormClipper(), PrivateRidge(target_bounds=(-1, 1))),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [
        checks.check_parameters_unchanged,
        checks.check_nothing_unprivatised_on_self,
        checks.check_no_canary_is_held,
    ],
    ids=lambda check: check.__name__,
)
def test_privacy_checks(check):
    check(
        PrivatePipeline(
            [("scaler", PrivateStandardScaler(bounds=(-10, 10))), ("model", logistic())]
        )
    )


def test_an_interrupt_at_any_call_leaves_nothing():
    checks.check_interrupted_fit_leaves_nothing(
        make_private_pipeline(RowNormClipper(), PrivateMean(bounds=(-1, 1)))
    )


def test_parameters_of_steps():
    model = pipeline()
    model.set_params(model__C=2.0, scaler="passthrough", accountant__epsilon=0.7)
    assert model.get_params()["model__C"] == 2.0
    promised = clone(model).fit(X, Y).certificate_
    assert promised.epsilon == 0.7 and promised.n_releases == 1
    model = PrivatePipeline([("scaler", scaler()), ("model", logistic())])
    assert model.set_params(accountant__epsilon=3.0).accountant.epsilon == 3.0
    scores = cross_val_score(model, X, Y, cv=2, error_score="raise")
    assert scores.shape == (2,)
    assert [type(model[i]) for i in range(len(model))] == [
        PrivateStandardScaler,
        PrivateLogisticRegression,
    ]
    part = model[:1]
    assert isinstance(part, PrivatePipeline) and part.accountant is model.accountant
    model.fit(X, Y)
    frozen = model[:-1]
    np.testing.assert_array_equal(
        frozen.fit(X[:9]).transform(X), model["scaler"].transform(X)
    )
    with refused(ValueError, "pipeline.slice_step_not_one"):
        model[::2]
    assert "PrivateStandardScaler" in model._repr_html_()
    assert json.loads(json.dumps(model.certificate_.to_dict()))["n_releases"] == 2
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_seeds():
    one, two = (pipeline(random_state=0).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(one["model"].coef_, two["model"].coef_)
    assert one["scaler"].random_state != one["model"].random_state
    seeded = Statement("assume.noise_from_seed")
    assert seeded in one.certificate_.assumptions
    other = pipeline().fit(X, Y)
    assert seeded not in other.certificate_.assumptions


@pytest.mark.parametrize(
    "seeded",
    [
        ["random_state"],
        ["scaler__random_state"],
        ["model__random_state"],
        ["scaler__random_state", "model__random_state"],
    ],
)
def test_a_sum_with_noise_from_a_seed_is_an_estimate(seeded):
    """The same seed makes the same noise in a step, or in another pipeline."""
    model = pipeline().set_params(**dict.fromkeys(seeded, 0))
    planned = model.preview(len(X), example=X, classes=[0, 1]).certificate
    for certificate in (planned, model.fit(X, Y).certificate_):
        assert certificate.seeded
        assert not certificate.certified


def test_a_secret_without_a_name_is_left_out_once():
    belief = AttributeScenario(3, level="record", prior=BoundedOdds(2.0))
    table = np.column_stack([X, np.arange(400) % 2])
    accountant = OverlapAmplification(0.3, delta=1e-5)
    for steps in (
        [("mean", PrivateMean(bounds=(-1, 1)))],
        [("clip", RowNormClipper(9.0)), ("mean", PrivateMean(bounds=(-1, 1)))],
    ):
        model = PrivatePipeline(steps, scenario=belief, accountant=accountant)
        model.fit(table)
        assert model.n_features_in_ == 3
        assert model[-1].mean_.shape == (3,)
        alone = PrivateMean(belief, accountant, bounds=(-1, 1)).fit(table)
        assert model.noises_["mean"] == alone.noise_
        preview = model.preview(400, n_features=4)
        assert preview.certificate.epsilon == model.certificate_.epsilon


def test_adult_under_one_budget(data_dir):
    adult = fetch_adult(data_home=data_dir, download_if_missing=False)
    y = (adult.target == sorted(adult.target.unique())[-1]).astype(int)
    numbers = ["age", "education-num", "hours-per-week"]
    codes = ["workclass", "marital-status", "occupation", "sex"]
    columns = ColumnTransformer(
        [
            (
                "numbers",
                PrivateStandardScaler(bounds={c: adult.bounds[c] for c in numbers}),
                numbers,
            ),
            (
                "codes",
                PublicOneHotEncoder(
                    {c: adult.categories[c] for c in codes}, missing="zero"
                ),
                codes,
            ),
        ]
    )
    model = PrivatePipeline(
        [("columns", columns), ("model", PrivateLogisticRegression(data_norm=3.0))],
        accountant=PrivacyLoss(0.5, 1e-6, noise="gaussian"),
        shares={"columns__numbers": 1, "model": 1},
    )
    rest = np.arange(len(y)) % 4 > 0
    model.fit(adult.data[rest], y[rest])
    assert 0.5 * (1 - 2e-3) < model.certificate_.epsilon <= 0.5
    assert model.score(adult.data[~rest], y[~rest]) > 0.81
    naive = PrivateLogisticRegression(
        accountant=PrivacyLoss(0.25, 5e-7, noise="gaussian"), data_norm=3.0
    ).preview(int(rest.sum()), n_features=3, classes=[0, 1])
    assert np.max(model.noises_["model"].std()) < 0.75 * np.max(naive.noise.std())


def test_what_a_composition_is_told_to_return_stays():
    frame = pd.DataFrame(X, columns=list("abc"))
    columns = ColumnTransformer(
        [("some", scaler(), ["a", "b"]), ("rest", "passthrough", ["c"])]
    ).set_output(transform="pandas")
    model = PrivatePipeline([("columns", columns), ("last", scaler())]).fit(frame)
    mapped = model[:1].transform(frame)
    assert list(mapped.columns) == ["some__a", "some__b", "rest__c"]
    assert model.transform(frame).shape == frame.shape


@pytest.mark.parametrize("kind", ["fit_predict", "fit_transform", "score"])
def test_a_pipeline_fits_and_answers_as_its_last_step_does(kind):
    X = np.random.default_rng(0).random((200, 2))
    last = PrivateKMeans(2, bounds=(-3, 3))
    scaled = PrivatePipeline(
        [("s", PrivateStandardScaler(bounds=(0, 1))), ("k", last)],
        accountant=PrivacyLoss(5.0),
    )
    assert hasattr(scaled, kind)
    if kind == "score":
        assert scaled.fit(X).score(X) <= 0
        return
    found = getattr(scaled, kind)(X)
    again = scaled.predict(X) if kind == "fit_predict" else scaled.transform(X)
    np.testing.assert_array_equal(found, again)
    # and no other step has it
    ends_elsewhere = PrivatePipeline([("k", last), ("m", PrivateGaussianNB())])
    assert not hasattr(ends_elsewhere, kind) or kind == "score"
