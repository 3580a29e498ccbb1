"""How often a reader of one `fit` changes files.

Functions of the package are taken in the order of their first call, each by file and
qualified name, and neighbours from one file count once. Of the sequence of files that
is left, `files` is how many there are and `returns` how many steps go to a file that
was left before.

A function is counted at its first call only, so loops do not count; comprehensions and
lambdas are functions of their own, and the generated methods of a dataclass, which have
no file, are not counted. Noise is not seeded, for the warning of a seed is no part of
the work, and each run has a process of its own, for a second fit finds some answers
kept from the first.

    python -m tests.tools.trace_fit            # the numbers
    python -m tests.tools.trace_fit --show     # and the functions in order
    python -m tests.tools.trace_fit --check    # exit with 1 where a limit is passed
"""

import argparse
import multiprocessing
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

#: The most files and returns that a run may take.
LIMITS = {"PrivateMean": (21, 65), "PrivateSGDClassifier": (29, 96)}


def first_calls(work, package):
    """(file, function) of what `work()` calls in a package, in order of first calls."""
    root = Path(find_spec(package).origin).parent
    seen = {}

    def profile(frame, event, argument):
        if event == "call":
            seen[frame.f_code.co_filename, frame.f_code.co_qualname] = None

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return [
        (str(Path(file).relative_to(root)), function)
        for file, function in seen
        if Path(file).is_relative_to(root)
    ]


def count(calls):
    """The number of files and of returns in a sequence of (file, function)."""
    visits = [file for file, _ in groupby(file for file, _ in calls)]
    files = len(set(visits))
    return files, len(visits) - files


def run(name):
    """The first calls of one named fit on the scaled breast cancer data."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler

    import skpuffer.linear_model as linear_model
    import skpuffer.summary as summary
    from skpuffer.utils._rooms import load_room

    # what modules do when they are first loaded is no part of the work
    load_room("skpuffer")
    X, y = load_breast_cancer(return_X_y=True)
    scaled = StandardScaler().fit_transform(X)
    works = {
        "PrivateMean": lambda: summary.PrivateMean(bounds=(-5, 5)).fit(scaled),
        "PrivateSGDClassifier": lambda: linear_model.PrivateSGDClassifier(
            data_norm=5.0
        ).fit(scaled, y),
        "StandardScaler": lambda: StandardScaler().fit(X),
    }
    package = "sklearn" if name == "StandardScaler" else "skpuffer"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return first_calls(works[name], package)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--show", action="store_true", help="list the calls in order")
    parser.add_argument("--check", action="store_true", help="fail beyond the limits")
    arguments = parser.parse_args()

    over = False
    names = [*LIMITS, "StandardScaler"]
    with ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        for name, calls in zip(names, pool.map(run, names), strict=True):
            files, returns = count(calls)
            limit = ""
            if name in LIMITS:
                most_files, most_returns = LIMITS[name]
                limit = f" (at most {most_files} and {most_returns})"
                over |= files > most_files or returns > most_returns
            print(f"{name}: {files} files, {returns} returns{limit}")
            if arguments.show:
                for file, group in groupby(calls, key=lambda call: call[0]):
                    print(f"  {file}: {', '.join(call[1] for call in group)}")
    return int(arguments.check and over)


if __name__ == "__main__":
    sys.exit(main())
