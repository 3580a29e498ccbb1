"""The channel from a finite prior to a noisy output."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import entr

from skpuffer.information import (
    Atoms,
    Bank,
    GaussianLaw,
    MixtureChannel,
    algorithm1,
    closed_form,
    compose_exact,
    entropy_bound,
    posterior_success,
    waterfill,
)
from skpuffer.noise import (
    CorrelatedGaussianNoise,
    DegenerateGaussianNoise,
    GaussianNoise,
)
from tests.extensions.pac import priors
from tests.extensions.pac.priors import ORACLES, exactly
from tests.refused import refused

few = settings(max_examples=20)
FOUR_NOISE = np.array([[1.5, 0.3], [0.3, 0.8]])


@st.composite
def small_priors(draw, dim=2):
    m = draw(st.integers(2, 5))
    points = draw(hnp.arrays(float, (m, dim), elements=st.integers(-3, 3)))
    weights = draw(hnp.arrays(int, m, elements=st.integers(1, 9)))
    members = draw(hnp.arrays(int, (m, 2), elements=st.integers(0, 1)))
    return Atoms(points + 0.01 * np.arange(m)[:, None], weights, members)


@st.composite
def covariances(draw):
    a, b = draw(st.floats(0.3, 3)), draw(st.floats(0.3, 3))
    r = draw(st.floats(-0.7, 0.7))
    return np.array([[a, r * math.sqrt(a * b)], [r * math.sqrt(a * b), b]])


# -- numbers known by quadrature ------------------------------------------------------


@pytest.mark.every_run
def test_two_signs():
    oracle, atoms = ORACLES["signs"], priors.signs()
    for noise, value, bound in zip(
        oracle["noise"], oracle["information"], oracle["log_det"], strict=True
    ):
        assert exactly(atoms, noise) == pytest.approx(value, rel=1e-6)
        channel = MixtureChannel(atoms, [[noise]])
        assert channel.log_det == pytest.approx(bound, rel=1e-6)
    for noise, slope in zip(oracle["slope_noise"], oracle["slope"], strict=True):
        mmse = MixtureChannel(atoms, [[noise]]).mmse(Bank.quadrature(atoms))
        assert -mmse[0, 0] / (2 * noise**2) == pytest.approx(slope, rel=1e-5)


@pytest.mark.every_run
def test_other_divergences():
    atoms, oracle = priors.signs(), ORACLES["signs"]["unit_noise"]
    channel, bank = MixtureChannel(atoms, [[1.0]]), Bank.quadrature(atoms, 4001)
    assert channel.bayes_success(bank) == pytest.approx(oracle["bayes"], abs=1e-5)


@pytest.mark.parametrize("name", ["bimodal", "bernoulli", "sixteen", "outlier"])
def test_true_information_at_water_filling(name):
    atoms = priors.line(16) if name == "sixteen" else getattr(priors, name)()
    oracle = ORACLES[name]
    for budget, value in zip(oracle["budgets"], oracle["at_waterfill"], strict=True):
        noise = waterfill(atoms.covariance, budget)
        assert exactly(atoms, noise) == pytest.approx(value, rel=2e-5)


def test_information_grows_with_the_budget_of_water_filling():
    # what two mechanisms leak at one nominal budget may differ; of one it grows
    atoms, oracle = priors.outlier(), ORACLES["outlier"]
    noises = [waterfill(atoms.covariance, b) for b in oracle["more_budgets"]]
    values = [exactly(atoms, noise) for noise in noises]
    assert values == pytest.approx(oracle["more_at_waterfill"], rel=1e-4)
    assert oracle["at_waterfill"][-1] < values[0]


def test_published_rule_may_leak_more_than_the_simpler_one():
    # one normal coordinate, one that is rarely far away; isotropic noise hides the
    # rare one less, though it is more noise in all
    rare = Atoms([[0.0], [50.0025]], [1 - 1e-4, 1e-4])
    spread = np.diag([1.0, rare.covariance[0, 0]])
    isotropic = algorithm1(spread, v=0.049, beta_prime=0.001, c=1.2e-4, radius=51.0)
    found = []
    for noise in (isotropic, closed_form(spread, 0.05), waterfill(spread, 0.05)):
        first, second = np.diag(noise)
        found.append(math.log1p(1 / first) / 2 + exactly(rare, second))
    assert found == pytest.approx([0.0387533, 0.0332903, 0.0343528], rel=1e-4)
    assert np.trace(isotropic) == pytest.approx(25.5151, rel=1e-3)


@pytest.mark.every_run
def test_four_atoms():
    atoms, oracle = priors.four(), ORACLES["four"]
    channel, bank = MixtureChannel(atoms, FOUR_NOISE), Bank.quadrature(atoms)
    information, mmse = channel.information_and_mmse(bank)
    assert atoms.entropy == pytest.approx(oracle["entropy"], rel=1e-6)
    assert channel.log_det == pytest.approx(oracle["log_det"], rel=1e-6)
    assert information.value == pytest.approx(oracle["information"], rel=1e-6)
    assert mmse == pytest.approx(np.array(oracle["mmse"]), rel=1e-5)
    inverse = np.linalg.inv(FOUR_NOISE)
    assert -np.trace(inverse @ mmse) / 2 == pytest.approx(
        oracle["by_log_scale"], rel=1e-6
    )
    assert channel.atom_leakage(bank) == pytest.approx(oracle["leakage"], rel=1e-6)
    secrets = channel.secrets(bank)
    assert secrets.values == pytest.approx([oracle["grouped"]], rel=1e-6)
    for key, matrix in (
        ("derivatives", mmse),
        ("grouped_derivatives", channel.secret_mmse(bank, 0)),
    ):
        slope = -inverse @ matrix @ inverse / 2
        found = [slope[0, 0], slope[1, 1], 2 * slope[0, 1]]
        assert found == pytest.approx(oracle[key], abs=1e-6)


@pytest.mark.every_run
def test_line_of_four():
    atoms, oracle = priors.line(4), ORACLES["line"]
    assert exactly(atoms, 1.0) == pytest.approx(oracle["information"], rel=1e-6)
    channel = MixtureChannel(atoms, [[1.0]])
    success = channel.bayes_success(Bank.quadrature(atoms, 4001))
    assert success == pytest.approx(oracle["bayes"], abs=1e-5)


def test_subsets_of_a_pool():
    atoms, oracle = priors.subsets(), ORACLES["subsets"]
    assert atoms.covariance[0, 0] == pytest.approx(oracle["variance"], rel=1e-6)
    assert atoms.entropy == pytest.approx(oracle["entropy"], rel=1e-7)
    assert len(atoms.distinct_points) == oracle["distinct"]
    assert atoms.output_entropy == pytest.approx(oracle["output_entropy"], rel=1e-7)
    bank = Bank.quadrature(atoms, 1201)
    for noise, record, bayes in zip(
        oracle["searched"], oracle["record"], oracle["bayes"], strict=True
    ):
        secrets = MixtureChannel(atoms, [[noise]]).secrets(bank)
        assert secrets.values.max() == pytest.approx(record, rel=1e-5)
        assert secrets.bayes_success.max() == pytest.approx(bayes, abs=1e-5)
        assert secrets.prior_success == pytest.approx(0.5)


def test_independent_memberships():
    atoms, oracle = priors.bits(), ORACLES["bits"]
    channel, bank = MixtureChannel(atoms, [[oracle["noise"]]]), Bank.quadrature(atoms)
    secrets = channel.secrets(bank)
    assert secrets.values == pytest.approx(oracle["records"], abs=6e-6)
    assert secrets.bayes_success.max() == pytest.approx(oracle["bayes"], abs=1e-5)
    value = channel.information(bank).value
    assert value == pytest.approx(oracle["dataset"], rel=1e-6)
    # who knows the others learns more, of each record
    others = channel.information_given_others()
    assert others[9] == pytest.approx(oracle["given_others"], rel=1e-5)
    assert np.all(others >= secrets.values - 1e-12)
    # several such releases are one with less noise
    for k, joint in ((2, oracle["twice"]), (10, oracle["ten_times"])):
        again = MixtureChannel(atoms, [[oracle["noise"] / k]]).secrets(bank)
        assert again.values.max() == pytest.approx(joint, rel=1e-5)


@pytest.mark.every_run
def test_repeated_releases():
    atoms, oracle = priors.signs(), ORACLES["repeated"]
    for noise, joint in zip(oracle["noise"], oracle["joint"], strict=True):
        found = [exactly(atoms, noise / k) for k in oracle["releases"]]
        assert found == pytest.approx(joint, rel=1e-5)
    noise = [[oracle["noise"][0]]]
    twice, joint = compose_exact([atoms.points] * 2, [noise] * 2, [[0, 1]] * 2)
    assert exactly(Atoms(twice), joint) == pytest.approx(
        oracle["joint"][0][0], rel=1e-5
    )


@pytest.mark.every_run
def test_joint_releases():
    oracle = ORACLES["joint"]
    x = np.arange(8.0)[:, None]
    for points, noises, values in (
        ([x, x**2 / 7], ([[2.0]], [[2.0]]), oracle["square"]),
        ([x % 2 * 2, x // 2], ([[2.0]], [[1.0]]), oracle["parts"]),
    ):
        parts = [exactly(Atoms(p), n) for p, n in zip(points, noises, strict=True)]
        both, noise = compose_exact(points, noises, [x[:, 0]] * 2)
        found = [*parts, exactly(Atoms(both), noise)]
        assert found == pytest.approx(values, rel=1e-5)


@pytest.mark.every_run
def test_records_that_leak_together_alone():
    # neither release tells anything of the first bit, both together tell it
    members, oracle = priors.memberships(2), ORACLES["xor"]
    both = 2.0 * (members[:, [0]] ^ members[:, [1]]) - 1
    one = 2.0 * members[:, [1]] - 1
    for noise, joint, each in zip(
        oracle["noise"], oracle["joint"], oracle["each"], strict=True
    ):
        for points in (both, one):
            atoms = Atoms(points, None, members)
            channel, bank = MixtureChannel(atoms, [[noise]]), Bank.quadrature(atoms)
            assert channel.secrets(bank).values[0] == pytest.approx(0, abs=1e-9)
            assert channel.information(bank).value == pytest.approx(each, rel=1e-6)
        atoms = Atoms(np.hstack([both, one]), None, members)
        channel, bank = MixtureChannel(atoms, np.eye(2) * noise), Bank.quadrature(atoms)
        assert channel.secrets(bank).values[0] == pytest.approx(joint, rel=1e-5)
    exact = MixtureChannel(atoms, np.zeros((2, 2))).secrets(bank)
    assert exact.values == pytest.approx(math.log(2))


@pytest.mark.parametrize("case", ORACLES["sampled"], ids=lambda case: str(case["true"]))
def test_samples_of_a_prior(case):
    # the mixture of a sample leaks too little on average, without oneself too much
    rng, d, m = np.random.default_rng(0), case["dim"], case["m"]
    noise = np.eye(d) / math.expm1(2 * case["true"] / d)
    found = []
    for _ in range(300):
        atoms = Atoms(rng.standard_normal((m, d)))
        channel, bank = MixtureChannel(atoms, noise), Bank.stratified(atoms, 600, rng)
        found.append(
            [channel.information(bank).value, channel.leave_one_out(bank).value]
        )
    means, errors = np.mean(found, 0), np.std(found, 0) / math.sqrt(len(found))
    known = np.array([case["incl"], case["loo"]])
    assert np.all(np.abs(means - known) < 4 * errors + 3 * case["error"])
    assert means[0] < case["true"] < means[1]


# -- what always holds ----------------------------------------------------------------


@few
@given(small_priors(), covariances())
def test_gradient_is_that_of_the_information(atoms, noise):
    bank, h = Bank.quadrature(atoms), 1e-4
    inverse = np.linalg.inv(noise)
    channel = MixtureChannel(atoms, noise)
    for direction in (np.diag([1.0, 0]), np.array([[0.0, 1], [1, 0]])):
        ends = [MixtureChannel(atoms, noise + s * h * direction) for s in (1, -1)]
        for value, mmse in (
            (lambda c: c.information(bank).value, channel.mmse(bank)),
            (lambda c: c.secrets(bank).values[0], channel.secret_mmse(bank, 0)),
        ):
            slope = (value(ends[0]) - value(ends[1])) / (2 * h)
            expected = -np.sum(inverse @ mmse @ inverse * direction) / 2
            assert slope == pytest.approx(expected, rel=1e-4, abs=1e-6)


@few
@given(small_priors(), covariances())
def test_bounds(atoms, noise):
    channel, bank = MixtureChannel(atoms, noise), Bank.quadrature(atoms, 41)
    information, secrets = channel.information(bank), channel.secrets(bank)
    value = information.value
    assert -1e-9 <= value <= min(channel.log_det, atoms.output_entropy) + 1e-6
    assert np.all(secrets.values <= value + 1e-6)
    assert np.all(secrets.entropies <= math.log(2) + 1e-9)
    assert np.all(information.entropies <= math.log(len(atoms.distinct_points)) + 1e-9)
    assert atoms.prior @ channel.atom_leakage(bank) == pytest.approx(value, abs=1e-4)
    # the best guess is no worse than that without the output
    assert channel.bayes_success(bank) >= atoms.distinct_weights.max() - 1e-9
    # more noise is a release made worse
    assert exactly(atoms, 2 * noise) <= value + 1e-9


@few
@given(small_priors(), covariances())
def test_estimators_agree(atoms, noise):
    bank = Bank.quadrature(atoms)
    channel = MixtureChannel(atoms, noise)
    values = [
        channel.information(bank, name).value
        for name in ("divergence", "log_ratio", "entropy", "gap")
    ]
    assert values == pytest.approx([values[0]] * 4, abs=1e-6)


@few
@given(small_priors(), covariances(), st.permutations(range(2)))
def test_invariance(atoms, noise, order):
    # no map of the outputs that can be undone changes what they tell
    value = exactly(atoms, noise)
    turn = np.array([[2.0, 1.0], [0.5, -3.0]])
    moved = Atoms(atoms.points @ turn.T + 7, atoms.weights, atoms.memberships)
    assert exactly(moved, turn @ noise @ turn.T) == pytest.approx(value, abs=1e-6)
    order = list(order)
    swapped = Atoms(atoms.points[:, order], atoms.weights)
    assert exactly(swapped, noise[np.ix_(order, order)]) == pytest.approx(value)


def test_merged_atoms_keep_the_entropy_of_the_input():
    twice = Atoms([[0.0], [0.0], [1.0]], None, [[0], [1], [1]])
    once = Atoms([[0.0], [1.0]], [2, 1])
    assert twice.entropy == pytest.approx(math.log(3))
    assert twice.output_entropy == pytest.approx(once.entropy)
    assert exactly(twice, 1.0) == pytest.approx(exactly(once, 1.0), abs=1e-12)
    assert twice.given_output(0) == pytest.approx(np.array([[0.5, 0.5], [0, 1]]))
    posterior = MixtureChannel(twice, [[1.0]]).posterior([[0.3]])
    assert posterior[0, 0] == posterior[0, 1]
    assert posterior.sum() == pytest.approx(1)


def test_exact_directions_cost_their_entropy():
    atoms = priors.rectangle()
    channel = MixtureChannel(atoms, np.diag([0.0, 1.5]))
    bank = Bank.quadrature(atoms)
    expected = math.log(2) + exactly(priors.signs(), 1.5)
    assert channel.information(bank).value == pytest.approx(expected, abs=1e-7)
    assert channel.log_det == math.inf
    # released along a slanted direction, rounding tells nothing apart
    turn = np.array([[math.sqrt(0.75), -0.5], [0.5, math.sqrt(0.75)]])
    slanted = Atoms(atoms.points @ turn.T)
    noise = turn @ np.diag([0.0, 1.5]) @ turn.T
    assert exactly(slanted, noise) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("last", [1e-13, 2.0**-52])
def test_what_has_no_noise_tells_its_last_digit(last):
    """A coordinate that varies by little more than rounding is seen all the same."""
    atoms = Atoms([[0.0, 1.0], [1.0, 1.0 + last]])
    channel = MixtureChannel(atoms, np.diag([1e4, 0.0]))
    told = channel.information(Bank.quadrature(atoms)).value
    assert told == pytest.approx(math.log(2))
    assert channel.log_det == math.inf
    assert np.array_equal(channel.law.cells(atoms.points), [0, 1])
    # with noise there it is lost, and a constant tells nothing
    hidden = MixtureChannel(atoms, np.diag([1e4, 1.0]))
    assert hidden.information(Bank.quadrature(atoms)).value < 1e-4
    constant = Atoms([[0.0, 1.0], [1.0, 1.0]])
    assert MixtureChannel(constant, np.diag([1e4, 0.0])).log_det < 1e-4


def test_off_a_slanted_noise_far_from_the_origin_all_is_told():
    atoms = Atoms([[1e9, 0.0], [1e9 + 1e-4, 0.0]])
    channel = MixtureChannel(atoms, np.full((2, 2), 100.0))
    told = channel.information(Bank.quadrature(atoms)).value
    assert told == pytest.approx(math.log(2))
    assert channel.log_det == math.inf


@pytest.mark.parametrize("turn", [0.0, 0.7])
@pytest.mark.parametrize("far", [1e3, 1e6, 1e9, 1e12])
def test_near_outputs_are_told_apart_as_well_far_away(far, turn):
    """Squares of large numbers would round off what tells near ones apart."""
    points = np.array([[0.0, 0.0], [0.0, 2.0], [far, 0.0], [far, 2.0]])
    rotation = [[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]]
    atoms = Atoms(points @ np.transpose(rotation), None, [[0], [1], [0], [1]])
    channel = MixtureChannel(atoms, np.eye(2))
    bit = exactly(priors.signs(), 1.0)
    bank = Bank.quadrature(atoms)
    for estimator in ("divergence", "log_ratio", "entropy"):
        told = channel.information(bank, estimator).value
        assert told == pytest.approx(math.log(2) + bit, abs=2e-4)
    assert channel.secrets(bank).values == pytest.approx([bit], abs=2e-4)
    # and so is what a certificate reads
    draws = Bank.iid(atoms, 4000, np.random.default_rng(0))
    left = channel.information(draws).entropies
    bound = entropy_bound(left, atoms.entropy, 4, gamma=0.05)
    assert math.log(2) + bit < bound.upper < math.log(2) + bit + 0.03
    assert channel.estimate(0).value == pytest.approx(math.log(2) + bit, rel=0.01)


def test_where_noise_is_lost_in_the_last_digit_all_is_told():
    atoms = Atoms([[0.0], [1e15], [1e15 + 1.0]])
    channel = MixtureChannel(atoms, [[1.0]])
    assert channel.information(Bank.quadrature(atoms)).value == pytest.approx(
        math.log(3)
    )


@pytest.mark.every_run
def test_noise_families_of_the_package():
    atoms = priors.four()
    bank = Bank.quadrature(atoms)

    def value(noise):
        return MixtureChannel(atoms, noise).information(bank).value

    assert value(GaussianNoise(2.0)) == value(4 * np.eye(2))
    assert value(GaussianNoise([2.0, 1.0])) == value(np.diag([4.0, 1.0]))
    correlated = CorrelatedGaussianNoise(covariance=FOUR_NOISE)
    assert value(correlated) == pytest.approx(ORACLES["four"]["information"], rel=1e-6)
    flat = DegenerateGaussianNoise(factor=[[0.0], [1.2]])
    assert value(flat) == pytest.approx(value(np.diag([0.0, 1.44])), abs=1e-12)
    assert value(GaussianLaw(FOUR_NOISE)) == value(FOUR_NOISE)


# -- draws ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["iid", "stratified"])
def test_standard_errors_are_right(kind):
    atoms, rng = priors.four(), np.random.default_rng(3)
    channel, truth = MixtureChannel(atoms, FOUR_NOISE), ORACLES["four"]["information"]
    for name in ("divergence", "log_ratio", "entropy", "gap"):
        scores = []
        for _ in range(100):
            bank = getattr(Bank, kind)(atoms, 1000, rng)
            found = channel.information(bank, name)
            scores.append((found.value - truth) / found.standard_error)
        assert abs(np.mean(scores)) < 0.4
        assert 0.75 < np.std(scores) < 1.25


@pytest.mark.every_run
def test_certificates_read_independent_draws():
    atoms, oracle = priors.four(), ORACLES["four"]
    channel = MixtureChannel(atoms, FOUR_NOISE)
    bank = Bank.iid(atoms, 20_000, np.random.default_rng(0))
    assert bank.kind == "iid"
    information, secrets = channel.information(bank), channel.secrets(bank)
    whole = entropy_bound(
        information.entropies,
        atoms.output_entropy,
        len(atoms.distinct_points),
        gamma=0.025,
    )
    group = entropy_bound(
        secrets.entropies[:, 0],
        entr(atoms.secret_probabilities(0)).sum(),
        2,
        gamma=0.025,
    )
    assert oracle["information"] <= whole.upper <= oracle["information"] + 0.015
    assert oracle["grouped"] <= group.upper <= oracle["grouped"] + 0.015


def test_least_error_is_chosen():
    atoms, rng = priors.four(), np.random.default_rng(0)
    bank = Bank.stratified(atoms, 2000, rng)
    small = MixtureChannel(atoms, 100 * FOUR_NOISE).information(bank)
    assert small.estimator == "gap"
    for noise in (0.01, 1, 100):
        found = MixtureChannel(atoms, noise * FOUR_NOISE).information(bank)
        errors = [
            found.standard_error_of(name)
            for name in ("divergence", "log_ratio", "entropy", "gap")
        ]
        assert found.standard_error == min(errors)


def test_rare_atoms_are_met():
    atoms = Atoms([[0.0], [1.0]], [0.9999, 0.0001])
    bank = Bank.stratified(atoms, 100, np.random.default_rng(0), per_atom=6)
    assert np.sum(bank.index == 1) == 6
    assert bank.weights.sum() == pytest.approx(1)
    assert bank.weights[bank.index == 1].sum() == pytest.approx(1e-4)
    loose = Bank.stratified(atoms, 100, np.random.default_rng(0), per_atom=0)
    assert len(loose) == 100


def test_estimate_is_as_precise_as_asked():
    rng = np.random.default_rng(0)
    atoms = Atoms(rng.standard_normal((300, 8)))
    channel = MixtureChannel(atoms, 3 * np.eye(8))
    found = channel.estimate(1, tolerance=0.005)
    assert 2 * found.standard_error <= 0.005 * found.value
    other = channel.estimate(2, tolerance=0.001)
    assert found.value == pytest.approx(other.value, rel=0.006)
    assert len(channel.estimate(1, tolerance=1e-9, max_draws=4000).bank) >= 4000


@pytest.mark.every_run
def test_attack_succeeds_as_often_as_said():
    atoms, rng, n = priors.subsets(), np.random.default_rng(5), 20_000
    noise = GaussianNoise(0.8)
    channel = MixtureChannel(atoms, noise)
    bank = Bank.quadrature(atoms, 1201)
    promised = channel.secrets(bank).bayes_success

    def success(scale):
        drawn = rng.integers(len(atoms.points), size=n)
        outputs = atoms.points[drawn] + GaussianNoise(scale).sample((n, 1), rng)
        members = np.asarray(atoms.memberships)
        posterior = MixtureChannel(atoms, GaussianNoise(scale)).posterior(outputs)
        guesses = posterior @ members > 0.5
        return np.mean(guesses == members[drawn], axis=0)[[0, 9]]

    slack = 4 * math.sqrt(0.25 / n)
    assert np.all(np.abs(success(0.8) - promised[[0, 9]]) < slack)
    # less noise than was said is found out
    assert np.all(success(0.7 * 0.8) > promised[[0, 9]] + slack)


# -- bad input ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, code, parameters",
    [
        (([1.0, 2.0],), "pac.points_shape_wrong", {}),
        (([[1.0], [np.nan]],), "parameter.array_not_finite", {"name": "points"}),
        (([[1.0], [np.inf]],), "parameter.array_not_finite", {"name": "points"}),
        (([[1.0], [1.0, 2.0]],), "parameter.array_not_finite", {"name": "points"}),
        (
            ([[1.0], [2.0]], [0.5, 0.6]),
            "parameter.masses_not_sum_one",
            {"name": "weights"},
        ),
        (
            ([[1.0], [2.0]], [1.0]),
            "transport.masses_count_differs",
            {"name": "weights"},
        ),
        (([[1.0], [2.0]], None, [0, 1]), "pac.memberships_shape_wrong", {}),
        (([[1.0], [2.0]], None, [[0.5], [1.0]]), "pac.memberships_not_integers", {}),
        (([[1.0], [2.0]], None, [[-1], [1]]), "pac.memberships_not_integers", {}),
        (([[1.0], [2.0]], None, [[0], [9]]), "pac.memberships_not_consecutive", {}),
    ],
)
def test_bad_atoms(arguments, code, parameters):
    with refused(ValueError, code, **parameters):
        Atoms(*arguments)


@pytest.mark.parametrize(
    "noise", [np.eye(3), GaussianLaw(np.eye(1)), "gaussian", [1.0]]
)
def test_bad_noise(noise):
    with refused(
        ValueError, ("pac.noise_and_outputs_dimensions_differ", "pac.noise_not_a_law")
    ):
        MixtureChannel(priors.four(), noise)


def test_noise_that_is_no_covariance():
    with refused(
        ValueError, "parameter.covariance_not_positive_definite", kind="semi-definite"
    ):
        MixtureChannel(priors.four(), [[1.0, 2.0], [2.0, 1.0]])


def test_bad_banks():
    atoms = Atoms(np.eye(4))
    rng = np.random.default_rng(0)
    with refused(ValueError, "pac.quadrature_dimension_too_large"):
        Bank.quadrature(atoms)
    with refused(ValueError, "parameter.count_too_small", name="n"):
        Bank.iid(atoms, 0, rng)
    with refused(ValueError, "parameter.count_too_small", name="per_atom"):
        Bank.stratified(atoms, 10, rng, per_atom=-1)


def test_questions_without_an_answer():
    atoms = priors.signs()
    channel, bank = MixtureChannel(atoms, [[1.0]]), Bank.quadrature(priors.signs())
    with refused(ValueError, "pac.atoms_without_memberships"):
        channel.secrets(bank)
    with refused(ValueError, "pac.atoms_without_memberships"):
        channel.information_given_others()
    with refused(ValueError, "pac.memberships_not_independent_bits"):
        MixtureChannel(priors.subsets(), [[1.0]]).information_given_others()
    with refused(ValueError, "pac.channel_outputs_shape_wrong"):
        channel.posterior([1.0])
    with refused(ValueError, "pac.posterior_noise_not_gaussian"):
        MixtureChannel(atoms, [[0.0]]).posterior([[1.0]])
    with refused(ValueError, "parameter.option_unknown", name="estimator"):
        channel.information(bank, "best")
    with refused(ValueError, "pac.leave_one_out_weights_unequal"):
        MixtureChannel(priors.bernoulli(), [[1.0]]).leave_one_out(bank)


# -- two values of a secret ------------------------------------------------------------


def test_a_pair_of_values_has_even_odds():
    atoms = Atoms(
        np.arange(5.0)[:, None], [0.1, 0.2, 0.3, 0.15, 0.25], [[0], [1], [2], [0], [1]]
    )
    pair = atoms.between(0, 0, 1)
    assert pair.points.ravel().tolist() == [0.0, 1.0, 3.0, 4.0]
    assert pair.secret_probabilities(0) == pytest.approx([0.5, 0.5])
    assert pair.prior == pytest.approx([0.2, 0.2 / 0.9, 0.3, 0.25 / 0.9])
    # the other way round it is the same question
    bank, other = Bank.quadrature(pair), atoms.between(0, 1, 0)
    told = [
        MixtureChannel(a, [[2.0]]).secrets(b).values[0]
        for a, b in ((pair, bank), (other, Bank.quadrature(other)))
    ]
    assert told[0] == pytest.approx(told[1], rel=1e-9)
    assert 0 < told[0] < math.log(2)


@given(small_priors(), covariances())
@few
def test_a_pair_is_told_apart_no_better_than_its_information_allows(atoms, noise):
    codes = np.unique(atoms.memberships[:, 0], return_inverse=True)[1]
    if codes.max() == 0:
        return
    atoms = Atoms(atoms.points, atoms.prior, codes[:, None])
    pair = atoms.between(0, 0, 1)
    found = MixtureChannel(pair, noise).secrets(Bank.quadrature(pair))
    allowed = posterior_success(float(found.values[0]), 0.5)
    assert found.bayes_success[0] <= allowed + 1e-6
    assert found.prior_success == pytest.approx([0.5])


@pytest.mark.parametrize("first, second", [(0, 0), (0, 2), (-1, 1)])
def test_pairs_that_are_none(first, second):
    with refused(ValueError, "pac.secret_values_unknown"):
        priors.four().between(0, first, second)
    with refused(ValueError, "pac.atoms_without_memberships"):
        priors.signs().between(0, 0, 1)
