"""Steps and wrappers that let out what no certificate covers are named, and warn."""

import html

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_selector,
)
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import RBFSampler, SkewedChi2Sampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection

from skpuffer.compose import OutputPerturbation, PublicPreprocessing, audit_pipeline
from skpuffer.exceptions import NotComposableError, PrivacyLeakWarning
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import PrivateLogisticRegression, PrivateRidge
from skpuffer.preprocessing import PublicOneHotEncoder, RowNormClipper
from skpuffer.summary import PrivateStandardScaler
from tests.refused import refused, warned

X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
Y = np.tile([0, 1], 30)


def model():
    return PrivateLogisticRegression(max_iter=3)


class Foreign(TransformerMixin, BaseEstimator):
    """A wrapper of another library."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y=None):
        return self


def kinds(estimator, **declared):
    return {
        step.name: step.kind for step in audit_pipeline(estimator, **declared).steps
    }


PRIVATE = [
    model(),
    make_pipeline(RowNormClipper(), PolynomialFeatures(), Normalizer(), model()),
    make_pipeline("passthrough", PrivateStandardScaler(), model()),
    make_pipeline(FunctionTransformer(), model()),
    make_pipeline(FrozenEstimator(StandardScaler().fit(X)), model()),
    PublicPreprocessing(StandardScaler(), model(), reference=X),
    OutputPerturbation(make_pipeline(StandardScaler(), Ridge()), sensitivity=1.0),
    OneVsRestClassifier(model()),
    VotingClassifier([("one", model()), ("two", model())]),
    BaggingClassifier(model(), bootstrap=False, max_samples=0.5),
    StackingClassifier([("one", model())], final_estimator=model()),
    FeatureUnion([("one", PrivateStandardScaler()), ("two", RowNormClipper())]),
    TransformedTargetRegressor(PrivateRidge()),
]

LEAKS = {
    "standardscaler": make_pipeline(StandardScaler(), model()),
    "minmaxscaler": make_pipeline(MinMaxScaler(), RowNormClipper(), model()),
    "functiontransformer": make_pipeline(FunctionTransformer(np.log1p), model()),
    "ridge": make_pipeline(PrivateStandardScaler(), Ridge()),
    "foreign": make_pipeline(Foreign(model()), model()),
    "inner__pca": Pipeline([("inner", make_pipeline(PCA())), ("last", model())]),
    "columns__simpleimputer": Pipeline(
        [
            (
                "columns",
                ColumnTransformer([("simpleimputer", SimpleImputer(), [0])]),
            ),
            ("last", model()),
        ]
    ),
    "columns__remainder": Pipeline(
        [("columns", ColumnTransformer([], remainder=PCA())), ("last", model())]
    ),
    "baggingclassifier": BaggingClassifier(model()),
    "adaboostclassifier": AdaBoostClassifier(model()),
    "calibratedclassifiercv": CalibratedClassifierCV(model()),
    "final_estimator": StackingClassifier([("one", model())]),
    "tunedthresholdclassifiercv": TunedThresholdClassifierCV(model()),
    "estimator__standardscaler": GridSearchCV(
        make_pipeline(StandardScaler(), model()), {}
    ),
    "estimator__last": GridSearchCV(
        Pipeline([("last", model())]), {"last": [model(), Ridge()]}
    ),
    "transformer": TransformedTargetRegressor(
        PrivateRidge(), transformer=StandardScaler()
    ),
    "func": TransformedTargetRegressor(
        PrivateRidge(), func=np.log1p, inverse_func=np.expm1
    ),
    "estimator": VotingClassifier([("estimator", Ridge())]),
    "gaussianprocessregressor": GaussianProcessRegressor(),
}


@pytest.mark.parametrize("estimator", PRIVATE, ids=lambda one: type(one).__name__)
def test_what_is_under_certificates_is_private(estimator):
    audit = audit_pipeline(estimator)
    assert audit.is_private and not audit.leaks and not audit.scores
    assert "is private" in str(audit)


@pytest.mark.parametrize("name", LEAKS)
def test_what_lets_rows_out_is_named(name):
    audit = audit_pipeline(LEAKS[name])
    assert [step.name for step in audit.leaks] == [name]
    assert not audit.is_private
    (leak,) = audit.leaks
    assert (
        str(leak) in str(audit) and html.escape(str(leak.reason)) in audit._repr_html_()
    )
    assert str(leak.reason).endswith(".")


class Bare:
    """Maps rows, and says of itself that it needs no fit."""

    def transform(self, X):
        return X

    def __sklearn_tags__(self):
        return Normalizer().__sklearn_tags__()


def test_what_cannot_be_fitted_is_no_estimator():
    (leak,) = audit_pipeline(make_pipeline(Bare(), model())).leaks
    assert leak.reason.code == "pipeline.step_no_estimator"


def test_what_is_none_is_plain():
    for estimator in (BaggingClassifier(), TransformedTargetRegressor()):
        names = [step.name for step in audit_pipeline(estimator).leaks]
        assert names[-1] in ("estimator", "regressor")


def test_choices_by_scores_are_told_from_leaks():
    for estimator in (GridSearchCV(model(), {}), RFECV(model())):
        audit = audit_pipeline(estimator)
        assert not audit.leaks and not audit.is_private
        (choice,) = audit.scores
        assert choice.estimator == type(estimator).__name__


def test_functions_and_strangers_are_row_wise_if_it_is_declared():
    pipeline = make_pipeline(FunctionTransformer(np.log1p), Foreign(None), model())
    assert kinds(pipeline, row_wise=["functiontransformer", "foreign"]) == {
        "functiontransformer": "row_wise",
        "foreign": "row_wise",
        "privatelogisticregression": "private",
    }
    search = GridSearchCV(pipeline, {})
    assert kinds(search, row_wise=["foreign"])["estimator__foreign"] == "row_wise"
    with refused(ValueError, "pipeline.audit_row_wise_unknown"):
        audit_pipeline(pipeline, row_wise=["nobody"])


class Learning(GaussianRandomProjection):
    """A subclass, of which it is not known what it learns."""


class NotLearning(Learning):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class Nameless:
    """Fitted, and of no library's kind."""

    def fit(self, X, y=None):
        return self


