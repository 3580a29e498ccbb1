"""Write ``api.rst`` from the packages' ``__all__``, so that no public name is missing.

The page is written before the sources are read rather than by a directive, because
autosummary looks for the names it must make pages of in the files themselves.
"""

import inspect
from abc import ABC
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Generic

#: In the order of a reader's questions, not of the alphabet: what is used to release
#: something, and what is used to add to the library.
GROUPS = {
    "Use": [
        "skpuffer.session",
        "skpuffer.schema",
        "skpuffer.scenarios",
        "skpuffer.accountants",
        "skpuffer.summary",
        "skpuffer.covariance",
        "skpuffer.preprocessing",
        "skpuffer.linear_model",
        "skpuffer.naive_bayes",
        "skpuffer.svm",
        "skpuffer.neural_network",
        "skpuffer.additive",
        "skpuffer.cluster",
        "skpuffer.decomposition",
        "skpuffer.synthesis",
        "skpuffer.ensemble",
        "skpuffer.compose",
        "skpuffer.model_selection",
        "skpuffer.privacy",
        "skpuffer.ledger",
        "skpuffer.certificate",
        "skpuffer.audit",
        "skpuffer.inspection",
        "skpuffer.datasets",
        "skpuffer.exceptions",
        "skpuffer.papers",
    ],
    "Extend": [
        "skpuffer.base",
        "skpuffer.releases",
        "skpuffer.training",
        "skpuffer.noise",
        "skpuffer.distributions",
        "skpuffer.privacy_loss",
        "skpuffer.information",
        "skpuffer.transport",
        "skpuffer.testing",
        "skpuffer.words",
    ],
    # what other parts export of them is listed there
    "Methods of papers": [
        "skpuffer.extensions.random_allocation",
        "skpuffer.extensions.pac",
        "skpuffer.extensions.sliced",
        "skpuffer.extensions.last_iterate",
        "skpuffer.extensions.papers",
    ],
}
MODULES = [name for names in GROUPS.values() for name in names]

HEAD = """\
API reference
=============

Every public name of skpuffer. What is not listed here, or begins with an underscore,
may change without notice. *Use* has what a release is made with, *extend* what a new
scenario, accountant, noise or estimator is made of (:doc:`extend/index`). *Methods of
papers* has the mathematics of methods that nothing else rests on.
"""

GROUP = """
{title}
{rule}
"""

SECTION = """
{title}
{rule}

.. module:: {module}

{summary}

.. autosummary::
   :toctree: generated/
   :nosignatures:

{names}
"""


#: What is of no part. Main names of parts are listed there, and can be had from here.
TOP = SECTION.format(
    title="``skpuffer``",
    rule="~" * len("``skpuffer``"),
    module="skpuffer",
    summary="All parts, and their main names: ``from skpuffer import PrivateMean``.",
    names="   show_versions",
)


def _section(name):
    module = import_module(name)
    summary = inspect.getdoc(module).partition("\n\n")[0]
    title = f"``{name}``"
    return SECTION.format(
        title=title,
        rule="~" * len(title),
        module=name,
        summary=summary,
        names="\n".join(f"   {public}" for public in _listed(name)),
    )


def _listed(name):
    """Return the names that a part lists: each object is listed once."""
    module = import_module(name)
    held = {each: getattr(module, each) for each in sorted(module.__all__)}
    if name.startswith("skpuffer.extensions."):
        others = [m for m in MODULES if not m.startswith("skpuffer.extensions.")]
        listed = {
            id(getattr(import_module(other), each))
            for other in others
            for each in import_module(other).__all__
        }
        held = {each: value for each, value in held.items() if id(value) not in listed}
    return list(held)


def write_listing(app, config):
    """Write the page, unless it already says the same."""
    page = Path(app.srcdir) / "api.rst"
    text = HEAD
    for title, names in GROUPS.items():
        text += GROUP.format(title=title, rule="-" * len(title))
        # the package itself before its parts
        text += TOP if "skpuffer.schema" in names else ""
        text += "".join(map(_section, names))
    # an untouched file keeps its time stamp, and its page is not built again
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def skip_what_others_explain(app, what, name, obj, skip, options):
    """Leave out what a class inherits from scikit-learn, an enum or an exception."""
    # behind a property, or a cached one
    function = getattr(obj, "fget", None) or getattr(obj, "func", obj)
    owner = getattr(function, "__objclass__", function)  # of what is written in C
    module = getattr(owner, "__module__", None)
    if module is None:
        foreign = inspect.isroutine(function) or inspect.isdatadescriptor(function)
    else:
        foreign = module.partition(".")[0] != "skpuffer"
    return True if foreign else None


@cache
def _public():
    """Return all classes that have a page."""
    found = {
        getattr(import_module(module), name)
        for module in MODULES
        for name in import_module(module).__all__
    }
    return {each for each in found if isinstance(each, type)}


def _named(base):
    """Return the nearest classes that a reader can look up."""
    if base in _public() or not base.__module__.startswith("skpuffer"):
        return [base]
    return [each for parent in base.__bases__ for each in _named(parent)]


def name_public_bases(app, name, obj, options, bases):
    """Show in place of bases without a page those above them that have one."""
    shown = dict.fromkeys(each for base in bases for each in _named(base))
    told = [each for each in shown if each not in (object, ABC, Generic)]
    bases[:] = told or [object]


def setup(app):
    """Connect the hooks."""
    app.connect("autodoc-process-bases", name_public_bases)
    app.connect("config-inited", write_listing)
    app.connect("autodoc-skip-member", skip_what_others_explain)
    return {"parallel_read_safe": True}
