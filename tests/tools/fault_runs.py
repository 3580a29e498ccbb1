"""Runs tests against a package as it would be with something else in a file.

No file is written: an import hook compiles a changed tree in the file's stead. Each run
has a process of its own, started from one that has the large libraries imported.
"""

import ast
import contextlib
import importlib.abc
import importlib.machinery
import multiprocessing
import os
import re
import resource
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from .fault_kinds import blocks, inject

#: What every test run imports; the package under test is not among them.
LIBRARIES = ["hypothesis", "numpy", "pandas", "pytest", "scipy.stats", "sklearn.base"]
#: Bytes of memory that a run may take, unless told: a fault may ask for any amount.
MEMORY = 6 * 2**30
#: Name under which a module finds the set of blocks that were run.
_HITS = "__hits__"


class _Finder(importlib.abc.MetaPathFinder):
    """Imports files under a root as trees that `change` returns, or as they are."""

    def __init__(self, root, change):
        self.root, self.change, self.hits = Path(root), change, set()

    def find_spec(self, name, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not isinstance(
            spec.loader, importlib.machinery.SourceFileLoader
        ):
            return None
        origin = Path(spec.origin)
        if not origin.is_relative_to(self.root):
            return None
        file = origin.relative_to(self.root).as_posix()
        tree = self.change(file, origin.read_text())
        if tree is None:
            return None
        spec.loader = _Loader(name, spec.origin, tree, self.hits)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name, path, tree, hits):
        super().__init__(name, path)
        self.tree, self.hits = tree, hits

    def get_code(self, fullname):
        return compile(self.tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module):
        setattr(module, _HITS, self.hits)
        super().exec_module(module)


def instrumented(file, source):
    """Return the tree of a source that notes each block it runs."""
    tree = ast.parse(source)
    for run, start in list(blocks(tree)):
        label = f"{file}:{run[start].lineno}"
        note = ast.parse(f"{_HITS}.add({label!r})").body[0]
        for node in ast.walk(note):
            ast.copy_location(node, run[start])
        run.insert(start, note)
    return ast.fix_missing_locations(tree)


class _Listener:
    """A plugin that gives hypothesis no time to shrink and hears what happens."""

    def __init__(self, send, hits, wanted=None):
        self.send, self.hits, self.wanted = send, hits, wanted
        self.failed = set()

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config):
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(
            "faults", parent=settings.get_profile("fixed"), phases=phases
        )
        settings.load_profile("faults")

    def pytest_collection_modifyitems(self, items):
        if self.wanted is not None:
            place = {name: i for i, name in enumerate(self.wanted)}
            items[:] = sorted(
                (item for item in items if item.nodeid in place),
                key=lambda item: place[item.nodeid],
            )

    def pytest_collectreport(self, report):
        if report.failed:
            self._failure(report)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self._failure(report)

    def _failure(self, report):
        self.failed.add(report.nodeid)
        lines = re.findall(r"^E +(.*)$", str(report.longrepr), re.MULTILINE)
        self.send.send(("failed", report.nodeid, lines[0][:200] if lines else ""))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        start = time.perf_counter()
        self.hits.clear()
        try:
            return (yield)
        finally:
            if item.nodeid not in self.failed:
                seconds = round(time.perf_counter() - start, 3)
                self.send.send(("test", item.nodeid, seconds, sorted(self.hits)))


def _child(send, root, package, fault, tests, memory):
    """Run sessions of tests, up to the first failure if there is a fault."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    os.chdir(root)
    sys.path.insert(0, str(root))

    def change(file, source):
        if fault is not None:
            return inject(source, fault) if file == fault.file else None
        return instrumented(file, source) if file.startswith(f"{package}/") else None

    finder = _Finder(root, change)
    sys.meta_path.insert(0, finder)
    for file, wanted in tests:
        listener = _Listener(send, finder.hits, wanted)
        options = ["-q", "-p", "no:cacheprovider", "-o", "addopts="]
        # plain asserts: a second session here may not rewrite what the first imported
        options += ["--assert=plain", "--import-mode=importlib", "-m", "not slow", file]
        if fault is not None:
            options.append("-x")
        code = pytest.main(options, [listener])
        if fault is not None and code not in (0, 5):
            send.send(("failed", file, f"pytest ended with {code!r}"))
            break
    send.send(("end",))
    send.close()


def run(root, package, fault, tests, limit, memory=MEMORY):
    """Run tests in a process of their own.

    Parameters
    ----------
    root : Path
        Folder of the package and its tests.
    package : str
    fault : Fault or None
        What is wrong; None measures which blocks each test runs.
    tests : list of (str, list of str or None)
        Files of tests, and which of theirs in which order; None for all.
    limit : float
        Seconds after which it is stopped.
    memory : int
        Bytes that it may take.

    Returns
    -------
    passed : list of (test, seconds, blocks)
    failed : (test, message) or None
        The first failure; a run that dies or is stopped has failed.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    receive, send = context.Pipe(duplex=False)
    arguments = send, root, package, fault, tests, memory
    process = context.Process(target=_child, args=arguments)
    process.start()
    send.close()
    passed, failed, ended = [], None, False
    deadline = time.monotonic() + limit
    with contextlib.suppress(EOFError):
        while not ended and receive.poll(max(0.0, deadline - time.monotonic())):
            kind, *rest = receive.recv()
            if kind == "test":
                passed.append(tuple(rest))
            elif kind == "failed" and failed is None:
                failed = tuple(rest)
            ended = kind == "end" or (fault is not None and failed is not None)
    if not ended and failed is None:
        late = time.monotonic() >= deadline
        failed = ("", f"stopped after {limit:.0f} s" if late else "the process died")
    process.kill()
    process.join()
    receive.close()
    return passed, failed


def measure(root, package, file, limit=3600.0):
    """Return the seconds of each passing test of a file, and the tests of each block.

    Returns
    -------
    seconds : dict of str to float
    runs : dict of str to list of str
        Tests by block, "file:line".
    """
    passed, failed = run(root, package, None, [(file, None)], limit)
    if failed is not None:
        raise RuntimeError(f"{file} fails without any fault: {': '.join(failed)}")
    runs = defaultdict(list)
    for test, _, hit in passed:
        for block in hit:
            runs[block].append(test)
    return {test: seconds for test, seconds, _ in passed}, dict(runs)
