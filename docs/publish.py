"""Put a build of the documentation beside those of other versions.

    python docs/publish.py docs/_build/html SITE          as the version it is of
    python docs/publish.py docs/_build/html SITE dev      as another name

SITE is a folder that any web server can serve, under any address, and that a browser
can open from a disk: nothing in it says where it lies. Each version is a folder of it.
Their names are listed in ``versions.js``, which every page of every version reads, so
that old pages know of new ones; ``index.html`` leads to the newest release.
"""

import argparse
import json
import re
import shutil
import sys
from pathlib import Path

from packaging.version import InvalidVersion, Version

INDEX = """<!doctype html>
<meta charset="utf-8">
<title>skpuffer</title>
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<a href="{newest}/index.html">skpuffer {newest}</a>
"""


def version_of(built):
    """Return the version that a build says it is of."""
    options = built / "_static" / "documentation_options.js"
    if not options.is_file():
        raise ValueError(f"{built} holds no built documentation.")
    return re.search(r"VERSION: '([^']+)'", options.read_text("utf-8"))[1]


def _order(name):
    """Sort what is not released yet first, then releases, the newest first."""
    try:
        version = Version(name)
    except InvalidVersion:
        return (2, Version("0"), name)
    return (0 if version.is_prerelease else 1, version, name)


def versions_in(site):
    """Return the names of all versions: other names, releases, previews of releases."""
    folders = [path.parent for path in site.glob("*/objects.inv")]
    return sorted((path.name for path in folders), key=_order, reverse=True)


def publish(built, site, name=None):
    """Copy a build into a site, whose list of versions is written anew."""
    version = version_of(built)
    name = name or version
    if not re.fullmatch(r"[\w.+-]+", name) or name.startswith("."):
        raise ValueError(f"{name!r} is no name of a version.")
    site.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(site / name, ignore_errors=True)
    unused = shutil.ignore_patterns(".doctrees", ".buildinfo*")
    shutil.copytree(built, site / name, ignore=unused)
    names = versions_in(site)
    (site / "versions.js").write_text(f"otherVersions({json.dumps(names)});\n", "utf-8")
    released = [name for name in names if _order(name)[0] == 1]
    newest = (released or names)[0]
    (site / "index.html").write_text(INDEX.format(newest=newest), "utf-8")
    return names


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("built", type=Path, help="what Sphinx wrote")
    parser.add_argument("site", type=Path, help="the folder of all versions")
    parser.add_argument("name", nargs="?", help="by default the version that was built")
    given = parser.parse_args()
    try:
        listed = publish(given.built, given.site, given.name)
    except ValueError as error:
        sys.exit(str(error))
    print("versions:", *listed)
