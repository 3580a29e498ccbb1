"""Which noise can be drawn again."""

import contextlib

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_validate

from skpuffer.accountants import PrivacyLoss
from skpuffer.ensemble import PATEAggregator
from skpuffer.exceptions import LedgerRefusal, SeededNoiseWarning
from skpuffer.kernel.draws import noise_generator
from skpuffer.ledger import PrivacyLedger
from skpuffer.privacy._written import SEEDED
from skpuffer.summary import PrivateMean
from skpuffer.testing import all_estimators
from tests.refused import refused

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
            certificate = fit(seeded).certificate_
        assert certificate.seeded
        assert SEEDED in certificate.assumptions
        certificate = fit(clone(model)).certificate_
        assert not certificate.seeded
        assert SEEDED not in certificate.assumptions


DRAWING = [
    entry
    for entry in all_estimators()
    if "random_state" in entry.instance.get_params(deep=False)
]


@pytest.mark.parametrize("stream", ["RandomState", "Generator"])
@pytest.mark.parametrize("entry", DRAWING, ids=lambda entry: entry.name)
def test_clones_never_share_a_stream(entry, stream):
    estimator = clone(entry.instance).set_params(random_state=SEEDS[stream]())
    copies = [clone(estimator), clone(estimator)]
    copies.append(clone(copies[0]))
    states = [one.random_state for one in (estimator, *copies)]
    assert len({float(noise_generator(state)[0].random()) for state in states}) == 4


def test_a_generator_without_a_seed_sequence_is_copied_apart():
    bits = np.random.RandomState(0)._bit_generator
    model = PrivateMean(random_state=np.random.Generator(bits))
    first, second = (clone(model).random_state.random() for _ in range(2))
    assert first != second


def test_folds_never_share_a_stream():
    X = np.zeros((90, 1))
    model = PrivateMean(bounds=(-1, 1), random_state=np.random.default_rng(0))
    fits = cross_validate(
        model, X, cv=3, return_estimator=True, scoring=lambda *_: 0.0
    )["estimator"]
    assert len({float(fit.mean_[0]) for fit in fits}) == 3


@pytest.mark.parametrize("seed", [None, 0])
def test_a_difference_of_two_seeded_releases_has_no_noise(seed):
    """The attack that a ledger must not let pass, and its control without a seed."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 1, (50, 1))
    model = PrivateMean(bounds=(0, 1), accountant=PrivacyLoss(0.1), random_state=seed)
    guesses = []
    for hidden in (0.0, 1.0):
        # the attacker knows all other records and not the seed
        tables = [np.vstack([X, [[value]]]) for value in (hidden, 0.0)]
        one, other = (clone(model).fit(table).mean_[0] for table in tables)
        guesses.append((one - other) * 51)
    hit = abs(guesses[0]) < 0.01 and abs(guesses[1] - 1) < 0.01
    assert hit == (seed is not None)
    ledger = PrivacyLedger(":memory:", {"approximate_dp": (1.0, 1e-5)})
    with contextlib.ExitStack() as stack:
        stack.enter_context(ledger)
        if seed is not None:
            stack.enter_context(
                refused(LedgerRefusal, "ledger.release_noise_from_seed")
            )
        clone(model).fit(X)
    assert len(ledger.report()) == (seed is None)
