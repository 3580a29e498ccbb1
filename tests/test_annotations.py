"""Every public signature is annotated, in every module."""

import ast
from pathlib import Path

import skpuffer

ROOT = Path(skpuffer.__file__).parent


def public_functions(tree, prefix=""):
    """Functions and methods by name, except those with a leading underscore.

    Methods of private classes count, as others call them, and so do special methods;
    functions within functions do not.
    """
    for node in tree.body:
        name = f"{prefix}{getattr(node, 'name', '')}"
        if isinstance(node, ast.ClassDef):
            yield from public_functions(node, f"{name}.")
        elif isinstance(node, ast.FunctionDef):
            special = node.name.startswith("__") and node.name.endswith("__")
            if special or not node.name.startswith("_"):
                yield name, node


def is_annotated(function):
    given = function.args
    own = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    own += [each for each in (given.vararg, given.kwarg) if each is not None]
    own = [each for each in own if each.arg not in ("self", "cls")]
    if any(each.annotation is None for each in own):
        return False
    return function.returns is not None or function.name == "__init__"


def test_public_signatures_are_annotated():
    missing, n_read = [], 0
    for path in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name, function in public_functions(tree):
            n_read += 1
            if not is_annotated(function):
                missing.append(f"{path.relative_to(ROOT)}: {name}")
    assert not missing
    assert n_read > 1000


def test_a_missing_annotation_is_noticed():
    source = """
class _Private:
    def __init__(self, x): ...
    def __len__(self): ...
    def half(self, x: int, y) -> int: ...
    def no_return(self, x: int): ...
    def starred(self, *args, **kwargs: int) -> int: ...
    def whole(self, x: int, *, y: int) -> int: ...
    def _own_business(self, x): ...

def alone(x): ...

def whole(x: int) -> int:
    def inner(y): ...
"""
    found = dict(public_functions(ast.parse(source)))
    missing = [name for name, f in found.items() if not is_annotated(f)]
    names = ("__init__", "__len__", "half", "no_return", "starred")
    assert missing == [*(f"_Private.{name}" for name in names), "alone"]
    assert set(found) - set(missing) == {"_Private.whole", "whole"}
