"""Every figure of the pages answers a question that its caption names."""

import re

import pytest

from .docs_blocks import DOCS, PAGES, text_of

pytestmark = pytest.mark.skipif(
    not DOCS.exists(), reason="the tests run apart from the repository"
)

FIGURE = re.compile(
    r"^\.\. (?:figure|plot):: (\S+)\n((?:   .*\n|\n(?=   ))*)", re.MULTILINE
)
FIGURES = [
    pytest.param(page, name, body, id=f"{page}-{name.rpartition('/')[2]}")
    for page in PAGES
    for name, body in FIGURE.findall(text_of(page))
]


def test_there_are_figures():
    pages = {figure.values[0] for figure in FIGURES}
    assert {"index", "guide/choosing", "guide/summaries", "guide/ledger"} <= pages


@pytest.mark.parametrize("page, name, body", FIGURES)
def test_a_caption_asks_what_the_figure_answers(page, name, body):
    assert ":alt: " in body, f"{page}: {name} has no text for who does not see it."
    caption = re.sub(
        r"^\s*:(?!caption)\w+:.*(?:\n      .*)*", "", body, flags=re.MULTILINE
    )
    assert "?" in caption, f"{page}: the caption of {name} asks nothing."


EXAMPLES = sorted((DOCS.parent / "examples").rglob("plot_*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_text_above_a_figure_of_the_gallery_asks_what_it_answers(example):
    cells = re.split(r"^# %%", example.read_text(encoding="utf-8"), flags=re.MULTILINE)
    drawn = [cell for cell in cells if re.search(r"plt\.(?:show|subplots)\(", cell)]
    assert drawn, f"{example.name} shows nothing."
    for cell in drawn:
        text = cell[: re.search(r"^[^#\s]", cell, flags=re.MULTILINE).start()]
        title = " ".join(text.split())[:60]
        assert "?" in text, f"{example.name}: nothing is asked above a figure: {title}"


@pytest.mark.parametrize("page, name, body", FIGURES)
def test_what_it_is_drawn_from_is_there(page, name, body):
    if "auto_examples" in name:
        script = re.sub(r"images/sphx_glr_(\w+)_\d{3}\.png$", r"\1.py", name)
        source = DOCS.parent / "examples" / script.rpartition("auto_examples/")[2]
    elif name.startswith("figures/"):
        source = DOCS / name
    else:
        source = (DOCS / page).parent / name
    assert source.exists(), f"{page}: {name} is drawn from nothing."
