"""Sums of gradients by workers: the same to the last digit, whoever makes them."""

import functools
import os
import pickle
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import parallel_config
from scipy import sparse

from skpuffer.accountants import PrivacyLoss
from skpuffer.linear_model import PrivateLogisticRegression, PrivateRidge
from skpuffer.neural_network import PrivateMLPClassifier
from skpuffer.releases import GradientRelease, PublicContext
from skpuffer.training import (
    LinearGradients,
    Logistic,
    Multinomial,
    PerceptronGradients,
    Training,
    _rows,
    _workers,
)
from skpuffer.training._rows import Rows
from skpuffer.training._workers import SpreadSums, _Kept, _part_sums
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings(
    "ignore::skpuffer.exceptions.PrivacyWarning",
    "ignore::skpuffer.exceptions.SeededNoiseWarning",
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1500, 3))
Y = (X[:, 0] + RNG.normal(size=len(X)) > 0).astype(int)
RELEASE = GradientRelease(n_records=len(X), n_steps=1, sampling="full_batch")


@pytest.fixture
def small(monkeypatch):
    """Take small tables for large ones: of many blocks, and worth to be spread."""
    monkeypatch.setattr(_rows, "_BLOCK_ROWS", 64)
    monkeypatch.setattr(_rows, "_SPARSE_ROWS", 64)
    monkeypatch.setattr(_workers, "_FEWEST_ROWS", 256)


def mapped(table, folder):
    held = np.lib.format.open_memmap(
        folder / "table.npy", mode="w+", dtype=table.dtype, shape=table.shape
    )
    held[:] = table
    held.flush()
    return np.load(folder / "table.npy", mmap_mode="r")


MODELS = {
    "logistic": lambda X: LinearGradients(Logistic(), X, Y, data_norm=2.0),
    "classes": lambda X: LinearGradients(Multinomial(), X, Y, n_classes=3),
    "weighted": lambda X: LinearGradients(
        Logistic(), X, Y, weights=np.where(Y, 1.0, 0.5), counted=np.arange(len(Y)) % 7
    ),
    "float32": lambda X: LinearGradients(Logistic(), X.astype(np.float32), Y),
    "sparse": lambda X: LinearGradients(Logistic(), sparse.csr_array(X), Y),
    "perceptron": lambda X: PerceptronGradients(Logistic(), X, Y, n_hidden=4),
}


@pytest.mark.parametrize(
    "backend, model",
    [("threading", model) for model in MODELS]
    + [("loky", model) for model in ("logistic", "sparse", "perceptron")],
)
def test_workers_sum_to_the_last_digit(small, backend, model):
    gradients = MODELS[model](X)
    at = np.random.default_rng(1).normal(size=gradients.dim)
    alone = gradients.clipped_sum(at, None, RELEASE)
    assert np.any(alone != 0)
    for n_workers in (2, 3) if backend == "threading" else (2,):
        with parallel_config(backend), SpreadSums(gradients, n_workers) as sums:
            for _ in range(2):
                np.testing.assert_array_equal(sums(at, None, RELEASE), alone)
    # nothing is kept here once the sums are made
    assert _workers._KEPT._held is None


@pytest.mark.parametrize(
    "options",
    [
        {"clip_norm": 0.2},
        {"clip_norm": 0.2, "clip_order": 1},
        {"clip_norm": 0.2, "clip_order": np.inf},
        {"clip_norm": (0.3, 0.1), "blocks": (3, 1)},
        {"clip_norm": (0.3, 0.1), "blocks": (3, 1), "clip_order": 1},
    ],
    ids=str,
)
def test_workers_clip_as_the_release_says(small, options):
    """All that is clipped by, at none of its defaults."""
    gradients = MODELS["logistic"](X)
    release = GradientRelease(
        n_records=len(X), n_steps=1, sampling="full_batch", **options
    )
    at = np.linspace(-3, 3, gradients.dim)
    alone = gradients.clipped_sum(at, None, release)
    default = gradients.clipped_sum(at, None, RELEASE)
    assert np.linalg.norm(alone) < 0.9 * np.linalg.norm(default)
    with parallel_config("threading"), SpreadSums(gradients, 2) as sums:
        for _ in range(2):
            np.testing.assert_array_equal(sums(at, None, release), alone)


