"""Pickles say which version wrote them."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import skpuffer
from skpuffer.cluster import PrivateKMeans
from skpuffer.compose import PrivatePipeline
from skpuffer.exceptions import VersionWarning
from skpuffer.summary import PrivateMean, PrivateStandardScaler
from skpuffer.testing import all_estimators
from tests.refused import codes_of

X = np.random.default_rng(0).random((50, 1))


def made():
    mean = PrivateMean(bounds=(0, 1)).fit(X)
    steps = [
        ("s", PrivateStandardScaler(bounds=(0, 1))),
        ("k", PrivateKMeans(2, bounds=(-3, 3))),
    ]
    return {
        "estimator": mean,
        "unfitted": PrivateMean(bounds=(0, 1)),
        "certificate": mean.certificate_,
        "pipeline": PrivatePipeline(steps).fit(X),
    }


@pytest.mark.parametrize("kind", ["estimator", "unfitted", "certificate", "pipeline"])
def test_another_version_is_warned_of_and_this_one_is_not(kind, monkeypatch):
    held = made()[kind]
    written = pickle.dumps(held)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in (pickle.loads(written), copy.copy(held), copy.deepcopy(held)):
            assert vars(other).keys() == vars(held).keys()
        if kind != "certificate":
            clone(held)
        else:
            assert pickle.loads(written) == held
    monkeypatch.setattr(skpuffer, "__version__", "99.0")
    with pytest.warns(VersionWarning) as caught:
        other = pickle.loads(written)
    assert vars(other).keys() == vars(held).keys()
    said = caught[0].message.args[0]
    assert codes_of(said) == {"version.pickle_of_another"}
    assert said.parameters["written"] != said.parameters["version"] == "99.0"


def test_a_pickle_without_a_version_is_of_another_one():
    mean = PrivateMean(bounds=(0, 1))
    with pytest.warns(VersionWarning):
        mean.__setstate__({"bounds": (0, 2)})
    assert mean.bounds == (0, 2)


def test_every_estimator_says_its_version():
    # those that learn nothing and release nothing are what their parameters are
    for entry in all_estimators():
        if not entry.name.startswith("Private"):
            continue
        state = entry.estimator_class.__getstate__(
            object.__new__(entry.estimator_class)
        )
        assert "_skpuffer_version" in state, entry
