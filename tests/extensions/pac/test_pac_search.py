"""The least noise for a budget of mutual information."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from skpuffer.information import (
    Atoms,
    Bank,
    GaussianMixtureMarginal,
    LaplaceMarginal,
    LatticeMarginal,
    LogisticMarginal,
    MixtureChannel,
    ProductLaw,
    UniformMarginal,
    search_law,
    search_noise,
    waterfill,
)
from tests.extensions.pac import priors
from tests.extensions.pac.priors import ORACLES, exactly
from tests.refused import refused

# -- numbers known by root finding ----------------------------------------------------


@pytest.mark.parametrize("name", ["signs", "line", "sixteen", "bernoulli", "subsets"])
def test_least_noise_of_one_coordinate(name):
    lines = {"line": priors.line(4), "sixteen": priors.line(16)}
    atoms, oracle = lines.get(name) or getattr(priors, name)(), ORACLES[name]
    for budget, noise in zip(oracle["budgets"], oracle["searched"], strict=True):
        found = search_noise(atoms, budget)
        assert found.power == pytest.approx(noise, rel=2e-6)
        assert found.leakage <= budget
        assert not found.at_floor and found.exact.shape[1] == 0


@pytest.mark.parametrize("name", ["bimodal", "outlier"])
def test_least_noise_of_mixtures_of_normal_laws(name):
    atoms, oracle = getattr(priors, name)(), ORACLES[name]
    for budget, noise in zip(oracle["budgets"], oracle["searched"], strict=True):
        assert exactly(atoms, noise) == pytest.approx(budget, rel=2e-5)


def test_a_hundredth_of_the_outputs_far_away():
    # the search costs little and gives the outlier away, as water-filling did already
    atoms, oracle = priors.spread_outlier(), ORACLES["spread_outlier"]
    for budget, leak, filled in zip(
        oracle["budgets"],
        oracle["searched_leakage"],
        oracle["waterfill_leakage"],
        strict=True,
    ):
        bank = Bank.quadrature(atoms)
        found = search_noise(atoms, budget, random_state=0).law
        noise = waterfill(atoms.covariance, budget)
        for law, value in ((found, leak), (noise, filled)):
            leakage = MixtureChannel(atoms, law).atom_leakage(bank)
            assert leakage.max() == leakage[-1] == pytest.approx(value, abs=0.01)
    limited = search_noise(atoms, 0.05, max_secret_leakage=2.0, random_state=0)
    leakage = MixtureChannel(atoms, limited.law).atom_leakage(bank)
    assert leakage.max() == pytest.approx(2.0, rel=1e-3)
    assert limited.leakage < 0.05


@pytest.mark.parametrize("family", ["eigen", "full"])
def test_rectangle(family):
    atoms, oracle = priors.rectangle(), ORACLES["rectangle"]
    for budget, power, parts in zip(
        oracle["budgets"], oracle["searched"], oracle["parts"], strict=True
    ):
        found = search_noise(atoms, budget, family=family)
        assert found.power == pytest.approx(power, rel=1e-6)
        assert np.diag(found.covariance) == pytest.approx(parts, rel=1e-3)
        # better than scaling, which is better than water-filling
        scaled = search_noise(atoms, budget)
        filled = waterfill(atoms.covariance, budget)
        assert found.power <= scaled.power < np.trace(filled)


def test_rectangle_of_which_a_side_is_given_away():
    atoms = priors.rectangle()
    found = search_noise(atoms, 1.0, family="eigen")
    assert found.power == pytest.approx(ORACLES["rectangle"]["exact_part"], rel=1e-6)
    assert np.abs(found.exact[:, 0]) == pytest.approx([1, 0])
    assert found.exact_entropy == pytest.approx(math.log(2))
    assert exactly(priors.signs(), found.covariance[1, 1]) == pytest.approx(
        1 - math.log(2), rel=1e-5
    )


def test_local_minima():
    for budget, (interior, collapsed) in ORACLES["rectangle"]["local"].items():
        found = search_noise(priors.rectangle(), float(budget), family="full")
        powers = found.powers
        assert powers["waterfill"] == pytest.approx(interior, rel=1e-5)
        assert powers["collapsed leading [0]"] == pytest.approx(collapsed, rel=1e-5)
        assert found.power == pytest.approx(min(interior, collapsed), rel=1e-5)
        alone = search_noise(
            priors.rectangle(), float(budget), family="full", starts=["collapsed"]
        )
        assert alone.power == pytest.approx(collapsed, rel=1e-5)


def test_grid_in_any_direction():
    atoms, oracle = priors.grid(), ORACLES["grid"]
    turn = np.array([[math.sqrt(0.75), -0.5], [0.5, math.sqrt(0.75)]])
    turned = Atoms(atoms.points @ turn.T)
    for budget, power in zip(oracle["budgets"], oracle["searched"], strict=True):
        found = search_noise(atoms, budget, family="eigen")
        assert found.power == pytest.approx(power, rel=1e-5)
    found = search_noise(turned, budget, family="full")
    assert found.power == pytest.approx(power, rel=1e-5)


def test_records_of_a_pool():
    atoms, oracle = priors.subsets(), ORACLES["subsets"]
    found = search_noise(atoms, 0.05, secret="columns")
    assert found.power == pytest.approx(oracle["record_noise"], rel=1e-5)
    assert exactly(atoms, found.covariance) == pytest.approx(
        oracle["record_dataset"], rel=1e-5
    )
    bits, oracle = priors.bits(), ORACLES["bits"]
    for secret, noise in (("columns", "noise"), ("dataset", "dataset_noise")):
        found = search_noise(bits, 0.05, secret=secret)
        assert found.power == pytest.approx(oracle[noise], rel=1e-5)


def test_records_for_who_knows_all_others():
    atoms = priors.bits()
    found = search_noise(atoms, 0.0668714, secret="columns_given_others")
    assert found.power == pytest.approx(ORACLES["bits"]["noise"], rel=1e-5)
    # without noise the others give each record away
    found = search_noise(atoms, 0.7, secret="columns_given_others")
    assert found.power == 0
    assert found.leakage == pytest.approx(math.log(2))


def test_utility_that_water_filling_would_seem_to_win():
    # at this budget a little more of it buys more with water-filling: it wastes more
    atoms, oracle = priors.outlier(), ORACLES["outlier"]
    noise = oracle["searched"][2]
    channel = MixtureChannel(atoms, [[noise]])
    mmse = channel.mmse(Bank.quadrature(atoms))[0, 0]
    assert 2 * noise**2 / mmse == pytest.approx(oracle["utility"], rel=1e-4)
    filled = [np.trace(waterfill(atoms.covariance, b)) for b in (0.1999, 0.2001)]
    assert (filled[0] - filled[1]) / 2e-4 > 50 * oracle["utility"]


def test_stochastic_search_keeps_the_budget():
    atoms = priors.rectangle()
    found = search_noise(atoms, 0.5, family="full", solver="sgd", random_state=0)
    assert found.power == pytest.approx(16.70056, rel=2e-3)
    assert exactly(atoms, found.covariance) == pytest.approx(0.5, rel=1e-6)


# -- penalties that were published, and end on the wrong side -------------------------


def test_quadratic_penalty_breaks_the_budget():
    oracle, atoms, budget = ORACLES["sixteen"], priors.line(16), 0.5
    for weight, noise, value in zip(
        oracle["penalties"],
        oracle["penalised"],
        oracle["penalised_information"],
        strict=True,
    ):
        best = minimize_scalar(
            lambda n, w=weight: n + w * (exactly(atoms, n) - budget) ** 2,
            bounds=(5, 15),
            method="bounded",
            options={"xatol": 1e-6},
        )
        assert best.x == pytest.approx(noise, rel=1e-4)
        assert exactly(atoms, best.x) == pytest.approx(value, rel=1e-5)
        assert value > budget
    assert search_noise(atoms, budget).leakage <= budget


@pytest.mark.every_run
def test_penalty_of_the_wrong_sign_asks_for_no_noise():
    oracle, atoms, budget = ORACLES["sixteen"], priors.line(16), 0.5
    found = [
        n + 1e4 * max(budget - exactly(atoms, n), 0) ** 2 for n in oracle["reversed_at"]
    ]
    assert found == pytest.approx(oracle["reversed"], rel=1e-4)
    assert found[0] == min(found)


# -- noise that is not Gaussian -------------------------------------------------------


@pytest.mark.parametrize(
    "name, marginal, nodes, tolerance",
    [
        ("logistic", LogisticMarginal(), 801, 1e-4),
        ("laplace", LaplaceMarginal(), 4001, 1e-4),
        ("uniform", UniformMarginal(), 20001, 1e-3),
    ],
)
def test_scales_of_other_families(name, marginal, nodes, tolerance):
    atoms, oracle = priors.signs(), ORACLES["families"]
    bank = Bank.quadrature(atoms, nodes)
    for budget, variance in zip(oracle["budgets"], oracle[name], strict=True):
        law, value = search_law(
            atoms, budget, lambda _: ProductLaw(marginal, [1.0]), bank=bank
        )
        assert law.covariance[0, 0] == pytest.approx(variance, rel=tolerance)
        assert budget * 0.998 < value <= budget


def test_gaussian_scale_mixture_beats_gaussian_noise():
    atoms = priors.signs()
    law, _ = search_law(
        atoms,
        0.5,
        lambda p: ProductLaw(
            GaussianMixtureMarginal((0.5, 0.5), (1.0, math.exp(p[0]))), [1.0]
        ),
        [1.0],
        bank=Bank.quadrature(atoms, 201),
    )
    assert law.covariance[0, 0] < 0.475 < search_noise(atoms, 0.5).power


# as the oldest SciPy has it, which clips by itself
@pytest.mark.every_run
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")
def test_lattice_noise():
    atoms = priors.signs()

    def information(probabilities):
        marginal = LatticeMarginal(tuple(probabilities / probabilities.sum()))
        normals, masses = marginal.nodes()
        bank = Bank.from_rule(atoms, normals[:, None], masses)
        channel = MixtureChannel(atoms, ProductLaw(marginal, [2.0]))
        return channel.information(bank, "divergence").value

    best = minimize(
        lambda p: 4 * np.dot(p / p.sum(), np.arange(3) ** 2),
        [0.8, 0.15, 0.05],
        bounds=[(1e-6, 1)] * 3,
        constraints={"type": "ineq", "fun": lambda p: 0.5 - information(p)},
        method="SLSQP",
    )
    assert best.fun == pytest.approx(ORACLES["families"]["lattice"], abs=2e-4)


@pytest.mark.parametrize(
    "marginal",
    [
        LaplaceMarginal(),
        LogisticMarginal(),
        UniformMarginal(),
        GaussianMixtureMarginal((0.3, 0.7), (1.0, 4.0)),
        LatticeMarginal((0.5, 0.3, 0.2)),
    ],
    ids=lambda marginal: type(marginal).__name__,
)
def test_marginals(marginal):
    rng, n = np.random.default_rng(0), 100_000
    noise = marginal.from_normals(rng.standard_normal(n))
    assert np.mean(noise) == pytest.approx(0, abs=4 * math.sqrt(marginal.variance / n))
    assert np.var(noise) == pytest.approx(marginal.variance, rel=0.03)
    assert np.all(np.isfinite(marginal.log_density(noise)))
    if isinstance(marginal, LatticeMarginal):
        masses = np.exp(marginal.log_density(np.arange(-4.0, 5.0)))
        assert masses == pytest.approx([0, 0, 0.1, 0.15, 0.5, 0.15, 0.1, 0, 0])
        assert marginal.log_density(np.array([0.5]))[0] == -math.inf
        return
    # frequencies and density agree
    edges = np.quantile(noise, [0.3, 0.6])
    line = np.linspace(*edges, 2001)
    mass = np.trapezoid(np.exp(marginal.log_density(line)), line)
    assert mass == pytest.approx(0.3, abs=0.01)


# -- what always holds ----------------------------------------------------------------


@settings(max_examples=8)
@given(
    st.lists(st.tuples(*[st.integers(-3, 3)] * 2), min_size=2, max_size=5, unique=True),
    st.floats(0.05, 0.6),
)
def test_search_is_feasible_and_no_dearer_than_water_filling(points, budget):
    atoms = Atoms(np.array(points, dtype=float))
    powers = [search_noise(atoms, budget, family=f) for f in ("scale", "eigen", "full")]
    for found in powers:
        assert found.leakage <= budget
        assert exactly(atoms, found.covariance) <= budget * (1 + 1e-4)
    costs = [found.power for found in powers]
    filled = np.trace(waterfill(atoms.covariance, budget))
    assert costs[0] <= filled * (1 + 1e-6)
    # a family that holds the other finds no worse
    assert costs[1] <= costs[0] * (1 + 1e-5)


def test_gaussian_outputs_have_nothing_to_gain():
    # of these water-filling is the best: a fine grid stands for them
    atoms = priors.normal_mixture([0.0], [1.0], 1.0)
    assert exactly(atoms, waterfill([[1.0]], 0.5)) == pytest.approx(0.5, rel=1e-6)


def test_cost_matrix():
    atoms, cost = priors.four(), np.array([[1.0, 0.5], [0.5, 4.0]])
    plain = search_noise(atoms, 0.3, family="full")
    found = search_noise(atoms, 0.3, family="full", cost=cost)
    assert found.power == pytest.approx(np.sum(cost * found.covariance))
    assert found.power < np.sum(cost * plain.covariance)
    # a unit of its own changes nothing
    doubled = search_noise(atoms, 0.3, family="full", cost=2 * cost)
    assert doubled.covariance == pytest.approx(found.covariance, rel=1e-3)
    # the condition of optimality
    mmse = MixtureChannel(atoms, found.law).mmse(Bank.quadrature(atoms))
    inverse = np.linalg.inv(found.covariance)
    ratio = inverse @ mmse @ inverse / cost
    assert ratio == pytest.approx(np.full((2, 2), ratio[0, 0]), rel=1e-2)


def test_grouped_secret_costs_less():
    atoms = priors.four()
    for family in ("scale", "full"):
        found = search_noise(atoms, 0.1, secret="columns", family=family)
        bank = Bank.quadrature(atoms)
        values = MixtureChannel(atoms, found.law).secrets(bank).values
        assert values == pytest.approx([0.1], rel=1e-5)
        assert found.power < search_noise(atoms, 0.1, family=family).power


def test_several_priors():
    first, second = priors.four(), Atoms([[0, 0], [1, 0], [0, 5]], [0.2, 0.3, 0.5])
    found = search_noise([first, second], 0.3)
    values = [exactly(a, found.covariance) for a in (first, second)]
    assert max(values) == pytest.approx(0.3, rel=1e-5)
    assert found.power >= max(search_noise(a, 0.3).power for a in (second,))


def test_priors_that_vary_along_other_directions():
    """Noise along a direction that one of them lacks costs what the other asks for."""
    across, along = Atoms([[0, 0], [2, 0]]), Atoms([[0, 0], [0, 2]])
    for family in ("scale", "full"):
        found = search_noise([across, along], 0.3, family=family)
        alone = search_noise(across, 0.3).power
        assert found.power == pytest.approx(2 * alone, rel=1e-3)


def test_a_pair_of_values_of_a_secret():
    """Under each pair's own prior, and so for the pair that is told apart best."""
    points, codes = [[0.0], [1.0], [3.0], [4.0]], [[0], [1], [2], [2]]
    atoms = Atoms(points, [0.1, 0.4, 0.3, 0.2], codes)
    pairs = [atoms.between(0, a, b) for a, b in ((0, 1), (0, 2), (1, 2))]
    found = search_noise(pairs, 0.1, secret="columns")

    def told(scale):
        return [
            MixtureChannel(pair, found.covariance * scale**2)
            .secrets(Bank.quadrature(pair))
            .values[0]
            for pair in pairs
        ]

    assert max(told(1.0)) == pytest.approx(0.1, rel=1e-5)
    assert np.argmax(told(1.0)) == 1
    # the control: with less noise the budget is broken
    assert max(told(0.7)) > 0.15


