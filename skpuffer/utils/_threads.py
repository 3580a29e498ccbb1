"""Threads of linear algebra, where one is quicker than many."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["one_blas_thread"]


@functools.cache
def _controller() -> ThreadpoolController:
    # it looks through all libraries that are loaded, which takes long
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which products of matrices take one thread.

    Returns
    -------
    context manager
        For many small products, of which each would wait for threads, and for sums that
        are the same to the last digit on machines of any number of cores.
    """
    one: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return one
