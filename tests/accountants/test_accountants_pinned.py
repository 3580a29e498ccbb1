"""No number, premise or scope of a certificate changes without being seen."""

import warnings

import pytest

from .pinned import CASES, SCENARIOS, answers, calibrated, facts, kept, near, read

KEPT, ASKED, FACTS = read()

#: What is found by iteration or from draws, whose last digits are those of many sums.
_DRAWN = ("PAC", "ResidualPAC", "SimulatorScenario")


def tolerance(name):
    return 1e-3 if name.startswith(_DRAWN) else 1e-6


@pytest.fixture(autouse=True)
def silent():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_the_cases_are_those_of_the_file():
    assert set(KEPT) == set(CASES)
    assert set(ASKED) == set(FACTS) == set(SCENARIOS)


def differing(found, known, rel):
    return {
        key: (found.get(key), known.get(key))
        for key in found.keys() | known.keys()
        if key not in found or key not in known or not near(found[key], known[key], rel)
    }


@pytest.mark.parametrize("name", KEPT)
def test_a_certificate_is_what_it_was(name):
    found = {"assumptions": []} | kept(calibrated(name))
    assert differing(found, KEPT[name], tolerance(name)) == {}


@pytest.mark.parametrize("scenario", ASKED)
def test_what_is_asked_under_a_scenario_is_answered_as_it_was(scenario):
    found = {
        name: {"assumptions": []} | kept(made, with_curve=False)
        for name, made in answers(scenario).items()
    }
    assert set(found) == set(ASKED[scenario])
    wrong = {
        name: differing(
            found[name], ASKED[scenario][name], max(map(tolerance, (name, scenario)))
        )
        for name in found
    }
    assert {name: lost for name, lost in wrong.items() if lost} == {}


@pytest.mark.parametrize("scenario", FACTS)
def test_a_fact_takes_for_granted_what_it_did(scenario):
    assert facts(scenario) == FACTS[scenario]