def test_no_noise_where_the_budget_allows_for_everything():
    found = search_noise(priors.rectangle(), 1.4)
    assert found.power == 0 and found.at_floor
    assert not found.covariance.any()
    assert found.leakage == pytest.approx(math.log(4))
    # not if some data set would leak more than it may, nor from a sample
    rare = Atoms([[0.0], [1.0]], [0.99, 0.01])
    assert search_noise(rare, 0.1, max_secret_leakage=1.0).power > 0
    assert search_noise(rare, 0.1, max_secret_leakage=5.0).power == 0
    sample = Atoms(np.arange(5.0)[:, None])
    assert search_noise(sample, 2.0, sampled=True).power > 0


def test_a_limit_of_single_values_is_found_far_away():
    """Of an outlier it stays what it is until the noise reaches as far."""
    atoms = Atoms([[-1.0], [1.0], [1e6]], [0.49, 0.49, 0.02])
    limit = 0.99 * math.log(50)
    free = search_noise(atoms, 0.1).covariance[0, 0]
    found = search_noise(atoms, 0.1, max_secret_leakage=limit)
    assert found.covariance[0, 0] > 100 * free
    leaks = MixtureChannel(atoms, found.law).atom_leakage(Bank.quadrature(atoms))
    assert leaks.max() == pytest.approx(limit, rel=1e-3)


