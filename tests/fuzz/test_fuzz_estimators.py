"""Estimators under random bad calls: a clear error, or a clean fit, and no leak."""

import sysconfig
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import skpuffer
from skpuffer.testing import all_estimators
from skpuffer.testing._canaries import listen, reachable, sings

from .cases import odd_parameters, odd_table

ENTRIES = all_estimators()

#: Cases of each estimator: 5000 of all.
N_CASES = -(-5000 // len(ENTRIES))

# An error is clear if it was raised on purpose: by a statement of ours, or by one of
# scikit-learn's checks of parameters and tables.
_ROOTS = (
    str(Path(skpuffer.__file__).parent),
    str(Path(sysconfig.get_path("purelib"), "sklearn")),
)

#: What is NaN, as its page says, where a variance drowns in noise.
UNKNOWN_IN_NOISE = ("correlation_", "residual_std_")


def raised_on_purpose(error):
    """Whether the innermost frame of an error is a statement that raises."""
    *_, last = traceback.extract_tb(error.__traceback__)
    return last.filename.startswith(_ROOTS) and (last.line or "").startswith("raise")


def refuse_leaks(fitted, words):
    """Assert that no published number is NaN, and that none is a record's."""
    held = {name: v for name, v in vars(fitted).items() if name.endswith("_")}
    for path, leaf in reachable(held).items():
        values = np.asarray(leaf)
        may_be_unknown = any(name in str(path) for name in UNKNOWN_IN_NOISE)
        if values.dtype.kind == "f" and not may_be_unknown:
            assert not np.any(np.isnan(values)), f"{words}: {path} is NaN"
        said = leaf if isinstance(leaf, str) else values.tobytes()
        assert not sings(said), f"{words}: {path} holds a private value"


def call(entry, case):
    """Call `fit` once with what a seed makes; return the error, or None."""
    rng = np.random.default_rng([case, *map(ord, entry.name)])
    estimator, told, done = clone(entry.instance), {}, []
    # parameters, the table, or now and then both
    odd = rng.choice(["parameters", "table", "both"], p=[0.45, 0.45, 0.1])
    if odd != "table":
        estimator, told = odd_parameters(estimator, rng)
    seed = np.random.default_rng(0) if odd == "parameters" else rng
    arguments, done = odd_table(
        entry.instance, seed, n_ways=0 if seed is not rng else 2
    )
    words = f"{entry.name}, case {case}: {told} {done}"
    with listen() as said:
        estimator.fit(*arguments)
    assert not said.songs, f"{words}: a private value is quoted in {said.songs}"
    error = said.error
    if error is None:
        refuse_leaks(estimator, words)
        return None
    assert isinstance(error, ValueError | TypeError), f"{words}: {error!r}"
    assert raised_on_purpose(error), f"{words}: {error!r}"
    left = [n for n in vars(estimator) if n.endswith("_") and not n.startswith("_")]
    assert not left, f"{words}: a failed fit left {left}"
    return error


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_few_bad_calls(entry):
    for case in range(4):
        call(entry, case)


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_many_bad_calls(entry, n_trials):
    n = n_trials(N_CASES, least=8)
    errors = [call(entry, case) for case in range(4, 4 + n)]
    # what is asked is not all refused, nor all taken
    if n >= 50:
        refused = sum(error is not None for error in errors)
        assert 0.3 * n < refused < n


def test_an_error_by_accident_is_told_from_one_on_purpose():
    for accident in (lambda: [][0], lambda: np.zeros(3) + np.zeros(2)):
        with listen() as said:
            accident()
        assert not raised_on_purpose(said.error)
    with listen() as said:
        clone(ENTRIES[0].instance).fit(None)
    assert raised_on_purpose(said.error)


ROWS = np.random.default_rng(0).uniform(-1, 1, (40, 3))
ONE_NAME = pd.DataFrame(ROWS)
ONE_NAME.columns = ["c", "c", "c"]


@pytest.mark.parametrize(
    "name, parameters, table, words",
    [
        ("PrivateMean", {}, ONE_NAME, "column names that differ"),
        ("PublicBinner", {}, ONE_NAME, "column names that differ"),
        ("PrivateSummary", {"by": {}}, ROWS, "'by'"),
        ("PrivateCDF", {"bins": ("a", "b")}, ROWS, "'bins'"),
        ("PrivateTableSynthesizer", {}, None, "'X'"),
        ("PrivateTableSynthesizer", {"n_bins": 10**9}, ROWS, "'n_bins'"),
        ("PublicOneHotEncoder", {"dtype": "auto"}, ROWS, "'dtype'"),
        ("PrivatePCA", {}, pd.DataFrame(index=range(40)), "without columns"),
    ],
)
def test_what_such_calls_have_found(name, parameters, table, words):
    """Each ended in an error of another library, or in no memory, until it was met."""
    (entry,) = [entry for entry in ENTRIES if entry.name == name]
    estimator = clone(entry.instance).set_params(**parameters)
    with pytest.raises((ValueError, TypeError), match=words):
        estimator.fit(table)
