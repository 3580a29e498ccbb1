"""Public rows of a belief, read once."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import joblib

from skpuffer.exceptions import ScenarioError, Statement

from ._belief import Belief
from ._laws import Laws
from ._tables import ReferenceTable

__all__ = ["PublicRowsBelief"]

#: What pickling raises of a lambda, and of a lock, a file or a generator.
_NO_PICKLE = (TypeError, pickle.PicklingError)
#: A copy is made as if pickled; and a classifier of tensors may hold some that refuse.
_NO_COPY = (*_NO_PICKLE, copy.Error, RuntimeError)


class PublicRowsBelief(Belief):
    """Base of beliefs with public rows, the parameter `rows`, which it reads once.

    Rows and a classifier of them are known by identity, as to compare tables each time
    would take longer than to fit. So they are as they were when they were first read,
    whatever is done to them in place afterwards; all other parameters count as they
    are. A copy, pickled or not, is of what was read: in another process it is the same
    belief.
    """

    rows: Any

    #: Parameters that are known by identity, and read once.
    _shared: tuple[str, ...] = ("rows",)

    def table(self) -> ReferenceTable:
        """Return the public rows, as they were when they were first read."""
        try:
            table: ReferenceTable = self._read("rows")
        except ScenarioError:
            raise ScenarioError(
                Statement("prior.rows_not_a_table", owner=type(self).__name__)
            ) from None
        return table

    def _read(self, name: str) -> Any:
        """Return a shared parameter, as it was when it was first read."""
        given, kept = getattr(self, name), vars(self).get("_kept_read", {})
        if name not in kept or kept[name][0] is not given:
            read = ReferenceTable(given) if name == "rows" else _copied(given)
            # a new dict, as clones share the old one
            self._kept_read = kept = {**kept, name: (given, read)}
        return kept[name][1]

    def _once(self, made: Callable[[], Laws], *content: Any) -> Laws:
        """What a function makes of parameters, made anew where one is another.

        Parameters
        ----------
        made : callable
            Of the shared parameters, as they were read.
        *content : objects
            All else that it depends on.
        """
        key = [getattr(self, name) for name in self._shared]
        digest = _digest(content)
        kept = vars(self).get("_kept_laws")
        if (
            kept is None
            or kept[1] != digest
            or any(a is not b for a, b in zip(kept[0], key, strict=True))
        ):
            kept = self._kept_laws = key, digest, made()
        laws: Laws = kept[2]
        return laws

    # Whoever hashes a belief must not see that it was used: so it is always read here,
    # and what was made of it is left out.
    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        for name in self._shared:
            try:
                state[name] = self._read(name)
            except (TypeError, ValueError):
                # what is no table, or no rows of numbers, is refused where it is used
                continue
        for name in ("_kept_read", "_kept_laws"):
            state.pop(name, None)
        return state


def _copied(given: Any) -> Any:
    try:
        return copy.deepcopy(given)
    except _NO_COPY:  # of what cannot be copied there is this one only
        return given


def _digest(content: Any) -> Any:
    try:
        return joblib.hash(content)
    except _NO_PICKLE:  # what cannot be hashed is refused where it is read
        return object()
