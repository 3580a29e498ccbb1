"""Another distribution adds parts by public doors, and the suites catch its lies."""

import ast
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from skpuffer.accountants import GroupPrivacy
from skpuffer.noise import LaplaceNoise
from skpuffer.privacy import Certificate
from skpuffer.privacy._written import from_plain
from skpuffer.scenarios import Adjacency, offers
from skpuffer.testing import (
    accountant_checks,
    check_accountant,
    check_noise,
    check_private_estimator,
    check_scenario,
    noise_checks,
    parametrize_checks,
    privacy_checks,
    scenario_checks,
)

from .elsewhere.accountant import PureRecords
from .elsewhere.estimator import PrivateShareAbove
from .elsewhere.noise import TwoSidedNoise
from .elsewhere.scenario import NearbyScenario, _BoundNearby

MODULES = sorted((Path(__file__).parent / "elsewhere").glob("[a-z]*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_it_goes_through_public_doors(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("skpuffer"):
            room, names = node.module, [each.name for each in node.names]
            assert not any(part.startswith("_") for part in (*room.split("."), *names))
            assert not room.startswith("skpuffer.kernel")


# -- what is honest passes -------------------------------------------------------------


@parametrize_checks(noise_checks(TwoSidedNoise(), stats.laplace(), attained_norms=(1,)))
def test_noise(check):
    check()


def alike(n, rng):
    return np.full((n, 5), [0.0, 0.0, -9.0, -9.0, -9.0])


def moved(n, rng):
    return -alike(n, rng)


WORLDS = alike, moved


@parametrize_checks(
    scenario_checks(
        NearbyScenario(),
        WORLDS,
        n_records=5,
        bad=(({"width": 0}, "width"), ({"width": 1.5}, "width")),
        growing=({}, {"width": 2}, {"width": 40}),
    )
)
def test_scenario(check):
    check()


@parametrize_checks(accountant_checks(PureRecords()))
def test_accountant(check):
    check()


@parametrize_checks(privacy_checks(PrivateShareAbove()))
def test_estimator(check):
    check()


# -- all parts work together, and are read back ----------------------------------------


def test_a_family_goes_by_its_name():
    accountant = PureRecords(noise="two_sided")
    X = np.random.default_rng(0).normal(size=(1000, 2))
    model = PrivateShareAbove(NearbyScenario(2), accountant).fit(X)
    assert type(model.noise_) is TwoSidedNoise
    assert np.isclose(np.max(model.noise_.scale), 5 * 2 / 1000, rtol=1e-3)
    plain = model.certificate_.to_dict()
    assert Certificate.from_dict(plain) == model.certificate_
    assert from_plain(model.noise_.to_dict()) == model.noise_
    said = [each["text"] for each in plain["assumptions"]]
    assert "records more than 2 apart are independent" in said


def test_its_unproved_assumptions_are_said():
    accountant = GroupPrivacy(epsilon=1.0, delta=1e-3, noise="two_sided")
    X = np.random.default_rng(0).normal(size=(1000, 2))
    said = PrivateShareAbove(NearbyScenario(2), accountant).fit(X).certificate_
    assert "the cost of two_sided noise is not proved" in map(str, said.assumptions)


def test_a_name_of_this_library_stays_its_own():
    @dataclass(frozen=True)
    class Weak(TwoSidedNoise):
        family = "laplace"

    assert type(PureRecords()._chosen_noise()) is LaplaceNoise
    assert type(from_plain(Weak(1.0).to_dict() | {"family": "laplace"})) is LaplaceNoise


def test_a_class_that_is_defined_anew_counts():
    """As where a cell of a notebook is corrected and runs again."""

    def defined(factor):
        @dataclass(frozen=True)
        class Corrected(TwoSidedNoise):
            family = "corrected"

            def _renyi(self, alpha, u):
                return super()._renyi(alpha, factor * np.asarray(u))

        return Corrected

    defined(0.7)
    last = defined(1.0)
    assert type(PureRecords(noise="corrected")._chosen_noise()) is last


# -- lies are caught -------------------------------------------------------------------


@dataclass(frozen=True)
class CheapNoise(TwoSidedNoise):
    """Says that a shift costs 0.7 times what it does."""

    family = "cheap"

    def _renyi(self, alpha, u):
        return super()._renyi(alpha, 0.7 * np.asarray(u))

    def _delta(self, epsilon, u):
        return super()._delta(epsilon, 0.7 * np.asarray(u))


@dataclass(frozen=True)
class QuietNoise(TwoSidedNoise):
    """Draws 0.7 times what it says."""

    family = "quiet"

    def _sample_unit(self, shape, rng):
        return 0.7 * super()._sample_unit(shape, rng)


def failing(checks):
    """Names of the checks that fail."""
    failed = set()
    for name, check in checks:
        try:
            check()
        except Exception:
            failed.add(name)
    return failed


def test_noise_that_costs_more_than_it_says_is_caught():
    with pytest.raises(AssertionError):
        check_noise(CheapNoise(), stats.laplace())
    failed = failing(noise_checks(CheapNoise(), stats.laplace()))
    assert failed >= {
        "check_cost_is_the_divergence_of_the_densities",
        "check_delta_is_the_divergence_of_the_densities",
        "check_no_attacker_beats_delta_but_with_less_noise",
    }


def test_noise_that_draws_less_than_it_says_is_caught():
    with pytest.raises(AssertionError):
        check_noise(QuietNoise(), stats.laplace())
    failed = failing(noise_checks(QuietNoise(), stats.laplace()))
    assert failed >= {
        "check_sample_follows_the_distribution",
        "check_no_attacker_beats_delta_but_with_less_noise",
        "check_moments",
    }
    # a distribution that lies as the draws do is no help against an attack
    quiet = stats.laplace(scale=0.7)
    failed = failing(noise_checks(QuietNoise(), quiet))
    assert "check_no_attacker_beats_delta_but_with_less_noise" in failed


class _BoundHalf(_BoundNearby):
    @offers(Adjacency)
    def _adjacency(self, release, norm):
        fact = super()._adjacency(release, norm)
        return Adjacency.arbitrary(self.near() // 2, fact.assumptions, "replace")


class HalfScenario(NearbyScenario):
    """Says that half of the records tell of the secret, and fewer still."""

    def bind(self, context):
        self.check()
        return _BoundHalf(self, context)


def test_a_scenario_of_half_the_influence_is_caught():
    found = "check_no_attacker_tells_the_secret: an attacker beats"
    with pytest.raises(AssertionError, match=found):
        check_scenario(HalfScenario(), WORLDS, n_records=5)
    check_scenario(NearbyScenario(), WORLDS, n_records=5)


class HalfRecords(PureRecords):
    """Says that records move the output half as far as they do."""

    def moved(self, fact, release, norm):
        bound = super().moved(fact, release, norm)
        return replace(bound, radius=bound.radius / 2)


class HalfSearch(PureRecords):
    """Finds half the noise that its own rule asks for."""

    def calibrate(self, release, scenario, random_state=None):
        found = super().calibrate(release, scenario, random_state)
        return replace(found, noise=found.noise.with_scale(found.noise.scale / 2))


def test_an_accountant_of_half_the_noise_is_caught():
    failed = failing(accountant_checks(HalfRecords()))
    assert {name.partition("-")[0] for name in failed} == {
        "check_no_attacker_beats_a_promise"
    }
    failed = failing(accountant_checks(HalfSearch()))
    assert {name.partition("-")[0] for name in failed} >= {
        "check_the_noise_found_keeps_the_budget",
        "check_no_attacker_beats_a_promise",
    }
    for liar in (HalfRecords(), HalfSearch()):
        with pytest.raises(AssertionError):
            check_accountant(liar)


class Exact(PrivateShareAbove):
    """Publishes the exact shares."""

    def _execute(self, task, release, noise, rng):
        return release.run(task.X, task.y)


class Beside(PrivateShareAbove):
    """Publishes noisy shares, and keeps the exact ones beside them."""

    def _execute(self, task, release, noise, rng):
        self.exact_ = release.run(task.X, task.y)
        return super()._execute(task, release, noise, rng)


@pytest.mark.parametrize("liar", [Exact(), Beside()], ids=["exact", "beside"])
@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")
def test_an_estimator_that_releases_an_exact_statistic_is_caught(liar):
    with pytest.raises(AssertionError):
        check_private_estimator(liar)
