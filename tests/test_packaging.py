"""What stands around the package agrees with it; `.ci/run sdist` installs it."""

import re
from pathlib import Path

import pytest

import skpuffer

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(
    not (ROOT / ".ci").is_dir(), reason="the source is not there"
)


def read(name):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def stages():
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    return re.search(r"^STAGES=\((.*)\)$", script, re.MULTILINE).group(1).split()


def test_the_citation_is_of_this_version():
    cited = read("CITATION.cff")
    assert cited["version"] == skpuffer.__version__
    assert cited["cff-version"] == "1.2.0"
    assert {"title", "message", "authors", "license"} <= set(cited)


@pytest.mark.skipif(not (ROOT / ".github").is_dir(), reason="not in an sdist")
def test_the_workflow_runs_every_stage_and_nothing_of_its_own():
    job = read(".github/workflows/ci.yml")["jobs"]["stage"]
    assert job["strategy"]["matrix"]["stage"] == stages()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == [".ci/run ${{ matrix.stage }}"]


def test_every_stage_is_described():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `\.ci/run (\w+)`", text, re.MULTILINE) == stages()


@pytest.mark.skipif(not (ROOT / ".github").is_dir(), reason="not in an sdist")
def test_issue_templates_ask_for_something():
    for name in ("bug_report", "feature_request"):
        template = read(f".github/ISSUE_TEMPLATE/{name}.yml")
        assert template["name"] and template["description"]
        fields = [part for part in template["body"] if part["type"] != "markdown"]
        assert any(
            part["validations"]["required"] for part in fields if "validations" in part
        )
        ids = [part["id"] for part in fields]
        assert len(set(ids)) == len(ids)
    assert "show_versions()" in (
        ROOT / ".github/ISSUE_TEMPLATE/bug_report.yml"
    ).read_text(encoding="utf-8")


def test_the_manifest_names_what_is_there():
    lines = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
    for line in lines:
        verb, *names = line.split() or [""]
        if verb in ("include", "graft"):
            assert all((ROOT / name).exists() for name in names), line
