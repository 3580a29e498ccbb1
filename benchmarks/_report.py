"""What every benchmark does with its figures: print a small table, store a CSV."""

import platform
from importlib.metadata import version
from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).parent / "results"


def versions(*packages):
    """Python's version and those of the packages, by name."""
    return {
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def print_table(rows, header=None):
    """Print rows of strings in columns: the first to the left, the others right."""
    rows = [[str(cell) for cell in row] for row in ([header] if header else []) + rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip())


def write_csv(frame, name):
    """Store a data frame in the folder of results."""
    RESULTS.mkdir(exist_ok=True)
    frame.to_csv(RESULTS / name, index=False, lineterminator="\n")


def read_csv(name, columns):
    """Return the stored data frame of that name, or an empty one of those columns."""
    path = RESULTS / name
    return pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=columns)


def renewed(old, new, key):
    """Return old and new rows, the new ones in place of old ones of the same key."""
    if old.empty:
        return new
    joined = pd.concat([old, new], ignore_index=True)
    return joined.drop_duplicates(key, keep="last")
