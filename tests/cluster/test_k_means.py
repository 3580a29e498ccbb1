"""Private k-means: what it finds, what it takes, and what it must not tell."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skpuffer.accountants import (
    Best,
    GroupPrivacy,
    OverlapAmplification,
    PrivacyLoss,
    RenyiDP,
)
from skpuffer.cluster import PrivateKMeans
from skpuffer.exceptions import PrivacyWarning
from skpuffer.privacy import Notion
from skpuffer.scenarios import (
    AttributeScenario,
    BinnedLaw,
    BlocksScenario,
    BoundedInference,
    BoundedOdds,
    DeclaredOdds,
    RecordScenario,
)
from skpuffer.schema import Number, Schema
from tests.refused import refused, warned

pytestmark = pytest.mark.filterwarnings(
    "ignore::skpuffer.exceptions.SeededNoiseWarning",
    "ignore::skpuffer.exceptions.NoGainWarning",
)

BOX = (-14.0, 14.0)
PURE = GroupPrivacy(1.0, alpha=math.inf, noise="laplace")


def blobs(n=5000, d=2, k=5):
    return make_blobs(n, n_features=d, centers=k, random_state=0)[0]


def frame(n=2000):
    """Two numbers and a secret that says nothing of them."""
    table = pd.DataFrame(blobs(n, 2, 3), columns=["a", "b"])
    return table.assign(race=np.where(np.arange(n) % 3 == 0, "x", "y"))


def kmeans(k=3, **options):
    return PrivateKMeans(k, **{"bounds": BOX, "random_state": 0} | options)


def inertia_ratio(model, X):
    """Inertia over that of scikit-learn's centres, both on scaled rows."""
    k = model.n_clusters
    best = KMeans(k, n_init=5, random_state=0).fit(np.clip(X / 14, -1, 1)).inertia_
    return -model.score(X) / best


# -- what it finds -------------------------------------------------------------------


@pytest.mark.parametrize("d, k", [(2, 5), (6, 8)])
@pytest.mark.parametrize("accountant, most", [(None, 1.05), (PURE, 1.4)])
def test_blobs_are_found(d, k, accountant, most):
    X = blobs(d=d, k=k)
    found = [
        inertia_ratio(kmeans(k, accountant=accountant, random_state=s).fit(X), X)
        for s in range(4)
    ]
    assert np.mean(found) < most


def test_centres_are_in_the_units_of_the_data():
    X = np.concatenate([np.full((900, 2), [10.0, 0.1]), np.full((100, 2), [90, 0.8])])
    model = PrivateKMeans(2, bounds=([0, 0], [100, 1]), random_state=0).fit(X)
    order = np.argsort(-model.counts_)
    np.testing.assert_allclose(
        model.cluster_centers_[order], [[10, 0.1], [90, 0.8]], rtol=0.1
    )
    np.testing.assert_allclose(model.counts_[order], [900, 100], atol=60)
    # 3.73 sqrt(6) sqrt(1 + sqrt(d)): a share of a sixth, and a weight of r d^(-1/4)
    expected = model.noise_.scale * math.sqrt(6 * (1 + math.sqrt(2)))
    assert model.counts_std_ == pytest.approx(expected)
    assert np.unique(model.predict(X)[:900]).tolist() == [order[0]]
    # distances in half-ranges: the second row is (80, .7) from the first
    apart = model.transform(X)[[0, -1], order[0]]
    assert apart[1] == pytest.approx(math.hypot(80 / 50, 0.7 / 0.5), rel=0.05)
    assert model.score(X) == pytest.approx(
        -np.sum(model.transform(X).min(axis=1) ** 2), rel=1e-9
    )


def test_rounds_and_first_centres_can_be_chosen():
    X = blobs(1000)
    model = kmeans(3, n_init_centers=6, schedule=(1, 2)).fit(X)
    assert [stage.dim for stage in model.release_.stages] == [18, 9, 9]
    assert [stage.share for stage in model.release_.stages] == [0.5, 0.25, 0.25]
    usual = kmeans(3).fit(X).release_
    assert [stage.dim for stage in usual.stages] == [36, 36, 9, 9, 9]
    pure = kmeans(3, accountant=PURE).fit(X).release_
    assert [stage.dim for stage in pure.stages] == [36, 9, 9] and pure.norm == 1


