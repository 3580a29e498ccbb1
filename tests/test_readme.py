"""The README's example runs as printed, and its commands stand where CI looks."""

import re
import warnings
from pathlib import Path

import pytest

from skpuffer.datasets import load_adult

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture(scope="module")
def readme():
    if not README.exists():
        pytest.skip("the tests run apart from the repository")
    return README.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def examples(readme):
    return re.findall(r"```python\n(.*?)```", readme, re.DOTALL)


def test_the_examples_are_short(examples):
    assert len(examples) == 4
    assert all(len(code.strip().splitlines()) <= 14 for code in examples)


def test_the_first_example_takes_the_noise_that_is_said(examples, capsys):
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(examples[0], str(README), "exec"), names)
        ours = names["mean"].mean_std_[0]
        plain = names["mean"].set_params(scenario=None)
        plain.fit(names["people"][["hours-per-week"]])
    printed = capsys.readouterr().out
    assert "[0.047]" in printed and "ε = 1, δ = 1e-05" in printed
    assert plain.mean_std_.round(3) == 0.173 and "0.173 by plain DP" in examples[0]
    # and the picture above it is of these two
    picture = re.search(r"\((docs/\S+\.svg)\)", README.read_text(encoding="utf-8"))
    drawn = (README.parent / picture.group(1)).read_text(encoding="utf-8")
    for name, std in (("race is secret", ours), ("plain DP", plain.mean_std_[0])):
        assert f"After: {name}, ± {60 * std:.0f} minutes" in drawn


def test_the_example_of_a_model_runs_without_a_warning(examples, capsys):
    code = examples[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(code, str(README), "exec"), {})
    printed = capsys.readouterr().out
    assert "(ε, δ)-Pufferfish privacy: ε = 0.1, δ = 1e-05" in printed
    assert "3.13 times less noise" in printed and "fallback" in printed
    assert "not protected" in printed


def test_a_file_becomes_a_certified_model_in_six_lines(
    examples, capsys, tmp_path, monkeypatch
):
    lines = examples[2].partition("\n\n")[2].strip().splitlines()
    assert len(lines) <= 6
    monkeypatch.chdir(tmp_path)  # it writes the file that it reads
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(examples[2], str(README), "exec"), names)
    assert "(ε, δ)-differential privacy: ε = 1, δ = 1e-05" in capsys.readouterr().out
    test = load_adult(subset="test")
    # 0.76 have the frequent income
    assert names["model"].score(test.data, test.target) > 0.79


def test_a_session_gets_to_a_regression_and_a_report_in_six_lines(
    examples, capsys, tmp_path, monkeypatch
):
    lines = examples[3].partition("\n\n")[2].strip().splitlines()
    assert len(lines) <= 6
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(examples[3], str(README), "exec"), {})
    assert "education-num" in capsys.readouterr().out
    assert "education-num" in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    "name,words", [("job", "plot_quickstart.py"), ("tests", "pytest")]
)
def test_the_commands_stand_in_marked_blocks(readme, name, words):
    blocks = re.findall(rf"<!-- {name} -->\n```sh\n(.*?)```", readme, re.DOTALL)
    assert len(blocks) == 1
    assert words in blocks[0]
    assert blocks[0].count("\n") == 1


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_within_the_repository_lead_somewhere(readme, name):
    text = (README.parent / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    inside = [link.partition("#")[0] for link in links if "://" not in link]
    gone = [link for link in inside if not (README.parent / link).exists()]
    assert not gone, f"{name} links to {gone}"
