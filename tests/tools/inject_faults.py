"""Makes mechanical faults in the package one at a time: do the tests notice?

Faults are drawn by a seed, over the modules of `PARTS` in proportion to their lines,
and within a module over the kinds of fault. Each meets the tests that run its block of
statements, the quick ones first, up to the first failure. What those leave of the time
goes to tests that run other blocks of its file, for some run at import only, and then
to the other tests of the same files, for a value once computed may be kept. Which test
runs what is measured once for each file of tests and kept in a file, until the package
or the tests' helpers change.

Survivors that cannot be told from the code as it is are argued, one by one, in
`equivalent_faults.json`, under the description printed for them.

    python -m tests.tools.inject_faults --count 200 --resume results.jsonl
    python -m tests.tools.inject_faults --recheck results.jsonl   # its survivors
    python -m tests.tools.inject_faults --only skpuffer/noise --tests tests/noise

Needs what the tests need, and a system that forks.
"""

import argparse
import hashlib
import json
import random
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from .fault_kinds import find_faults
from .fault_runs import measure, run

ROOT = Path(__file__).parents[2]
PACKAGE = "skpuffer"
#: Packages and modules that faults are made in: all that a promise goes through.
PARTS = (
    "_template",
    "accountants",
    "additive",
    "base",
    "certificate",
    "cluster",
    "compose",
    "decomposition",
    "distributions",
    "ensemble",
    "extensions",
    "information",
    "kernel",
    "ledger",
    "linear_model",
    "model_selection",
    "naive_bayes",
    "neural_network",
    "noise",
    "preprocessing",
    "privacy",
    "privacy_loss",
    "releases",
    "scenarios",
    "schema",
    "session/_session",
    "summary",
    "svm",
    "synthesis",
    "training",
    "transport",
    "utils/_bounds",
    "utils/_checks",
    "utils/_clipping",
    "utils/_listeners",
    "utils/_reading",
    "utils/_silence",
)
#: Survivors that compute the same, by key, and why.
EQUIVALENT = Path(__file__).with_name("equivalent_faults.json")
#: Seconds to open one file of tests.
_OPENING = 0.5


def modules(parts=PARTS):
    """Source by file, of the modules of the named parts, but those that display."""
    found = {}
    for part in parts:
        folder = ROOT / PACKAGE / part
        files = sorted(folder.rglob("*.py")) or [folder.with_suffix(".py")]
        for path in files:
            if not path.stem.endswith("display"):
                found[path.relative_to(ROOT).as_posix()] = path.read_text()
    return found


def draw(sources, count, seed):
    """Draw faults: modules by their lines, then kinds, then one of the kind."""
    rng = random.Random(seed)
    left = {file: find_faults(sources[file], file) for file in sources}
    lines = {file: _n_lines(sources[file]) for file in sources if left[file]}
    chosen = []
    total, offset = sum(lines.values()), rng.random()
    reached, due = 0, iter((offset + i) * total / count for i in range(count))
    position = next(due, None)
    for file, n in lines.items():
        reached += n
        while position is not None and position < reached:
            faults = left[file]
            if faults:
                kind = rng.choice(sorted({fault.kind for fault in faults}))
                fault = rng.choice([f for f in faults if f.kind == kind])
                chosen.append(fault)
                left[file] = [f for f in faults if f.line != fault.line]
            position = next(due, None)
    return chosen


def _n_lines(source):
    return sum(bool(line.strip()) for line in source.splitlines())


# -- which tests run what -------------------------------------------------------------


@dataclass(frozen=True)
class Coverage:
    """What the tests of one file run: seconds by test, and tests by block."""

    seconds: dict
    runs: dict

    def covering(self, fault):
        """Tests that run the fault's block, or any of its file if it has none."""
        if fault.block is not None:
            return set(self.runs.get(f"{fault.file}:{fault.block}", ()))
        return self.running(fault.file)

    def running(self, file):
        """Tests that run anything of a file of the package."""
        start = f"{file}:"
        return {
            test
            for block, tests in self.runs.items()
            if block.startswith(start)
            for test in tests
        }


def coverage(paths, kept, jobs):
    """Coverage by file of tests, measured where what is kept is not of today."""
    files = sorted(
        {
            file.relative_to(ROOT).as_posix()
            for path in paths
            for file in ([path] if path.is_file() else path.rglob("test_*.py"))
        }
    )
    common = _digest(
        path
        for folder in (PACKAGE, "tests")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not path.name.startswith("test_")
        and Path(__file__).parent not in path.parents
    )
    digests = {file: common + _digest([ROOT / file]) for file in files}
    found = {}
    if kept.exists():
        for line in kept.read_text().splitlines():
            entry = json.loads(line)
            if digests.get(entry["file"]) == entry["digest"]:
                names = list(entry["seconds"])
                runs = {
                    block: [names[i] for i in places]
                    for block, places in entry["runs"].items()
                }
                found[entry["file"]] = Coverage(entry["seconds"], runs)
    missing = [file for file in files if file not in found]
    with ThreadPoolExecutor(jobs) as pool:
        measured = {pool.submit(measure, ROOT, PACKAGE, file): file for file in missing}
        for done in as_completed(measured):
            file, (seconds, runs) = measured[done], done.result()
            place = {name: i for i, name in enumerate(seconds)}
            entry = {
                "file": file,
                "digest": digests[file],
                "seconds": seconds,
                "runs": {b: [place[test] for test in ts] for b, ts in runs.items()},
            }
            with kept.open("a") as out:
                out.write(json.dumps(entry) + "\n")
            found[file] = Coverage(seconds, runs)
            print(f"measured {file}: {len(seconds)} tests", flush=True)
    return found


