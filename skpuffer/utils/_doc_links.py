"""Links from the HTML of an estimator to its page in the documentation."""

from __future__ import annotations

import importlib.metadata
import os
from functools import cache
from typing import Any, TypeVar
from urllib.parse import quote

__all__ = ["linked_to_docs"]

_Class = TypeVar("_Class", bound=type)

#: Names a copy of the documentation, such as one's own, as a URL.
_VARIABLE = "SKPUFFER_DOCS_URL"


def linked_to_docs(cls: _Class) -> _Class:
    """Class decorator: scikit-learn's HTML links to the page in the documentation.

    The documentation is where the environment variable ``SKPUFFER_DOCS_URL`` says, or
    else where the metadata of the installed package do; without either there is no
    link.
    """
    linked: Any = cls
    linked._doc_link_module = "skpuffer"
    linked._doc_link_template = property(_template)
    linked._doc_link_url_param_generator = _page_of
    return cls


def _template(self: Any) -> str:
    start = os.environ.get(_VARIABLE) or _published()
    if not start:
        return ""
    # no brace of an address is a field, and no character the end of a link
    start = quote(start.rstrip("/"), safe=":/?#@!$&+,;=%~[]")
    return start + "/generated/{room}.{name}.html"


def _page_of(self: Any) -> dict[str, str]:
    # pages are named by the room that a name is public in
    kind = type(self)
    room = ".".join(kind.__module__.split(".")[:2])
    return {"room": room, "name": kind.__name__}


@cache
def _published() -> str:
    """Address of the documentation by the metadata of the package, or nothing."""
    try:
        urls = importlib.metadata.metadata("skpuffer").get_all("Project-URL") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    named = dict(str(url).split(", ", 1) for url in urls)
    return named.get("Documentation", "")
