"""The English of assumptions, reasons, refusals and warnings.

All of it lies in ``english.toml``: a template for each code, by topic.
"""

import tomllib
from functools import cache
from importlib import resources

from skpuffer.exceptions import Statement

__all__ = ["render"]


@cache
def _english() -> dict[str, dict[str, str]]:
    text = resources.files(__name__).joinpath("english.toml").read_text("utf-8")
    return tomllib.loads(text)


def render(statement: Statement) -> str:
    """Write a statement in words.

    Parameters
    ----------
    statement : Statement
        What is stated. A code of another version is shown as it is.

    Returns
    -------
    str
        One or more sentences, or a part of one.
    """
    topic, _, name = statement.code.partition(".")
    template = _english().get(topic, {}).get(name)
    return (
        repr(statement)
        if template is None
        else template.format_map(statement.parameters)
    )
