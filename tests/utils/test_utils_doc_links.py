import sys

import pytest
from sklearn.utils import estimator_html_repr

from skpuffer import base, compose, ensemble, preprocessing, scenarios
from skpuffer.accountants import PrivacyLoss
from skpuffer.linear_model import PrivateLogisticRegression
from skpuffer.scenarios import AttributeScenario, BoundedOdds, RecordScenario
from skpuffer.summary import PrivateMean
from skpuffer.testing import all_estimators
from skpuffer.utils import _sklearn as _doc_links

OBJECTS = [
    *[entry.instance for entry in all_estimators()],
    PrivacyLoss(),
    RecordScenario(),
    AttributeScenario("sex", level="record", prior=BoundedOdds(2.0)),
    ensemble.PATEAggregator(n_teachers=3, n_queries=2),
]


@pytest.fixture
def unpublished(monkeypatch):
    monkeypatch.setattr(_doc_links, "_published", str)


@pytest.mark.parametrize("thing", OBJECTS, ids=lambda thing: type(thing).__name__)
def test_the_page_is_that_of_the_public_name(thing, monkeypatch):
    monkeypatch.setenv("SKPUFFER_DOCS_URL", "https://docs.example/skpuffer/")
    link = thing._get_doc_link()
    start, _, page = link.rpartition("/")
    assert start == "https://docs.example/skpuffer/generated"
    room, name = page.removesuffix(".html").rsplit(".", 1)
    # a page of the reference: of a public name in its room
    assert name in sys.modules[room].__all__
    assert getattr(sys.modules[room], name) is type(thing)


@pytest.mark.parametrize("thing", [PrivateMean(), PrivacyLoss(), RecordScenario()])
def test_it_is_shown_where_an_object_is(thing, monkeypatch):
    monkeypatch.setenv("SKPUFFER_DOCS_URL", "https://docs.example/skpuffer/")
    assert thing._get_doc_link() in estimator_html_repr(thing)


def test_without_an_address_there_is_no_link(monkeypatch, unpublished):
    monkeypatch.delenv("SKPUFFER_DOCS_URL", raising=False)
    shown = estimator_html_repr(PrivateMean(RecordScenario(), PrivacyLoss()))
    # not scikit-learn's pages, which know nothing of these
    assert "Online documentation" not in shown
    assert "PrivateMean.html" not in shown


def test_metadata_of_the_package_name_the_address(monkeypatch):
    monkeypatch.delenv("SKPUFFER_DOCS_URL", raising=False)
    monkeypatch.setattr(_doc_links, "_published", lambda: 'https://a.example/{x}"y')
    link = PrivateLogisticRegression()._get_doc_link()
    assert link == (
        "https://a.example/%7Bx%7D%22y/generated/"
        "skpuffer.linear_model.PrivateLogisticRegression.html"
    )


def test_estimators_of_others_have_none(monkeypatch):
    monkeypatch.setenv("SKPUFFER_DOCS_URL", "https://docs.example")

    class Theirs(PrivateMean):
        pass

    assert Theirs()._get_doc_link() == ""


def test_everything_that_is_shown_is_linked():
    shown = (
        base.PrivateEstimatorMixin,
        compose.PublicPreprocessing,
        ensemble.PATEAggregator,
        scenarios.Scenario,
        preprocessing.RowNormClipper,
    )
    assert all(kind._doc_link_module == "skpuffer" for kind in shown)
