"""Sums of gradients of all records, made part by part by the workers of joblib."""

from __future__ import annotations

import sys
import threading
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed

from skpuffer.releases import GradientRelease
from skpuffer.utils._threads import threadpool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skpuffer.kernel.numbers import Floats

    from ._base import Gradients


#: What is left to a worker at least: joblib takes some 10 milliseconds to ask all, in
#: which so many rows, or bytes of them, are summed up here.
_FEWEST_ROWS, _FEWEST_BYTES = 2**17, 2**26

#: Seconds after which a process forgets records that it is not asked about.
_SECONDS_KEPT = 60.0

#: Bytes of a file that are kept in memory: of more, joblib would stop a worker that
#: seems to lose memory.
_BYTES_KEPT = 2**27


def most_workers(gradients: Gradients) -> int:
    """Return how many workers there are records enough for."""
    rows = gradients.rows
    return max(rows.n_records // _FEWEST_ROWS, sys.getsizeof(rows) // _FEWEST_BYTES)


class _Kept:
    """Records of the last run that a process made sums of, until it is not asked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: tuple[str, Gradients] | None = None
        self._asked = 0.0
        self._is_watched = False

    def keep(self, run: str, gradients: Gradients) -> None:
        """Take the records of a run in the place of those of another."""
        with self._lock:
            self._held, self._asked = (run, gradients), time.monotonic()
            self._watch()

    def of(self, run: str) -> Gradients | None:
        """Return what is kept of a run, if anything is."""
        with self._lock:
            if self._held is None or self._held[0] != run:
                return None
            self._asked = time.monotonic()
            return self._held[1]

    def forget(self, run: str) -> None:
        """Let go of what is kept of a run."""
        with self._lock:
            if self._held is not None and self._held[0] == run:
                self._held = None

    def _watch(self) -> None:
        if self._is_watched or self._held is None:
            return
        self._is_watched = True
        timer = threading.Timer(_SECONDS_KEPT / 2, self._look)
        timer.daemon = True
        timer.start()

    def _look(self) -> None:
        with self._lock:
            if time.monotonic() - self._asked > _SECONDS_KEPT:
                self._held = None
            self._is_watched = False
            self._watch()


#: What need not be sent at each step.
_KEPT = _Kept()


def _part_sums(
    run: str,
    gradients: Gradients | None,
    parts: Sequence[slice],
    parameters: Floats,
    release: GradientRelease,
) -> tuple[Floats, bool] | None:
    """Sums over parts of the records, and whether this process keeps the records.

    None where it was not given them and has them no more.
    """
    is_kept = True
    if gradients is None:
        gradients = _KEPT.of(run)
        if gradients is None:
            return None
    else:
        is_kept = not gradients.rows.is_mapped or sys.getsizeof(gradients) < _BYTES_KEPT
        if is_kept:
            _KEPT.keep(run, gradients)
    # other threads may make sums of the same records
    reader = gradients.reader()
    # what overflows is looked for at the end of a run
    with (
        threadpool().limit(limits=1, user_api="blas"),
        np.errstate(over="ignore", under="ignore", invalid="ignore"),
    ):
        sums = list(reader.part_sums(parameters, None, release, parts))
    return np.array(sums), is_kept


def _forget(run: str) -> None:
    _KEPT.forget(run)


class SpreadSums:
    """Sums of the clipped gradients of all records, by workers.

    Parameters
    ----------
    n_workers : int
        Workers, of which each sums up a share of the records.

    Notes
    -----
    A worker is sent the records when it is first asked, and parameters at each step.
    Its sums of parts are added up here in their order, so the total is the same to the
    last digit. Workers draw nothing.
    """

    def __init__(self, gradients: Gradients, n_workers: int) -> None:
        self._gradients = gradients
        parts = gradients.rows.parts(gradients.rows.n_records)
        ends = np.linspace(0, len(parts), min(n_workers, len(parts)) + 1).astype(int)
        self._shares = [
            parts[start:stop] for start, stop in zip(ends[:-1], ends[1:], strict=True)
        ]
        # one worker for each share, all asked at once
        self._parallel = Parallel(n_jobs=n_workers, batch_size=1, pre_dispatch="all")
        self._run, self._are_kept = uuid.uuid4().hex, False

    def __enter__(self) -> SpreadSums:
        self._parallel.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            # Most of them: which worker is asked is not ours to say. The sums are made,
            # so that one that is gone does not matter.
            if error[0] is None:
                with suppress(Exception):
                    self._parallel(delayed(_forget)(self._run) for _ in self._shares)
        finally:
            _forget(self._run)  # threads of this process
            self._parallel.__exit__(*error)

    def __call__(
        self, parameters: Floats, index: None, release: GradientRelease
    ) -> Floats:
        """Return the sum of clipped gradients of all records."""
        # of the release what clips: the rest may be long, or private
        clipping = GradientRelease(
            n_records=release.n_records,
            n_steps=1,
            sampling="full_batch",
            clip_norm=release.clip_norm,
            clip_order=release.clip_order,
            blocks=release.blocks,
        )
        if not self._are_kept:
            self._gradients.settle(clipping)
        found = self._ask(self._shares, not self._are_kept, parameters, clipping)
        # a worker that was not asked before, or not for long
        lacking = [i for i, sums in enumerate(found) if sums is None]
        if lacking:
            shares = [self._shares[i] for i in lacking]
            again = self._ask(shares, True, parameters, clipping)
            for i, sums in zip(lacking, again, strict=True):
                found[i] = sums
        self._are_kept = all(is_kept for _, is_kept in found)
        total = np.zeros(self._gradients.dim)
        for sums, _ in found:
            for part in sums:
                total += part
        return total

    def _ask(self, shares: Sequence[Sequence[slice]], is_sent: bool, *at: Any) -> Any:
        """Sums over shares of the records, one call for all of them."""
        # each an object of its own: a cluster asks where an object lies, and that would
        # be one worker for all
        return self._parallel(
            delayed(_part_sums)(
                self._run, self._gradients.reader() if is_sent else None, share, *at
            )
            for share in shares
        )