def test_record_budget_that_needs_no_noise():
    # all of the sum leaks, but of each single record next to nothing
    bits = priors.memberships(8)
    atoms = Atoms(bits.sum(axis=1)[:, None], None, bits)
    found = search_noise(atoms, 0.1, secret="columns")
    assert found.at_floor and found.power == 0
    assert found.leakage == pytest.approx(0.067, abs=0.005)
    assert not search_noise(atoms, 0.03, secret="columns").at_floor


def test_constant_coordinates():
    points = np.array([[0.0, 7.0, 1.0], [1.0, 7.0, 3.0], [2.0, 7.0, 2.5]])
    atoms = Atoms(points)
    for family in ("scale", "full"):
        found = search_noise(atoms, 0.3, family=family)
        assert not found.covariance[1].any() and found.covariance[0, 0] > 0
    # a sample cannot tell that it is constant
    found = search_noise(atoms, 0.3, sampled=True, least_variance=0.1, n_draws=500)
    assert np.linalg.eigvalsh(found.covariance)[0] >= 0.1 * (1 - 1e-9)


def test_dependent_coordinates_get_some_noise():
    shares = np.random.default_rng(0).dirichlet(np.ones(3), 6)
    found = search_noise(Atoms(shares), 0.3, family="full", n_draws=2000)
    assert np.linalg.eigvalsh(found.covariance)[0] > 0
    assert found.exact_entropy == pytest.approx(0, abs=1e-12)


