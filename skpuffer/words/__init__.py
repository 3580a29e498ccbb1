"""The English of assumptions, reasons, refusals and warnings.

All of it lies in ``english.toml``: a template for each code, by topic. A template holds
the parameters of its statement in braces, as :meth:`str.format` reads them. A list is
joined by what stands behind the colon: ``{names:, }``, or each quoted by
``{names!q:, }``.
"""

import string
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from skpuffer.exceptions import Statement, value_error

__all__ = ["add_words"]


class _Formatter(string.Formatter):
    def convert_field(self, value: Any, conversion: Any) -> Any:
        if conversion == "q":
            return [repr(one) for one in value]
        return super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec and isinstance(value, list | tuple):
            return format_spec.join(map(str, value))
        return str(super().format_field(value, format_spec))


@cache
def _english() -> dict[str, dict[str, str]]:
    text = resources.files(__name__).joinpath("english.toml").read_text("utf-8")
    return tomllib.loads(text)


#: Templates that other distributions gave, by topic.
_OTHERS: dict[str, dict[str, str]] = {}


def add_words(topic: str, templates: Mapping[str, str]) -> None:
    """Give the words of the statements of another distribution.

    Parameters
    ----------
    topic : str
        Part before the dot in the codes of these statements. It must be no topic of
        this library, and no other distribution's; the name of the distribution is a
        good one.
    templates : dict of {str: str}
        By what stands behind the dot. Parameters stand in braces.

    Raises
    ------
    ValueError
        If the topic has other words already.

    Examples
    --------
    >>> from skpuffer.exceptions import Statement
    >>> from skpuffer.words import add_words
    >>> add_words("mylab", {"sensor_drift": "The sensor drifts by at most {most}."})
    >>> print(Statement("mylab.sensor_drift", most=0.1))
    The sensor drifts by at most 0.1.
    """
    given = dict(templates)
    if topic in _english() or _OTHERS.setdefault(topic, given) != given:
        raise value_error("parameter.topic_has_words", topic=topic)


def render(statement: Statement) -> str:
    """Write a statement in words.

    Parameters
    ----------
    statement : Statement
        Statement to put into words. A code that this version does not know is shown as
        it is.

    Returns
    -------
    str
        One or more sentences, or a part of one.
    """
    topic, _, name = statement.code.partition(".")
    template = (_english() | _OTHERS).get(topic, {}).get(name)
    if template is None:
        return repr(statement)
    return _Formatter().vformat(template, (), statement.parameters)
