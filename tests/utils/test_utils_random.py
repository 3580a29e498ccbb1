"""Which noise can be drawn again."""

import numpy as np
import pytest
from sklearn.base import clone

from skpuffer.accountants import PrivacyLoss
from skpuffer.base import SEEDED
from skpuffer.ensemble import PATEAggregator
from skpuffer.exceptions import SeededNoiseWarning
from skpuffer.summary import PrivateMean
from skpuffer.utils._checks import noise_generator

SEEDS = {
    "int": lambda: 3,
    "numpy int": lambda: np.int64(3),
    "RandomState": lambda: np.random.RandomState(3),
    "Generator": lambda: np.random.default_rng(3),
}


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_gives_the_same_noise_again_is_a_seed(seed):
    (one, seeded), (other, again) = (noise_generator(SEEDS[seed]()) for _ in range(2))
    assert seeded is again is True
    assert one.random() == other.random()


def test_fresh_entropy_is_none():
    (one, seeded), (other, again) = noise_generator(None), noise_generator(None)
    assert seeded is again is False
    assert one.random() != other.random()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_seed_warns_and_is_certified_as_one(seed):
    X = np.linspace(-1, 1, 50).reshape(25, 2)
    for model, fit in (
        (PrivateMean(bounds=(-1, 1)), lambda model: model.fit(X)),
        (PATEAggregator(accountant=PrivacyLoss(9.0)), PATEAggregator.calibrate),
    ):
        seeded = clone(model).set_params(random_state=SEEDS[seed]())
        with pytest.warns(SeededNoiseWarning):
            assert SEEDED in fit(seeded).certificate_.assumptions
        assert SEEDED not in fit(clone(model)).certificate_.assumptions
