"""Published tables and examples, from printed counts and from the real files."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.spatial import KDTree

from skpuffer.datasets import load_adult, load_heart, load_student
from skpuffer.transport import bottleneck_distance, wasserstein_distance


def largest_over_pairs(laws, p):
    """Largest distance over all pairs of laws given as (values, counts)."""
    return max(
        wasserstein_distance(u[0], v[0], u[1], v[1], p)
        for u, v in itertools.combinations(laws, 2)
    )


def test_student_grades(oracles):
    student = oracles["student"]
    grades = np.arange(21) + student["first_grade"]
    laws = [(grades, student["no"]), (grades, student["yes"])]
    assert largest_over_pairs(laws, math.inf) == student["inf"]
    for order in (1, 2):
        expected = student[str(order)]
        assert largest_over_pairs(laws, order) == pytest.approx(expected, rel=1e-9)


def test_heart_ages(oracles):
    heart = oracles["heart"]
    counts = np.array(heart["counts"])
    assert counts.sum(axis=1).tolist() == [164, 55, 36, 35, 13]
    ages = np.arange(counts.shape[1]) + heart["first_age"]
    laws = [(ages, part) for part in counts]
    for pair, (largest, root_mean_square) in heart["pairs"].items():
        chosen = [laws[int(label)] for label in pair]
        assert largest_over_pairs(chosen, math.inf) == largest
        assert largest_over_pairs(chosen, 2) == pytest.approx(
            root_mean_square, abs=5e-4
        )
    assert len(heart["pairs"]) == 10
    assert largest_over_pairs(laws, math.inf) == heart["max_inf"]
    assert largest_over_pairs(laws, 2) == pytest.approx(heart["max_2"], abs=5e-5)


def test_adult_income(oracles):
    adult = oracles["adult"]
    laws = [
        ([0, 1], [total - above, above])
        for above, total in adult["above_50k_and_total"].values()
    ]
    assert largest_over_pairs(laws, math.inf) == adult["max_inf"]
    assert largest_over_pairs(laws, 2) == pytest.approx(adult["max_2"], abs=5e-5)


def grouped(table, column, secret):
    parts = table.groupby(secret, observed=True)[column]
    return [(part.to_numpy(), None) for _, part in parts]


def test_student_file(oracles):
    student = oracles["student"]
    for subject, inf, two in (
        ("mathematics", student["inf"], student["2"]),
        ("portuguese", student["portuguese_inf"], student["portuguese_2"]),
    ):
        laws = grouped(load_student(subject).frame, "G3", "paid")
        assert largest_over_pairs(laws, math.inf) == inf
        assert largest_over_pairs(laws, 2) == pytest.approx(two, abs=5e-5)


def test_heart_file(oracles):
    laws = grouped(load_heart().frame, "age", "num")
    assert largest_over_pairs(laws, math.inf) == oracles["heart"]["max_inf"]
    assert largest_over_pairs(laws, 2) == pytest.approx(
        oracles["heart"]["max_2"], abs=5e-5
    )


def test_adult_file(oracles, data_dir):
    table = pd.read_csv(data_dir / "adult_train.csv.gz")
    table["above"] = (table["income"] == ">50K").astype(int)
    laws = grouped(table, "above", "race")
    assert largest_over_pairs(laws, math.inf) == oracles["adult"]["max_inf"]
    assert largest_over_pairs(laws, 2) == pytest.approx(
        oracles["adult"]["max_2"], abs=5e-5
    )


def test_adult_rows_jointly():
    """Three columns at once are no closer than each of them."""
    columns = ["age", "hours-per-week", "education-num"]
    by_race = load_adult().frame.groupby("race", observed=True)
    races = {race: part[columns].to_numpy() for race, part in by_race}
    for first, second in itertools.combinations(races, 2):
        U, V = races[first], races[second]
        marginals = [wasserstein_distance(u, v) for u, v in zip(U.T, V.T, strict=True)]
        distance = bottleneck_distance(U, V)
        assert max(marginals) <= distance
        nearest = max(KDTree(V).query(U)[0].max(), KDTree(U).query(V)[0].max())
        assert nearest <= distance * (1 + 1e-12)
        assert distance <= np.linalg.norm(np.ptp(np.r_[U, V], axis=0))


def visits(transition, start, n, position, state):
    """Weights of the number of visits to state 1, given the state at a position.

    Integers throughout: entries of `transition` over a common denominator.
    """
    weights = np.zeros((2, n + 1), dtype=object)
    for step in range(1, n + 1):
        arrived = np.zeros_like(weights)
        for now in (0, 1):
            if step == position and now != state:
                continue
            if step == 1:
                reached = np.zeros(n + 1, dtype=object)
                reached[0] = start[now]
            else:
                reached = sum(transition[was][now] * weights[was] for was in (0, 1))
            arrived[now, now:] = reached[: n + 1 - now]
        weights = arrived
    return weights.sum(axis=0)


CHAINS = {
    "sticky": ([[9, 1], [2, 8]], [2, 1]),
    "symmetric": ([[7, 3], [3, 7]], [1, 1]),
}


def chain_distances(name, n, p):
    counts = np.arange(n + 1)
    laws = (
        [visits(*CHAINS[name], n, position, state) for state in (0, 1)]
        for position in range(1, n + 1)
    )
    return [wasserstein_distance(counts, counts, *pair, p=p) for pair in laws]


def test_markov_chain_pmfs(oracles):
    for state, expected in enumerate(oracles["markov"]["pmf_n5_i3"]):
        weights = visits(*CHAINS["sticky"], 5, 3, state)
        np.testing.assert_allclose(
            (weights / weights.sum()).astype(float), expected, atol=1e-12
        )


@pytest.mark.parametrize("n", [5, 10, 20])
def test_markov_chain_distances(oracles, n):
    """At n = 20 the counts pass 64 bits."""
    markov = oracles["markov"]
    distances = chain_distances("sticky", n, math.inf)
    assert max(distances) == markov["max_inf"][str(n)]
    if n == 10:
        assert distances == markov["n10_by_position"]
    symmetric = max(chain_distances("symmetric", n, math.inf))
    assert symmetric == markov["symmetric_max_inf"][str(n)]
    if str(n) in markov["max_2"]:
        expected = markov["max_2"][str(n)]
        assert max(chain_distances("sticky", n, 2)) == pytest.approx(expected, abs=1e-6)


def test_markov_chain_from_floats_is_never_closer():
    """Probabilities with round-off: the distance may come out longer, not shorter."""
    exact = chain_distances("sticky", 10, math.inf)
    counts = np.arange(11)
    for position, expected in enumerate(exact, start=1):
        pair = [visits(*CHAINS["sticky"], 10, position, state) for state in (0, 1)]
        pair = [(weights / weights.sum()).astype(float) for weights in pair]
        assert wasserstein_distance(counts, counts, *pair) >= expected
