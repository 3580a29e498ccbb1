"""Assertions on what is refused or warned of, by code and parameters."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from skpuffer.exceptions import Statement
from skpuffer.testing._suite import statements_in

__all__ = ["codes_of", "refused", "says", "statements_in", "warned"]


def codes_of(found: Any) -> set[str]:
    """Codes of all that is stated somewhere in an error, a statement or assumptions."""
    return {statement.code for statement in statements_in(found)}


def says(found: Any, code: str | tuple[str, ...], /, **parameters: Any) -> bool:
    """Whether a statement of such a code and parameters is in what is said."""
    codes = (code,) if isinstance(code, str) else code
    asked = Statement("", **parameters)
    for statement in statements_in(found):
        held = statement.parameters
        part = {name: held[name] for name in parameters if name in held}
        # as statements, for which a list equals a tuple
        if statement.code in codes and Statement("", **part) == asked:
            return True
    return False


@contextmanager
def refused(
    kind: Any, code: str | tuple[str, ...], /, **parameters: Any
) -> Iterator[pytest.ExceptionInfo]:
    """Assert that an error of a kind states what the code names, with parameters."""
    with pytest.raises(kind) as caught:
        yield caught
    assert says(caught.value, code, **parameters), repr(caught.value)


@contextmanager
def warned(
    kind: Any, code: str | tuple[str, ...], /, **parameters: Any
) -> Iterator[Any]:
    """Assert that a warning of a kind states what the code names, with parameters."""
    with pytest.warns() as caught:
        yield caught
    said = [
        isinstance(w.message, kind) and says(w.message, code, **parameters)
        for w in caught
    ]
    assert any(said), [w.message for w in caught]
    # what else was said is for others to hear
    for w, of_this in zip(caught, said, strict=True):
        if not of_this:
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
