"""One table, one code book, one budget: all that is released of German credit."""

import inspect
import re
import sys

import pytest

from skpuffer.accountants import PrivacyLoss
from skpuffer.additive import PrivateAdditiveClassifier
from skpuffer.datasets import fetch_german_credit
from skpuffer.ledger import PrivacyLedger
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.model_selection import PrivateGridSearchCV
from skpuffer.privacy import compose
from skpuffer.summary import PrivateSummary
from skpuffer.synthesis import PrivateTableSynthesizer

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")


def story(data_home, folder):
    credit = fetch_german_credit(data_home=data_home, download_if_missing=False)
    schema, X, y = credit.schema, credit.frame, credit.target
    share = PrivacyLoss(epsilon=0.5, delta=1e-6)
    ledger = PrivacyLedger(folder / "credit.db", {"approximate_dp": (3.0, 1e-5)})
    with ledger:
        released = [
            PrivateSummary(accountant=share, schema=schema).fit(X),
            PrivateTableSynthesizer(accountant=share, schema=schema).fit(X),
            PrivateLogisticRegression(accountant=share, schema=schema).fit(X, y),
            PrivateAdditiveClassifier(accountant=share, schema=schema).fit(X, y),
            PrivateGridSearchCV(
                PrivateLogisticRegression(schema=schema),
                {"C": [0.1, 1.0, 10.0]},
                accountant=share,
            ).fit(X, y),
        ]
    return ledger, released


def test_the_total_is_the_composition_of_all_certificates(data_dir, tmp_path):
    ledger, released = story(data_dir, tmp_path)
    # a search is one release, whatever number of models was fitted
    assert len(ledger.report()) == len(released) == 5
    total = compose([model.certificate_ for model in released], delta=1e-5)
    assert ledger.total().epsilon == pytest.approx(total.epsilon, rel=1e-6)
    assert total.epsilon < sum(ledger.report()["epsilon"]) == 5 * 0.5
    assert ledger.remaining()["approximate_dp"] == 3.0 - ledger.total().epsilon


def test_it_takes_no_more_than_25_lines():
    _, *body, _ = inspect.getsource(story).splitlines()
    named = set(re.findall(r"\b\w+", "\n".join(body)))
    imports = [
        line
        for line in inspect.getsource(sys.modules[__name__]).splitlines()
        if line.startswith("from skpuffer") and named & set(line.split())
    ]
    assert len(imports) + len(body) <= 25
