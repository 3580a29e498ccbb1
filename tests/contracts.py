"""Suites of `skpuffer.testing` as classes of tests: a class is a suite, filled in."""


class OfSuite:
    """Inherit beside a suite: each of its checks becomes a test."""

    def pytest_generate_tests(self, metafunc):
        if "check" in metafunc.fixturenames:
            checks = dict(self.checks())
            metafunc.parametrize("check", checks.values(), ids=checks)

    def test_contract(self, check):
        check()
