"""Any function of the table: units, scenarios, shapes and refusals."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skpuffer.accountants import (
    DistributionAwareWasserstein,
    GeneralWasserstein,
    GroupPrivacy,
    PrivacyLoss,
    ShapedWasserstein,
)
from skpuffer.audit import map_attack
from skpuffer.distributions import Discrete, PointMass
from skpuffer.exceptions import (
    EstimatedGuaranteeWarning,
    NoGainWarning,
    SeededNoiseWarning,
    UnsupportedError,
)
from skpuffer.noise import CorrelatedGaussianNoise, LaplaceNoise
from skpuffer.releases import Sensitivity
from skpuffer.scenarios import (
    AttributeScenario,
    GroupScenario,
    LawsScenario,
    RecordScenario,
    SimulatorScenario,
)
from skpuffer.summary import PrivateStatistic
from tests.refused import refused, says

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::skpuffer.exceptions.{kind.__name__}")
    for kind in (EstimatedGuaranteeWarning, NoGainWarning, SeededNoiseWarning)
]
WASSERSTEIN = GeneralWasserstein(1.0, 4.0)
#: So little noise that the exact numbers are seen.
CHEAP = GeneralWasserstein(1e12, 4.0)


def frame(n=60, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"age": rng.normal(40 + shift, 10, n), "amount": rng.exponential(1.0, n) - 1}
    )


def numbers(table):
    age = table["age"]
    return [age.mean(), age.std(ddof=0), (table["amount"] > 0).mean()]


LAWS = LawsScenario([(PointMass([39.0, 13.0, 0.1]), PointMass([37.0, 14.0, 0.05]))])
UNITS = [36.5, 36.5, 0.5]


def simulated(shift=1.0, **options):
    return SimulatorScenario(
        lambda secret, rng: frame(seed=rng.integers(2**31), shift=secret),
        secrets=[0.0, shift],
        n_draws=20,
        **options,
    )


def test_noise_is_in_proportion_to_the_units():
    model = PrivateStatistic(numbers, LAWS, WASSERSTEIN, units=UNITS).fit(frame())
    move = np.linalg.norm(np.array([2.0, -1.0, 0.05]) / UNITS)
    assert_allclose(model.certificate_.sensitivity, move)
    assert_allclose(model.noise_.std(3), np.sqrt(2) * move * np.array(UNITS))
    bare = PrivateStatistic(numbers, LAWS, WASSERSTEIN).fit(frame())
    assert_allclose(bare.noise_.std(3), np.sqrt(2 * (4 + 1 + 0.05**2)))


def test_the_value_is_that_of_the_function():
    table = frame()
    model = PrivateStatistic(numbers, LAWS, CHEAP, units=UNITS).fit(table)
    assert_allclose(model.value_, numbers(table), atol=1e-4)
    # by default means and deviations, whatever the columns
    laws = LawsScenario([(PointMass(np.zeros(4)), PointMass(np.ones(4)))])
    moments = PrivateStatistic(None, laws, CHEAP).fit(table)
    assert_allclose(moments.value_, [table.mean(), table.std(ddof=0)], atol=1e-4)
    plain = PrivateStatistic(None, laws, CHEAP).fit(table.to_numpy())
    assert plain.value_.shape == (2, 2)
    laws = LawsScenario([(PointMass(0.0), PointMass(1.0))])
    alone = PrivateStatistic(lambda X: X[:, 0].mean(), laws, CHEAP)
    assert isinstance(alone.fit(table.to_numpy()).value_, float)


@pytest.mark.parametrize(
    "accountant",
    [WASSERSTEIN, DistributionAwareWasserstein(1.0, 4.0, noise="gaussian")],
    ids=["general", "aware"],
)
def test_simulated_tables_set_the_noise(accountant):
    model = PrivateStatistic(
        numbers, simulated(), accountant, units=UNITS, random_state=0
    )
    first, again = (clone(model).fit(frame()) for _ in range(2))
    assert_array_equal(first.value_, again.value_)
    assert first.noise_ == again.noise_
    assert not first.certificate_.notion.certified
    ratios = first.noise_.std(3) / np.array(UNITS)
    assert_allclose(ratios, ratios[0])


def test_records_with_a_stated_sensitivity():
    table = frame()
    bounded = PrivateStatistic(
        lambda X: np.clip(X["age"], 0, 100).mean(),
        RecordScenario(relation="replace"),
        PrivacyLoss(1.0, 1e-5),
        sensitivity=100 / 60,
    ).fit(table)
    assert bounded.certificate_.sensitivity == pytest.approx(100 / 60)
    assert says(bounded.certificate_.assumptions, "assume.stated_sensitivity_holds")
    laplace = PrivateStatistic(
        numbers,
        None,
        GroupPrivacy(1.0, alpha=float("inf"), noise="laplace"),
        sensitivity=Sensitivity(add_remove={1: 0.1}),
        units=UNITS,
    ).fit(table)
    assert isinstance(laplace.noise_, LaplaceNoise)
    assert_allclose(laplace.noise_.scale, 0.1 * np.array(UNITS))


def test_one_attribute_by_tables_of_its_own():
    public = frame(200).assign(sex=np.repeat(["f", "m"], 100))
    scenario = AttributeScenario("sex", level="dataset", prior=public)
    model = PrivateStatistic(numbers, scenario, WASSERSTEIN, units=UNITS)
    private = frame(seed=1).assign(sex="f")
    fitted = model.fit(private)
    # the secret is dropped before the function reads the table
    assert list(fitted.feature_names_in_) == ["age", "amount"]


def test_a_covariance_is_one_in_the_units():
    covariance = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    shaped = GeneralWasserstein(
        1.0, 4.0, noise=CorrelatedGaussianNoise(covariance=covariance)
    )
    model = PrivateStatistic(numbers, LAWS, shaped, units=UNITS).fit(frame())
    found = model.noise_.covariance_matrix(3) / np.outer(UNITS, UNITS)
    assert_allclose(found / found[2, 2], covariance, rtol=1e-12)
    move = np.array([2.0, -1.0, 0.05])
    # a ball of moves is covered, and with it this one
    whitened = model.noise_.whitened(move[None])[0]
    assert 2 * (whitened @ whitened) <= 1 + 1e-9
    assert model.certificate_.epsilon == pytest.approx(1.0)
    with refused(ValueError, "gaussian.covariance_units_mismatch"):
        shaped.noise.in_units([1.0, 2.0])


def test_noise_in_units_of_other_families():
    assert_allclose(LaplaceNoise(2.0).in_units([1.0, 3.0]).scale, [2.0, 6.0])
    noise = CorrelatedGaussianNoise(covariance=np.eye(2)).in_units(3.0)
    assert_allclose(noise.covariance, 9 * np.eye(2))


def test_guesses_find_too_little_noise():
    outputs = np.array([law.points[0] for law in LAWS.laws[0]])
    promised = PrivateStatistic(numbers, LAWS, WASSERSTEIN, units=UNITS).fit(frame())
    attack = map_attack(outputs, promised.noise_)
    assert not attack.exceeds(promised.certificate_)
    less = promised.noise_.with_scale(0.7 * np.array(promised.noise_.scale))
    assert map_attack(outputs, less).exceeds(promised.certificate_)


def test_it_can_be_pickled_and_keeps_no_rows():
    laws = LawsScenario([(PointMass(np.zeros(4)), PointMass(np.ones(4)))])
    model = PrivateStatistic(None, laws, WASSERSTEIN).fit(frame())
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.value_, model.value_)
    public = set(vars(model)) - set(model.get_params(deep=False))
    assert {name for name in public if not name.startswith("_")} == {
        "accountant_",
        "certificate_",
        "feature_names_in_",
        "n_features_in_",
        "noise_",
        "value_",
        "value_std_",
    }


# -- refusals --------------------------------------------------------------------------


def test_nothing_is_known_of_a_function_under_records():
    with refused(UnsupportedError, "parameter.sensitivity_missing"):
        PrivateStatistic(numbers).fit(frame())


@pytest.mark.parametrize(
    "options, match",
    [
        ({"units": [1.0, 0.0, 1.0]}, "units"),
        ({"units": [1.0, -1.0, 1.0]}, "units"),
        ({"units": [1.0, np.nan, 1.0]}, "units"),
        ({"units": [[1.0, 1.0, 1.0]]}, "units"),
        ({"units": []}, "units"),
        ({"units": ["a", "b", "c"]}, "units"),
        ({"units": [1.0, 1.0]}, "'units' has 2"),
        ({"units": [1.0] * 3, "n_outputs": 2}, "'n_outputs' is 2"),
        ({"n_outputs": 0}, "n_outputs"),
        ({"sensitivity": -1.0}, "sensitivity"),
        ({"statistic": "mean"}, "statistic"),
    ],
)
def test_parameters_out_of_range(options, match):
    options = {"statistic": numbers, "scenario": LAWS} | options
    model = PrivateStatistic(accountant=WASSERSTEIN, **options)
    with pytest.raises((ValueError, TypeError), match=match):
        model.fit(frame())
    assert not hasattr(model, "certificate_")


@pytest.mark.parametrize(
    "statistic, code, parameters",
    [
        (lambda table: "forty", "query.part_not_array", {}),
        (lambda table: [np.nan, 0.0, 1.0], "query.value_not_finite", {}),
        (lambda table: [1.0], "query.length_not_announced", {"size": 1, "dim": 3}),
        (
            lambda table: 1 / 0,
            "table.error_text_withheld",
            {"kind": "ZeroDivisionError"},
        ),
        (
            lambda table: table["secret of 123"],
            "table.error_text_withheld",
            {"kind": "KeyError"},
        ),
    ],
)
def test_functions_that_give_no_numbers(statistic, code, parameters):
    model = PrivateStatistic(statistic, LAWS, WASSERSTEIN)
    with refused(ValueError, code, **parameters) as caught:
        model.fit(frame())
    assert "123" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_shape_that_depends_on_the_records():
    def those_above(table):
        return table["age"][table["age"] > 40].to_numpy()

    with refused(ValueError, "query.shape_depends_on_records"):
        PrivateStatistic(those_above, simulated(), WASSERSTEIN).fit(frame())


def test_a_function_that_speaks_is_not_heard(capsys):
    def loud(table):
        print(table["age"].max())
        warnings.warn(str(table["age"].max()), stacklevel=1)
        return numbers(table)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PrivateStatistic(loud, LAWS, WASSERSTEIN).fit(frame())
    assert capsys.readouterr() == ("", "")
    assert not [w for w in caught if w.category is UserWarning]


# -- the summaries of the papers, on real tables ---------------------------------------


def heart_summary(table):
    numbers = [
        moment
        for name in ("age", "trestbps", "chol")
        for moment in (table[name].mean(), table[name].std(ddof=0))
    ]
    rates = table["chol"] >= 240, table["trestbps"] >= 140, table["num"] > 0
    return np.array([*numbers, *(rate.mean() for rate in rates)])


HEART_UNITS = np.array([24, 24, 53, 53, 219, 219, 0.5, 0.5, 0.5])


@pytest.fixture(scope="module")
def heart(data_dir):
    table = pd.read_csv(data_dir / "heart_cleveland.csv", na_values="?").dropna()
    return table[["sex", "age", "trestbps", "chol", "num"]].reset_index(drop=True)


def other_rows(heart):
    """Rows like those of one sex, none of which is a person of the prior."""
    rows = heart[heart["sex"] == 1].iloc[:150].drop(columns="sex")
    rng = np.random.default_rng(0)
    return rows.apply(lambda column: rng.permutation(column.to_numpy()))


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")  # points
def test_a_summary_of_one_sex(heart):
    scenario = GroupScenario("sex", prior=heart, prior_as="law")
    private = other_rows(heart)
    means = [heart_summary(heart[heart["sex"] == sex]) / HEART_UNITS for sex in (0, 1)]
    longest = np.sum((means[0] - means[1]) ** 2)
    # half of squared moves over budgets, at order four
    assert_allclose(longest, 0.4598449619, rtol=1e-9)
    options = {"scenario": scenario, "units": HEART_UNITS}
    round_noise = PrivateStatistic(
        heart_summary, accountant=GeneralWasserstein(1.0, 4.0), **options
    ).fit(private)
    in_units = round_noise.noise_.variance(9) / HEART_UNITS**2
    # larger by what covers the rounding to a grid
    assert_allclose(in_units, 2 * longest, rtol=1e-7)
    assert np.all(in_units > 2 * longest)
    shaped = PrivateStatistic(
        heart_summary, accountant=ShapedWasserstein(1.0, 4.0), **options
    ).fit(private)
    added = shaped.noise_.variance(9) / HEART_UNITS**2
    assert longest * 2 <= added.sum() < 0.25 * in_units.sum()
    # both are guessed as well as is allowed, and no better
    secrets = np.array(means) * HEART_UNITS
    for model in (round_noise, shaped):
        attack = map_attack(secrets, model.noise_)
        assert not attack.exceeds(model.certificate_)
        assert attack.accuracy <= 0.6381631951 + 1e-9


def test_worlds_of_one_sex(heart):
    scenario = GroupScenario("sex", prior=heart, prior_as="law", n_worlds=20)
    private = other_rows(heart)
    model = PrivateStatistic(
        heart_summary, scenario, GeneralWasserstein(1.0, 4.0), units=HEART_UNITS
    ).fit(private)
    assert model.certificate_.notion.certified
    # as laws of one's own, which are those of the same worlds
    rng = np.random.default_rng(0)
    worlds = [
        Discrete(
            [
                heart_summary(rows.iloc[rng.integers(len(rows), size=150)])
                for _ in range(20)
            ]
        )
        for _, rows in heart.groupby("sex")
    ]
    laws = PrivateStatistic(
        heart_summary,
        LawsScenario([tuple(worlds)]),
        GeneralWasserstein(1.0, 4.0),
        units=HEART_UNITS,
    ).fit(private)
    ratio = laws.noise_.std(9) / model.noise_.std(9)
    assert np.all((ratio > 0.5) & (ratio < 2))
