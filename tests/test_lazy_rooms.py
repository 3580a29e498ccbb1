"""Rooms load what is asked for, and all there is where a kind is looked for."""

import importlib.metadata
import json
import subprocess
import sys

import pytest

import skpuffer
from skpuffer.accountants import PrivacyLoss
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.scenarios import RecordScenario


def run(code, *arguments):
    """What a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_the_library_alone_loads_next_to_nothing():
    loaded = run("import sys, skpuffer; print(*sys.modules)")
    assert not {"sklearn", "scipy", "pandas", "numpy"} & set(loaded)


def test_one_estimator_does_not_load_all_others():
    loaded = run("import sys; from skpuffer import PrivateRidge; print(*sys.modules)")
    assert "skpuffer.linear_model._ridge" in loaded
    unasked = {"skpuffer.extensions", "skpuffer.synthesis", "skpuffer.ensemble"}
    unasked |= {"scipy.signal"}
    # of use for few fits, and loaded by the first of these
    unasked |= {"skpuffer.accountants._best"}
    unasked |= {"skpuffer.transport._bottleneck"}
    assert not unasked & set(loaded)


#: Packages, whose names are all lower case, beside the main names out of them.
ROOMS = [
    name for name in skpuffer.__all__ if name.islower() and name != "show_versions"
]
MAIN = sorted(set(skpuffer.__all__) - set(ROOMS))


@pytest.mark.parametrize("name", MAIN)
def test_main_names_are_those_of_their_rooms(name):
    found = getattr(skpuffer, name)
    if name == "show_versions":
        return
    _, room, *_ = found.__module__.split(".")
    # an extension's accountants are among all others
    room = "accountants" if room == "extensions" else room
    assert getattr(getattr(skpuffer, room), name) is found


def test_every_estimator_is_a_main_name():
    named = {
        entry.name
        for entry in skpuffer.testing.all_estimators()
        if hasattr(entry.instance, "preview")
    }
    assert named <= set(MAIN)


def test_versions_are_shown_without_an_import(capsys):
    skpuffer.show_versions()
    shown = dict(
        line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()
    )
    assert shown["skpuffer"] == skpuffer.__version__
    assert shown["scikit-learn"] == importlib.metadata.version("scikit-learn")
    assert {"Python", "numpy", "scipy", "pandas", "matplotlib"} <= set(shown)
    assert not {"pytest", "ruff", "sphinx"} & set(shown)
    loaded = run("import sys, skpuffer; skpuffer.show_versions(); print(*sys.modules)")
    assert not {"sklearn", "scipy", "pandas"} & set(loaded[loaded.index("sys") :])


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_have_what_they_name(room):
    module = getattr(skpuffer, room)
    assert module.__all__
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_what_is_not_there_is_not_found():
    with pytest.raises(AttributeError, match="NoSuchRegressor"):
        skpuffer.linear_model.NoSuchRegressor  # noqa: B018


def test_a_fresh_process_reads_any_certificate():
    release = QueryRelease(
        query=lambda X, y: X.mean(axis=0),
        n_records=50,
        dim=1,
        sensitivity=Sensitivity(add_remove={2: 0.02}),
    )
    written = PrivacyLoss(1.0, 1e-5).calibrate(release, RecordScenario()).certificate
    code = (
        "import json, sys; from skpuffer.privacy import Certificate;"
        "read = Certificate.from_dict(json.loads(sys.argv[1]));"
        "print(json.dumps(read.to_dict()))"
    )
    plain = written.to_dict()
    assert json.loads(" ".join(run(code, json.dumps(plain)))) == plain


def test_a_fresh_process_knows_all_accountants():
    code = (
        "from skpuffer.accountants._base import known_accountants;"
        "print(*(kind.__name__ for kind in known_accountants()))"
    )
    assert {"ShapedWasserstein", "MarkovQuilt", "ResidualPAC"} <= set(run(code))


def test_kinds_of_this_library_stay_its_own():
    code = (
        "from skpuffer.kernel.plain import Plain\n"
        "class Other(Plain, kind='ellipsoid'):\n    pass\n"
        "print(Other.kind)"
    )
    assert run(code) == ["Other"]
