"""Every public signature is annotated, in the packages that have got there."""

import importlib
import inspect

import pytest

#: Packages whose public names are annotated throughout; the list only grows.
PACKAGES = (
    "compose",
    "datasets",
    "ensemble",
    "inspection",
    "linear_model",
    "neural_network",
    "preprocessing",
    "releases",
    "summary",
    "svm",
    "testing",
    "training",
    "transport",
)


def public_functions(package):
    """Functions, methods and properties that a package exports, by name."""
    module = importlib.import_module(f"skpuffer.{package}")
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isfunction(thing):
            yield name, thing
        if not inspect.isclass(thing):
            continue
        for attribute, member in vars(thing).items():
            if attribute.startswith("_") and attribute not in ("__init__", "__call__"):
                continue
            if isinstance(member, property):
                member = member.fget
            member = inspect.unwrap(getattr(member, "__func__", member))
            # what a dataclass generates has its fields' annotations
            if inspect.isfunction(member) and member.__module__ == thing.__module__:
                yield f"{name}.{attribute}", member


def is_annotated(function):
    signature = inspect.signature(function)
    own = [p for n, p in signature.parameters.items() if n not in ("self", "cls")]
    if any(p.annotation is p.empty for p in own):
        return False
    returns = signature.return_annotation is not signature.empty
    return returns or function.__name__ == "__init__"


@pytest.mark.parametrize("package", PACKAGES)
def test_public_signatures_are_annotated(package):
    found = dict(public_functions(package))
    assert found
    assert not [name for name, f in found.items() if not is_annotated(f)]


def test_a_missing_annotation_is_noticed():
    def half(x: int, y) -> int: ...

    def no_return(x: int): ...

    def whole(self, x: int) -> int: ...

    assert [is_annotated(f) for f in (half, no_return, whole)] == [False, False, True]
