"""Code of the documentation, as it is printed: the one reader of its blocks.

The blocks of a page run in order and share their names. The rst comment ``.. fragment``
before a block says that it is none to run. A block of text right after one of code is
what that code prints.
"""

import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
BODY = r"\n\n((?:(?:   .*)?\n)+)"
BLOCK = re.compile(
    rf"(\.\. fragment\n\n)?^\.\. code-block:: python{BODY}"
    rf"(?:\.\. code-block:: text{BODY})?",
    re.MULTILINE,
)
# written when the documentation is built
GENERATED = {"_build", "_templates", "api.rst", "auto_examples", "generated"}
GENERATED |= {"sg_execution_times.rst"}
#: All pages, by their paths without a suffix.
PAGES = sorted(
    path.relative_to(DOCS).with_suffix("").as_posix()
    for path in DOCS.rglob("*.rst")
    if path.relative_to(DOCS).parts[0] not in GENERATED
)


@dataclass(frozen=True)
class Block:
    """A block of code that runs, the line above it, and what it is said to print."""

    code: str
    line: int
    printed: str | None

    def run(self, page, names):
        """Execute it; errors name the page's line."""
        exec(compile("\n" * self.line + self.code, f"{page}.rst", "exec"), names)


def text_of(page):
    """Return the source of a page."""
    return (DOCS / f"{page}.rst").read_text(encoding="utf-8") + "\n"


def blocks_of(page):
    """Return the blocks of a page that run, in order."""
    text = text_of(page)
    found = list(BLOCK.finditer(text))
    # nothing is overlooked because it is written otherwise
    assert len(found) == len(re.findall(r"code(?:-block)?:: [Pp]y", text))
    assert ">>> " not in text
    return [
        Block(
            textwrap.dedent(code),
            text[: block.start(2)].count("\n"),
            None if printed is None else textwrap.dedent(printed).strip(),
        )
        for block in found
        for fragment, code, printed in [block.groups()]
        if not fragment
    ]


def run_as_tests(pages, folder, change=str):
    """Join the blocks of each page to a module of tests, and run all in a new process.

    Returns the finished process, whose output is text. `change` is made to the modules
    before.
    """
    root = DOCS.parent
    modules = {folder / f"test_{page.rpartition('/')[2]}.py": page for page in pages}
    for module, page in modules.items():
        code = change("\n\n".join(block.code for block in blocks_of(page)))
        module.write_text(code, encoding="utf-8")
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-p", "tests.conftest"]
    options += ["--rootdir", str(root), "-c", str(root / "pyproject.toml")]
    # nothing of the session that asks, and all tests of the module
    rest = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *map(str, modules)],
        cwd=root,
        env=rest | {"SKPUFFER_TEST_EVERY": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
