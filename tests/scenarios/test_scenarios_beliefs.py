"""Declared beliefs: what an attribute scenario knows without a table."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from skpuffer.accountants import GeneralWasserstein, OverlapAmplification
from skpuffer.compose import PublicPreprocessing
from skpuffer.ensemble import PATEClassifier
from skpuffer.exceptions import (
    PrivacyWarning,
    ScenarioError,
    SeededNoiseWarning,
    Statement,
)
from skpuffer.linear_model import PrivateLogisticRegression, PrivateRidge
from skpuffer.releases import GradientRelease, PublicContext, QueryRelease, Sensitivity
from skpuffer.scenarios import (
    Adjacency,
    AttributeScenario,
    BinnedLaw,
    BlocksScenario,
    BoundedInference,
    BoundedOdds,
    DeclaredOdds,
    RecordBelief,
)
from skpuffer.scenarios._attribute._belief import named_after
from skpuffer.summary import PrivateMean
from tests.refused import refused as is_refused
from tests.refused import says, warned

TABLE = pd.DataFrame({"sex": [0, 1, 0, 1], "height": [1.6, 1.7, 1.8, 1.9]})


def scenario(prior=None, **options):
    prior = BoundedOdds(4.0) if prior is None else prior
    return AttributeScenario("sex", **{"level": "record", "prior": prior} | options)


def run(**context):
    return GradientRelease(
        n_records=50,
        n_steps=3,
        sampling="full_batch",
        context=PublicContext(n_records=50, **context),
    )


def belief(prior, release=None):
    release = run() if release is None else release
    return scenario(prior).bind(release.context).fact(RecordBelief, release)


def test_odds_need_one_number():
    fact = belief(BoundedOdds(4.0))
    assert fact.certified and fact.delta == 0
    assert fact.overlap.etas(0.3)[0] == pytest.approx(0.2341739456, abs=1e-10)
    ((name, wider),) = fact.wider
    assert "8" in name
    assert wider.etas(0.3)[0] == pytest.approx(
        BoundedOdds(8.0).overlap().etas(0.3)[0], rel=1e-12
    )


def test_a_share_of_whom_nothing_is_assumed():
    whole, but_few = BoundedOdds(4.0).overlap(), BoundedOdds(4.0, share=0.1).overlap()
    for epsilon in (0.1, 1.0, 5.0):
        eta = whole.etas(epsilon)[0]
        assert but_few.etas(epsilon)[0] == pytest.approx(0.9 * eta + 0.1)
    assert BoundedOdds(4.0, share=0.1).statement().parameters["share"] == 0.1


def test_inference_is_of_the_whole_row_or_leaves_a_rest():
    fact = belief(BoundedInference(0.66))
    assert fact.overlap.etas(0.1)[0] == pytest.approx(0.1923677923, abs=1e-10)
    ((name, wider),) = fact.wider
    assert "0.71" in name and wider.etas(0.1)[0] > fact.overlap.etas(0.1)[0]
    rest = belief(BoundedInference(0.66, BoundedOdds(2.0)))
    assert rest.overlap.etas(0.1)[0] == pytest.approx(0.2426507095, abs=1e-10)
    # here one is a statement: the rest tells nothing more
    nothing = belief(BoundedInference(0.66, BoundedOdds(1.0)))
    assert nothing.overlap.etas(0.1) == fact.overlap.etas(0.1)
    # checkable: which columns they are, the certificate lists
    assert rest.belief.code == "assume.belief_auc_of_columns_read"
    assert belief(BoundedInference(0.97)).wider == ()


def test_several_beliefs_are_each_kept():
    odds, inference = BoundedOdds(2.0), BoundedInference(0.8)
    fact = belief([odds, inference])
    assert fact.overlap.etas(0.1) == inference.overlap().etas(0.1)
    assert fact.overlap.etas(0.1)[0] > odds.overlap().etas(0.1)[0]
    # one is off at a time, and the other stays
    names = [name for name, _ in fact.wider]
    assert len(names) == 2 and "odds" in names[0] and "AUC" in names[1]
    assert fact.wider[0][1].etas(0.1) == fact.overlap.etas(0.1)
    assert fact.wider[1][1].etas(0.1)[0] > fact.overlap.etas(0.1)[0]
    each = (odds.statement(), inference.statement())
    assert fact.belief == Statement("assume.belief_any_of", beliefs=each)


def test_whatever_is_believed_a_record_may_become_any_other():
    release = run()
    fact = scenario().bind(release.context).fact(Adjacency, release)
    assert (fact.count, fact.relation) == (1, "replace")
    assert math.isinf(fact.move) and fact.coupling_id == "replace:1"


def test_what_no_bound_holds_is_offered_for_nothing():
    loose = QueryRelease(query=lambda X, y: X, n_records=50, dim=1)
    assert scenario().bind(loose.context).provides(loose) == frozenset()
    tight = QueryRelease(
        query=lambda X, y: X,
        n_records=50,
        dim=1,
        sensitivity=Sensitivity(add_remove={2: 1.0}),
    )
    assert RecordBelief in scenario().bind(tight.context).provides(tight)


def test_the_assumptions_name_what_is_read():
    release = run(feature_names=("age", "height"))
    fact = scenario().bind(release.context).fact(RecordBelief, release)
    text = " ".join(map(str, fact.assumptions))
    for said in ("'sex'", "(age, height) none holds it", "one record", "(50)"):
        assert said in text


def test_the_secret_is_dropped_by_name():
    assert scenario().secret_position(("height", "sex"), 2) == 1
    assert scenario().secret_position(("height", "age"), 2) is None
    assert scenario().secret_position(None, 5) is None
    # any values: none was declared
    scenario().check_secret(np.array(["a", "b", "of any kind"]))


def test_nothing_public_is_made_up():
    declared = scenario()
    assert declared.public_table() is None
    assert declared.declared_bounds(PublicContext(n_records=3)) is None
    assert not declared.needs_empirical


def test_it_is_a_parameter_like_any_other():
    declared = scenario()
    copy = clone(declared).set_params(prior__w=9.0)
    assert copy.prior.w == 9.0 and declared.prior.w == 4.0
    assert (
        repr(copy)
        == "AttributeScenario('sex', level='record', prior=BoundedOdds(w=9.0))"
    )
    named = scenario([BoundedOdds(2.0), BoundedInference(0.6)], table="t")
    for said in ("BoundedOdds(w=2.0)", "BoundedInference(auc=0.6)", "table='t'"):
        assert said in repr(named)


def test_several_beliefs_are_searched_as_a_whole():
    several = scenario([BoundedOdds(2.0), BoundedInference(0.6)])
    model = PrivateRidge(several, OverlapAmplification(0.3), target_bounds=(0, 1))
    X = pd.DataFrame(np.eye(4), columns=["a", "b", "c", "sex"])
    grid = GridSearchCV(model, {"scenario__prior__w": [2.0]}, error_score="raise", cv=2)
    with is_refused(
        ValueError,
        "parameter.nested_not_settable",
        name="prior",
        owner="AttributeScenario",
        value_type="list",
    ):
        grid.fit(X, [0, 1, 0, 1])
    with is_refused(
        ValueError,
        "parameter.nested_not_settable",
        name="rest",
        owner="BoundedInference",
        value_type="NoneType",
    ):
        BoundedInference(0.6).set_params(rest__w=2.0)
    priors = [[BoundedOdds(2.0)], [BoundedOdds(3.0), BoundedInference(0.6)]]
    whole = GridSearchCV(clone(model), {"scenario__prior": priors}, cv=2)
    assert whole.fit(X, [0, 1, 0, 1]).best_params_["scenario__prior"] in priors
    # what is set along with it counts, and what is not known is scikit-learn's to say
    several.set_params(prior=BoundedOdds(2.0), prior__w=5.0)
    assert several.prior.w == 5.0
    with pytest.raises(ValueError, match="Invalid parameter 'priors'"):
        several.set_params(priors__w=5.0)


def test_what_a_belief_is_worth_is_told_before_any_fit():
    told = scenario(BoundedOdds(2.0)).explain([0.1, 0.3, 0.6])
    assert told.index.tolist() == [0.1, 0.3, 0.6]
    assert told["eta"].iloc[0] == pytest.approx(0.1317272336, abs=1e-10)
    assert told["gain"].iloc[:2].tolist() == pytest.approx([5.877621, 6.313343], 1e-6)
    assert told["fallback"].iloc[1] == pytest.approx(2.27, abs=5e-3)
    assert told["fallback"].iloc[2] == pytest.approx(7.7, abs=5e-2)
    assert told["with odds within 4"].iloc[1] == pytest.approx(0.62, abs=5e-3)
    # one that alone is within the budget leaves nothing to hide
    assert np.isinf(scenario(BoundedOdds(2.0)).explain(0.7)[["gain", "fallback"]]).all(
        axis=None
    )
    # the same as is calibrated, and another delta is another budget
    run_ = run()
    found = OverlapAmplification(0.3, delta=1e-3).calibrate(run_, scenario())
    told = scenario().explain(0.3, delta=1e-3)
    assert told["gain"].iloc[0] == pytest.approx(found.certificate.gain, rel=1e-6)
    assert told["with odds within 8"].iloc[0] == pytest.approx(
        OverlapAmplification(delta=1e-3)
        .certify(found.noise, run_, scenario(BoundedOdds(8.0)))
        .epsilon,
        rel=1e-6,
    )


def test_a_table_is_not_explained():
    tabled = AttributeScenario("sex", level="record", prior=TABLE)
    with is_refused(ScenarioError, "attribute.explain_needs_declared_belief"):
        tabled.explain()
    for options, match in (({"epsilon": -1}, "'epsilon'"), ({"delta": 2}, "'delta'")):
        with pytest.raises(ValueError, match=match):
            scenario().explain(**options)


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    "prior, said",
    [
        (BoundedOdds(0.5), Statement("parameter.below_one", name="w")),
        (BoundedOdds(1.0), Statement("odds.range_is_one")),
        (BoundedOdds(np.inf), Statement("odds.range_too_large")),
        (BoundedOdds(1e200), Statement("odds.range_too_large")),
        (BoundedOdds("4"), Statement("parameter.not_real_number", name="w")),
        (BoundedOdds(np.nan), Statement("parameter.is_nan", name="w")),
        (
            BoundedOdds(4.0, share=1.0),
            Statement("parameter.share_out_of_range", name="share"),
        ),
        (
            BoundedOdds(4.0, share=-0.1),
            Statement("parameter.share_out_of_range", name="share"),
        ),
        (BoundedInference(0.5), Statement("odds.auc_not_above_half")),
        (BoundedInference(0.3), Statement("odds.auc_not_above_half")),
        (
            BoundedInference(1.0),
            Statement("parameter.probability_out_of_range", name="auc"),
        ),
        (BoundedInference("0.7"), Statement("parameter.not_real_number", name="auc")),
        (BoundedInference(0.7, rest=2.0), Statement("odds.rest_not_bounded_odds")),
        (
            BoundedInference(0.7, rest=BoundedOdds(np.inf)),
            Statement("odds.rest_range_or_share"),
        ),
        (
            BoundedInference(0.7, rest=BoundedOdds(1e200)),
            Statement("odds.rest_range_or_share"),
        ),
        (
            BoundedInference(0.7, rest=BoundedOdds(2.0, share=0.1)),
            Statement("odds.rest_range_or_share"),
        ),
        (
            BoundedInference(0.7, rest=BoundedOdds(0.5)),
            Statement("parameter.below_one", name="w"),
        ),
        ([BoundedOdds(2.0), TABLE], Statement("prior.beliefs_and_tables_mixed")),
    ],
    ids=repr,
)
def test_beliefs_that_are_none(prior, said):
    with is_refused((ValueError, TypeError), said.code, **said.parameters):
        scenario(prior).bind(PublicContext(n_records=5))


@pytest.mark.parametrize(
    "options",
    [
        {"pairs": [(0, 1)]},
        {"prior_as": "law"},
        {"target": "height"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_is_about_tables_goes_with_none(options):
    (name,) = options
    with pytest.raises(ScenarioError, match=f"'{name}'"):
        scenario(**options).bind(PublicContext(n_records=5))


def test_a_position_is_for_data_without_names():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(60, 3)), rng.uniform(size=60)
    counted = AttributeScenario(1, level="record", prior=BoundedOdds(4.0))
    model = PrivateRidge(
        counted, OverlapAmplification(0.3), target_bounds=(0, 1), data_norm=2.0
    )
    seeded = pytest.warns(SeededNoiseWarning)
    with seeded:
        fitted = clone(model).set_params(random_state=0).fit(X, y)
        # another secret, and nothing changes
        other = X * [1, -7, 1]
        again = clone(model).set_params(random_state=0).fit(other, y)
    assert fitted.n_features_in_ == 2
    assert np.array_equal(fitted.coef_, again.coef_)
    # with the secret or without: it is ignored
    expected = fitted.predict(X[:, [0, 2]])
    np.testing.assert_allclose(fitted.predict(other), expected, rtol=1e-12)
    said = fitted.certificate_.assumptions
    assert says(said, "assume.secret_column_at_position", column=1)
    # a frame that nobody named is one without names
    assert clone(model).fit(pd.DataFrame(X), y).n_features_in_ == 2
    # public steps are told of as many columns, whichever way rows come
    public = rng.uniform(-1, 1, size=(20, 3))
    steps = PublicPreprocessing(StandardScaler(), model, reference=public[:, [0, 2]])
    mapped = clone(steps).set_params(reference=public).fit(X, y)
    assert mapped.n_features_in_ == 2
    assert np.array_equal(mapped.predict(X), mapped.predict(X[:, [0, 2]]))
    assert clone(steps).fit(X, y).transformer_.n_features_in_ == 2
    with is_refused(
        ScenarioError, "attribute.position_out_of_range", column=1, n_features=1
    ):
        clone(model).fit(X[:, :1], y)
    with is_refused(ScenarioError, "attribute.position_for_named_data", column=1):
        clone(model).fit(pd.DataFrame(X, columns=[*"abc"]), y)


def test_numbers_for_names_are_positions_or_refused():
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.uniform(-1, 1, size=(60, 4))), rng.integers(0, 2, 60)
    moved, less = X[[3, 0, 1, 2]], X[[0, 1, 3]]
    counted = AttributeScenario(2, level="record", prior=BoundedOdds(4.0))
    blocks = BlocksScenario(clone(counted).set_params(level="dataset"), sizes=3)

    def refused():
        code = "attribute.numbered_columns_ambiguous"
        return is_refused(ScenarioError, code, column=2)

    model = PrivateLogisticRegression(
        counted, OverlapAmplification(0.3), data_norm=2.0, random_state=0
    )
    steps = PublicPreprocessing(StandardScaler(), model, reference=less.iloc[:20] / 2)
    votes = PATEClassifier(n_teachers=5, scenario=counted, unlabeled=moved)
    votes.set_params(accountant=OverlapAmplification(0.3), student=LogisticRegression())
    for one in (model, steps, clone(model).set_params(scenario=blocks)):
        with refused():
            one.fit(moved, y)
        assert not hasattr(one, "certificate_")
        one.fit(X, y)
        # with the secret or without, and never with another column in its place
        assert np.array_equal(one.predict(X), one.predict(less))
        for other in (moved, X[[3, 0, 1]], X[[2, 0, 1]]):
            with refused():
                one.predict(other)
        # one that was numbered anew once the secret was left out
        anew = less.set_axis(range(3), axis=1)
        assert np.array_equal(one.predict(anew), one.predict(less))
    # public rows are read as the data is
    for one in (votes, clone(steps).set_params(reference=moved)):
        with refused():
            one.fit(X, y)


def test_numbers_for_names_are_those_of_the_prior():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(60, 3))).round({1: 0})
    for prior in (
        X.iloc[:20],
        DeclaredOdds(rng.uniform(0.4, 0.6, 20), X.iloc[:20], rest=BoundedOdds(2.0)),
    ):
        known = AttributeScenario(1, level="record", prior=prior)
        known.check_numbers((0, 1, 2), 1)
        known.check_numbers((0, 2), None)
        for labels, position in (((1, 0, 2), 1), ((2, 1, 0), 1), ((1, 2), None)):
            with is_refused(
                ScenarioError, "attribute.numbered_columns_ambiguous", column=1
            ):
                known.check_numbers(labels, position)
    # as the public rows are laid out, in whatever order
    public, private = X.iloc[:20], X.iloc[20:]
    moved = AttributeScenario(
        1, level="record", prior=public[[1, 2, 0]], prior_as="law"
    )
    mean = PrivateMean(moved, GeneralWasserstein(1.0), bounds=(0, 1))
    assert mean.fit(private[[1, 2, 0]]).mean_.shape == (2,)
    with is_refused(ScenarioError, "attribute.numbered_columns_ambiguous", column=1):
        mean.fit(private)


@pytest.mark.parametrize("column", [-1, 2.0, True, None, ("a", "b")], ids=repr)
def test_what_is_neither_a_name_nor_a_position(column):
    counted = AttributeScenario(column, level="record", prior=BoundedOdds(2.0))
    with is_refused(ScenarioError, "attribute.column_not_name_or_position"):
        counted.bind(PublicContext(n_records=5))


def test_columns_without_names_are_refused():
    """The secret may be among them, and nobody would see it in the certificate."""
    X, y = TABLE.to_numpy(), [0, 1, 0, 1]
    for table in (X, pd.DataFrame(X), X[:, 1:]):
        model = PrivateRidge(scenario(), target_bounds=(0, 1))
        with is_refused(ScenarioError, "attribute.data_without_column_names"):
            model.fit(table, y)
        assert not hasattr(model, "certificate_")


def test_the_secret_is_found_under_the_name_a_step_gave_it():
    steps = ColumnTransformer([("rest", "passthrough", ["sex", "height"])])
    table = steps.set_output(transform="pandas").fit_transform(TABLE)
    model = PrivateRidge(scenario(), target_bounds=(0, 1))
    with is_refused(ScenarioError, "attribute.secret_encoded_columns"):
        model.fit(table, [0, 1, 0, 1])


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.ScaleWarning")
def test_the_secret_is_found_where_it_was_encoded():
    people = pd.DataFrame(
        {"race": ["White", "Other"] * 10, "race_code": 1.0, "height": range(20)}
    )
    dummies = pd.get_dummies(people, columns=["race"], dtype=float)
    # without declared values names are a reason to look
    model = PrivateRidge(
        AttributeScenario("race", level="record", prior=BoundedOdds(4.0)),
        OverlapAmplification(0.3),
        target_bounds=(0, 1),
    )
    said = "attribute.columns_named_like_secret"
    with warned(PrivacyWarning, said) as told:
        model.fit(dummies, np.ones(20))
    assert sum("race_code" in str(one.message) for one in told) == 1
    # with them, columns of such names are the secret
    public = people.assign(height=people["height"] + 0.5)
    rows = BinnedLaw(public, rest=BoundedOdds(1.0))
    known = clone(model).set_params(scenario__prior=rows)
    with is_refused(ScenarioError, "attribute.secret_encoded_columns"):
        known.fit(dummies, np.ones(20))
    assert known.fit(people, np.ones(20)).n_features_in_ == 2


@pytest.mark.parametrize(
    "name, values, certain, likely",
    [
        ("race=White", ["White"], True, False),
        ("race__White", ["White"], True, False),
        ("onehot__race_White", ["White"], True, False),
        ("race[T.White]", ["White"], True, False),
        ("RACE_WHITE", ["White"], True, False),
        ("race_1", [1.0], True, False),
        ("race_1.0", [1], True, False),
        ("race_True", [True], True, False),
        ("rest__race", [], True, False),
        ("race_White", [], False, True),
        ("race_count", ["White"], False, True),
        ("Race", [], True, False),
        (" RACE_", [], True, False),
        ("x__Race", [], True, False),
        ("race__", [], True, False),
        ("is_race", [], False, True),
        ("race1", [], False, True),
        ("RaceCode", [], False, True),
        ("myRace", [], False, True),
        ("embrace", [], False, False),
        ("racetrack", ["track"], False, False),
        ("grace_White", ["White"], False, False),
        ("race_", [], True, False),
        ("race", [], False, False),
        (("race", "White"), ["White"], False, True),
    ],
    ids=repr,
)
def test_names_that_encoders_give(name, values, certain, likely):
    assert named_after("race", [name], values) == ([name] * certain, [name] * likely)


def test_separators_within_a_name_are_one():
    names = ["marital_status", "MARITAL status", "MaritalStatus", "status", "marital"]
    found = named_after("marital-status", names)
    assert found == (names[:2], names[2:3])
    assert named_after("_", ["-", "a_"]) == ([], [])


def test_a_misspelt_secret_is_no_feature():
    table = TABLE.rename(columns={"sex": "Sex "})
    model = PrivateRidge(scenario(), target_bounds=(0, 1))
    with is_refused(ScenarioError, "attribute.secret_encoded_columns"):
        model.fit(table, [0, 1, 0, 1])
    assert not hasattr(model, "certificate_")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_the_target_is_no_secret():
    with is_refused(ScenarioError, "attribute.secret_is_target"):
        scenario().bind(PublicContext(n_records=5, target_name="sex"))
    # by whatever kind of table the target comes
    X = pd.DataFrame({"height": np.linspace(-1, 1, 20)})
    y = pd.Series(np.tile([0, 1], 10), name="sex")
    for target in (y, y.to_frame()):
        with is_refused(ScenarioError, "attribute.secret_is_target"):
            PrivateRidge(scenario(), target_bounds=(0, 1)).fit(X, target)