def test_workers_are_told_of_the_release_what_clips_and_no_more(small, monkeypatch):
    """The rest may be long, and hold rows."""
    told = []

    def note(run, gradients, parts, parameters, release):
        told.append(release)
        return _part_sums(run, gradients, parts, parameters, release)

    monkeypatch.setattr(_workers, "_part_sums", note)
    gradients = MODELS["logistic"](X)
    context = PublicContext(n_records=len(X), empirical=(X, Y, None))
    release = GradientRelease(
        n_records=len(X),
        n_steps=7,
        sampling="full_batch",
        clip_norm=0.2,
        context=context,
    )
    with parallel_config("threading"), SpreadSums(gradients, 2) as sums:
        sums(np.ones(gradients.dim), None, release)
    clipping = GradientRelease(
        n_records=len(X), n_steps=1, sampling="full_batch", clip_norm=0.2
    )
    assert told and all(one == clipping for one in told)
    assert not any(one.context.empirical for one in told)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_workers_read_memory_maps(small, tmp_path, backend):
    table = mapped(X, tmp_path)
    gradients, alone = MODELS["logistic"](table), MODELS["logistic"](X)
    at = np.ones(gradients.dim)
    with parallel_config(backend), SpreadSums(gradients, 2) as sums:
        np.testing.assert_array_equal(
            sums(at, None, RELEASE), alone.clipped_sum(at, None, RELEASE)
        )
        changed = np.load(tmp_path / "table.npy", mmap_mode="r+")
        changed[1300] *= 100
        changed.flush()
        with refused(ValueError, "gradient.memory_map_changed"):
            sums(at, None, RELEASE)


@given(
    n=st.integers(1, 10**7),
    n_features=st.integers(1, 40),
)
def test_parts_are_whole_blocks_and_few(n, n_features):
    rows = Rows(np.zeros((1, n_features)))
    parts = rows.parts(n)
    assert len(parts) <= 64
    assert parts[0].start == 0 and parts[-1].stop == n
    for last, part in zip(parts[:-1], parts[1:], strict=True):
        assert last.stop == part.start and part.start % rows._block_size == 0
    # as many as there are blocks, if they are not too many
    assert len(parts) >= min(32, -(-n // rows._block_size))


def test_of_an_empty_batch_there_are_no_parts():
    assert Rows(X).parts(0) == []


def noted(folder, run, gradients, parts, parameters, release):
    """Make sums, and leave a note of who made them and whether records came along."""
    content = pickle.dumps((gradients, parts, parameters, release))
    # noise is drawn by who asks
    assert b"bit_generator" not in content and release.context.empirical is None
    note = folder / f"{os.getpid()}-{time.monotonic_ns()}"
    note.write_text("rows" if gradients is not None else "none")
    return _part_sums(run, gradients, parts, parameters, release)


MODEL = PrivateLogisticRegression(
    accountant=PrivacyLoss(epsilon=2.0, delta=1e-4), data_norm=3.0, random_state=0
)
FITTED = {
    "logistic": (MODEL, "coef_"),
    "ridge": (PrivateRidge(target_bounds=(0, 1), solver="gradient"), "coef_"),
    "perceptron": (
        PrivateMLPClassifier(hidden_size=4, training=Training(n_steps=5)),
        "coefs_",
    ),
}


@pytest.mark.parametrize(
    "backend, name",
    [("threading", name) for name in FITTED] + [("loky", "logistic")],
)
def test_models_of_two_workers_are_those_of_one(
    small, tmp_path, monkeypatch, backend, name
):
    monkeypatch.setattr(_workers, "_part_sums", functools.partial(noted, tmp_path))
    model, attribute = FITTED[name]
    model.set_params(random_state=0)
    alone = model.fit(X, Y)
    released, promised = getattr(alone, attribute), alone.certificate_.to_dict()
    assert not list(tmp_path.iterdir())  # nobody else is asked by default
    with parallel_config(backend, n_jobs=2):
        spread = model.fit(X, Y)
    for one, two in zip(released, getattr(spread, attribute), strict=True):
        np.testing.assert_array_equal(one, two)
    assert spread.certificate_.to_dict() == promised
    notes = [path.name.split("-") + [path.read_text()] for path in tmp_path.iterdir()]
    assert len(notes) >= 2 * spread.n_steps_
    # records are sent a few times, and not at each step
    assert 2 <= sum(sent == "rows" for _, _, sent in notes) <= 8
    here = {str(os.getpid())}
    assert ({pid for pid, _, _ in notes} == here) == (backend == "threading")


def test_jobs_may_be_named(small, tmp_path, monkeypatch):
    monkeypatch.setattr(_workers, "_part_sums", functools.partial(noted, tmp_path))
    with parallel_config("threading"):
        spread = MODEL.fit(X, Y).coef_
        assert not list(tmp_path.iterdir())
        MODEL.set_params(training__n_jobs=2)
        try:
            np.testing.assert_array_equal(spread, MODEL.fit(X, Y).coef_)
            assert list(tmp_path.iterdir())
        finally:
            MODEL.set_params(training__n_jobs=None)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True])
def test_jobs_are_a_number(n_jobs):
    model = PrivateLogisticRegression(training=Training(n_jobs=n_jobs))
    with pytest.raises(ValueError, match="'n_jobs'"):
        model.fit(X, Y)


