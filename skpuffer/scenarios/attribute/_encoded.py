"""Columns whose names say that they hold the secret, encoded by a step before."""

import re
from collections.abc import Hashable, Iterable
from typing import Any

__all__ = ["named_after"]

#: What encoders put between the name of a column and one of its values: race_White,
#: race=White, race__White, race[T.White].
_ENCODED = r"(?:[\s_=.:|/-]+|\[(?:t\.)?)(?P<value>.+?)\]?"


def named_after(
    secret: str, names: Iterable[Hashable], values: Iterable[Any] = ()
) -> tuple[list[Hashable], list[Hashable]]:
    """Return the columns that are named after the secret, certainly and perhaps.

    Parameters
    ----------
    secret : str
        Name of the secret column.
    names : iterable
        Of the columns that are read.
    values : iterable, default=()
        Of the secret, where they are declared.

    Returns
    -------
    certain : list
        Named as steps that join several name what they pass on, or after the secret and
        one of its values.
    likely : list
        Named after the secret and something else.
    """
    texts = {text.casefold() for value in values for text in _texts(value)}
    encoded = re.compile(re.escape(secret.casefold()) + _ENCODED)
    certain, likely = [], []
    for name in names:
        text = str(name)
        # with and without what a step put before it
        step, joined, own = text.rpartition("__")
        found = [encoded.fullmatch(part.casefold()) for part in (text, own)]
        held = [match["value"].strip() for match in found if match]
        if (joined and own == secret) or not texts.isdisjoint(held):
            certain.append(name)
        elif held:
            likely.append(name)
    return certain, likely


def _texts(value: Any) -> Iterable[str]:
    yield str(value)
    # the number one, of whatever type a table keeps it in
    if isinstance(value, int | float) and float(value).is_integer():
        yield from (str(int(value)), str(float(value)))
