"""Coefficients and importances under simulated worlds: units, covariances, refusals."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from skpuffer.accountants import GeneralWasserstein, GroupPrivacy, ShapedWasserstein
from skpuffer.compose import OutputPerturbation
from skpuffer.distributions import Discrete, PointMass
from skpuffer.exceptions import ScenarioError
from skpuffer.noise import CorrelatedGaussianNoise
from skpuffer.releases import Sensitivity
from skpuffer.scenarios import GroupScenario, LawsScenario, SimulatorScenario
from tests.refused import refused

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::skpuffer.exceptions.{kind}")
    for kind in ("EstimatedGuaranteeWarning", "NoGainWarning", "SeededNoiseWarning")
]
BOTH = ["coef_", "intercept_"]
WASSERSTEIN = GeneralWasserstein(1.0, 4.0, noise="gaussian")
FEATURES = [
    "age", "trestbps", "chol", "thalach", "oldpeak", "cp", "exang", "slope", "fbs",
]  # fmt: skip
QUERIES = {
    "logistic": (LogisticRegression(C=0.1), BOTH, 10),
    "svm": (LinearSVC(C=0.1), BOTH, 10),
    "forest": (RandomForestClassifier(5, max_depth=3), "feature_importances_", 9),
}
models = pytest.mark.parametrize("kind", list(QUERIES))


@pytest.fixture(scope="module")
def heart(data_dir):
    table = pd.read_csv(data_dir / "heart_cleveland.csv", na_values="?").dropna()
    X = table[FEATURES]
    # public scales, as a code book would have them
    X = (X - [54, 132, 247, 150, 1, 3, 0, 2, 0]) / [9, 18, 52, 23, 1, 1, 1, 1, 1]
    return X.assign(sex=table["sex"], sick=(table["num"] > 0).astype(int))


@pytest.fixture(scope="module")
def adult(data_dir):
    table = pd.read_csv(data_dir / "adult_train.csv.gz", skipinitialspace=True)
    rng = np.random.default_rng(0)
    table = table.iloc[rng.permutation(len(table))[:3000]]
    X = pd.DataFrame(
        {
            "age": table["age"] / 20 - 2,
            "education": table["education-num"] / 3 - 3,
            "hours": table["hours-per-week"] / 12 - 3,
            "gain": (table["capital-gain"] > 0) * 1.0,
            "loss": (table["capital-loss"] > 0) * 1.0,
            "private": (table["workclass"] == "Private") * 1.0,
            "married": table["marital-status"].str.startswith("Married") * 1.0,
            "alone": (table["relationship"] == "Not-in-family") * 1.0,
            "manager": (table["occupation"] == "Exec-managerial") * 1.0,
        }
    )
    return X.assign(
        sex=table["sex"].to_numpy(), rich=table["income"].str.contains(">50K") * 1
    )


def private(table, value, target, n=150):
    """Rows of one group that are not those of the prior, which is public."""
    rows = table[table["sex"] == value].sample(n, random_state=0, replace=True)
    X = rows.drop(columns=["sex", target])
    noise = np.random.default_rng(1).normal(0, 0.05, X.shape)
    return X + noise, rows[target].rename(target)


def worlds(table, target, n=150, **options):
    """Simulator of bootstrap tables of each sex."""
    groups = dict(list(table.groupby("sex")))

    def draw(secret, rng):
        rows = groups[secret].iloc[rng.integers(len(groups[secret]), size=n)]
        return rows.drop(columns=["sex", target]), rows[target].to_numpy()

    if options.pop("coupled", False):
        options["draw_pair"] = lambda a, b, rng: (draw(a, rng), draw(b, rng))
    return SimulatorScenario(draw, secrets=list(groups), n_draws=6, **options)


@models
@pytest.mark.parametrize("coupled", [False, True], ids=["laws", "coupled"])
def test_simulated_worlds(heart, kind, coupled, capsys, recwarn):
    estimator, query, dim = QUERIES[kind]
    X, y = private(heart, 1.0, "sick")
    units = np.linspace(0.5, 1.5, dim)
    model = OutputPerturbation(
        estimator,
        query,
        worlds(heart, "sick", coupled=coupled),
        WASSERSTEIN,
        units=units,
        random_state=0,
    )
    first, again = (clone(model).fit(X, y) for _ in range(2))
    for name in [query] if isinstance(query, str) else query:
        noisy, repeated = (
            one.value_ if isinstance(query, str) else one.value_[name]
            for one in (first, again)
        )
        assert_array_equal(noisy, repeated)
    ratios = first.noise_.std(dim) / units
    assert_allclose(ratios, ratios[0])
    # in silence
    assert capsys.readouterr() == ("", "")
    assert not [w for w in recwarn if "sklearn" in str(w.category)]


@models
@pytest.mark.parametrize("n_worlds", [None, 6])
def test_groups(heart, kind, n_worlds):
    estimator, query, dim = QUERIES[kind]
    X, y = private(heart, 1.0, "sick")
    scenario = GroupScenario(
        "sex", prior=heart, prior_as="law", n_worlds=n_worlds, target="sick"
    )
    model = OutputPerturbation(estimator, query, scenario, WASSERSTEIN).fit(X, y)
    assert model.certificate_.notion.certified
    assert np.size(model.noise_.std(dim)) == dim


@models
def test_laws_of_ones_own(heart, kind):
    estimator, query, dim = QUERIES[kind]
    X, y = private(heart, 1.0, "sick")
    scenario = LawsScenario([(PointMass(np.zeros(dim)), Discrete(np.eye(dim) / dim))])
    model = OutputPerturbation(
        estimator, query, scenario, WASSERSTEIN, units=np.full(dim, 0.1)
    ).fit(X, y)
    assert_allclose(model.noise_.std(dim), np.sqrt(2) / dim)
    assert model.certificate_.sensitivity == pytest.approx(10 / dim)
    with refused(ValueError, "parameter.units_not_scenario_dim", n_units=2):
        clone(model).set_params(units=[1.0, 1.0]).fit(X, y)


@models
@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_noise_in_the_shape_of_the_moves(adult, kind):
    estimator, query, dim = QUERIES[kind]
    X, y = private(adult, "Male", "rich", n=400)
    scenario = GroupScenario(
        "sex", prior=adult, prior_as="law", n_worlds=6, target="rich"
    )
    total = {}
    for accountant in (WASSERSTEIN, ShapedWasserstein(1.0, 4.0)):
        model = OutputPerturbation(
            estimator, query, scenario, accountant, units=np.full(dim, 0.5)
        ).fit(X, y)
        total[type(accountant)] = np.sum(model.noise_.variance(dim))
        if kind != "forest":
            # back in the arrays it was read from, and set on a fresh estimator
            assert model.estimator_.coef_.shape == (1, 9)
            assert_array_equal(model.estimator_.coef_, model.value_["coef_"])
            assert model.estimator_.intercept_.shape == (1,)
            assert set(model.predict(X)) <= {0, 1}
    assert total[ShapedWasserstein] < total[GeneralWasserstein]


def test_noise_of_a_covariance_goes_into_nested_arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = rng.integers(0, 3, 90)
    dim = 9
    root = rng.normal(size=(dim, dim))
    noise = CorrelatedGaussianNoise(covariance=root @ root.T + np.eye(dim))
    model = OutputPerturbation(
        LogisticRegression(),
        BOTH,
        None,
        GroupPrivacy(1.0, 4.0, noise=noise),
        sensitivity=1e-3,
        units=np.arange(1.0, dim + 1),
    ).fit(X, y)
    assert {name: part.shape for name, part in model.value_.items()} == {
        "coef_": (3, 2),
        "intercept_": (3,),
    }
    found = model.noise_.covariance_matrix(dim)
    units = np.arange(1.0, dim + 1)
    shape = found / np.outer(units, units)
    assert_allclose(
        shape / shape[0, 0], noise.covariance / noise.covariance_matrix(dim)[0, 0]
    )
    for name, part in model.value_.items():
        assert_array_equal(getattr(model.estimator_, name), part)
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize("name", ["logistic", "forest"])
def test_worlds_of_one_class_are_refused(heart, name):
    estimator, query, _ = QUERIES[name]
    X, y = private(heart, 1.0, "sick")

    def draw(secret, rng):
        return X, np.zeros(len(X), dtype=int)

    scenario = SimulatorScenario(draw, secrets=["a", "b"], n_draws=2)
    model = OutputPerturbation(estimator, query, scenario, WASSERSTEIN)
    with refused(ValueError, "query.table_has_one_class", n_seen=1):
        model.fit(X, y)
    healthy = heart[(heart["sex"] == 1) | (heart["sick"] == 0)]
    scenario = GroupScenario("sex", prior=healthy, prior_as="law", target="sick")
    model = OutputPerturbation(estimator, query, scenario, WASSERSTEIN)
    with refused(ScenarioError, "simulation.release_not_computable"):
        model.fit(X, y)
    assert not hasattr(model, "certificate_")


# -- units -----------------------------------------------------------------------------


def test_a_sensitivity_is_in_the_units():
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = OutputPerturbation(
        Ridge(),
        BOTH,
        None,
        GroupPrivacy(1.0, alpha=float("inf"), noise="laplace"),
        sensitivity=Sensitivity(add_remove={2: 0.1}),
        units=[1.0, 2.0, 10.0],
    ).fit(X, X[:, 0])
    # of three numbers, whose count the units say
    expected = 0.1 * np.sqrt(3) * np.array([1.0, 2.0, 10.0])
    assert_allclose(model.noise_.scale, expected)


@pytest.mark.parametrize(
    "options, code, parameters",
    [
        ({"units": [1.0, 1.0]}, "query.length_not_announced", {"size": 3, "dim": 2}),
        ({"units": [1.0, 0.0, 1.0]}, "parameter.not_positive", {"name": "units"}),
        ({"units": [[1.0] * 3]}, "parameter.units_not_positive", {}),
        (
            {"units": [1.0] * 3, "n_outputs": 4},
            "parameter.units_not_n_outputs",
            {"n_outputs": 4},
        ),
    ],
)
def test_units_out_of_range(options, code, parameters):
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = OutputPerturbation(Ridge(), BOTH, sensitivity=0.1, **options)
    with refused(ValueError, code, **parameters):
        model.fit(X, X[:, 0])
    assert not hasattr(model, "certificate_")