OF_WRAPPERS = {
    "no estimator": (Nameless(), {"nameless": "leak"}),
    "a threshold": (
        FixedThresholdClassifier(model()),
        {"estimator": "private"},
    ),
    "outputs": (MultiOutputClassifier(model()), {"estimator": "private"}),
    "numbers of outputs": (
        MultiOutputRegressor(PrivateRidge()),
        {"estimator": "private"},
    ),
    "pairs": (OneVsOneClassifier(model()), {"estimator": "private"}),
    "features, one less each time": (RFE(model()), {"estimator": "private"}),
    "features of a model": (SelectFromModel(model()), {"estimator": "private"}),
    "features by scores": (
        RFECV(model()),
        {"rfecv": "scores", "estimator": "private"},
    ),
    "features of a plain model": (SelectFromModel(Ridge()), {"estimator": "leak"}),
    "votes": (
        VotingRegressor([("a", PrivateRidge()), ("b", Ridge())]),
        {"a": "private", "b": "leak"},
    ),
    "stacks": (
        StackingRegressor([("a", PrivateRidge())], final_estimator=PrivateRidge()),
        {"a": "private", "final_estimator": "private"},
    ),
    "a plain last": (
        StackingRegressor([("a", PrivateRidge())]),
        {"a": "private", "final_estimator": "leak"},
    ),
    "repeated records": (
        BaggingRegressor(PrivateRidge()),
        {"baggingregressor": "leak", "estimator": "private"},
    ),
    "records once": (
        BaggingRegressor(PrivateRidge(), bootstrap=False),
        {"estimator": "private"},
    ),
    "trees": (BaggingRegressor(bootstrap=False), {"estimator": "leak"}),
    "weights": (
        AdaBoostRegressor(PrivateRidge()),
        {"adaboostregressor": "leak", "estimator": "private"},
    ),
    "calibration": (
        CalibratedClassifierCV(model()),
        {"calibratedclassifiercv": "leak", "estimator": "private"},
    ),
    "a tuned threshold": (
        TunedThresholdClassifierCV(model()),
        {"tunedthresholdclassifiercv": "leak", "estimator": "private"},
    ),
    "a drawn search": (
        RandomizedSearchCV(
            Pipeline([("s", RowNormClipper()), ("m", model())]),
            {"s": [StandardScaler(), "passthrough"], "m__C": [1.0]},
        ),
        {
            "randomizedsearchcv": "scores",
            "estimator__s": "leak",
            "estimator__m": "private",
        },
    ),
    "grids": (
        GridSearchCV(Pipeline([("m", model())]), [{"m": [Ridge()]}, {"m__C": [1.0]}]),
        {"gridsearchcv": "scores", "estimator__m": "leak"},
    ),
    "targets": (
        TransformedTargetRegressor(PrivateRidge(), transformer=RowNormClipper()),
        {"regressor": "private", "transformer": "row_wise"},
    ),
    "a plain regressor": (TransformedTargetRegressor(), {"regressor": "leak"}),
    "projections": (
        GaussianRandomProjection(2),
        {"gaussianrandomprojection": "row_wise"},
    ),
    "nothing": (Pipeline([("none", None), ("m", model())]), {"m": "private"}),
    "columns by name": (
        ColumnTransformer([("a", PrivateStandardScaler(), make_column_selector("a"))]),
        {"a": "private"},
    ),
    "columns by rows": (
        ColumnTransformer([("a", PrivateStandardScaler(), lambda rows: [0])]),
        {"a": "leak"},
    ),
    "a stranger": (Foreign(model()), {"foreign": "leak", "estimator": "private"}),
    "a subclass": (Learning(2), {"learning": "leak"}),
    "a subclass that says so": (NotLearning(2), {"notlearning": "leak"}),
    "foreign and frozen": (
        FrozenEstimator(NotLearning(2)),
        {"frozenestimator": "leak"},
    ),
    # at any depth
    **{
        f"foreign and frozen within, {at}": (
            FrozenEstimator(around),
            {"frozenestimator": "leak"},
        )
        for at, around in enumerate(
            [
                Pipeline([("a", RowNormClipper()), ("b", NotLearning(2))]),
                FeatureUnion([("a", NotLearning(2))]),
                ColumnTransformer([("a", NotLearning(2), [0])]),
                ColumnTransformer([], remainder=NotLearning(2)),
                Pipeline([("a", FeatureUnion([("b", FunctionTransformer(abs))]))]),
                FrozenEstimator(NotLearning(2)),
                Pipeline([("a", FrozenEstimator(NotLearning(2)))]),
                TransformedTargetRegressor(PrivateRidge(), transformer=NotLearning(2)),
                StackingRegressor([("a", PrivateRidge())], NotLearning(2)),
            ]
        )
    },
    "columns by count": (
        GaussianRandomProjection(),
        {"gaussianrandomprojection": "leak"},
    ),
    "columns by a function": (
        SelectFromModel(model(), max_features=len),
        {"selectfrommodel": "leak", "estimator": "private"},
    ),
    "a kernel": (RBFSampler(gamma="scale"), {"rbfsampler": "leak"}),
    "a kernel of its own": (RBFSampler(gamma=0.5), {"rbfsampler": "row_wise"}),
    "another kernel": (SkewedChi2Sampler(), {"skewedchi2sampler": "row_wise"}),
}


