"""Which group a whole table is about."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skpuffer.accountants import (
    ApproximateWasserstein,
    DistributionAwareWasserstein,
    GeneralWasserstein,
    PrivacyLoss,
)
from skpuffer.compose import OutputPerturbation
from skpuffer.datasets import fetch_heart, fetch_student
from skpuffer.distributions import Discrete, PointMass, Samples
from skpuffer.exceptions import (
    EstimatedGuaranteeWarning,
    PrivacyLeakWarning,
    ScenarioError,
    Statement,
    UnsupportedError,
)
from skpuffer.privacy import Notion
from skpuffer.releases import GradientRelease, PublicContext, QueryRelease
from skpuffer.scenarios import GroupScenario, OutputDistributions, ReferenceTable
from skpuffer.summary import PrivateMean, PrivateSummary
from tests.refused import refused as is_refused
from tests.refused import says, warned

N = 8
PUBLIC = pd.DataFrame(
    {
        "group": ["a", "b", "a", "b", "b", "c", "c"],
        "x": [1.0, 4.0, 3.0, 5.0, 6.0, 0.0, 2.0],
        "label": [0, 0, 1, 1, 0, 1, 0],
    }
)
PRIVATE = pd.DataFrame({"x": np.linspace(0, 6, N)})


def scenario(**changes):
    return GroupScenario("group", **{"prior": PUBLIC, "prior_as": "law"} | changes)


def context(**changes):
    facts = {"n_records": N, "feature_names": ("x",), "n_features": 1}
    return PublicContext(**facts | {"target_name": "label"} | changes)


def mean_release(**changes):
    def mean(X, y):
        return X.mean(axis=0)

    return QueryRelease(
        **{"query": mean, "n_records": N, "dim": 1, "context": context()} | changes
    )


def fact(release=None, **changes):
    release = mean_release() if release is None else release
    return scenario(**changes).bind(release.context).fact(OutputDistributions, release)


def identity(X, y):
    return np.asarray(X, dtype=float)


# -- the laws --------------------------------------------------------------------------


def test_the_query_is_run_on_the_rows_of_each_group():
    found = fact()
    assert found.secrets == ("a", "b", "c") and found.certified
    assert [type(one) for one in found.distributions[0]] == [PointMass] * 3
    assert [one.points.item() for one in found.distributions[0]] == [2.0, 5.0, 1.0]
    assert found.probabilities == (pytest.approx((2 / 7, 3 / 7, 2 / 7)),)
    assert found.pairs == ((0, 1), (0, 2), (1, 2))
    assert not found.common_part_removed


@pytest.mark.parametrize(
    "factor, whole, points",
    [
        (1 / N, False, [2.0, 5.0, 1.0]),
        (1.0, False, [2.0 * N, 5.0 * N, 1.0 * N]),
        (1.0, True, [2.0 * N, 5.0 * N, 1.0 * N]),
    ],
)
def test_a_sum_is_of_as_many_records_as_the_private_table_has(factor, whole, points):
    release = mean_release(
        query=None, contribution=identity, is_sum=True, factor=factor, is_integer=whole
    )
    found = fact(release).distributions[0]
    assert [one.points.item() for one in found] == pytest.approx(points)
    # and so are tables that are drawn
    for one in fact(release, n_worlds=40).distributions[0]:
        assert np.all(np.abs(one.points / factor / N - 3) <= 3)


def test_counts_are_whole():
    def positive(X, y):
        return (np.asarray(X) > 1).astype(int)

    release = mean_release(
        query=None, contribution=positive, is_sum=True, is_integer=True
    )
    # 1 of 2, 3 of 3 and 1 of 2 rows; of 8 records, and of 9
    assert [p.points.item() for p in fact(release).distributions[0]] == [4, 8, 4]
    release = mean_release(
        query=None,
        contribution=positive,
        is_sum=True,
        is_integer=True,
        n_records=9,
        context=context(n_records=9),
    )
    assert [p.points.item() for p in fact(release).distributions[0]] == [4, 9, 4]


def test_worlds_are_drawn_from_the_rows_of_a_group():
    seen = []

    def query(X, y):
        seen.append((X.ravel(), y))
        return X.mean(axis=0)

    found = fact(mean_release(query=query), n_worlds=200, target="label")
    assert [type(one) for one in found.distributions[0]] == [Discrete] * 3
    rows = [{(1.0, 0), (3.0, 1)}, {(4.0, 0), (5.0, 1), (6.0, 0)}, {(0.0, 1), (2.0, 0)}]
    for code, known in enumerate(rows):
        tables = seen[200 * code : 200 * (code + 1)]
        # of the private table's own size, records with their targets
        assert {len(X) for X, _ in tables} == {N}
        assert {(x, t) for X, y in tables for x, t in zip(X, y, strict=True)} == known
        points = found.distributions[0][code].points
        assert len(points) == 200
        values = np.array([x for x, _ in known])
        # mean and variance of a bootstrap mean, four standard errors wide
        spread = values.std() / math.sqrt(N)
        assert abs(points.mean() - values.mean()) < 4 * spread / math.sqrt(200)
        assert abs(points.std() / spread - 1) < 0.25


def test_worlds_go_by_the_public_seed():
    one, again, other = (fact(n_worlds=4, random_state=seed) for seed in (0, 0, 1))
    points = [f.distributions[0][0].points for f in (one, again, other)]
    assert np.array_equal(points[0], points[1])
    assert not np.array_equal(points[0], points[2])


def test_several_beliefs_and_a_group_that_one_rules_out():
    other = PUBLIC[PUBLIC["group"] != "c"].assign(x=lambda t: 2 * t["x"])
    found = fact(prior=[PUBLIC, other])
    assert found.distributions[1][2] is None
    assert [one.points.item() for one in found.distributions[1][:2]] == [4.0, 10.0]
    assert [at[:3] for at in found.pairs_of_distributions()] == [
        (0, 0, 1),
        (0, 0, 2),
        (0, 1, 2),
        (1, 0, 1),
    ]
    of_two = GeneralWasserstein().calibrate(
        mean_release(), scenario(prior=[PUBLIC, other])
    )
    assert of_two.certificate.sensitivity == pytest.approx(6.0)


# -- what is promised ------------------------------------------------------------------


@pytest.mark.parametrize("n_worlds", [None, 4])
@pytest.mark.parametrize(
    "prior_as, notion", [("law", Notion.RENYI_PUFFERFISH), (None, Notion.ESTIMATED)]
)
def test_a_sample_is_an_estimate_and_a_declared_law_is_certified(
    n_worlds, prior_as, notion
):
    chosen = scenario(n_worlds=n_worlds, prior_as=prior_as)
    found = GeneralWasserstein(epsilon=1.0, alpha=4.0, delta=None).calibrate(
        mean_release(), chosen
    )
    promise = found.certificate
    assert promise.notion is notion
    told = promise.assumptions
    # the public table is named, and so is what is taken of it
    digest = ReferenceTable(PUBLIC).digest[:12]
    assert says(told, "assume.group_rows_and_digest", n_rows=7, digest=digest)
    assert says(told, "assume.group_sizes_public", n=N)
    assert says(told, "assume.group_belief_exact") == (prior_as == "law")
    drawn = says(told, "assume.group_world_drawn_tables", n_worlds=4, n=8)
    assert drawn == (n_worlds == 4)
    kind = Samples if prior_as is None else Discrete
    laws = fact(n_worlds=n_worlds, prior_as=prior_as).distributions[0]
    assert {type(one) for one in laws} == {PointMass if n_worlds is None else kind}


def test_noise_of_two_points_by_hand():
    """Theorem 3.3 of Pierquin et al. (2024): a variance of alpha z^2 / (2 epsilon)."""
    found = GeneralWasserstein(epsilon=0.5, alpha=4.0, delta=None).calibrate(
        mean_release(), scenario(pairs=[("a", "b")])
    )
    assert found.noise.scale == pytest.approx(3.0 * math.sqrt(4.0 / (2 * 0.5)))
    assert found.certificate.sensitivity == pytest.approx(3.0)


@pytest.mark.parametrize(
    "accountant",
    [
        GeneralWasserstein(),
        ApproximateWasserstein(delta=1e-3),
        DistributionAwareWasserstein(),
    ],
    ids=lambda a: type(a).__name__,
)
@pytest.mark.parametrize("n_worlds", [None, 5])
def test_accountants_of_output_distributions_answer(accountant, n_worlds):
    found = accountant.calibrate(mean_release(), scenario(n_worlds=n_worlds))
    assert found.noise.scale > 0 and found.certificate.certified
    refused = PrivacyLoss().supports(mean_release(), scenario(n_worlds=n_worlds))
    assert not refused


def test_the_best_guess_of_the_group_is_as_good_as_allowed():
    """Of two points, all that an attacker sees is the noise: exactly at the budget."""
    epsilon, alpha, n = 1.0, 4.0, 40_000
    accountant = GeneralWasserstein(epsilon, alpha, noise="gaussian")
    found = accountant.calibrate(mean_release(), scenario(pairs=[("a", "b")]))
    a, b = (one.points.item() for one in fact().distributions[0][:2])
    allowed = stats.norm.cdf(math.sqrt(epsilon / (2 * alpha)))
    rng = np.random.default_rng(0)

    def accuracy(share):
        noise = share * found.noise.sample((2, n), rng)
        right = [noise[0] + a < (a + b) / 2, noise[1] + b > (a + b) / 2]
        return np.mean(right)

    error = 4 * math.sqrt(0.25 / (2 * n))
    assert abs(accuracy(1.0) - allowed) < error
    # positive control
    assert accuracy(0.7) > allowed + error


def test_the_divergence_of_the_worlds_is_within_the_budget():
    epsilon, alpha = 1.0, 4.0
    chosen = scenario(n_worlds=10, pairs=[("a", "b")])
    accountant = GeneralWasserstein(epsilon, alpha, noise="gaussian")
    found = accountant.calibrate(mean_release(), chosen)
    laws = fact(n_worlds=10).distributions[0]
    rng = np.random.default_rng(0)
    n = 40_000

    def divergence(scale):
        # of the two mixtures, by importance sampling from the second
        def density(law, at):
            gaps = (at[:, None] - law.points[:, 0]) / scale
            return np.exp(-(gaps**2) / 2).mean(axis=1)

        at = laws[1].sample(n, rng)[:, 0] + scale * rng.normal(size=n)
        ratio = density(laws[0], at) / density(laws[1], at)
        return math.log(np.mean(ratio**alpha)) / (alpha - 1)

    assert divergence(found.noise.scale) <= epsilon
    # positive control: with a fifth of the noise it is found out
    assert divergence(0.2 * found.noise.scale) > epsilon


# -- fits ------------------------------------------------------------------------------


def fitted(table=PRIVATE, **changes):
    return PrivateMean(
        scenario(**changes), GeneralWasserstein(), bounds=(0, 6), random_state=0
    ).fit(table)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_the_column_of_the_group_is_not_read(library):
    plain = fitted(library.DataFrame(PRIVATE.to_dict("list")))
    both = PRIVATE.assign(group="b")
    held = fitted(library.DataFrame(both.to_dict("list")))
    assert held.n_features_in_ == 1 and held.feature_names_in_.tolist() == ["x"]
    assert held.mean_.tolist() == plain.mean_.tolist()
    public = library.DataFrame(PUBLIC.to_dict("list"))
    assert fitted(prior=public).noise_.scale == held.noise_.scale


def test_a_table_of_several_groups_is_refused():
    several = PRIVATE.assign(group=["a"] * 7 + ["b"])
    with is_refused(ScenarioError, "group.several_groups_in_data", column="group"):
        fitted(several)
    with is_refused(ScenarioError, "group.several_groups_in_data"):
        PrivateMean(scenario(), bounds=(0, 6)).fit(PRIVATE, secret=several["group"])


def test_a_group_that_no_prior_has_is_refused_without_its_name():
    with is_refused(ScenarioError, "attribute.values_not_in_prior") as caught:
        fitted(PRIVATE.assign(group="zebra"))
    assert "zebra" not in str(caught.value)


def test_arrays_go_by_position():
    public = PUBLIC[["group", "x"]].copy()
    public["group"] = public["group"].map({"a": 0, "b": 1, "c": 2})
    public = public.to_numpy(float)
    of = GroupScenario(0, prior=public, prior_as="law")
    rows = np.column_stack([np.ones(N), PRIVATE["x"]])
    accountant = GeneralWasserstein()
    for table in (rows, rows[:, 1:]):
        model = PrivateMean(of, accountant, bounds=(0, 6)).fit(table)
        assert model.certificate_.sensitivity == pytest.approx(4 / 3)  # of half ranges


def test_weights_are_refused():
    with is_refused(
        TypeError, "parameter.fit_argument_unexpected", name="sample_weight"
    ):
        PrivateMean(scenario(), bounds=(0, 6)).fit(PRIVATE, sample_weight=np.ones(N))


def test_gradients_have_no_one_output():
    run = GradientRelease(n_records=N, n_steps=2, batch_size=2, context=context())
    assert scenario().bind(context()).provides(run) == frozenset()
    with pytest.raises(UnsupportedError):
        PrivacyLoss().calibrate(run, scenario())


def test_a_prior_that_holds_the_private_table_is_found_out():
    """The tables of the source are public and private at once."""
    public = pd.DataFrame({"group": ["a", "b", "c"] * 30, "x": np.linspace(0, 6, 90)})
    mine = public[public["group"] == "b"]
    for table in (mine[["x", "group"]], mine[["x"]]):
        with warned(PrivacyLeakWarning, "prior.holds_private_records"):
            promise = fitted(table, prior=public).certificate_
        assert not promise.certified


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_it_is_cloned_pickled_and_printed_without_rows():
    private = pd.DataFrame({"x": [3.14159, 2.71828, 1.41421, 1.73205]})
    model = fitted(private, n_worlds=4)
    again = pickle.loads(pickle.dumps(model))
    assert again.mean_.tolist() == model.mean_.tolist()
    for kept in (model.scenario, clone(model.scenario)):
        assert repr(kept) == (
            "GroupScenario('group', prior=<table>, n_worlds=4, prior_as='law')"
        )
        assert kept.get_params()["n_worlds"] == 4
    stored = pickle.dumps(model)
    for value in private["x"]:
        assert np.float64(value).tobytes() not in stored
        assert str(value) not in repr(model) + str(model.certificate_)
    assert "pairs=[('a', 'b')]" in repr(scenario(pairs=[("a", "b")]))


# -- refusals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"prior": "empirical"}, Statement("group.prior_not_public_table")),
        ({"prior": None}, Statement("prior.is_none")),
        (
            {"prior": PUBLIC.drop(columns="group")},
            Statement("prior.column_missing", which="column"),
        ),
        (
            {"prior": PUBLIC.assign(group="a")},
            Statement("scenario.fewer_than_two_secrets"),
        ),
        (
            {"prior": PUBLIC.assign(group=["a", None, *"abbab"])},
            Statement("prior.secret_missing_values"),
        ),
        (
            {"prior": PUBLIC[PUBLIC["group"] != "c"][:0]},
            Statement("prior.table_without_rows"),
        ),
        (
            {"pairs": [("a", "z")]},
            Statement("scenario.pair_secret_unknown", secret="z"),
        ),
        ({"n_worlds": 1}, Statement("parameter.count_too_small", name="n_worlds")),
        ({"n_worlds": 2.5}, Statement("parameter.count_too_small", name="n_worlds")),
        (
            {"prior_as": "support"},
            Statement("parameter.option_unknown", name="prior_as"),
        ),
        ({"verbose": 2}, Statement("parameter.option_unknown", name="verbose")),
    ],
)
def test_bad_parameters(changes, said):
    with is_refused(ValueError, said.code, **said.parameters):
        fitted(**changes)


def test_worlds_of_one_row_are_refused():
    single = PUBLIC[:-1]
    with is_refused(ScenarioError, "group.single_row_group"):
        fact(prior=single, n_worlds=4)
    assert fact(prior=single).distributions[0][2].points.item() == 0.0


def test_beliefs_that_tell_no_pair_apart_are_refused():
    halves = [PUBLIC[PUBLIC["group"] == group] for group in "ab"]
    with is_refused(ScenarioError, "attribute.no_pair_possible"):
        fact(prior=halves)


def test_an_output_that_is_not_finite_is_refused():
    def query(X, y):
        return np.where(X.mean() > 4, math.nan, X.mean(axis=0))

    with is_refused(ScenarioError, "scenario.release_not_finite"):
        fact(mean_release(query=query))


# -- real tables -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def heart(data_dir):
    table = fetch_heart(data_home=data_dir, download_if_missing=False).frame
    columns = ["age", "sex", "trestbps", "chol"]
    table = table[columns].assign(disease=(table.iloc[:, -1] > 0).astype(int))
    return train_test_split(table, random_state=0, stratify=table["sex"])


def bounds_of(table):
    return {name: (0, 1.2 * table[name].max()) for name in ("age", "trestbps", "chol")}


def test_heart_by_sex(heart):
    public, rest = heart
    private = rest[rest["sex"] == rest["sex"].max()]
    asked = ["age", "trestbps", "chol"]
    found = {}
    for n_worlds in (None, 20):
        groups = GroupScenario("sex", prior=public, n_worlds=n_worlds, prior_as="law")
        found[n_worlds] = PrivateSummary(
            groups,
            GeneralWasserstein(epsilon=1.0, alpha=4.0, delta=None),
            statistics=["mean", "std"],
            columns=asked,
            bounds=bounds_of(public),
        ).fit(private.drop(columns="disease"))
    means = public.groupby("sex")[asked].mean()
    moves = (
        2 * (means.iloc[1] - means.iloc[0]) / [v[1] for v in bounds_of(public).values()]
    )
    point = found[None].certificate_.sensitivity
    # the means' part of the move, in the units of the release, and that of the spreads
    assert np.linalg.norm(moves) <= point * (1 + 1e-9) < 3 * np.linalg.norm(moves)
    assert found[20].certificate_.sensitivity > point
    assert found[20].result_.shape == (2, 3)


def test_student_by_quintile(data_dir):
    """The quintile is a column of the user's own, cut from public grades."""
    table = fetch_student(data_home=data_dir, download_if_missing=False).frame
    table = table[["studytime", "failures", "absences", "G1", "G2", "G3"]].astype(float)
    table["passed"] = (table["G3"] >= 10).astype(int)
    table["quintile"] = pd.qcut(table.pop("G3").rank(method="first"), 5, labels=False)
    public, rest = train_test_split(table, random_state=0, stratify=table["quintile"])
    private = rest[rest["quintile"] == 2]
    groups = GroupScenario("quintile", prior=public.drop(columns="passed"))
    with pytest.warns(EstimatedGuaranteeWarning):
        means = PrivateMean(groups, GeneralWasserstein(), bounds=(0, 100)).fit(
            private.drop(columns="passed")
        )
    laws = public.groupby("quintile").mean().drop(columns="passed") / 50
    apart = max(
        np.linalg.norm(laws.iloc[i] - laws.iloc[j]) for i in range(5) for j in range(i)
    )
    assert means.certificate_.sensitivity == pytest.approx(apart)


