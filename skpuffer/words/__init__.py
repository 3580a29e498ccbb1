"""The English of assumptions, reasons, refusals and warnings.

All of it lies in ``english.toml``: a template for each code, by topic. A template holds
the parameters of its statement in braces, as :meth:`str.format` reads them. A list is
joined by what stands behind the colon: ``{names:, }``, or each quoted by
``{names!q:, }``.
"""

import string
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from skpuffer.exceptions import Statement


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


def render(statement: Statement) -> str:
    """Write a statement in words.

    Parameters
    ----------
    statement : Statement
        What is stated. A code that this version does not know is shown as it is.

    Returns
    -------
    str
        One or more sentences, or a part of one.
    """
    topic, _, name = statement.code.partition(".")
    template = _english().get(topic, {}).get(name)
    if template is None:
        return repr(statement)
    return _Formatter().vformat(template, (), statement.parameters)