def test_where_noise_forbids_learning_all_centres_are_one_mean():
    X = np.random.default_rng(0).normal(3.0, 1.0, (80, 2))
    model = kmeans(8, accountant=PrivacyLoss(0.05))
    with warned(PrivacyWarning, "cluster.noise_merges_centres", n_clusters=8):
        model.fit(X)
    assert len(np.unique(model.cluster_centers_, axis=0)) == 1
    assert model.counts_.tolist() == [80.0] + [0.0] * 7 and model.counts_std_ == 0
    assert np.unique(model.predict(X)).tolist() == [0]
    # nothing of the data decides: a table that is one point falls back as well
    with warned(PrivacyWarning, "cluster.noise_merges_centres"):
        kmeans(8, accountant=PrivacyLoss(0.05)).fit(np.zeros((80, 2)))
    # a mean is found where it can be: the noise of one cell is that of 8 clusters
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        near = [
            kmeans(8, accountant=PrivacyLoss(0.2), random_state=s).fit(X)
            for s in range(5)
        ]
    assert np.abs(np.mean([m.cluster_centers_[0] for m in near], axis=0)).max() < 8


# -- under which scenarios -----------------------------------------------------------

BELIEFS = {
    "odds": BoundedOdds(4.0),
    "inference": BoundedInference(0.72),
    "several": [BoundedOdds(4.0), BoundedInference(0.8)],
}


def race(prior, **options):
    return AttributeScenario("race", level="record", prior=prior, **options)


@pytest.mark.parametrize("belief", BELIEFS)
@pytest.mark.parametrize("accountant", [OverlapAmplification(0.3), None])
def test_beliefs_amplify_all_rounds_at_once(belief, accountant):
    scenario = race(BELIEFS[belief])
    model = kmeans(accountant=accountant, scenario=scenario).fit(frame())
    assert model.certificate_.notion is Notion.APPROXIMATE_PUFFERFISH
    assert model.certificate_.gain > 2
    assert model.n_features_in_ == 2 and model.release_.relation == "replace"


def half(rows):
    """Declared probability that a row's race is x: higher to the left."""
    return np.clip(0.5 - np.asarray(rows)[:, 0] / 50, 0.2, 0.8)


@pytest.mark.parametrize("kind", ["declared odds", "binned law"])
def test_beliefs_of_public_rows(kind):
    table = frame()
    public = table.sample(600, random_state=1)
    table, public = table.drop(public.index), public.reset_index(drop=True)
    edges = [-14.0, 0.0, 14.0]
    priors = {
        "declared odds": DeclaredOdds(half, public[["a", "b"]], rest=BoundedOdds(2.0)),
        "binned law": BinnedLaw(public, bins={"a": edges, "b": edges}),
    }
    accountant = OverlapAmplification(0.3, if_belief_suffices="cap")
    trust = {"prior_as": "law"} if kind == "binned law" else {}
    scenario = race(priors[kind], **trust)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        model = kmeans(accountant=accountant, scenario=scenario).fit(table)
    assert model.certificate_.certified and model.certificate_.gain > 1
    assert model.predict(table).shape == (len(table),)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_households_pay_for_all_their_members(relation):
    X, scales = blobs(), {}
    for k in (1, 4):
        model = kmeans(scenario=RecordScenario(k, relation)).fit(X)
        scales[k] = model.noise_.scale
        assert model.certificate_.relation == relation
        assert model.certificate_.notion is Notion.APPROXIMATE_DP
    assert scales[4] == pytest.approx(4 * scales[1])
    blocks = BlocksScenario(RecordScenario(4, relation), sizes=4)
    assert kmeans(scenario=blocks).fit(X).noise_.scale == pytest.approx(scales[4])


@pytest.mark.parametrize(
    "accountant",
    [
        RenyiDP(1.0, delta=None, alpha=4.0),
        Best(1.0, delta=1e-5),
        Best(1.0, alpha=math.inf),
        GroupPrivacy(1.0, alpha=2.0, noise="laplace"),
        PrivacyLoss(1.0, noise="laplace"),
    ],
)
def test_other_accountants(accountant):
    model = kmeans(accountant=accountant).fit(blobs())
    assert model.certificate_.epsilon == pytest.approx(1.0, rel=1e-3)
    assert inertia_ratio(model, blobs()) < 50


