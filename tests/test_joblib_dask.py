"""Work that joblib spreads, over the worker processes of a Dask cluster."""

import functools
import importlib
import os
import sys
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

from skpuffer.accountants import GeneralWasserstein, PrivacyLoss
from skpuffer.ensemble import PATEClassifier
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.scenarios import SimulatorScenario
from skpuffer.summary import PrivateStatistic
from skpuffer.training import Training, _workers

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    """Give a cluster of two worker processes on this machine."""
    # workers need not know of this file
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):
        try:
            cloudpickle = importlib.import_module(name)
        except ImportError:  # joblib has one of its own, or not
            continue
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


def world(secret, rng):
    """Return one table: a secret shifts all of it a little."""
    return rng.normal(secret / 10, 1.0, size=(50, 2)).clip(-3, 3)


def means(table, *, folder):
    """Return the means of a table, and leave a note of which process was asked."""
    (folder / str(os.getpid())).touch()
    return np.mean(table, axis=0)


def test_worlds_are_looked_at_by_workers(cluster, tmp_path):
    workers = {str(pid) for pid in cluster.run(os.getpid).values()}
    assert len(workers - {str(os.getpid())}) == 2
    fitted = []
    for where in (None, "dask"):
        # apart, so that what the first fit has drawn is not remembered
        folder = tmp_path / str(where)
        folder.mkdir()
        scenario = SimulatorScenario(world, secrets=[0, 1], n_draws=40, n_jobs=2)
        model = PrivateStatistic(
            functools.partial(means, folder=folder),
            scenario,
            GeneralWasserstein(epsilon=1.0),
            random_state=0,
        )
        X = np.random.default_rng(1).normal(size=(50, 2)).clip(-3, 3)
        if where is None:
            fitted.append(model.fit(X))
            continue
        with parallel_config(where):
            fitted.append(model.fit(X))
    asked = {path.name for path in (tmp_path / "dask").iterdir()}
    # the private table itself is read here
    assert asked & workers and asked <= workers | {str(os.getpid())}
    here, there = fitted
    np.testing.assert_array_equal(here.noise_.scale, there.noise_.scale)
    np.testing.assert_array_equal(here.value_, there.value_)


def test_teachers_learn_in_workers(cluster):
    X, y = make_blobs(600, centers=2, random_state=0)
    public, X, y = X[:50], X[50:], y[50:]
    votes = []
    for where in ("loky", "dask"):
        model = PATEClassifier(
            accountant=PrivacyLoss(epsilon=5.0, delta=1e-4),
            estimator=LogisticRegression(),
            n_teachers=10,
            classes=[0, 1],
            unlabeled=public,
            n_queries=50,
            n_jobs=2,
            random_state=0,
        )
        with parallel_config(where):
            votes.append(model.fit(X, y).predict(public))
    np.testing.assert_array_equal(*votes)


def noted(folder, *asked):
    """Make sums, and leave a note of which process was asked."""
    (folder / str(os.getpid())).touch()
    # that of the worker, which nobody has replaced
    return importlib.import_module("skpuffer.training._workers")._part_sums(*asked)


def test_gradients_are_summed_by_workers(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(_workers, "_part_sums", functools.partial(noted, tmp_path))
    monkeypatch.setattr(_workers, "_FEWEST_ROWS", 2**12)
    X = np.random.default_rng(0).normal(size=(10_000, 5))
    y = (X[:, 0] > 0).astype(int)
    model = PrivateLogisticRegression(
        data_norm=2.0, training=Training(n_steps=2), random_state=0
    )
    here = model.fit(X, y).coef_
    assert not list(tmp_path.iterdir())
    with parallel_config("dask"):
        there = model.fit(X, y).coef_
    np.testing.assert_array_equal(here, there)
    workers = {str(pid) for pid in cluster.run(os.getpid).values()}
    assert {path.name for path in tmp_path.iterdir()} == workers
