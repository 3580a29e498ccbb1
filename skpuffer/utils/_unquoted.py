"""Calls of foreign code on private values, with its messages withheld."""

import traceback
from collections.abc import Callable
from typing import Any

from scipy import sparse
from sklearn.exceptions import NotFittedError

from skpuffer.exceptions import Statement

from ._silence import silence

__all__ = ["unquoted"]


def unquoted(owner: object, call: Callable[..., Any], *args: Any) -> Any:
    """Call a function of private values and withhold its error messages.

    An error of a transformer or an estimator may quote a cell of the table. Its kind is
    passed on, its words are not, and no chained error holds them. Our own errors quote
    nothing and pass. Of warnings, prints and logs nothing is passed on, as that there
    were any tells of the rows.

    Parameters
    ----------
    owner : str
        Whose code it is, for the message.
    call : callable
    *args : tuple

    Returns
    -------
    object
        What the call returns.

    Raises
    ------
    ValueError
        If it raises.
    """
    raised = kind = None
    # warnings and prints may quote a cell as well as errors may
    with silence():
        try:
            returned = call(*args)
        except Exception as error:
            # the class alone: its text and its attributes may hold values
            kind = type(error).__name__
            if _is_ours(error):
                raised = error
    if raised is not None:
        # a chained error of foreign code would be printed with it
        raised.__cause__ = raised.__context__ = None
        raise raised
    if kind is not None:
        # outside of `except`, so that the error is not chained to this one
        raise ValueError(
            Statement(
                "table.error_text_withheld",
                owner=owner,
                kind=kind,
                given=_given(args),
                withheld=_WITHHELD,
            )
        )
    return returned


_WITHHELD = Statement("table.withheld_private_values")


def _given(args: tuple[Any, ...]) -> Statement | str:
    """Public description of the table that the call was given."""
    # the number of records and of features is public by assumption
    shape: tuple[int, ...] = getattr(args[0], "shape", ())
    if len(shape) != 2:
        return ""
    kind = "sparse" if sparse.issparse(args[0]) else "dense"
    return Statement(
        "table.error_on_data_shape", kind=kind, shape=shape[0], shape2=shape[1]
    )


def _is_ours(error: Exception) -> bool:
    if isinstance(error, NotFittedError):
        return True  # said before data is looked at
    # by where it was raised, the innermost frame, not by its class: any code may raise
    # a ValueError
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    module: str = frame.f_globals.get("__name__", "")
    return module.startswith("skpuffer.")