@pytest.mark.parametrize("what", ["batches", "few rows"])
def test_what_is_summed_here(monkeypatch, what):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(_workers, "SpreadSums", refuse)
    if what == "batches":
        monkeypatch.setattr(_workers, "_FEWEST_ROWS", 64)
    PrivateLogisticRegression(
        training=Training(n_jobs=2, batch_size=100 if what == "batches" else None)
    ).fit(X, Y)


def test_a_worker_that_lacks_the_records_is_sent_them(small):
    gradients = MODELS["logistic"](X)
    at = np.ones(gradients.dim)
    alone = gradients.clipped_sum(at, None, RELEASE)
    with parallel_config("threading"), SpreadSums(gradients, 2) as sums:
        for _ in range(3):
            np.testing.assert_array_equal(sums(at, None, RELEASE), alone)
            # another run takes their place
            _workers._KEPT.keep("another", None)
    _workers._KEPT.forget("another")


def test_records_are_forgotten(monkeypatch):
    monkeypatch.setattr(_workers, "_SECONDS_KEPT", 0.1)
    kept = _Kept()
    kept.keep("run", MODELS["logistic"](X))
    assert kept.of("run") is not None and kept.of("another") is None
    deadline = time.monotonic() + 10
    while kept._held is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert kept.of("run") is None
    kept.keep("run", MODELS["logistic"](X))
    kept.forget("another")
    assert kept.of("run") is not None
    kept.forget("run")
    assert kept.of("run") is None


def test_records_are_kept_for_a_minute_after_they_were_asked_for(monkeypatch):
    """Another look is taken each half a minute, and none once nothing is kept."""
    now, timers = [0.0], []

    class Timer:
        daemon = False

        def __init__(self, seconds, call):
            self.seconds, self.call = seconds, call

        def start(self):
            # what waits must not keep a process alive
            assert self.daemon
            timers.append(self)

    def look(at):
        now[0] = at
        timers.pop().call()

    # of this module alone: other threads have clocks of their own
    threads = SimpleNamespace(Timer=Timer, Lock=threading.Lock)
    monkeypatch.setattr(_workers, "threading", threads)
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(_workers, "time", clock)
    kept, records = _Kept(), MODELS["logistic"](X)
    kept.keep("run", records)
    kept.keep("run", records)
    assert [timer.seconds for timer in timers] == [30.0]
    look(59.0)
    assert kept.of("another") is None and len(timers) == 1
    look(60.0)
    assert kept._held == ("run", records)
    assert kept.of("run") is records
    look(119.0)
    assert kept._held is not None and len(timers) == 1
    look(120.1)
    assert kept._held is None and not timers
    # and so for the next
    kept.keep("next", records)
    assert kept.of("run") is None and kept.of("next") is records
    assert [timer.seconds for timer in timers] == [30.0]
    kept.forget("next")
    look(130.0)
    assert not timers


def test_sums_that_fail_leave_no_records(small, monkeypatch):
    """Nor does a worker that cannot be asked to forget them."""
    gradients = MODELS["logistic"](X)
    at = np.ones(gradients.dim)

    def interrupted():
        with SpreadSums(gradients, 2) as sums:
            sums(at, None, RELEASE)
            assert _workers._KEPT.of(sums._run) is not None
            raise KeyError

    with parallel_config("threading"), pytest.raises(KeyError):
        interrupted()
    assert _workers._KEPT._held is None

    with parallel_config("threading"), SpreadSums(gradients, 2) as sums:
        sums(at, None, RELEASE)
        monkeypatch.setattr(sums, "_parallel", _Failing(sums._parallel))
    assert _workers._KEPT._held is None


class _Failing:
    """Calls that fail, of what is left as any other."""

    def __init__(self, parallel):
        self.parallel = parallel

    def __call__(self, calls):
        raise OSError

    def __exit__(self, *error):
        self.parallel.__exit__(*error)


def test_a_large_file_is_not_kept(small, tmp_path, monkeypatch):
    gradients = MODELS["logistic"](mapped(X, tmp_path))
    parts = gradients.rows.parts(len(X))
    asked = "run", gradients, parts, np.ones(gradients.dim), RELEASE
    assert _part_sums(*asked)[1]
    _workers._KEPT.forget("run")
    monkeypatch.setattr(_workers, "_BYTES_KEPT", 1000)
    assert not _part_sums(*asked)[1]
    assert _workers._KEPT.of("run") is None


def test_rows_of_a_message_are_aligned():
    rows = Rows(X)
    buffer = bytearray(X.nbytes + 1)
    table = np.frombuffer(buffer, dtype=X.dtype, offset=1).reshape(X.shape)
    table[:] = X
    assert not table.flags.aligned
    state = rows.__dict__ | {"X": table}
    received = Rows.__new__(Rows)
    received.__setstate__(state)
    assert received.X.flags.aligned
    np.testing.assert_array_equal(received.X, X)
