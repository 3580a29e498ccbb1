"""One table, one code book, one budget: all that is released of German credit."""

import pytest
from sklearn.model_selection import GridSearchCV

from skpuffer.accountants import PrivacyLoss
from skpuffer.additive import PrivateAdditiveClassifier
from skpuffer.datasets import fetch_german_credit
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.privacy import compose
from skpuffer.summary import PrivateSummary
from skpuffer.synthesis import PrivateTableSynthesizer

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")


def test_the_total_is_the_composition_of_all_certificates(data_dir, tmp_path):
    credit = fetch_german_credit(data_home=data_dir, download_if_missing=False)
    schema, X, y = credit.schema, credit.frame, credit.target
    share = PrivacyLoss(0.3, 1e-6)
    ledger = PrivacyLedger(tmp_path / "credit.db", {"approximate_dp": (3.0, 1e-5)})
    with ledger:
        fitted = [
            PrivateSummary(accountant=share, schema=schema).fit(X),
            PrivateTableSynthesizer(accountant=share, schema=schema).fit(X),
            PrivateLogisticRegression(accountant=share, schema=schema).fit(X, y),
            PrivateAdditiveClassifier(accountant=share, schema=schema).fit(X, y),
        ]
        search = GridSearchCV(
            PrivateLogisticRegression(accountant=share, schema=schema),
            {"accountant__epsilon": [0.1, 0.2]},
            cv=2,
            error_score="raise",
        )
        search.fit(X, y)
    assert len(ledger.report()) == 4 + 4 + 1
    certificates = [model.certificate_ for model in fitted]
    certificates.append(search.best_estimator_.certificate_)
    # of the folds nothing is left but what the ledger has
    folds = ledger.report().iloc[4:8]
    assert sorted(folds["epsilon"]) == [0.1, 0.1, 0.2, 0.2]
    for epsilon in folds["epsilon"]:
        half = PrivateLogisticRegression(
            accountant=PrivacyLoss(epsilon, 1e-6), schema=schema
        )
        certificates.append(half.fit(X[::2], y[::2]).certificate_)
    total = compose(certificates, delta=1e-5)
    assert ledger.total().epsilon == pytest.approx(total.epsilon, rel=1e-6)
    assert total.epsilon < sum(ledger.report()["epsilon"])
    assert ledger.remaining()["approximate_dp"] == 3.0 - ledger.total().epsilon
