"""What errors state."""

from skpuffer.exceptions import Statement, stated

__all__ = ["reason_of"]


def reason_of(error: Exception) -> Statement:
    """Return what an error states; of one with words of its own, these.

    Parameters
    ----------
    error : Exception

    Returns
    -------
    Statement
    """
    said = error.args[0] if len(error.args) == 1 else None
    return said if isinstance(said, Statement) else stated(str(error))