def _digest(paths):
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()


def sessions(fault, covered, cap):
    """Choose the tests for a fault: sessions of one file, their seconds, those left."""
    rounds = defaultdict(list)
    for file, known in covered.items():
        covering, near = known.covering(fault), known.running(fault.file)
        others = set(known.seconds) - near if near else set()
        # what runs at import is run by one test only, and matters to many
        for which, tests in enumerate((covering, near - covering, others)):
            if tests:
                rounds[which].append((file, known, tests))

    part = Path(fault.file).parent.name

    def nearness(entry):
        file, known, tests = entry
        return part not in Path(file).parts, sum(known.seconds[t] for t in tests)

    chosen, total, left = [], 0.0, 0
    for which in sorted(rounds):
        for file, known, tests in sorted(rounds[which], key=nearness):
            taken = []
            for test in sorted(tests, key=known.seconds.get):
                cost = known.seconds[test] + _OPENING * (not taken)
                if total + cost <= cap:
                    taken.append(test)
                    total += cost
                elif which == 0:
                    left += 1
            if taken:
                chosen.append((file, taken))
    return chosen, total, left


def try_fault(fault, covered, cap):
    """Run a fault against its tests; what is written of it."""
    chosen, seconds, left = sessions(fault, covered, cap)
    failed = None
    if chosen:
        _, failed = run(ROOT, PACKAGE, fault, chosen, 60.0 + 5 * seconds)
    return {
        "key": fault.key,
        **{k: v for k, v in asdict(fault).items() if k != "place"},
        "caught": failed is not None,
        "by": failed and " ".join(": ".join(failed).split()),
        "n_tests": sum(len(tests) for _, tests in chosen),
        "n_left_out": left,
    }


# -- the command ----------------------------------------------------------------------


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=200, help="number of faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", nargs="+", default=[""], help="faults in files that begin with these"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of tests for one fault"
    )
    parser.add_argument(
        "--tests", nargs="*", type=Path, default=[Path("tests")], help="where to look"
    )
    parser.add_argument(
        "--map",
        type=Path,
        default=ROOT / ".fault_map.jsonl",
        help="where it is kept which test runs what",
    )
    parser.add_argument(
        "--resume", type=Path, help="write results here, skip what is there"
    )
    parser.add_argument("--recheck", type=Path, help="the survivors in these results")
    return parser.parse_args()


def _read(path):
    if path is None or not path.exists():
        return {}
    lines = path.read_text().splitlines()
    return {(entry["file"], entry["key"]): entry for entry in map(json.loads, lines)}


def _say(entry, argued):
    verdict = f"caught by {entry['by']}"
    if not entry["caught"]:
        verdict = f"SURVIVED {entry['n_tests']} tests, {entry['n_left_out']} left out"
        if entry["key"] in argued:
            verdict = f"EQUIVALENT: {argued[entry['key']]}"
    elif entry["key"] in argued:
        verdict += " THOUGH ARGUED EQUIVALENT"
    print(f"{entry['file']}:{entry['line']}: {entry['key']}\n    {verdict}", flush=True)


def main():
    arguments = _arguments()
    argued = json.loads(EQUIVALENT.read_text())
    sources = modules()
    known = Counter(
        fault.key
        for file, source in sources.items()
        for fault in find_faults(source, file)
    )
    for key in argued:
        if known[key] != 1:
            print(f"{EQUIVALENT.name}: {known[key]} faults are described by {key}")

    sources = {f: s for f, s in sources.items() if f.startswith(tuple(arguments.only))}
    results = _read(arguments.resume)
    if arguments.recheck:
        entries = _read(arguments.recheck).values()
        again = {entry["key"] for entry in entries if not entry["caught"]}
        drawn = [
            fault
            for file, source in sources.items()
            for fault in find_faults(source, file)
            if fault.key in again
        ]
    else:
        drawn = draw(sources, arguments.count, arguments.seed)
        drawn = [f for f in drawn if (f.file, f.key) not in results]
    covered = coverage(
        [ROOT / path for path in arguments.tests], arguments.map, arguments.jobs
    )
    with ThreadPoolExecutor(arguments.jobs) as pool:
        waiting = [
            pool.submit(try_fault, fault, covered, arguments.seconds) for fault in drawn
        ]
        for done in as_completed(waiting):
            entry = done.result()
            results[entry["file"], entry["key"]] = entry
            _say(entry, argued)
            if arguments.resume:
                with arguments.resume.open("a") as out:
                    out.write(json.dumps(entry) + "\n")
    survived = [e["key"] for e in results.values() if not e["caught"]]
    equivalent = sum(key in argued for key in survived)
    caught = len(results) - len(survived)
    real = len(results) - equivalent
    print(
        f"{caught} of {real} faults caught ({caught / max(real, 1):.1%}); "
        f"{equivalent} more compute the same"
    )
    return int(caught < real)


if __name__ == "__main__":
    sys.exit(main())
