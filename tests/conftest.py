"""What every test may rely on: fixed hypothesis examples, no window, real data."""

import gc
import math
import os
import random
import subprocess
from collections import defaultdict
from itertools import chain
from pathlib import Path
from zlib import crc32

# Before anything imports pyplot, also in doctests: a machine may have no display.
os.environ.setdefault("MPLBACKEND", "Agg")

# Processes that share the cores take one thread each: several would wait on each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    for _library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import pytest
from hypothesis import settings

# No module of tests by name; its assertions explain themselves all the same.
pytest.register_assert_rewrite("skpuffer.testing._accountant_checks")

# The same few examples on every run, so that a red run can be repeated and a green one
# is soon over. To look for new ones, and for many: pytest --hypothesis-profile explore
settings.register_profile("fixed", deadline=None, derandomize=True, max_examples=15)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("fixed")


@pytest.fixture(scope="session")
def data_dir():
    """Directory of the public data sets' files, or a skip without one."""
    named = os.environ.get("SKPUFFER_TEST_DATA")
    if not named:
        pytest.skip("SKPUFFER_TEST_DATA does not name a directory of data files")
    directory = Path(named)
    if not directory.is_dir():
        raise FileNotFoundError(
            f"SKPUFFER_TEST_DATA names {named!r}, which is not a directory."
        )
    return directory


@pytest.fixture(scope="session")
def n_trials():
    """Scale a number of trials by SKPUFFER_SLOW_FRACTION (1 unless set).

    A statistical test asks for ``n_trials(20_000)`` and takes its tolerance from the
    number it gets; `least` is where its statistics begin to hold.
    """
    fraction = float(os.environ.get("SKPUFFER_SLOW_FRACTION", "1"))
    if not 0 < fraction <= 1:
        raise ValueError(
            f"SKPUFFER_SLOW_FRACTION must be in the range (0, 1]. Got {fraction!r}."
        )

    def scale(full, *, least=100):
        return min(full, max(least, math.ceil(fraction * full)))

    return scale


#: Of the tests of extensions, a run of everything takes this share and those marked
#: `every_run`. `pytest tests/extensions` runs all.
_EXTENSIONS_EVERY = 40

#: Of the cases of one test, a run of everything takes so many, others for each commit.
#: A run of paths takes all, and so does the CI at night.
_MOST_CASES = 6

#: What a case of a test takes in seconds, where it is much; `python -m
#: tests.tools.dear_tests` writes the file.
DEAR = Path(__file__).with_name("dear_tests.txt")

#: Of tests whose cases take so many seconds, it takes this share.
_DEAR_FROM, _DEAR_EVERY = 0.25, 5


def _is_of_extension(item):
    return "extensions" in item.path.parts


def _drawn_for_the_commit(config, items):
    """Leave out most tests that others are like, others for each commit."""
    if all(map(_is_of_extension, items)):
        return items
    everything = config.args == config.getini("testpaths")
    root = Path(__file__).parents[1]
    asked = ("git", "-C", str(root), "rev-parse", "HEAD")
    commit = subprocess.run(asked, capture_output=True, check=False).stdout
    noted = map(str.split, DEAR.read_text(encoding="utf-8").splitlines())
    seconds = {name: float(took) for took, name in noted}

    def number(name):
        return crc32(commit + name.encode())

    def of_case(item):
        # of one estimator whatever the test is, for its tests share fits
        return number(
            item.nodeid.replace(getattr(item, "originalname", None) or "", "")
        )

    cases = defaultdict(list)
    for item in items:
        share, name = 1, item.nodeid.split("[")[0]
        if _is_of_extension(item) and not item.get_closest_marker("every_run"):
            share = _EXTENSIONS_EVERY
        elif everything and seconds.get(name, 0) > _DEAR_FROM:
            share = _DEAR_EVERY
        if not number(item.nodeid) % share:
            cases[name].append(item)
    most = _MOST_CASES if everything else None
    groups = (sorted(group, key=of_case)[:most] for group in cases.values())
    kept = set(map(id, chain.from_iterable(groups)))
    drawn = [item for item in items if id(item) in kept]
    # a fault is found sooner by many quick tests than by a few of the others

    def pace(item):
        took = seconds.get(item.nodeid.split("[")[0], 0)
        return (took > 0) + (took > _DEAR_FROM)

    return sorted(drawn, key=pace)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the collected tests out of each later search for garbage.

    They are millions of objects, and all live until the end. To look through them takes
    a second each time, and some hundred tests ask for a search.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item):
    """Leave two thirds of scikit-learn's checks to the slow tests: they share code."""
    if getattr(item, "originalname", "") != "test_scikit_learn_checks":
        return
    if crc32(item.name.encode()) % 3:
        item.add_marker("slow")


@pytest.hookimpl(trylast=True)  # of what the markers leave
def pytest_collection_modifyitems(config, items):
    """Leave every K-th test where SKPUFFER_TEST_EVERY is K: a quick look at all parts.

    SKPUFFER_TEST_ORDER draws which ones, so that each commit has a look at others.
    The CI looks so at other versions than those the whole suite runs with, in an order
    that SKPUFFER_TEST_ORDER draws: no test may rest on what another one left.
    """
    every = int(os.environ.get("SKPUFFER_TEST_EVERY", "1"))
    if every < 1:
        raise pytest.UsageError(
            f"SKPUFFER_TEST_EVERY must be a whole number from 1. Got {every!r}."
        )
    seed = os.environ.get("SKPUFFER_TEST_ORDER")
    start = 0 if seed is None else random.Random(seed).randrange(every)
    kept = _drawn_for_the_commit(config, items)[start::every]
    chosen = set(map(id, kept))
    config.hook.pytest_deselected(items=[i for i in items if id(i) not in chosen])
    if seed is not None:
        # file by file, for what the tests of a file share is made once
        rng, files = random.Random(seed), defaultdict(list)
        for item in kept:
            files[item.path].append(item)
        groups = list(files.values())
        for group in (groups, *groups):
            rng.shuffle(group)
        kept = list(chain.from_iterable(groups))
    items[:] = kept
