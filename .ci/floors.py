"""Prints the oldest versions that pyproject.toml allows, as constraints for pip.

``python .ci/floors.py test`` prints those of the dependencies and of the extra "test".
"""

import re
import sys
import tomllib
from pathlib import Path


def floors(project, requirements):
    """Yield ``name==floor`` of each requirement, and of the extras it names."""
    for requirement in requirements:
        extras = re.fullmatch(rf"{project['name']}\[(.+)\]", requirement)
        if extras:
            for extra in extras[1].split(","):
                yield from floors(project, project["optional-dependencies"][extra])
            continue
        floor = re.fullmatch(r"([\w.-]+)>=([\w.]+)", requirement)
        if not floor:
            raise SystemExit(f"{requirement!r} in pyproject.toml is no 'name>=version'")
        yield f"{floor[1]}=={floor[2]}"


if __name__ == "__main__":
    path = Path(__file__).parent.parent / "pyproject.toml"
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    named = [f"{project['name']}[{extra}]" for extra in sys.argv[1:]]
    print(*floors(project, project["dependencies"] + named), sep="\n")
