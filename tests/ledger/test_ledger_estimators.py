"""The release of every estimator is heard of, stored and read back as it is."""

import contextlib
import json
import multiprocessing
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skpuffer.accountants import PrivacyLoss
from skpuffer.cluster import PrivateKMeans
from skpuffer.ensemble import PATEAggregator
from skpuffer.exceptions import LedgerRefusal, PrivacyWarning
from skpuffer.ledger import PrivacyLedger
from skpuffer.privacy import Certificate
from skpuffer.synthesis import PrivateTableSynthesizer
from skpuffer.testing import all_estimators
from skpuffer.testing._estimator_checks import _fit, _set

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

#: Those that release something in a fit.
PRIVATE = [
    entry
    for entry in all_estimators()
    if any(
        name.rpartition("__")[2] == "accountant" for name in entry.instance.get_params()
    )
]
LIMITS = {"approximate_dp": (float("inf"), 1e-5), "pure_dp": float("inf")}


@pytest.mark.parametrize("entry", PRIVATE, ids=lambda entry: entry.name)
def test_every_release_is_stored_as_it_is(entry, tmp_path):
    path = tmp_path / "budget.db"
    with PrivacyLedger(path, LIMITS):
        fitted = _fit(_set(entry.instance, random_state=None))
    again = PrivacyLedger(path)
    assert len(again.report()) == 1
    total = again.total("approximate_dp")
    certificate = fitted.certificate_
    assert total.epsilon == pytest.approx(certificate.epsilon, rel=1e-6)
    assert total.assumptions == certificate.assumptions
    plain = json.loads(json.dumps(certificate.to_dict(), allow_nan=False))
    assert Certificate.from_dict(plain) == certificate


@pytest.mark.parametrize("entry", PRIVATE, ids=lambda entry: entry.name)
def test_every_estimator_stays_unfitted_where_it_is_refused(entry):
    tight = PrivacyLedger(":memory:", {"approximate_dp": (1e-6, 1e-5)})
    estimator = clone(entry.instance)
    with tight, pytest.raises(LedgerRefusal):
        _fit(estimator)
    assert not hasattr(estimator, "certificate_")
    assert not len(tight.report())


def test_votes_that_were_counted_elsewhere_are_paid_for_at_once():
    votes = [[30, 20], [25, 25]]
    ledger = PrivacyLedger(":memory:", LIMITS)
    with ledger:
        aggregator = PATEAggregator(n_classes=2, n_queries=4)
        aggregator.aggregate(votes)
        aggregator.aggregate(votes)
    (row,) = ledger.report().itertuples()
    assert row.estimator == "PATEAggregator"
    assert ledger.total("approximate_dp") == aggregator.certificate_
    tight = PrivacyLedger(":memory:", {"approximate_dp": (1e-6, 1e-5)})
    with tight, pytest.raises(LedgerRefusal):
        PATEAggregator(n_classes=2, n_queries=4).aggregate(votes)


@pytest.mark.parametrize("how", ["block", "callback"])
def test_an_aggregator_in_a_worker_process_is_heard(how, tmp_path):
    ledger = PrivacyLedger(tmp_path / "budget.db", LIMITS)
    aggregator = PATEAggregator(n_classes=2, n_queries=4)
    if how == "callback":
        aggregator.set_callbacks(ledger)
    context = multiprocessing.get_context("spawn")
    hearing = ledger if how == "block" else contextlib.nullcontext()
    with hearing, context.Pool(1) as pool:
        made = pool.apply(PATEAggregator.calibrate, (aggregator,))
    assert ledger.total("approximate_dp") == made.certificate_
    assert len(ledger.report()) == 1


def test_an_aggregator_in_a_block_and_with_the_ledger_as_callback_is_heard_once():
    ledger = PrivacyLedger(":memory:", LIMITS)
    with ledger:
        PATEAggregator(n_classes=2).set_callbacks(ledger).calibrate()
    assert len(ledger.report()) == 1


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateKMeans(8, bounds=(0, 1), accountant=PrivacyLoss(0.01)),
        PrivateTableSynthesizer(bounds=(0, 1), accountant=PrivacyLoss(0.01)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_nothing_is_spent_where_a_warning_of_noise_is_an_error(estimator):
    ledger = PrivacyLedger(":memory:", LIMITS)
    X = np.random.default_rng(0).uniform(size=(50, 3))
    with ledger, warnings.catch_warnings():
        warnings.filterwarnings("error", ".*too much noise")
        with pytest.raises(PrivacyWarning):
            clone(estimator).fit(X)
    assert len(ledger.report()) == 0
