"""The code in the documentation runs as printed, page by page, without a warning."""

import re
import warnings

import pytest

from skpuffer.datasets import load_adult

from .docs_blocks import DOCS, PAGES, blocks_of, run_as_tests

#: Modules and their tests, which run in processes of their own: the classes they define
#: must not be found by tests that go through all there are.
MODULES = [page for page in PAGES if page.startswith("extend/") and blocks_of(page)]


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


@pytest.mark.parametrize("page", [page for page in PAGES if page not in MODULES])
def test_the_blocks_of_a_page_run_in_order(page, capsys, a_table_as_a_file):
    names = {}
    for block in blocks_of(page):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            block.run(page, names)
        out = capsys.readouterr().out
        if block.printed is not None:
            assert out.strip() == block.printed


def test_modules_of_one_s_own_pass_their_contracts(tmp_path):
    """An engineer types the pages of *How to extend it*, and runs their tests."""
    ran = run_as_tests(MODULES, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert int(re.search(r"(\d+) passed", ran.stdout).group(1)) > 2 * len(MODULES)


def test_the_pages_are_found():
    if not DOCS.exists():
        pytest.skip("the tests run apart from the repository")
    assert {"index", "guide/index", "guide/ledger", "certificate"} <= set(PAGES)
    assert {"extend/accountant", "extend/noise"} <= set(MODULES)
