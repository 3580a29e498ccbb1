"""Summaries of mixed tables when one column is secret."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder
from sklearn.utils.validation import check_is_fitted

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy
from skpuffer.compose import PublicPreprocessing
from skpuffer.distributions import PointMass
from skpuffer.exceptions import (
    EmpiricalPriorWarning,
    EstimatedGuaranteeWarning,
    ScenarioError,
)
from skpuffer.privacy import Notion
from skpuffer.scenarios import (
    AttributeScenario,
    LawsScenario,
    RecordScenario,
    SimulatorScenario,
)
from skpuffer.summary import (
    PrivateCDF,
    PrivateQuantile,
    PrivateStandardScaler,
    PrivateSummary,
)
from skpuffer.transport import bottleneck_distance
from tests.refused import refused

from ..attack import SHARE, assert_tight, bayes_score
from .releases import NO_NOISE, release_of

REGIONS = ["n", "s", "w"]
PUBLIC = {"bounds": {"age": (20, 80)}, "categories": {"region": REGIONS}}


def table(n=60, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], size=n)
    return pd.DataFrame(
        {
            "region": rng.choice(REGIONS, size=n),
            "age": rng.integers(30, 60, size=n) + 10.0 * (sex == "F"),
            "sex": sex,
            "smoker": rng.random(n) < np.where(sex == "F", 0.2, 0.5),
        }
    )


def scenario(prior, **options):
    options = {"level": "record", "prior_as": "law"} | options
    return AttributeScenario("sex", prior=prior, **options)


def by_hand(data, statistics, by):
    """Contributions of each record, written down independently of the package."""
    u = (data["age"].clip(20, 80).to_numpy() - 50) / 30
    parts = [np.ones_like(u)] if by and {"mean", "rate"} & set(statistics) else []
    if "std" in statistics:
        parts += [u, u**2 - 0.5]
    elif "mean" in statistics:
        parts += [u]
    if "rate" in statistics:
        parts += [2.0 * data["smoker"].to_numpy() - 1]
    if "histogram" in statistics:
        bins = np.minimum(((u + 1) / 2 * 3).astype(int), 2)
        parts += [1.0 * (bins == k) for k in range(3)]
        parts += [1.0 * ~data["smoker"].to_numpy(), 1.0 * data["smoker"].to_numpy()]
    block = np.column_stack(parts)
    if not by:
        return block
    cells = data[by].agg("/".join, axis=1) if len(by) > 1 else data[by[0]]
    return np.hstack(
        [block * (cells == c).to_numpy()[:, None] for c in sorted(set(cells))]
    )


@pytest.mark.parametrize("norm, noise", [(2, "gaussian"), (1, "laplace")])
@pytest.mark.parametrize("by", [None, ["region"]])
@pytest.mark.parametrize(
    "statistics", [["mean"], ["rate"], ["mean", "std"], ["mean", "rate", "histogram"]]
)
def test_the_noise_covers_how_far_the_laws_of_a_record_move(
    statistics, by, norm, noise
):
    prior, private = table(seed=1), table(200)
    asked = {"age": [s for s in statistics if s != "rate"] or ["mean"]}
    asked["smoker"] = [s for s in statistics if s in ("rate", "histogram")]
    if statistics == ["rate"]:
        asked.pop("age")
    if not asked["smoker"]:
        asked.pop("smoker")
    model = PrivateSummary(
        scenario(prior),
        GeneralWasserstein(1.0, 3.0, noise=noise),
        statistics=asked,
        by=by,
        bins={"age": 3},
        **PUBLIC,
    ).fit(private)
    rows = by_hand(prior, statistics, by)
    female = (prior["sex"] == "F").to_numpy()
    moved = bottleneck_distance(rows[female], rows[~female], ord=norm) / 200
    # what one arbitrary record does is never exceeded
    at_most = min(moved, model.certificate_.record_sensitivity)
    assert model.certificate_.sensitivity == pytest.approx(at_most, rel=1e-9)
    assert model.certificate_.notion == Notion.RENYI_PUFFERFISH
    assert model.certificate_.norm == norm


def test_a_secret_that_moves_little_takes_less_noise():
    ages = np.arange(30.0, 60.0)
    prior = pd.DataFrame(
        {"sex": np.repeat(["F", "M"], 30), "age": np.concatenate([ages + 10, ages])}
    )
    options = {"statistics": ["mean"], "columns": ["age"], "bounds": {"age": (20, 80)}}
    private = table(200)
    secret = PrivateSummary(scenario(prior), GeneralWasserstein(), **options)
    plain = PrivateSummary(
        RecordScenario(relation="replace"), GroupPrivacy(alpha=2.0), **options
    )
    # ten years against sixty
    ratio = secret.fit(private).noise_.std(1) / plain.fit(private).noise_.std(1)
    assert ratio[0] == pytest.approx(10 / 60)


def telling(n=60):
    """A table in which the sex says all else, from bound to bound."""
    female = np.arange(n) < n // 2
    return pd.DataFrame(
        {
            "region": np.where(female, "n", "w"),
            "age": np.where(female, 80.0, 20.0),
            "sex": np.where(female, "F", "M"),
            "smoker": ~female,
        }
    )


#: What is known of a record, and the part of the noise that is found to be too little:
#: where the secrets overlap in what they say, only the farthest are covered.
KNOWN = {"overlapping": (table(seed=1), 0.2), "telling": (telling(), SHARE)}


@pytest.mark.parametrize("known", KNOWN)
def test_no_attacker_tells_the_secret_from_groups_of_a_small_table(known):
    (prior, share), private = KNOWN[known], table(8, seed=2)
    model = PrivateSummary(
        statistics=["mean", "rate", "histogram"], by="region", bins=3, **PUBLIC
    ).set_params(columns=["age", "smoker"])
    release, encode = release_of(model, private)
    found = GeneralWasserstein(1.0, 4.0).calibrate(release, scenario(prior))
    one = release.contribution(encode(prior)) * release.factor * release.units
    others = release.run(encode(private.iloc[1:]))
    laws = [
        np.unique(one[(prior["sex"] == sex).to_numpy()], axis=0, return_counts=True)
        for sex in "FM"
    ]
    points = [others + values for values, _ in laws]
    masses = [counts / counts.sum() for _, counts in laws]

    def outputs(which, noise):
        def draw(n, rng):
            drawn = rng.choice(len(points[which]), size=n, p=masses[which])
            exact = points[which][drawn]
            return exact + noise.sample(exact.shape, rng)

        return draw

    assert_tight(
        found.certificate,
        found.noise,
        lambda noise: [outputs(which, noise) for which in (0, 1)],
        score=lambda noise: bayes_score(
            noise, points[0], masses[0], points[1], masses[1]
        ),
        share=share,
        seed=1,
        n_draws=8000,
    )


def test_encoding_is_the_same_for_data_and_prior_of_any_kind():
    prior, private = table(seed=1), table(200)
    options = {"statistics": ["mean", "rate"], "by": "region", **PUBLIC}
    accountant = GeneralWasserstein(1.0, 3.0)

    def noise(prior, private, **changes):
        model = PrivateSummary(scenario(prior), accountant, **{**options, **changes})
        model.fit(private)
        return model.certificate_.sensitivity, np.array(model.noise_.scale)

    expected = noise(prior, private)
    shuffled = prior[["smoker", "sex", "age", "region"]].astype({"region": "category"})
    wider = private.assign(notes="?")  # columns that are not read need no prior
    columns = {"columns": ["age", "smoker"]}
    for found in (
        noise(pl.DataFrame({c: prior[c].to_numpy() for c in prior}), private),
        noise(shuffled, private),
        noise(prior, private.drop(columns="sex")),
        noise(prior, pl.DataFrame({c: private[c].to_numpy() for c in private})),
        noise(prior, wider, **columns),
    ):
        assert found[0] == pytest.approx(expected[0])
        np.testing.assert_allclose(found[1], expected[1])


def test_arrays_match_a_prior_by_position():
    prior, private = table(seed=1), table(200)
    order = ["region", "age", "smoker", "sex"]
    named = PrivateSummary(
        scenario(prior),
        GeneralWasserstein(),
        statistics=["mean"],
        by="region",
        columns=["age"],
        **PUBLIC,
    ).fit(private)
    arrays = PrivateSummary(
        AttributeScenario(
            3, level="record", prior=prior[order].to_numpy(), prior_as="law"
        ),
        GeneralWasserstein(),
        statistics=["mean"],
        by=0,
        columns=[1],
        bounds={1: (20, 80)},
        categories={0: REGIONS},
    ).fit(private[order].to_numpy())
    assert arrays.certificate_.sensitivity == pytest.approx(
        named.certificate_.sensitivity
    )


def test_bounds_of_numeric_columns_are_declared_by_the_prior():
    prior, private = table(500, seed=1), table(200)
    private.loc[0, "age"] = 1e6
    model = PrivateSummary(
        scenario(prior), NO_NOISE, columns=["age"], categories=PUBLIC["categories"]
    ).fit(private)
    clipped = private["age"].clip(prior["age"].min(), prior["age"].max())
    assert model.result_.loc["mean", "age"] == pytest.approx(clipped.mean())


@pytest.mark.parametrize(
    "options",
    [
        {"by": "sex"},
        {"by": ["region", "sex"]},
        {"columns": ["age", "sex"]},
        {"statistics": {"sex": ["rate"]}},
    ],
    ids=str,
)
def test_the_secret_cannot_be_summarised(options):
    categories = {"categories": {"sex": ["F", "M"], "region": REGIONS}}
    model = PrivateSummary(scenario(table()), **{**PUBLIC, **categories, **options})
    with refused(ValueError, "summary.secret_column_summarised", name="sex"):
        model.fit("the data is not even looked at")
    # public facts of the whole table may speak of it
    model = PrivateSummary(scenario(table()), **{**PUBLIC, **categories})
    check_is_fitted(model.fit(table(200)))


@pytest.mark.parametrize(
    "model, said",
    [
        (
            PrivateSummary(statistics=["mean"], **PUBLIC),
            "summary.laws_for_stacked_moments",
        ),
        (PrivateStandardScaler(bounds=(0, 1)), "summary.laws_with_bounds"),
        (PrivateCDF(bounds=(0, 1)), "summary.laws_for_grid_counts"),
        (PrivateQuantile(bounds=(0, 1)), "quantile.laws_for_scores"),
    ],
    ids=["summary", "scaler", "cdf", "quantile"],
)
def test_who_states_laws_of_one_vector_does_not_know_those_of_another(model, said):
    """Though these would be of as many numbers."""
    laws = LawsScenario([(PointMass([0.0, 0.0]), PointMass([1e-6, 0.0]))])
    model = clone(model).set_params(scenario=laws, accountant=GeneralWasserstein())
    with refused(ScenarioError, said):
        model.fit(table(20)[["age"]])
    assert not hasattr(model, "certificate_")


def test_a_secret_column_whose_name_is_a_number():
    public, data = (made.set_axis(range(4), axis=1) for made in (table(), table(200)))
    secret = AttributeScenario(2, level="record", prior=public, prior_as="law")
    options = {"bounds": {1: (20, 80)}, "categories": {0: REGIONS, 2: ["F", "M"]}}
    model = PrivateSummary(secret, statistics=["rate"], columns=[3], **options)
    assert list(model.fit(data).result_.columns) == [3]
    with refused(ValueError, "summary.secret_column_summarised", name=2):
        model.set_params(by=2).fit(data)


def test_a_prior_without_the_columns_or_with_other_levels():
    private = table(200)
    model = PrivateSummary(
        scenario(table().drop(columns="age")), GeneralWasserstein(), **PUBLIC
    )
    with refused(ScenarioError, "prior.public_rows_lack_columns"):
        model.fit(private)
    model.set_params(scenario=scenario(table().replace({"region": {"n": "north"}})))
    with refused(ValueError, "summary.prior_values_not_listed"):
        model.fit(private)


def test_an_empirical_prior():
    private = table(200)
    secret = AttributeScenario("sex", level="record", prior="empirical")
    model = PrivateSummary(
        secret, GeneralWasserstein(), statistics=["mean", "rate"], **PUBLIC
    )
    for X, given in ((private, None), (private.drop(columns="sex"), private["sex"])):
        with (
            pytest.warns(EmpiricalPriorWarning),
            pytest.warns(EstimatedGuaranteeWarning),
        ):
            model.fit(X, secret=given)
        assert model.certificate_.notion == Notion.ESTIMATED


def test_worlds_drawn_by_a_simulator():
    def draw(rate, rng):
        data = table(50, seed=int(rng.integers(1000))).drop(columns="sex")
        return data.assign(smoker=rng.random(50) < rate)

    def draw_pair(a, b, rng):
        first = draw(a, rng)
        flip = rng.random(50) < (b - a) / (1 - a)
        return first, first.assign(smoker=first["smoker"] | flip)

    worlds = SimulatorScenario(draw, draw_pair, secrets=[0.2, 0.4], n_draws=20)
    model = PrivateSummary(
        worlds,
        GeneralWasserstein(),
        statistics={"smoker": ["rate"]},
        by="region",
        categories=PUBLIC["categories"],
    )
    with pytest.warns(EstimatedGuaranteeWarning):
        model.fit(draw(0.3, np.random.default_rng(0)))
    # each flip moves a sign by two and leaves the sizes of groups; half flip at most
    assert 0 < model.certificate_.sensitivity < 2 * 25 / 50


def in_decades(X):
    return X / 10


def test_public_preprocessing_comes_first():
    prior, private = table(seed=1), table(200)
    encode = ColumnTransformer(
        [
            ("age", FunctionTransformer(in_decades), ["age"]),
            ("region", OrdinalEncoder(categories=[REGIONS]), ["region"]),
        ]
    )
    accountant = GeneralWasserstein(1e24, 2.0)
    decades = PublicPreprocessing(
        encode,
        PrivateSummary(
            scenario(prior),
            accountant,
            statistics=["mean"],
            by=1,
            bounds={0: (2, 8)},
            categories={1: [0, 1, 2]},
        ),
    ).fit(private)
    years = PrivateSummary(
        scenario(prior),
        accountant,
        statistics=["mean"],
        by="region",
        columns=["age"],
        **PUBLIC,
    ).fit(private)
    assert decades.certificate_.sensitivity == pytest.approx(
        years.certificate_.sensitivity
    )
    np.testing.assert_allclose(
        10 * decades.estimator_.result_[0, "mean"].to_numpy(),
        years.result_["age", "mean"].to_numpy(),
        rtol=1e-6,
    )
