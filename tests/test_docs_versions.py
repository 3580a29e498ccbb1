"""Builds of several versions find each other, wherever the folder of them lies."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys

import pytest

from .docs_blocks import DOCS

pytestmark = pytest.mark.skipif(
    not DOCS.exists(), reason="the tests run apart from the repository"
)
SCRIPT = DOCS / "publish.py"


@pytest.fixture(scope="module")
def publisher():
    pytest.importorskip("packaging")
    spec = importlib.util.spec_from_file_location("skpuffer_docs_publish", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(folder, version, pages=("index", "guide/choosing")):
    """Write what matters here of a build: pages, the inventory, the version."""
    static = folder / "_static"
    static.mkdir(parents=True)
    options = f"const DOCUMENTATION_OPTIONS = {{\n    VERSION: '{version}',\n}};\n"
    (static / "documentation_options.js").write_text(options)
    shutil.copy(DOCS / "_static" / "versions.js", static)
    (folder / "objects.inv").write_bytes(b"")
    (folder / ".doctrees").mkdir()
    for page in pages:
        root = "../" * page.count("/") or "./"
        path = folder / f"{page}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f'<!doctype html><html data-content_root="{root}"><title>{page}</title>'
            f'<script src="{root}_static/versions.js"></script>'
            f'<span class="versions">{version}</span></html>'
        )
    return folder


def listed(site):
    text = (site / "versions.js").read_text()
    return json.loads(re.fullmatch(r"otherVersions\((.*)\);\n", text)[1])


def test_versions_are_listed_newest_first_and_the_newest_release_is_shown(
    publisher, tmp_path
):
    site = tmp_path / "site"
    for version, name in [
        ("0.9.0", None),
        ("0.10.0", None),
        ("0.10.0", "dev"),
        ("0.11.0rc1", None),
        ("0.2.0", None),
    ]:
        built = build(tmp_path / f"built_{name}_{version}", version)
        publisher.publish(built, site, name)
    assert listed(site) == ["dev", "0.10.0", "0.9.0", "0.2.0", "0.11.0rc1"]
    assert "url=0.10.0/index.html" in (site / "index.html").read_text()
    assert (site / "0.9.0" / "guide" / "choosing.html").exists()
    assert not (site / "0.9.0" / ".doctrees").exists()


def test_a_version_that_is_published_again_leaves_nothing_of_the_old_one(
    publisher, tmp_path
):
    site = tmp_path / "site"
    publisher.publish(build(tmp_path / "a", "1.0", ["index", "old"]), site, "dev")
    assert publisher.publish(build(tmp_path / "b", "1.1"), site, "dev") == ["dev"]
    assert not (site / "dev" / "old.html").exists()
    # nothing is released, so that the only version is shown
    assert "url=dev/index.html" in (site / "index.html").read_text()


def test_nothing_says_where_the_site_lies(publisher, tmp_path):
    site = tmp_path / "site"
    publisher.publish(build(tmp_path / "a", "1.0"), site)
    for name in ("versions.js", "index.html"):
        assert "//" not in (site / name).read_text()


@pytest.mark.parametrize("name", ["../up", ".hidden", "a/b", "a b"])
def test_a_name_that_is_no_folder_is_refused(publisher, tmp_path, name):
    with pytest.raises(ValueError, match="no name of a version"):
        publisher.publish(build(tmp_path / "a", "1.0"), tmp_path / "site", name)


def test_a_folder_without_a_build_is_refused(tmp_path):
    pytest.importorskip("packaging")
    command = [sys.executable, str(SCRIPT), str(tmp_path), str(tmp_path / "site")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "holds no built documentation" in ran.stderr
    assert not (tmp_path / "site").exists()


def test_pages_have_the_list(tmp_path):
    """What the theme is told to show is there, and is what the script looks for."""
    conf = (DOCS / "conf.py").read_text()
    assert '"navbar_end": ["versions"' in conf
    assert '"versions.js"' in conf
    template = (DOCS / "_templates" / "versions.html").read_text()
    assert 'class="versions"' in template


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no browser")
@pytest.mark.parametrize("page", ["index", "guide/choosing"])
def test_a_page_offers_the_other_versions_in_a_browser(publisher, tmp_path, page):
    site = tmp_path / "a site"
    for version in ("1.0", "2.0"):
        publisher.publish(build(tmp_path / version, version), site)

    def shown(path):
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        options += ["--disable-background-networking", "--disable-component-update"]
        options += ["--disable-sync", f"--user-data-dir={tmp_path / 'profile'}"]
        command = ["chromium", *options, path.as_uri()]
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=True
        )
        return ran.stdout

    dom = shown(site / "1.0" / f"{page}.html")
    assert re.findall(r'<option value="([^"]+)"', dom) == ["2.0", "1.0"]
    # a build of one's own, with nothing beside it
    assert "<option" not in shown(tmp_path / "1.0" / f"{page}.html")
