"""What a private pipeline refuses, by name, before anything is spent."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from skpuffer.compose import (
    PrivatePipeline,
    PublicPreprocessing,
    audit_pipeline,
    make_private_pipeline,
)
from skpuffer.compose import _private_pipeline as pipelines
from skpuffer.compose._fixed_steps import Chain
from skpuffer.exceptions import (
    CompositionError,
    PrivacyLeakWarning,
    UnsupportedError,
)
from skpuffer.ledger import PrivacyLedger
from skpuffer.preprocessing import RowNormClipper
from skpuffer.scenarios import (
    AttributeScenario,
    BlocksScenario,
    BoundedOdds,
    DependenceScenario,
    GaussianScenario,
    RecordScenario,
)
from skpuffer.summary import PrivateMean, PrivateStandardScaler
from skpuffer.testing import _estimator_checks as checks
from skpuffer.testing._canaries import listen
from tests.refused import refused as is_refused
from tests.refused import says

from ..test_fuzzed_inputs import malformed
from .pipelines import (
    PUBLIC,
    X,
    Y,
    in_polars,
    logistic,
    made_up,
    pipeline,
    refusal,
    scaler,
    tables,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.WeakPromiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]

# -- refusals, by name -----------------------------------------------------------------


class Sampler(BaseEstimator):
    """As imbalanced-learn has them."""

    def fit_resample(self, X, y):
        return X[:5], y[:5]

    def fit(self, X, y=None):
        return self


class Keeping(TransformerMixin, BaseEstimator):
    """Says that it needs no fit, and keeps what it is given."""

    def fit(self, X, y=None):
        self.kept_ = X
        return self

    def transform(self, X):
        return X

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class Learning(PolynomialFeatures):
    """A subclass that may learn more than what it is known for."""


class Certified(TransformerMixin, BaseEstimator):
    """Of another library, and released under a certificate all the same."""

    certificate_ = "told"

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


class Selecting(make_column_selector):
    """A subclass that looks at the values."""

    def __call__(self, df):
        return list(df.columns[df.sum() > 0])


RELEASED = scaler(random_state=0).fit(X)
KEPT = FunctionTransformer()

REFUSED = {
    "leaks: StandardScaler": ({"leaks": StandardScaler()}, {}, "'reference'"),
    "neighbours": ({"neighbours": KNeighborsTransformer()}, {}, "'reference'"),
    "learning": ({"learning": Learning()}, {}, "'reference'"),
    "mean": ({"mean": PrivateMean(bounds=(0, 1))}, {}, "no 'transform'"),
    "first": ({"first": logistic()}, {}, "no 'transform'"),
    "function": ({"function": FunctionTransformer(np.abs)}, {}, "'row_wise'"),
    "resampled": ({"resampled": Sampler()}, {}, "repeats or makes up records"),
    "cached": (
        {"cached": Pipeline([("one", scaler())], memory="somewhere")},
        {},
        "no ledger hears of",
    ),
    "routed": (
        {"routed": Pipeline([("one", scaler())], transform_input=["X_other"])},
        {},
        "no ledger hears of",
    ),
    "inner__last": (
        {"inner": Pipeline([("one", scaler()), ("last", logistic())])},
        {},
        "no 'transform'",
    ),
    "union__model": (
        {"union": FeatureUnion([("model", logistic())])},
        {},
        "no 'transform'",
    ),
    "columns__model": (
        {"columns": ColumnTransformer([("model", logistic(), [0, 1])])},
        {},
        "no 'transform'",
    ),
    "wrapped": (
        {"wrapped": PublicPreprocessing(StandardScaler(), scaler())},
        {},
        "Give the pipeline their steps",
    ),
    "nested": (
        {"nested": PrivatePipeline([("one", scaler())])},
        {},
        "Give the pipeline their steps",
    ),
    "released": (
        {"released": FrozenEstimator(RELEASED)},
        {},
        "a certificate of its own",
    ),
    "released within": (
        {
            "released within": FrozenEstimator(
                Pipeline(
                    [("one", RowNormClipper()), ("two", scaler(random_state=0))]
                ).fit(X)
            )
        },
        {},
        "a certificate of its own",
    ),
    "columns__all": (
        {"columns": ColumnTransformer([("all", scaler(), lambda X: [0])])},
        {},
        "chosen by a function",
    ),
    "chosen__all": (
        {"chosen": ColumnTransformer([("all", scaler(), Selecting())])},
        {},
        "chosen by a function",
    ),
    "within": (
        {
            "within": FrozenEstimator(
                Pipeline([("one", FrozenEstimator(Chain([("s", RELEASED)])))])
            )
        },
        {},
        "a certificate of its own",
    ),
    "by name": (
        {
            "by name": FrozenEstimator(
                FunctionTransformer(np.add, kw_args={"where": [RELEASED]})
            )
        },
        {},
        "a certificate of its own",
    ),
    "certified": (
        {"certified": FrozenEstimator(Certified())},
        {},
        "a certificate of its own",
    ),
    "parts__inner__last": (
        {
            "parts": FeatureUnion(
                [("inner", Pipeline([("one", scaler()), ("last", logistic())]))]
            )
        },
        {},
        "no 'transform'",
    ),
    "columns__remainder": (
        {"columns": ColumnTransformer([], remainder=scaler())},
        {},
        "Name them",
    ),
    "rest__remainder": (
        {"rest": ColumnTransformer([], remainder=FrozenEstimator(RELEASED))},
        {},
        "a certificate of its own",
    ),
    "bare__remainder": (
        {"bare": ColumnTransformer([], remainder=StandardScaler())},
        {"reference": PUBLIC},
        "Name them",
    ),
    "mixed__remainder": (
        {"mixed": ColumnTransformer([], remainder=FunctionTransformer(np.abs))},
        {},
        "Name them",
    ),
    "text": ({"text": "nothing"}, {}, "not known"),
    "columns__inner__pca": (
        {"columns": ColumnTransformer([("inner", Pipeline([("pca", PCA())]), [0, 1])])},
        {},
        "'reference'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_steps_are_refused_by_name(name):
    steps, params, said = REFUSED[name]
    step = name.partition(":")[0]
    message = refusal([*steps.items(), ("model", logistic())], **params)
    assert "must be private, public or row-wise" in message
    assert f"{step} (" in message and re.search(said, message)
    model = PrivatePipeline([*steps.items(), ("model", logistic())], **params)
    assert [one.name for one in audit_pipeline(model).leaks] == [step]


KNOWN = FrozenEstimator(StandardScaler().fit(PUBLIC))
ALLOWED = {
    "frozen": KNOWN,
    "frozen within": make_pipeline(KNOWN, "passthrough", Normalizer()),
    "learns columns alone": PolynomialFeatures(2),
    "union": FeatureUnion([("one", KNOWN), ("two", "passthrough"), ("no", "drop")]),
    "remainder": ColumnTransformer(
        [("one", Normalizer(), [0])], remainder=Normalizer()
    ),
    "no rest": ColumnTransformer([("one", KNOWN, [0, 1, 2])], remainder="drop"),
    "declared": FunctionTransformer(np.tanh),
    "no function": FunctionTransformer(),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_steps_with_nothing_to_learn_of_the_rows_need_no_public_ones(name):
    declared = ["step"] if name == "declared" else []
    model = PrivatePipeline(
        [("step", ALLOWED[name]), ("last", PrivateMean(bounds=(-1, 1)))],
        row_wise=declared,
    ).fit(X)
    assert {one.kind for one in audit_pipeline(model).leaks} == set()
    assert model.certificate_.epsilon == 1


def test_not_even_how_many_zeros_there_are_is_seen():
    """A column transformer would make its output sparse by what the rows hold."""
    columns = ColumnTransformer(
        [("codes", OneHotEncoder(categories=[[0, 1, 2]]), [0]), ("rest", KEPT, [1, 2])]
    )
    for rest in (np.zeros((40, 2)), np.ones((40, 2))):
        rows = np.column_stack([np.arange(40) % 3, rest])
        steps = [("columns", columns), ("last", PrivateMean(bounds=(-1, 1)))]
        model = PrivatePipeline(steps, reference=rows[::-1] + [[0, 9, 9]]).fit(rows)
        assert type(model[0].transform(rows)) is np.ndarray


@pytest.mark.parametrize(
    "model", [LogisticRegression(), OneVsRestClassifier(logistic()), Ridge()]
)
def test_other_predictors_are_refused(model):
    assert "model (" in refusal([("scaler", scaler()), ("model", model)])


def test_all_that_is_refused_is_named_at_once():
    message = refusal([("a", StandardScaler()), ("b", PCA()), ("model", logistic())])
    assert "a (StandardScaler)" in message and "b (PCA)" in message


def test_public_rows_must_be_others():
    steps = [("public", StandardScaler()), ("model", logistic())]
    frame = pd.DataFrame(X, columns=list("abc"))
    for table, reference in (
        (X, X),
        (X, X[::2]),
        (X, X[np.random.default_rng(0).permutation(400)]),
        (frame, frame),
        (frame, frame.iloc[:300]),
        (frame, in_polars(frame)),
        (frame, frame.assign(more=1.0)),
        # no record is there twice, but these are the same cells
        (X, X[:, ::-1]),
        (frame, pd.DataFrame({"a": frame["a"], "b": X[::-1, 1], "c": 0.5}, copy=False)),
    ):
        said = refusal(steps, table=table, reference=reference)
        assert "holds the private records" in said
    PrivatePipeline(steps, reference=X[:100]).fit(X[100:], Y[100:])
    said = refusal([("k", SelectKBest(k=2)), ("model", logistic())], reference=PUBLIC)
    assert "have no target" in said
    said = refusal(steps, kind=Exception, reference=PUBLIC[:, :2])
    assert "'reference'" in said


def test_other_parameters_are_refused():
    two = [("scaler", scaler()), ("model", logistic())]
    assert "shares" in refusal(two, shares={"scaler": 1.0})
    assert "shares" in refusal(two, shares={"scaler": 1.0, "model": -1.0})
    assert "is private" in refusal([("clip", RowNormClipper())])
    assert "'row_wise'" in refusal(two, row_wise=["other"])
    assert "'row_wise'" in refusal(two, row_wise=np.array(3))
    assert "at least one step" in refusal([])
    # those of steps before any row: here there is none to be read
    bad = [("scaler", PrivateStandardScaler(bounds=(1, -1))), ("model", logistic())]
    assert "'bounds'" in refusal(bad, table="no table")
    assert "pairs" in refusal([("scaler", scaler(), 1)])
    assert "not unique" in refusal([("a", scaler()), ("a", logistic())])
    assert "conflict" in refusal([("shares", scaler()), ("a", logistic())])
    twice = Pipeline([("a", scaler()), ("a", scaler())])
    assert "a name of its own" in refusal([("in", twice), ("model", logistic())])
    assert "instance" in refusal([("a", PrivateMean)], kind=TypeError)
    assert "drops all" in refusal([("a", "drop"), ("model", logistic())])
    with is_refused(
        TypeError, "parameter.fit_argument_unexpected", name="sample_weight"
    ):
        pipeline().fit(X, Y, sample_weight=np.ones(400))


def test_certificates_that_do_not_add_up_are_refused_before_anything_is_spent():
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (np.inf, 1e-5)})
    public = made_up().assign(smokes=np.arange(80) % 2)
    belief = AttributeScenario("smokes", level="record", prior=public, prior_as="law")
    table = tables()[0].drop(columns="cp")
    two = {
        "relations": (
            [
                ("a", scaler()),
                ("b", logistic(scenario=RecordScenario(relation="replace"))),
            ],
            X,
        ),
        "priors": (
            [
                ("a", PrivateStandardScaler(scenario=belief, bounds=(0, 600))),
                ("b", PrivateMean(bounds=(-3, 3))),
            ],
            table,
        ),
        "a prior behind a release": (
            [
                ("a", PrivateStandardScaler(bounds=(0, 600))),
                ("b", PrivateMean(scenario=belief, bounds=(-3, 3))),
            ],
            table,
        ),
        "empirical bounds": (
            [("a", PrivateStandardScaler(bounds="empirical")), ("b", logistic())],
            X,
        ),
    }
    for name, (steps, rows) in two.items():
        with ledger, pytest.raises((CompositionError, UnsupportedError)) as caught:
            PrivatePipeline(steps).fit(rows, Y[: len(rows)] if len(rows) < 400 else Y)
        assert len(ledger.report()) == 0, name
        if name == "a prior behind a release":
            assert says(
                caught.value,
                "pipeline.scenario_of_raw_columns",
                name="b",
                released=["a"],
            )


class OtherRecords(RecordScenario):
    """A subclass, which may read its facts through a map."""


ODDS = AttributeScenario("b", level="record", prior=BoundedOdds(2.0))


@pytest.mark.parametrize(
    "scenario",
    [
        ODDS,
        BlocksScenario(ODDS, sizes=[40] * 10),
        GaussianScenario(covariance=np.eye(3), secret=0, domain=(-1, 1)),
        DependenceScenario(0.1),
        OtherRecords(),
        BlocksScenario(OtherRecords(), sizes=[40] * 10),
    ],
    ids=lambda scenario: type(scenario).__name__,
)
@pytest.mark.parametrize("between", [[], [("norms", Normalizer())]])
def test_who_speaks_of_raw_columns_reads_no_release(scenario, between):
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (np.inf, 1e-5)})
    last = PrivateMean(bounds=(-1, 1), scenario=scenario)
    model = PrivatePipeline([("first", scaler()), *between, ("last", last)])
    frame = pd.DataFrame(X, columns=list("abc"))
    for call in (
        lambda: model.fit(frame),
        lambda: model.preview(400, feature_names=list("abc")),
    ):
        with (
            ledger,
            is_refused(
                UnsupportedError, "pipeline.scenario_of_raw_columns", name="last"
            ),
        ):
            call()
    assert len(ledger.report()) == 0


def test_an_empirical_parameter_voids_what_one_step_alone_promises():
    model = make_private_pipeline(PrivateStandardScaler(bounds="empirical"))
    with pytest.warns(PrivacyLeakWarning):
        model.fit(X)
    assert not model.certificate_.certified


def _centred(X):
    return X - X.mean(axis=0)


def _fewer(X):
    return X[: len(X) // 2]


def test_steps_that_are_declared_row_wise_are_looked_at():
    for function, said in (
        (_centred, "preprocessing.mixes_records"),
        (_fewer, "pipeline.step_rows_not_per_record"),
    ):
        step = ("function", FunctionTransformer(function))
        for steps in (
            [step, ("model", logistic())],
            [("a", scaler()), step, ("model", logistic())],
        ):
            ledger = PrivacyLedger(":memory:", {"approximate_dp": (np.inf, 1e-5)})
            with ledger, is_refused(ValueError, said):
                PrivatePipeline(steps, row_wise=["function"]).fit(X, Y)
            assert len(ledger.report()) == 0
    model = PrivatePipeline(
        [("a", FunctionTransformer(np.tanh)), ("model", logistic())], row_wise=["a"]
    ).fit(X, Y)
    kinds = {one.name: one.kind for one in audit_pipeline(model).steps}
    assert kinds == {"a": "row_wise", "model": "private"}


def _centred_if_long(X):
    return _centred(X) if len(X) > 50 else X


@pytest.mark.parametrize("n_more", [0, 1])
def test_all_rows_are_looked_at_before_the_first_release(n_more):
    """A plan has seen some of them."""
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (np.inf, 1e-5)})
    steps = [("function", FunctionTransformer(_centred_if_long)), ("a", scaler())]
    steps += [("b", scaler())] * n_more
    with ledger, is_refused(ValueError, "preprocessing.mixes_records"):
        PrivatePipeline(steps, row_wise=["function"]).fit(X)
    assert len(ledger.report()) == 0


def test_what_was_planned_and_not_fitted_is_no_pipeline(monkeypatch):
    """It would be promised, or what was released would not be."""
    settle = pipelines.settle_all

    def forgetful(steps, flow, fit):
        return settle(steps[:1], flow, fit)

    monkeypatch.setattr(pipelines, "settle_all", forgetful)
    model = PrivatePipeline([("a", scaler()), ("b", scaler())])
    with is_refused(RuntimeError, "pipeline.steps_other_than_planned"):
        model.fit(X)
    assert not hasattr(model, "certificate_")


class FittedFunction(FunctionTransformer):
    """A subclass that is to be fitted: each row by itself, by what all rows are."""

    def fit(self, X, y=None):
        self.mean_ = np.mean(X, axis=0)
        return self

    def transform(self, X):
        return X - self.mean_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = True
        return tags


def test_a_function_that_is_to_be_fitted_is_not_declared_row_wise():
    steps = [("fitted", FittedFunction(np.abs)), ("model", logistic())]
    assert "'reference'" in refusal(steps, row_wise=["fitted"])
    PrivatePipeline(steps, reference=PUBLIC).fit(X, Y)


def test_errors_of_foreign_steps_quote_nothing():
    table, y = tables()
    table.loc[7, "cp"] = "secret name"
    model = PrivatePipeline(
        [
            ("columns", ColumnTransformer([("cp", OneHotEncoder(), ["cp"])])),
            ("model", logistic()),
        ],
        reference=made_up(),
    )
    with is_refused(ValueError, "table.withheld_private_values") as caught:
        model.fit(table, y)
    shown = "".join(
        str(part)
        for part in (caught.value, caught.value.__cause__, caught.value.__context__)
    )
    assert "columns" in shown and "secret name" not in shown


def test_foreign_steps_that_need_no_fit_get_no_rows():
    model = PrivatePipeline([("keeps", Keeping()), ("model", logistic())]).fit(X, Y)
    assert not hasattr(model["keeps"], "kept_")
    # of those that are known it is known that they learn no more than columns
    model = PrivatePipeline([("known", Normalizer()), ("scaler", scaler())]).fit(X)
    assert list(model.get_feature_names_out()) == ["x0", "x1", "x2"]
    rest = ColumnTransformer([("one", Normalizer(), [0])], remainder=Keeping())
    steps = [("columns", rest), ("model", logistic())]
    model = PrivatePipeline(steps).fit(X, Y)
    assert b"kept_" not in pickle.dumps(model["columns"])
    for transformer in (Keeping(), rest, make_pipeline(Keeping())):
        model = PublicPreprocessing(transformer, logistic()).fit(X, Y)
        assert b"kept_" not in pickle.dumps(model)


def test_a_cache_of_fixed_steps_is_not_used(tmp_path):
    cached = Pipeline([("norms", Normalizer()), ("none", None)], memory=str(tmp_path))
    PublicPreprocessing(cached, logistic()).fit(X, Y)
    assert not list(tmp_path.iterdir())


class Otherwise(PrivateStandardScaler):
    """Releases something else once it sees how many rows there are."""

    def _release(self, task):
        release = super()._release(task)
        self.n_calls = getattr(self, "n_calls", 0)
        return release

    def _plan_fit(self, opening, table, released):
        from skpuffer._template._preview import UnreadRows

        plan = super()._plan_fit(opening, table, released)
        if isinstance(table.X, UnreadRows):
            return plan
        from dataclasses import replace

        return replace(plan, certificate=replace(plan.certificate, epsilon=9.0))


def test_what_was_not_planned_is_not_released():
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (np.inf, 1e-5)})
    model = PrivatePipeline([("a", Otherwise(bounds=(-1, 1))), ("b", logistic())])
    with (
        ledger,
        is_refused(UnsupportedError, "pipeline.step_promises_otherwise", name="a"),
    ):
        model.fit(X, Y)
    assert len(ledger.report()) == 0


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyLeakWarning")
def test_behind_a_leak_of_another_pipeline_nothing_is_released():
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (np.inf, 1e-5)})
    with (
        ledger,
        is_refused(
            UnsupportedError, "pipeline.unnoised_step_before", step="StandardScaler"
        ),
    ):
        make_pipeline(StandardScaler(), pipeline()).fit(X, Y)
    assert len(ledger.report()) == 0
    audit = audit_pipeline(make_pipeline(StandardScaler(), pipeline()))
    assert [step.kind for step in audit.steps] == ["leak", "private", "private"]
    assert not audit_pipeline(BaggingClassifier(pipeline())).is_private


def test_targets_of_another_length_are_refused():
    with pytest.raises(ValueError, match="inconsistent numbers"):
        pipeline().fit(X, Y[:-3])


def test_a_sampler_whose_width_is_read_off_the_rows():
    for gamma, kind in (("scale", "leak"), (0.5, "row_wise")):
        model = make_pipeline(RBFSampler(gamma=gamma), logistic())
        assert audit_pipeline(model).steps[0].kind == kind
    steps = [("kernel", RBFSampler(gamma="scale")), ("model", logistic())]
    assert "kernel (RBFSampler)" in refusal(steps)
    PrivatePipeline(steps, reference=PUBLIC).fit(X, Y)


@pytest.mark.filterwarnings("ignore")
def test_malformed_tables():
    """None is quoted, none is half fitted, and errors are of the usual kinds."""
    rng = np.random.default_rng(5)
    columns = ColumnTransformer([("a", scaler(), [0, 1]), ("b", RowNormClipper(), [2])])
    models = [
        PrivatePipeline([("a", scaler()), ("model", logistic(classes=[0, 1]))]),
        PrivatePipeline(
            [("public", StandardScaler()), ("columns", columns), ("model", logistic())],
            reference=PUBLIC,
        ),
    ]
    refused = 0
    for i in range(12):
        table, y = malformed(rng)
        model = clone(models[i % 2])
        with listen() as said:
            model.fit(table, y)
        where = f"input {i}: {type(table).__name__}, {said.error!r}"
        assert not said.songs, where
        if said.error is None:
            assert np.all(np.isfinite(model["model"].coef_)), where
            continue
        refused += 1
        assert isinstance(said.error, ValueError | TypeError), where
        assert not [name for name in vars(model) if name.endswith("_")], where
    assert refused > 3


@pytest.mark.parametrize(
    "check",
    [
        checks.check_no_canary_is_quoted,
        checks.check_bad_budget_refused,
        checks.check_failed_refit_leaves_nothing,
    ],
    ids=lambda check: check.__name__,
)
def test_privacy_checks_of_refusals(check):
    check(PrivatePipeline([("scaler", scaler()), ("model", logistic())]))