@pytest.mark.parametrize("name", OF_WRAPPERS)
def test_what_a_wrapper_does_itself_and_with_what_is_within(name):
    estimator, expected = OF_WRAPPERS[name]
    assert kinds(estimator) == expected
    audit = audit_pipeline(estimator)
    found = set(expected.values())
    assert audit.is_private == ("private" in found and not found & {"leak", "scores"})
    assert {step.kind for step in audit.leaks} <= {"leak"}
    assert len(audit.leaks) == sum(kind == "leak" for kind in expected.values())
    assert len(audit.scores) == sum(kind == "scores" for kind in expected.values())


def test_no_declaration_hides_a_choice_by_scores_or_a_release():
    search = GridSearchCV(make_pipeline(RowNormClipper(), model()), {})
    names = ["gridsearchcv", "privatelogisticregression"]
    found = kinds(search, row_wise=names)
    assert found == kinds(search)
    assert found["gridsearchcv"] == "scores"
    assert found["estimator__privatelogisticregression"] == "private"


def test_nothing_private_is_not_private():
    assert not audit_pipeline(make_pipeline(Normalizer())).is_private
    assert kinds(PublicOneHotEncoder(["a"])) == {"publiconehotencoder": "row_wise"}


@pytest.mark.filterwarnings("ignore:The estimator .* does not support callbacks")
@pytest.mark.parametrize(
    "before",
    [
        StandardScaler(),
        make_pipeline(RowNormClipper(), StandardScaler()),
        make_pipeline(StandardScaler(), RowNormClipper()),
    ],
)
@pytest.mark.parametrize("last", [lambda m: m, lambda m: make_pipeline(m)])
def test_a_scaler_on_the_same_rows_leaves_an_estimate(before, last):
    pipeline = make_pipeline(before, last(model()))
    with warned(
        PrivacyLeakWarning, "pipeline.unnoised_step_before", step="StandardScaler"
    ):
        pipeline.fit(X, Y)
    fitted = pipeline[-1] if last(0) == 0 else pipeline[-1][-1]
    assert not fitted.certificate_.certified
    # and a ledger has no such release
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (100.0, 1e-5)})
    pipeline.set_callbacks(ledger)
    with (
        warned(
            PrivacyLeakWarning, "pipeline.unnoised_step_before", step="StandardScaler"
        ),
        warned(PrivacyLeakWarning, "ledger.estimator_part_not_covered"),
        refused(NotComposableError, "ledger.release_is_estimate"),
    ):
        pipeline.fit(X, Y)


