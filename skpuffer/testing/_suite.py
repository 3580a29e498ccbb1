"""Suites of named checks, and what their checks are written with."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import Any

from skpuffer.exceptions import Statement

#: A name, and a function that raises AssertionError where something falls short.
Check = tuple[str, Callable[[], None]]


class Suite:
    """Checks of one thing: its methods whose names begin with ``check_``.

    A method runs once for each combination of what `values` gives for its parameters.
    """

    def values(self) -> dict[str, Sequence[Any]]:
        """Return what the parameters of checks stand for, by name."""
        return {}

    def checks(self) -> list[Check]:
        """Return all checks, by name."""
        values = self.values()
        found: list[Check] = []
        for name in filter(lambda name: name.startswith("check_"), dir(self)):
            method = getattr(self, name)
            asked = [values[each] for each in inspect.signature(method).parameters]
            for chosen in product(*asked):
                label = "-".join([name, *map(_told, chosen)])
                found.append((label, partial(method, *chosen)))
        return found


def _told(value: object) -> str:
    if isinstance(value, dict):
        return "-".join(f"{name}={shown}" for name, shown in value.items()) or "default"
    return str(value)


def run_all(checks: list[Check]) -> None:
    """Run checks up to the first that fails; an AssertionError then has its name."""
    for name, check in checks:
        try:
            check()
        except Exception as error:
            why = error if isinstance(error, AssertionError) else repr(error)
            raise AssertionError(f"{name}: {why}") from error


def parametrize_checks(checks: Sequence[Check]) -> Any:
    """Return a decorator by which pytest runs each of some checks as a test.

    Parameters
    ----------
    checks : list of (str, callable)
        As :func:`noise_checks`, :func:`scenario_checks`, :func:`accountant_checks` and
        :func:`privacy_checks` return them.

    Returns
    -------
    decorator
        Of a test function with the parameter `check`.

    Examples
    --------
    >>> from skpuffer.summary import PrivateMean
    >>> from skpuffer.testing import parametrize_checks, privacy_checks
    >>> @parametrize_checks(privacy_checks(PrivateMean(bounds=(-10, 10))))
    ... def test_mean(check):
    ...     check()
    >>> [mark.name for mark in test_mean.pytestmark]
    ['parametrize']
    """
    import pytest  # by those who have it

    named = [pytest.param(check, id=name) for name, check in checks]
    return pytest.mark.parametrize("check", named)


def close(value: Any, expected: Any, rel: float = 1e-6, abs: float = 1e-12) -> bool:
    """Whether a number is about another one."""
    return math.isclose(value, expected, rel_tol=rel, abs_tol=abs)


def at_most(value: float, bound: float, slack: float = 1e-12) -> bool:
    """Whether a number is at most a bound, but for rounding."""
    return value <= bound * (1 + slack)


# -- what is refused -------------------------------------------------------------------


def statements_in(found: Any) -> Iterator[Statement]:
    """All statements of an error, of a statement or of a collection of them."""
    if isinstance(found, BaseException):
        yield from statements_in(found.args)
    elif isinstance(found, Statement):
        yield found
        yield from statements_in(found.parameters)
    elif isinstance(found, Mapping):
        yield from statements_in(list(found.values()))
    elif isinstance(found, list | tuple | set | frozenset):
        for part in found:
            yield from statements_in(part)


@contextmanager
def raises(
    kinds: type[Exception] | tuple[type[Exception], ...],
    *words: str,
    code: str | tuple[str, ...] = (),
) -> Iterator[None]:
    """Assert that an error of a kind is raised, whose text has some words in it.

    Or, where there is a code, that it states what the code, or one of them, names.
    """
    codes = {code} if isinstance(code, str) else set(code)
    try:
        yield
    except kinds as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"{missing} not named in: {error}"
        stated = {statement.code for statement in statements_in(error)}
        assert not codes or codes & stated, f"{codes} not stated by {error!r}"
    else:
        raise AssertionError(f"nothing was refused: {[*words, *codes]}")
