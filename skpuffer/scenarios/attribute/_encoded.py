"""Columns whose names say that they hold the secret, misspelt or encoded."""

import re
from collections.abc import Hashable, Iterable
from typing import Any

__all__ = ["named_after"]

#: What words of a name are separated by.
_BETWEEN = r"[\s_=.:|/-]+"

#: What encoders put between the name of a column and one of its values: race_White,
#: race=White, race__White, race[T.White].
_ENCODED = rf"(?:{_BETWEEN}|\[(?:t\.)?)(?P<value>.+?)\]?"

#: Where a word ends without a separator: isRace, HTTPRace, race1, 1race.
_ENDS = re.compile(
    r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
    r"|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])"
)


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
        Spelt as the secret but for case and separators, with or without what a step
        put before it; or named after the secret and one of its values.
    likely : list
        Named after the secret and something else, before it or behind.
    """
    texts = {text.casefold() for value in values for text in _texts(value)}
    encoded = re.compile(re.escape(secret.casefold()) + _ENCODED)
    spelt, words = _spelling(secret), _words(secret)
    certain, likely = [], []
    for name in names:
        text = str(name)
        # with and without what a step put before it
        own = text.rpartition("__")[2]
        found = [encoded.fullmatch(part.casefold()) for part in (text, own)]
        held = [match["value"].strip() for match in found if match]
        misspelt = name != secret and spelt in {_spelling(text), _behind_step(text)}
        if misspelt or not texts.isdisjoint(held):
            certain.append(name)
        elif held or (name != secret and _within(words, _words(text))):
            likely.append(name)
    return certain, likely


def _spelling(text: str) -> str:
    """Name without regard to case and separators; as it is where it has none else."""
    folded = text.casefold()
    return re.sub(_BETWEEN, " ", folded).strip() or folded


def _behind_step(text: str) -> str:
    """Spelling of a name without what a step put before it."""
    # not the separators at its end, which may be two: race__
    return _spelling(re.sub(rf"{_BETWEEN}$", "", text).rpartition("__")[2])


def _words(text: str) -> list[str]:
    """Words of a name, split at separators, capitals and numbers."""
    return re.findall(r"[^\W_]+", _ENDS.sub(" ", text).casefold())


def _within(words: list[str], among: list[str]) -> bool:
    """Whether words follow each other among others."""
    n = len(words)
    starts = range(len(among) - n + 1 if n else 0)
    return any(among[i : i + n] == words for i in starts)


def _texts(value: Any) -> Iterable[str]:
    yield str(value)
    # the number one, of whatever type a table keeps it in
    if isinstance(value, int | float) and float(value).is_integer():
        yield from (str(int(value)), str(float(value)))
