"""The README's example runs as printed, and its commands stand where CI looks."""

import re
import warnings
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture(scope="module")
def readme():
    if not README.exists():
        pytest.skip("the tests run apart from the repository")
    return README.read_text(encoding="utf-8")


def test_the_example_runs_without_a_warning(readme, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert len(code.strip().splitlines()) <= 14
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(code, str(README), "exec"), {})
    printed = capsys.readouterr().out
    assert "(ε, δ)-Pufferfish privacy: ε = 0.1, δ = 1e-05" in printed
    assert "3.13 times less noise" in printed and "fallback" in printed
    assert "assuming" in printed


@pytest.mark.parametrize(
    "name,words", [("job", "plot_quickstart.py"), ("tests", "pytest")]
)
def test_the_commands_stand_in_marked_blocks(readme, name, words):
    blocks = re.findall(rf"<!-- {name} -->\n```sh\n(.*?)```", readme, re.DOTALL)
    assert len(blocks) == 1
    assert words in blocks[0]
    assert blocks[0].count("\n") == 1
