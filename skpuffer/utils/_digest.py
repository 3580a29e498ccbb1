"""Digest of plain data: whether it is as it was written, and not who wrote it."""

import hashlib
import json
from typing import Any

__all__ = ["digest_of_plain"]


def digest_of_plain(plain: dict[str, Any]) -> str:
    """Return the digest of plain data, whatever tool has written it since.

    An integrity check and no signature: whoever changes the data can make it anew.

    Parameters
    ----------
    plain : dict
        Of what JSON can hold; numbers of no more than 17 digits.

    Returns
    -------
    str
        ``sha256:`` and the digest in hexadecimal digits: of the data as JSON in ASCII,
        keys in order, without spaces, each number as the format ``%.17g`` of C has it.
    """
    return f"sha256:{hashlib.sha256(_canonical(plain).encode('ascii')).hexdigest()}"


def _canonical(value: Any) -> str:
    if isinstance(value, dict):
        parts = (f"{json.dumps(k)}:{_canonical(value[k])}" for k in sorted(value))
        return f"{{{','.join(parts)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_canonical, value))}]"
    # a tool between may write 1.0 as 1, and mean the same
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.17g}"
    return json.dumps(value)
