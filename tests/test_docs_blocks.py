"""The code in the documentation runs as printed, page by page, without a warning.

The blocks of a page run in order and share their names. The rst comment ``.. fragment``
before a block says that it is none to run. A block of text right after one of code is
what that code prints.
"""

import re
import textwrap
import warnings
from pathlib import Path

import pytest

from skpuffer.datasets import load_adult

DOCS = Path(__file__).parents[1] / "docs"
BODY = r"\n\n((?:(?:   .*)?\n)+)"
BLOCK = re.compile(
    rf"(\.\. fragment\n\n)?^\.\. code-block:: python{BODY}"
    rf"(?:\.\. code-block:: text{BODY})?",
    re.MULTILINE,
)
# written when the documentation is built
GENERATED = {"api", "sg_execution_times"}
PAGES = sorted(
    path.relative_to(DOCS).with_suffix("").as_posix()
    for folder in (DOCS, DOCS / "guide")
    for path in folder.glob("*.rst")
    if path.stem not in GENERATED
)


@pytest.fixture(autouse=True)
def _closed_figures():
    plt = pytest.importorskip("matplotlib.pyplot")
    yield
    plt.close("all")


@pytest.fixture
def a_table_as_a_file(tmp_path, monkeypatch):
    """The folder at hand holds adult.csv, as the pages say."""
    monkeypatch.chdir(tmp_path)
    load_adult().frame.to_csv("adult.csv", index=False)


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_in_order(page, capsys, a_table_as_a_file):
    text = (DOCS / f"{page}.rst").read_text(encoding="utf-8") + "\n"
    blocks = list(BLOCK.finditer(text))
    # nothing is overlooked because it is written otherwise
    assert len(blocks) == len(re.findall(r"code(?:-block)?:: [Pp]y", text))
    assert ">>> " not in text
    names = {}
    for block in blocks:
        fragment, code, printed = block.groups()
        if fragment:
            continue
        line = text[: block.start(2)].count("\n")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            code = "\n" * line + textwrap.dedent(code)  # errors name the page's line
            exec(compile(code, f"{page}.rst", "exec"), names)
        out = capsys.readouterr().out
        if printed is not None:
            assert out.strip() == textwrap.dedent(printed).strip()


def test_the_pages_are_found():
    if not DOCS.exists():
        pytest.skip("the tests run apart from the repository")
    assert {"index", "user_guide", "certificate", "compatibility"} <= set(PAGES)
