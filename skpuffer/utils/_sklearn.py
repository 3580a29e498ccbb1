"""The private names of scikit-learn that skpuffer relies on, in one file.

Every contributed package needs these; when scikit-learn moves them, this is the only
file to change.
"""

from __future__ import annotations

import importlib.metadata
import os
from functools import cache
from typing import Any, Self, TypeVar
from urllib.parse import quote

from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
)
from sklearn.utils._repr_html.estimator import _VisualBlock as VisualBlock
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition

from skpuffer.exceptions import value_error

__all__ = [
    "SETTINGS",
    "BaseComposition",
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "NestedParametersMixin",
    "StrOptions",
    "VisualBlock",
    "fit_context",
    "linked_to_docs",
    "safe_indexing",
]


#: What scikit-learn keeps on an estimator besides parameters and what a fit has set: a
#: user's settings, and where the estimator stands in a fit that goes on around it.
SETTINGS = (
    "_metadata_request",
    "_parent_callback_ctx",
    "_skl_callbacks",
    "_sklearn_output_config",
)


# -- links from the HTML of an estimator to its page in the documentation --------------


_Class = TypeVar("_Class", bound=type)

#: Names a copy of the documentation, such as one's own, as a URL.
_VARIABLE = "SKPUFFER_DOCS_URL"


def linked_to_docs(cls: _Class) -> _Class:
    """Class decorator: scikit-learn's HTML links to the page in the documentation.

    It is at the environment variable ``SKPUFFER_DOCS_URL``, or in the package's
    metadata.
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


# -- parameters of parameters, by scikit-learn's names with two underscores ------------


class NestedParametersMixin:
    """Mixin that says what is wrong where a parameter has no parameters of its own."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters, nested ones too.

        Parameters
        ----------
        **params : dict
            As in scikit-learn.

        Returns
        -------
        self : object
        """
        held = self.get_params(deep=False)  # type: ignore[attr-defined]
        for key in params:
            name, nested, _ = key.partition("__")
            value = params.get(name, held.get(name))
            if nested and name in held and not hasattr(value, "set_params"):
                raise value_error(
                    "parameter.nested_not_settable",
                    name=name,
                    owner=type(self).__name__,
                    value_type=type(value).__name__,
                    key=key,
                )
        changed: Self = super().set_params(**params)  # type: ignore[misc]
        return changed
