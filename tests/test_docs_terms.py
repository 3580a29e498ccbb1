"""No word of the field is used on a page without a way to what it means."""

import importlib.util
from types import SimpleNamespace

import pytest

from .docs_blocks import DOCS, PAGES

pytestmark = pytest.mark.skipif(
    not DOCS.exists(), reason="the tests run apart from the repository"
)


@pytest.fixture(scope="module")
def first_mention():
    pytest.importorskip("sphinx")
    path = DOCS / "_ext" / "first_mention.py"
    spec = importlib.util.spec_from_file_location("skpuffer_first_mention", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def linked(first_mention, text, page="guide/any"):
    """Return the words of the glossary that a text leads to, as they read."""
    from docutils.core import publish_doctree
    from sphinx.addnodes import pending_xref

    doctree = publish_doctree(text)
    app = SimpleNamespace(env=SimpleNamespace(docname=page))
    first_mention.link_first_mentions(app, doctree)
    return [(x["reftarget"], x.astext()) for x in doctree.findall(pending_xref)]


def test_the_first_mention_is_a_link_and_no_other(first_mention):
    text = "Two scenarios at ε = 1.\n\nAnother scenario, and its accountant."
    assert linked(first_mention, text) == [
        ("scenario", "scenarios"),
        ("epsilon", "ε"),
        ("accountant", "accountant"),
    ]


def test_code_and_headings_are_left_as_they_are(first_mention):
    text = "A scenario\n==========\n\nThe ``scenario`` of an attacker."
    assert linked(first_mention, text) == [("attacker", "attacker")]


def test_every_word_is_found_where_it_is_used(first_mention):
    for word in first_mention.terms():
        shown = {
            "calibration": "calibration of noise",
            "delta": "δ",
            "epsilon": "ε",
            "order": "order α",
            "relation": "neighbouring relation",
            "world": "two worlds",
            "release": "release of",
            "estimate": "an estimate",
        }.get(word, word)
        found = [target for target, _ in linked(first_mention, f"Here: {shown}.")]
        assert word in found, word


def test_every_page_but_lists_is_covered(first_mention):
    left_out = {page for page in PAGES if first_mention.LEFT_OUT.match(page)}
    assert left_out == {"bibliography", "changelog", "glossary"}
    assert not first_mention.LEFT_OUT.match("auto_examples/plot_quickstart")
    assert (
        linked(first_mention, "A scenario.", "generated/skpuffer.privacy.Notion") == []
    )