def test_units_do_not_matter():
    atoms = priors.four()
    tiny = Atoms(atoms.points * 1e-9, atoms.weights)
    power = search_noise(atoms, 0.3, family="full").power
    found = search_noise(tiny, 0.3, family="full")
    assert found.power == pytest.approx(power * 1e-18, rel=1e-4)


def test_seeds():
    points = np.random.default_rng(0).standard_normal((40, 3))
    powers = [
        search_noise(Atoms(points), 0.3, n_draws=400, random_state=s).power
        for s in (0, 0, 1)
    ]
    assert powers[0] == powers[1] != powers[2]


def test_many_atoms_are_screened_on_fewer_draws():
    points = np.random.default_rng(0).standard_normal((500, 3)) * [3, 1, 0.3]
    atoms = Atoms(points)
    found = search_noise(atoms, 1.0, family="eigen", n_draws=9000, random_state=0)
    bank = Bank.stratified(atoms, 9000, np.random.default_rng(1))
    fresh = MixtureChannel(atoms, found.law).information(bank)
    assert fresh.value == pytest.approx(1.0, abs=6 * fresh.standard_error + 2e-3)
    assert found.power < np.trace(waterfill(atoms.covariance, 1.0)) * 1.01


# -- bad input ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, code, parameters",
    [
        ({"budget": 0}, "parameter.not_positive", {"name": "budget"}),
        ({"budget": -1.0}, "parameter.not_positive", {"name": "budget"}),
        ({"budget": math.nan}, "parameter.is_nan", {"name": "budget"}),
        ({"budget": math.inf}, "parameter.not_positive", {"name": "budget"}),
        ({"family": "diagonal"}, "parameter.option_unknown", {"name": "family"}),
        ({"secret": "record"}, "parameter.option_unknown", {"name": "secret"}),
        (
            {"secret": "columns"},
            "pac.search_secret_needs_memberships",
            {"secret": "columns"},
        ),
        ({"secret": "columns_given_others"}, "pac.search_secret_needs_memberships", {}),
        (
            {
                "atoms": priors.bits(),
                "secret": "columns_given_others",
                "family": "eigen",
            },
            "pac.search_family_without_gradient",
            {},
        ),
        (
            {"atoms": priors.subsets(), "secret": "columns_given_others"},
            "pac.memberships_not_independent_bits",
            {},
        ),
        ({"solver": "adam"}, "parameter.option_unknown", {"name": "solver"}),
        ({"starts": ["random"]}, "parameter.option_unknown", {"name": "starts"}),
        ({"starts": []}, "pac.search_starts_unknown", {}),
        ({"cost": [[1.0]]}, "pac.search_cost_shape_wrong", {}),
        (
            {"cost": [[1.0, 0.0], [0.0, 0.0]]},
            "parameter.covariance_not_positive_definite",
            {"name": "cost"},
        ),
        (
            {"max_secret_leakage": 0.0},
            "parameter.not_positive",
            {"name": "max_secret_leakage"},
        ),
        ({"least_variance": -1.0}, "parameter.is_negative", {"name": "least_variance"}),
        ({"n_draws": 0}, "parameter.count_too_small", {"name": "n_draws"}),
        ({"atoms": Atoms([[1.0, 2.0]])}, "pac.search_atoms_constant", {}),
        (
            {"atoms": [priors.signs(), priors.rectangle()]},
            "pac.search_atoms_dimensions_differ",
            {},
        ),
    ],
)
def test_bad_searches(changes, code, parameters):
    arguments = {"atoms": priors.rectangle(), "budget": 0.5, **changes}
    with refused(ValueError, code, **parameters):
        search_noise(**arguments)


