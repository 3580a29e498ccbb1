"""Which tests are dear: those of which a run of everything takes a share.

    python -m tests.tools.dear_tests             # writes tests/dear_tests.txt
    python -m tests.tools.dear_tests tests/noise # prints what these paths take

All cases of all tests run once, and what a process of theirs takes is counted, whatever
else the machine does. Those whose cases take more than `NOTED` seconds each are noted.
"""

import resource
import sys
from collections import defaultdict

import pytest

from tests.conftest import DEAR

#: Seconds of a case from which a test is noted.
NOTED = 0.05


def _spent():
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, kinds))


class Clock:
    """What each test took, by name."""

    def __init__(self):
        self.seconds = defaultdict(list)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        before = _spent()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid.split("[")[0]].append(_spent() - before)


def main(paths):
    clock = Clock()
    every = paths or ["tests"]
    code = pytest.main(["-q", "-p", "no:xdist", *every], plugins=[clock])
    means = {name: sum(took) / len(took) for name, took in clock.seconds.items()}
    dear = sorted(name for name, mean in means.items() if mean > NOTED)
    if paths:
        for name in sorted(dear, key=means.get):
            print(f"{means[name]:7.2f} s, {len(clock.seconds[name])} cases: {name}")
    else:
        DEAR.write_text(
            "".join(f"{means[name]:.2f} {name}\n" for name in dear), encoding="utf-8"
        )
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