# -- where it stands -----------------------------------------------------------------


def test_in_pipelines_column_transformers_and_searches():
    table = frame()
    numbers = table[["a", "b"]]
    piped = make_pipeline(FunctionTransformer(), kmeans()).fit(numbers)
    assert piped.predict(numbers).shape == (2000,)
    assert piped.transform(numbers).shape == (2000, 3)
    columns = ColumnTransformer([("cells", kmeans(), ["a", "b"])]).fit(table)
    assert columns.get_feature_names_out().tolist() == [
        f"cells__privatekmeans{i}" for i in range(3)
    ]
    model = kmeans().set_output(transform="pandas").fit(numbers)
    assert model.transform(numbers).columns.tolist() == [
        f"privatekmeans{i}" for i in range(3)
    ]
    assert model.feature_names_in_.tolist() == ["a", "b"]
    search = GridSearchCV(kmeans(), {"accountant__epsilon": [0.5, 3.0]}, cv=2)
    assert search.fit(numbers).best_params_["accountant__epsilon"] in (0.5, 3.0)


def test_fit_predict_and_fit_transform_are_of_one_fit():
    X = blobs(1000)
    np.testing.assert_array_equal(kmeans().fit_predict(X), kmeans().fit(X).predict(X))
    np.testing.assert_array_equal(
        kmeans().fit_transform(X), kmeans().fit(X).transform(X)
    )


def test_the_secret_column_is_no_column_to_cluster():
    table, scenario = frame(), race(BoundedOdds(4.0))
    model = kmeans(scenario=scenario, accountant=OverlapAmplification(0.5)).fit(table)
    without = model.predict(table.drop(columns="race"))
    np.testing.assert_array_equal(model.predict(table), without)
    labels = kmeans(scenario=scenario, accountant=OverlapAmplification(0.5))
    assert labels.fit_predict(table.drop(columns="race"), secret=table["race"]).size


# -- a code book ---------------------------------------------------------------------

SCHEMA = Schema(
    {
        "a": (-14, 14),
        "gain": Number(0, 10_000, amount=True),
        "race": ["x", "y"],
        "late": Number(0, 10, missing_level=True),
    }
)


def raw_table(n=3000):
    table = frame(n).assign(late=5.0).astype({"late": object})
    table["gain"] = np.where(table["race"] == "x", 9_000.0, 2.0)
    table.loc[::7, "late"] = None
    table.loc[::11, "race"] = "never declared"
    return table


def test_a_code_book_reads_texts_amounts_and_gaps():
    table = raw_table()
    model = PrivateKMeans(2, schema=SCHEMA, random_state=0).fit(table)
    names = model.feature_map_.names.tolist()
    assert names[:4] == ["a", "a_missing", "gain", "gain_missing"]
    assert model.cluster_centers_.shape == (2, len(names))
    centres = pd.DataFrame(model.cluster_centers_, columns=names)
    # amounts by their logarithm: the poor are told from the rich, in dollars
    low, high = np.sort(centres["gain"])
    assert 0 <= low < 100 and 1_000 < high <= 10_000
    shares = centres.filter(regex="race|missing")
    assert shares.to_numpy().min() >= 0 and shares.to_numpy().max() <= 1
    assert model.n_features_in_ == 4
    # the frame may have more columns, in another order, and any value
    again = model.predict(table[table.columns[::-1]])
    np.testing.assert_array_equal(again, model.predict(table))
    strange = pd.DataFrame({"a": [1e9], "gain": ["?"], "race": [None], "late": [-1]})
    assert model.transform(strange).shape == (1, 2)


def test_bounds_beside_a_code_book_must_agree():
    agreed = PrivateKMeans(2, schema=SCHEMA, bounds={"a": BOX}, random_state=0)
    assert agreed.fit(raw_table()).n_features_in_ == 4
    for bounds in ({"a": (0, 1)}, {"race": (0, 1)}, {"b": BOX}, BOX):
        with refused(
            ValueError,
            (
                "schema.parameter_disagrees_at_column",
                "schema.parameter_unknown_columns",
            ),
        ):
            PrivateKMeans(2, schema=SCHEMA, bounds=bounds).fit(raw_table())