@pytest.mark.parametrize("atoms", [[], np.eye(2)])
def test_what_is_no_atoms(atoms):
    with refused(TypeError, "pac.search_atoms_wrong_type"):
        search_noise(atoms, 0.5)


def test_bad_families():
    atoms = priors.signs()
    bank = Bank.quadrature(atoms)
    with refused(ValueError, "pac.budget_exceeds_output_entropy"):
        search_law(
            atoms, 0.7, lambda _: ProductLaw(LaplaceMarginal(), [1.0]), bank=bank
        )
    # on a lattice that the outputs do not share nothing is ever hidden
    lattice = LatticeMarginal((0.5, 0.5))
    with refused(ValueError, "pac.family_never_meets_budget"):
        search_law(
            Atoms([[0.0], [math.pi]]),
            0.1,
            lambda _: ProductLaw(lattice, [1.0]),
            bank=bank,
        )
    with refused(ValueError, "pac.product_scale_not_positive"):
        ProductLaw(LaplaceMarginal(), [0.0])
    with refused(ValueError, "pac.mixture_deviations_not_positive"):
        GaussianMixtureMarginal((0.5, 0.5), (1.0, -1.0))
    with refused(ValueError, "parameter.masses_not_sum_one", name="probabilities"):
        LatticeMarginal((0.5, 0.6))
