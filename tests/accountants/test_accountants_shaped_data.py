"""Shaped noise on real tables: summaries of groups, halves held out, single records."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skpuffer.accountants import GeneralWasserstein, ShapedWasserstein
from skpuffer.accountants._shaped._programme import least_shape
from skpuffer.distributions import Discrete, PointMass
from skpuffer.releases import QueryRelease
from skpuffer.scenarios import LawsScenario

FOLDER = os.environ.get("SKPUFFER_TEST_DATA")
pytestmark = [
    pytest.mark.skipif(
        FOLDER is None, reason="SKPUFFER_TEST_DATA names no folder of published files"
    ),
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning"),
]
BARE = {"floor": 0.0, "allow_degenerate": True}
ADULT = (36.5, 36.5, 7.5, 7.5, 49, 49, 0.5, 0.5, 0.5)
HEART = (24, 24, 53, 53, 219, 219, 0.5, 0.5, 0.5)
STUDENT = (10,) * 6 + (0.5,) * 3


def summary(rows):
    spread = np.column_stack([rows[:, :3].mean(axis=0), rows[:, :3].std(axis=0)])
    return np.concatenate([spread.ravel(), rows[:, 3:].mean(axis=0)])


@pytest.fixture(scope="module")
def tables():
    """Rows that a summary reads, secret of each row, and units, by name."""
    folder = Path(FOLDER)
    adult = pd.read_csv(folder / "adult_train.csv.gz")
    adult = adult[~adult.isin(["?"]).any(axis=1)]
    work = np.column_stack(
        [
            adult["age"],
            adult["education-num"],
            adult["hours-per-week"],
            adult["capital-gain"] > 0,
            adult["capital-loss"] > 0,
            adult["income"] == ">50K",
        ]
    ).astype(float)
    heart = pd.read_csv(folder / "heart_cleveland.csv").replace("?", np.nan)
    heart = heart.dropna().astype(float)
    blood = np.column_stack(
        [
            heart.age,
            heart.trestbps,
            heart.chol,
            heart.chol >= 240,
            heart.trestbps >= 140,
            heart.num > 0,
        ]
    ).astype(float)
    student = pd.read_csv(folder / "student_mat.csv", sep=";")
    marks = student[["G1", "G2", "G3"]].astype(float)
    school = np.column_stack(
        [marks, student.studytime >= 3, student.failures > 0, student.absences > 10]
    ).astype(float)
    fifth = pd.qcut(marks.G3, 5, labels=False).to_numpy()
    return {
        "race": (work, adult.race.to_numpy(), ADULT),
        "sex": (work, adult.sex.to_numpy(), ADULT),
        "heart": (blood, heart.sex.to_numpy(), HEART),
        "student": (school, student.sex.to_numpy(), STUDENT),
        "quintile": (school, fifth, STUDENT),
        "heart rows": heart,
    }


def points(rows, secret):
    return [PointMass(summary(rows[secret == value])) for value in np.unique(secret)]


def all_pairs(laws):
    return LawsScenario(
        [(laws[i], laws[j]) for i in range(len(laws)) for j in range(i)]
    )


def release(dim=9, units=None):
    return QueryRelease(query=lambda X, y: X, n_records=100, dim=dim, units=units)


def variance(found, asked):
    """Total variance in units, of which at alpha 4 and epsilon 1 half is the shape."""
    units = np.broadcast_to(asked.unit_array, (asked.dim,))
    return float(np.sum(found.noise.variance(asked.dim) / units**2)) / 2


def compared(laws, units, **options):
    asked = release(laws[0].dim, units)
    scenario = all_pairs(laws)
    found = ShapedWasserstein(1.0, 4.0, **options).calibrate(asked, scenario)
    wide = GeneralWasserstein(1.0, 4.0).calibrate(asked, scenario)
    return variance(found, asked), variance(wide, asked), found


SUMMARIES = {
    "race": (0.2606926821, 0.3451743101, 0.1471184416),
    "sex": (0.1882087523, 0.1882087523, 1 / 9),
    "heart": (0.4598449619, 0.4598449619, 1 / 9),
    "student": (0.1838105949, 0.1838105949, 1 / 9),
    "quintile": (3.911934637, 4.160785892, 0.1181792608),
}
FLOORED = {
    "race": 0.15875,
    "sex": 0.12088,
    "heart": 0.12088,
    "student": 0.12088,
    "quintile": 0.12845,
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_summaries_in_units(tables, name):
    rows, secret, units = tables[name]
    laws = points(rows, secret)
    longest, trace, ratio = SUMMARIES[name]
    shape, wide, _ = compared(laws, units, **BARE)
    assert wide / 9 == pytest.approx(longest, rel=1e-8)
    assert shape == pytest.approx(trace, rel=1e-7)
    assert shape / wide == pytest.approx(ratio, rel=1e-7)
    floored, *_ = compared(laws, units)
    assert floored / wide == pytest.approx(FLOORED[name], rel=1e-3)


@pytest.mark.parametrize(
    "name, trace, ratio",
    [("race", 53.152584, 0.166068), ("quintile", 321.01225, 0.116452)],
)
def test_summaries_in_raw_units(tables, name, trace, ratio):
    rows, secret, _ = tables[name]
    shape, wide, _ = compared(points(rows, secret), None, **BARE)
    assert shape == pytest.approx(trace, rel=1e-6)
    assert shape / wide == pytest.approx(ratio, rel=1e-5)


@pytest.mark.parametrize(
    "name, in_units, raw",
    [
        ("sex", 0.346702, 0.258770),
        ("heart", 0.409528, 0.303340),
        ("student", 0.380646, 0.538579),
    ],
)
def test_the_best_diagonal(tables, name, in_units, raw):
    rows, secret, units = tables[name]
    first, second = (one.points for one in points(rows, secret))
    for scale, expected in ((np.array(units), in_units), (np.ones(9), raw)):
        move = (first - second) / scale
        least = least_shape(move, diagonal=True)
        assert least.trace == pytest.approx(np.abs(move).sum() ** 2)
        assert least.trace / (9 * np.sum(move**2)) == pytest.approx(expected, rel=1e-5)


# growth of epsilon by floors of .01 and .1 and of round noise; slack over the longest;
# ratio
HALVES = {
    "race": (26.785, 3.938, 0.9913, 0.294, 0.276),
    "sex": (2.794, 1.272, 1.1032, 0.066, 0.140),
    "heart": (497.29, 50.93, 1.3381, 0.751, 0.384),
    "student": (856.77, 87.87, 2.436, 0.999, 0.444),
    "quintile": (33.429, 3.739, 1.089, 0.278, 0.243),
}


@pytest.mark.parametrize("name", HALVES)
def test_halves_held_out(tables, name):
    """A floor is no protection from the other half of the rows; slack is."""
    rows, secret, units = tables[name]
    even = np.arange(len(rows)) % 2 == 0
    shaped_by, truth = (points(rows[half], secret[half]) for half in (even, ~even))
    thin, thick, wide, share, ratio = HALVES[name]
    other, asked = all_pairs(truth), release(9, units)
    for floor, growth in ((0.01, thin), (0.1, thick)):
        _, _, found = compared(shaped_by, units, floor=floor)
        spent = ShapedWasserstein(1.0, 4.0).certify(found.noise, asked, other)
        assert spent.epsilon == pytest.approx(growth, rel=2e-3)
    # round noise leans on the longest move alone
    round_noise = GeneralWasserstein(1.0, 4.0)
    found = round_noise.calibrate(asked, all_pairs(shaped_by))
    spent = round_noise.certify(found.noise, asked, other)
    assert spent.epsilon == pytest.approx(wide, rel=2e-3)
    moves = [
        np.array([(u.points - v.points)[0] / units for u, v in all_pairs(laws).laws])
        for laws in (shaped_by, truth)
    ]
    slack = float(np.linalg.norm(moves[0] - moves[1], axis=1).max())
    longest = float(np.linalg.norm(moves[0], axis=1).max())
    assert slack / longest == pytest.approx(share, abs=6e-4)
    shape, _, found = compared(shaped_by, units, slack=slack)
    assert shape / (9 * (longest + slack) ** 2) == pytest.approx(ratio, abs=6e-4)
    spent = ShapedWasserstein(1.0, 4.0).certify(found.noise, asked, other)
    assert spent.epsilon <= 1 + 1e-6


def test_rows_of_either_sex(tables):
    heart = tables["heart rows"]
    columns = ["age", "trestbps", "chol", "thalach", "oldpeak", "cp"]
    laws = [
        Discrete(heart.loc[heart.sex == value, columns].to_numpy()[:96])
        for value in (0, 1)
    ]
    units = (24, 53, 219, 65, 3.1, 1.5)
    shape, wide, found = compared(laws, units, floor=1e-3)
    assert wide == pytest.approx(9.59322, rel=1e-6)
    assert shape == pytest.approx(4.965, rel=1e-3)
    assert shape / wide == pytest.approx(0.5175, rel=1e-3)
    assert shape < 5.127  # from the plan of W_2 alone, or from the means, it is more
    first, *_ = compared(laws, units, floor=1e-3, rounds=1)
    assert shape <= first <= 5.43 * 1.001


def bootstrapped(tables, name, n_worlds):
    rows, secret, units = tables[name]
    rng = np.random.default_rng(0)
    groups = [rows[secret == value] for value in np.unique(secret)]
    laws = [
        Discrete(
            np.array(
                [
                    summary(each[rng.integers(len(each), size=len(each))])
                    for _ in range(n_worlds)
                ]
            )
        )
        for each in groups
    ]
    return laws, units


@pytest.mark.parametrize(
    "name, n_worlds, ratio",
    [
        ("heart", 100, 0.218),
        ("student", 100, 0.198),
        ("sex", 100, 0.123),
        ("quintile", 60, 0.154),
        ("race", 60, 0.209),
    ],
)
def test_laws_of_bootstrap_tables(tables, name, n_worlds, ratio):
    """Random draws: the ratio of variances is met to about a tenth."""
    shape, wide, _ = compared(*bootstrapped(tables, name, n_worlds), **BARE)
    assert shape / wide == pytest.approx(ratio, rel=0.15)


@pytest.mark.parametrize("name", ["heart", "student"])
def test_laws_of_single_records(tables, name):
    rows, secret, _ = tables[name]
    groups = [rows[secret == value] for value in np.unique(secret)]
    units = {"heart": (24, 53, 219), "student": (10, 10, 10)}[name]
    records = [Discrete(each[:96]) for each in groups]
    shape, wide, _ = compared(records, (*units, 0.5, 0.5, 0.5), **BARE)
    assert 0.4 <= shape / wide <= 0.8
