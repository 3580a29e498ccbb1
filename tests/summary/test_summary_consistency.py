"""Counts that are not negative and agree with their totals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from skpuffer.accountants import PrivacyLoss
from skpuffer.summary import PrivateSummary
from skpuffer.summary._count_tree import Parts, nearest_counts

SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed, n_groups=3):
    """True counts, and noisy ones."""
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, 5, (n_groups, 4)) * rng.integers(0, 2, (n_groups, 1))
    levels = rng.binomial(bins[:, :3], 0.7)
    sizes = bins.sum(axis=1)
    true = [sizes.astype(float), bins.astype(float), levels.astype(float)]
    return true, [each + rng.normal(0, 3, each.shape) for each in true], rng


@settings(deadline=None)
@given(SEEDS, st.booleans(), st.booleans())
def test_they_could_be_counts_and_are_no_further_from_the_true_ones(
    seed, complete, sized
):
    true, noisy, rng = drawn(seed)
    total = true[0].sum() + (0 if complete else rng.integers(0, 9))
    parts = [Parts(noisy[1], True), Parts(noisy[2], False)]
    sizes, found = nearest_counts(
        noisy[0] if sized else None, parts, float(total), complete
    )
    for each in (sizes, *found):
        assert np.all(each >= 0)
    np.testing.assert_allclose(found[0].sum(axis=1), sizes, atol=1e-8 * (1 + total))
    assert np.all(found[1].sum(axis=1) <= sizes + 1e-8 * (1 + total))
    assert sizes.sum() <= total * (1 + 1e-9)
    if complete:
        assert sizes.sum() == pytest.approx(total)
    first = 0 if sized else 1

    def error(counts):
        return sum(
            np.sum((a - b) ** 2)
            for a, b in zip(counts[first:], true[first:], strict=True)
        )

    assert error([sizes, *found]) <= error(noisy) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_they_are_the_nearest_of_a_general_solver(seed):
    _, (s, b, c), _ = drawn(seed)
    total, complete = 11.0, bool(seed % 2)
    sizes, (bins, levels) = nearest_counts(
        s, [Parts(b, True), Parts(c, False)], total, complete
    )

    def pieces(z):
        ends = np.cumsum([s.size, b.size])
        return [p.reshape(len(s), -1) for p in np.split(z, ends)]

    def cost(z):
        return sum(
            np.sum((p - q.reshape(p.shape)) ** 2)
            for p, q in zip(pieces(z), (s, b, c), strict=True)
        )

    solved = minimize(
        cost,
        np.ones(s.size + b.size + c.size),
        bounds=[(0, None)] * (s.size + b.size + c.size),
        constraints=[
            {"type": "eq", "fun": lambda z: pieces(z)[0][:, 0] - pieces(z)[1].sum(1)},
            {"type": "ineq", "fun": lambda z: pieces(z)[0][:, 0] - pieces(z)[2].sum(1)},
            {
                "type": "eq" if complete else "ineq",
                "fun": lambda z: total - pieces(z)[0].sum(),
            },
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    found = np.concatenate([sizes, bins.ravel(), levels.ravel()])
    assert cost(found) <= solved.fun + 1e-6
    np.testing.assert_allclose(found, solved.x, atol=1e-4)


def test_counts_that_agree_already_stay_as_they_are():
    bins = np.array([[3.0, 2.0], [0.0, 5.0]])
    sizes, (found,) = nearest_counts(bins.sum(axis=1), [Parts(bins, True)], 10.0, True)
    np.testing.assert_allclose(sizes, [5, 5], atol=1e-9)
    np.testing.assert_allclose(found, bins, atol=1e-9)


# -- in a summary ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, 300),
            "town": rng.choice(["a", "b"], 300, p=[0.9, 0.1]),
            "job": rng.choice(["x", "y", "z"], 300),
        }
    )


LISTS = {"town": ["a", "b", "c", None], "job": ["x", "y", None]}


@pytest.mark.parametrize("by", [None, "town", ["town", "job"]])
def test_tables_and_groups_agree_with_their_totals(table, by):
    model = PrivateSummary(
        statistics={"age": ["count", "histogram"]},
        by=by,
        bounds={"age": (18, 80)},
        categories=LISTS,
        nonnegative=True,
    )
    for _ in range(3):
        result = model.fit(table).result_
        assert np.all(result.to_numpy() >= 0)
        if by is None:
            assert result.loc["count", "age"] == len(table)
            assert result.iloc[1:].to_numpy().sum() == pytest.approx(len(table))
            continue
        counts = result["age", "count"]
        bins = result["age"].drop(columns="count").sum(axis=1)
        np.testing.assert_allclose(bins, counts, atol=1e-6)
        assert counts.sum() == pytest.approx(len(table))


def test_rates_of_levels_are_shares(table):
    for levels in (["x", "w", None], ["x", "y", "w"]):
        model = PrivateSummary(
            statistics={"job": ["rate"]}, categories={"job": levels}, nonnegative=True
        )
        found = model.fit(table).result_["job"].filter(like="rate")
        rates = found.to_numpy()
        assert np.all(rates >= 0)
        assert rates.sum() == pytest.approx(1) if None in levels else rates.sum() <= 1


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SeededNoiseWarning")
def test_their_error_is_less_for_sparse_tables(table):
    exact = pd.crosstab(table["town"], table["job"]).reindex(
        index=["a", "b", "c"], columns=["x", "y"], fill_value=0
    )
    model = PrivateSummary(
        accountant=PrivacyLoss(noise="gaussian"),
        statistics="count",
        by=["town", "job"],
        categories={"town": ["a", "b", "c"], "job": ["x", "y"]},
        columns=["age"],
    )

    def error(**parameters):
        found = model.set_params(**parameters).fit(table).to_crosstab().to_numpy()
        return np.square(found - exact.to_numpy()).mean()

    # the same noise with and without
    seeds = range(100)
    plain = [error(nonnegative=False, random_state=seed) for seed in seeds]
    clipped = [error(nonnegative=True, random_state=seed) for seed in seeds]
    assert np.mean(clipped) < 0.95 * np.mean(plain)


def test_what_is_no_flag_is_refused(table):
    with pytest.raises(ValueError, match="'nonnegative'"):
        PrivateSummary(nonnegative="yes", columns=["age"], bounds=(0, 99)).fit(table)