def test_a_secret_of_the_code_book_is_left_out():
    scenario = race(BoundedOdds(4.0))
    model = PrivateKMeans(
        2, schema=SCHEMA, scenario=scenario, accountant=OverlapAmplification(0.5)
    ).fit(raw_table())
    assert "race_x" not in model.feature_map_.names
    assert model.predict(raw_table()).shape == (3000,)


# -- bad input -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, words",
    [
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 2.5}, "n_clusters"),
        ({"n_clusters": 31}, "n_clusters=31: give fewer"),
        ({"bounds": None}, "needs public bounds"),
        ({"bounds": (1, 1)}, "low < high"),
        ({"bounds": ([0, 0, 0], [1, 1, 1])}, "3 bounds"),
        ({"bounds": {"a": (0, 1)}}, "no pair for the columns"),
        ({"bounds": (0, math.inf)}, "finite"),
        ({"n_init_centers": 2}, "n_init_centers"),
        ({"n_init_centers": "5k"}, "n_init_centers"),
        ({"schedule": 3}, "schedule"),
        ({"schedule": (1, 2, 3)}, "schedule"),
        ({"schedule": (0, 3)}, "schedule"),
        ({"schedule": "often"}, "schedule"),
        ({"schema": {"a": (0, 1)}}, "schema"),
        ({"schema": Schema({"c": (0, 1)}), "bounds": None}, "'c'"),
        ({"accountant": PrivacyLoss(noise="generalized_cauchy")}, "noise='gaussian'"),
    ],
)
def test_bad_parameters(options, words):
    model = PrivateKMeans(**{"n_clusters": 3, "bounds": BOX} | options)
    with pytest.raises((ValueError, TypeError), match=words):
        model.fit(blobs(30))
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize(
    "X, words",
    [
        (np.empty((0, 2)), "0 sample"),
        (np.ones((1, 2)), "n_samples=1 should be >= n_clusters=3"),
        (np.array([[math.nan, 0.731045773104577]] * 9), "NaN"),
        (np.ones(9), "2D"),
    ],
)
def test_bad_tables(X, words):
    model = kmeans()
    with pytest.raises(ValueError, match=words) as caught:
        model.fit(X)
    assert "0.7310" not in str(caught.value)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_one_record_is_refused():
    model = kmeans(1)
    with refused(ValueError, "table.too_few_samples", least=2):
        model.fit(np.ones((1, 2)))
    assert not [name for name in vars(model) if name.endswith("_")]


def test_weights_are_refused():
    with refused(TypeError, "weights.record_weighs_more"):
        kmeans().fit(blobs(30), sample_weight=np.ones(30))


def test_bounds_of_the_data_are_no_promise():
    with warned(PrivacyWarning, "assume.bounds_read_from_data"):
        model = kmeans(bounds="empirical").fit(blobs())
    assert not model.certificate_.certified


# -- what must not be told -----------------------------------------------------------


def test_nothing_of_the_private_rows_is_on_the_object():
    model = kmeans().fit(blobs())
    for name in ("labels_", "inertia_", "n_iter_"):
        assert not hasattr(model, name)
    assert model.release_.context.empirical is None


def test_an_empty_cell_moves_as_any_other():
    """A centre that no record is near must not stay exactly where it was.

    A peer skips empty clusters, so that "a centre equals its start" tells a record.
    """
    alone = np.zeros((400, 2))
    joined = np.vstack([alone[1:], [[13.0, 13.0]]])
    for X in (alone, joined):
        for seed in range(8):
            one, two = (kmeans(2, random_state=s).fit(X) for s in (seed, 1_000 + seed))
            assert not np.any(np.all(one.cluster_centers_ == two.cluster_centers_, 1))


def test_the_number_of_rounds_is_not_private():
    shapes = set()
    for X in (np.zeros((400, 2)), blobs(400), np.full((400, 2), 14.0)):
        model = kmeans(4).fit(X)
        shapes.add((model.cluster_centers_.shape, model.release_.dim))
    assert len(shapes) == 1
