"""Public rows of a belief, read once."""

from collections.abc import Callable, Iterable
from typing import Any

import joblib

from skpuffer.exceptions import ScenarioError

from ._belief import Belief
from ._laws import Laws
from ._tables import ReferenceTable

__all__ = ["PublicRowsBelief"]


class PublicRowsBelief(Belief):
    """Base of beliefs with public rows, the parameter `rows`, which it reads once.

    Rows and a classifier of them are known by identity, as to compare tables each time
    would take longer than to fit. So they are as they were when they were first read,
    whatever is done to them in place afterwards; all other parameters count as they
    are.
    """

    rows: Any

    def table(self) -> ReferenceTable:
        """Return the public rows, as they were when they were first read."""
        kept = vars(self).get("_kept_table")
        if kept is None or kept[0] is not self.rows:
            try:
                kept = self.rows, ReferenceTable(self.rows)
            except ScenarioError:
                raise ScenarioError(
                    f"The parameter 'rows' of {type(self).__name__} must be a table of "
                    "public rows: a data frame, or an array of two dimensions."
                ) from None
            self._kept_table = kept
        table: ReferenceTable = kept[1]
        return table

    def _once(
        self, made: Callable[[], Laws], shared: Iterable[str], *content: Any
    ) -> Laws:
        """What a function makes of parameters, made anew where one is another.

        Parameters
        ----------
        made : callable
        shared : iterable of str
            Parameters that are known by identity.
        *content : objects
            All else that it depends on.
        """
        key = [getattr(self, name) for name in shared]
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

    # whoever hashes a belief, or sends it elsewhere, must not see that it was used
    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        for name in ("_kept_table", "_kept_laws"):
            state.pop(name, None)
        return state


def _digest(content: Any) -> Any:
    try:
        return joblib.hash(content)
    except Exception:  # what cannot be hashed is refused where it is read
        return object()
