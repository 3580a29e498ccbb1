"""A certificate as sections of a model card."""

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ._display import certificate_rows

if TYPE_CHECKING:
    from ._certificate import Certificate

__all__ = ["certificate_card"]


def certificate_card(certificate: "Certificate") -> dict[str, str]:
    """Return sections of a model card, as Markdown by title."""
    kind = "This is a guarantee." if certificate.certified else _ESTIMATE
    card = {
        "Privacy": kind,
        "Privacy/Certificate": _bullets(
            f"**{name}**: {_plain(value)}"
            for name, value in certificate_rows(certificate)
        ),
    }
    if certificate.assumptions:
        card["Privacy/Assumptions"] = _bullets(map(_plain, certificate.assumptions))
    card["Privacy/Check"] = _CHECK
    return card


#: How whoever reads the card checks the numbers.
_CHECK = """\
Beside this card belongs the JSON of `certificate.to_dict()`. Without any data,
`python -m skpuffer.certificate FILE` recomputes from it the numbers that follow from
others, by a second path, and names those that cannot be recomputed. Whether the
assumptions are true is not checked, nor who wrote the file."""

_ESTIMATE = "**This is an estimate, no guarantee.**"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _plain(said: object) -> str:
    """Return text that Markdown shows as it is."""
    text = str(said)
    for mark in ("\\", "*", "_", "`", "[", "|"):
        text = text.replace(mark, f"\\{mark}")
    return html.escape(text, quote=False)