class Centred(TransformerMixin, BaseEstimator):
    """Nobody here knows what it does."""

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return X - self.mean_


class Around(BaseEstimator):
    """Nor what this one hands on."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y):
        self.estimators_ = [clone(self.estimator).fit(X - X.mean(axis=0), y)]
        return self


def certificates(fitted):
    """Those of the private estimators within an estimator of scikit-learn."""
    if hasattr(fitted, "certificate_"):
        return [fitted.certificate_]
    parts = [step for _, step in getattr(fitted, "steps", ())]
    parts += getattr(fitted, "estimators_", [])
    for name in ("regressor_", "estimator_", "final_estimator_"):
        parts += [getattr(fitted, name)] if hasattr(fitted, name) else []
    parts = [part for part in parts if type(part) is not LogisticRegression]
    return [c for part in parts for c in certificates(part)]


def ridge():
    return PrivateRidge(target_bounds=(0, 3))


LEAKING = [
    MinMaxScaler(),
    PCA(1),
    SelectKBest(k=1),
    SimpleImputer(),
    KNNImputer(),
    OneHotEncoder(sparse_output=False, handle_unknown="ignore"),
    ColumnTransformer([("a", MinMaxScaler(), [0])], remainder="passthrough"),
    FeatureUnion([("a", RowNormClipper()), ("b", MinMaxScaler())]),
    FunctionTransformer(lambda X: X - X.mean(axis=0)),
    Centred(),
]


@pytest.mark.filterwarnings("ignore:The estimator .* does not support callbacks")
@pytest.mark.parametrize("wrap", [lambda m: m, make_pipeline, OneVsRestClassifier])
@pytest.mark.parametrize("before", LEAKING, ids=lambda s: type(s).__name__)
def test_any_step_that_is_not_known_to_be_safe_leaves_an_estimate(before, wrap):
    pipeline = make_pipeline(clone(before), wrap(model()))
    with pytest.warns(PrivacyLeakWarning):
        pipeline.fit(X, Y)
    found = certificates(pipeline)
    assert found and not any(c.certified for c in found)
    # a ledger refuses before noise is drawn
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (100.0, 1e-5)})
    with (
        ledger,
        pytest.warns(PrivacyLeakWarning),
        refused(NotComposableError, "ledger.release_is_estimate"),
    ):
        make_pipeline(clone(before), wrap(model())).fit(X, Y)
    assert len(ledger.report()) == 0


@pytest.mark.parametrize(
    "around",
    [
        lambda m: BaggingClassifier(m, n_estimators=1, bootstrap=False),
        lambda m: make_pipeline(None, "passthrough", m),
        lambda m: OneVsRestClassifier(make_pipeline(RowNormClipper(), m)),
        lambda m: StackingClassifier([("a", m)], m, cv=2),
        lambda m: StackingClassifier(
            [("a", m), ("b", LogisticRegression())],
            LogisticRegression(),
            cv=2,
        ),
    ],
)
def test_what_hands_each_record_on_once_leaves_a_promise(around):
    found = certificates(around(model()).fit(X, Y))
    assert found and all(c.certified for c in found)


@pytest.mark.parametrize(
    "around",
    [
        lambda: BaggingClassifier(model(), n_estimators=1),
        lambda: Around(model()),
        lambda: StackingClassifier([("a", LogisticRegression())], model(), cv=2),
        lambda: TransformedTargetRegressor(ridge(), transformer=StandardScaler()),
        lambda: TransformedTargetRegressor(ridge(), func=np.exp, inverse_func=np.log),
    ],
)
def test_wrappers_that_change_records_by_each_other_leave_an_estimate(around):
    with pytest.warns(PrivacyLeakWarning):
        fitted = around().fit(X, Y)
    found = certificates(fitted)
    assert found and not any(c.certified for c in found)


@pytest.mark.parametrize(
    "before",
    [
        RowNormClipper(),
        PrivateStandardScaler(bounds=(-1, 1)),
        FrozenEstimator(StandardScaler().fit(X)),
        make_pipeline(RowNormClipper(), PrivateStandardScaler(bounds=(-1, 1))),
    ],
)
def test_steps_that_let_nothing_out_leave_a_promise(before):
    pipeline = make_pipeline(before, model()).fit(X, Y)
    assert pipeline[-1].certificate_.certified
    search = GridSearchCV(pipeline, {}, cv=2, error_score="raise").fit(X, Y)
    assert search.best_estimator_[-1].certificate_.certified


def test_what_comes_after_it_is_no_matter_of_an_estimator():
    first = make_pipeline(PrivateStandardScaler(bounds=(-1, 1)), StandardScaler())
    first.fit(X)
    assert first[0].certificate_.certified