def test_a_search_within_a_pipeline(heart):
    public, rest = heart
    private = rest[rest["sex"] == rest["sex"].max()]
    X, y = private.drop(columns="disease"), private["disease"]
    forest = OutputPerturbation(
        LogisticRegression(max_iter=5000),
        ["coef_", "intercept_"],
        GroupScenario("sex", prior=public, n_worlds=5, prior_as="law"),
        GeneralWasserstein(),
        classes=[0, 1],
    )
    steps = make_pipeline(FunctionTransformer(), forest)
    search = GridSearchCV(
        steps,
        {"outputperturbation__accountant__epsilon": [1.0, 10.0]},
        cv=2,
        error_score="raise",
    ).fit(X, y)
    assert search.best_estimator_[-1].certificate_.certified
    assert search.predict(X).shape == (len(X),)


def test_importances_of_a_forest(heart):
    public, rest = heart
    private = rest[rest["sex"] == rest["sex"].max()]
    forest = OutputPerturbation(
        RandomForestClassifier(n_estimators=3, max_depth=2),
        "feature_importances_",
        GroupScenario("sex", prior=public, n_worlds=3),
        GeneralWasserstein(),
        classes=[0, 1],
    )
    with pytest.warns(EstimatedGuaranteeWarning):
        forest.fit(private.drop(columns="disease"), private["disease"])
    assert forest.value_.shape == (3,)
