"""Whether plain data has the structure that the published schema says."""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["CertificateFileError", "check_structure", "schema"]

#: Types of JSON, as Python has them.
_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}

#: Keywords that bound a number, with what a number must be to it.
_BOUNDS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "minimum": ("at least", lambda value, bound: value >= bound),
    "maximum": ("at most", lambda value, bound: value <= bound),
    "exclusiveMinimum": ("above", lambda value, bound: value > bound),
}

#: Under these, an object says which of several things it is.
_NAMES = ("kind", "family")


class CertificateFileError(ValueError):
    """What is to be checked is no certificate; the message names the field.

    Examples
    --------
    >>> from skpuffer.certificate import CertificateFileError, check
    >>> try:
    ...     check({"epsilon": 1.0})
    ... except CertificateFileError as error:
    ...     print(error)
    certificate.schema must be 'skpuffer.certificate': the file is something else.
    """


@cache
def _schema_text() -> str:
    file = files(__package__) / "certificate.schema.json"
    return file.read_text(encoding="utf-8")


def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a certificate's data.

    Returns
    -------
    dict

    Examples
    --------
    >>> from skpuffer.certificate import schema
    >>> schema()["title"]
    'Certificate of skpuffer, version 4'
    """
    found: dict[str, Any] = json.loads(_schema_text())
    return found


@cache
def _loaded() -> dict[str, Any]:
    return schema()


def check_structure(plain: Any) -> None:
    """Raise unless data has the structure of the schema.

    Parameters
    ----------
    plain : object
        As JSON is read, of no great depth.

    Raises
    ------
    CertificateFileError
        With the path of the first field that is not as it should be, and no more of
        what it holds than its type.

    Notes
    -----
    Reads the keywords that the schema uses, and is tested against `jsonschema`.
    """
    for error in _errors(plain, _loaded(), "certificate"):
        raise CertificateFileError(error)


def _errors(value: Any, rule: Any, path: str) -> Iterator[str]:
    if rule is False:
        yield f"{path} is more than there may be."
        return
    if "$ref" in rule:
        rule = _loaded()["$defs"][rule["$ref"].rpartition("/")[2]]
    if "anyOf" in rule:
        yield from _errors_of_any(value, rule["anyOf"], path)
        return
    if "const" in rule or "enum" in rule:
        allowed = rule.get("enum", [rule.get("const")])
        # True is no 1
        if not any(value == a and type(value) is type(a) for a in allowed):
            names = ", ".join(map(repr, allowed))
            yield f"{path} must be {'one of ' * (len(allowed) > 1)}{names}."
        return
    if "type" in rule:
        yield from _errors_of_type(value, rule, path)


def _errors_of_type(value: Any, rule: Any, path: str) -> Iterator[str]:
    name = rule["type"]
    # to JSON True is no number, and 1.0 is a whole one
    is_bool = isinstance(value, bool) and name != "boolean"
    is_whole = name == "integer" and isinstance(value, float) and value.is_integer()
    if is_bool or not (isinstance(value, _TYPES[name]) or is_whole):
        yield f"{path} must be of the type {name}. Got {_type_of(value)}."
        return
    for keyword, (words, holds) in _BOUNDS.items():
        if keyword in rule and not holds(value, rule[keyword]):
            yield f"{path} must be {words} {rule[keyword]}."
            return
    if "pattern" in rule and not re.search(rule["pattern"], value):
        yield f"{path} must match {rule['pattern']}."
    if name == "array":
        yield from _errors_of_array(value, rule, path)
    if name == "object":
        yield from _errors_of_object(value, rule, path)


def _errors_of_array(value: Any, rule: Any, path: str) -> Iterator[str]:
    if len(value) < rule.get("minItems", 0):
        yield f"{path} must have at least {rule['minItems']} entries."
        return
    first = rule.get("prefixItems", [])
    for at, part in enumerate(value):
        own = first[at] if at < len(first) else rule["items"]
        yield from _errors(part, own, f"{path}[{at}]")


def _errors_of_object(value: Any, rule: Any, path: str) -> Iterator[str]:
    known = rule["properties"]
    missing = [name for name in rule["required"] if name not in value]
    if missing:
        yield f"{path} misses the fields {', '.join(map(repr, missing))}."
        return
    new = [name for name in value if name not in known]
    if new and rule["additionalProperties"] is False:
        # names are cut: whoever wrote them may have written anything
        shown = ", ".join(repr(name[:40]) for name in sorted(new)[:5])
        yield f"{path} has fields that are not known: {shown}."
        return
    for name, own in known.items():
        yield from _errors(value[name], own, f"{path}.{name}")


def _errors_of_any(value: Any, rules: list[Any], path: str) -> Iterator[str]:
    """Errors of data that is one of several things."""
    flat = list(_alternatives(rules))
    if isinstance(value, dict):
        yield from _errors_of_named(value, flat, path)
        return
    found = [list(_errors(value, rule, path)) for rule in flat]
    if not all(found):
        return
    # the nearest: of the same type
    near = [
        errors
        for rule, errors in zip(flat, found, strict=True)
        if isinstance(value, _TYPES.get(rule.get("type", ""), ()))
    ]
    yield near[0][0] if near else f"{path} must not be {_type_of(value)}."


def _errors_of_named(value: Any, rules: list[Any], path: str) -> Iterator[str]:
    """Errors of an object that says by a name which of several it is."""
    objects = [rule for rule in rules if rule.get("type") == "object"]
    # one kind of object needs no name
    if len(objects) == 1:
        yield from _errors(value, objects[0], path)
        return
    named = {
        (key, rule["properties"][key].get("const")): rule
        for rule in objects
        for key in _NAMES
        if key in rule["properties"]
    }
    keys = {key for key, _ in named}
    if not named:
        yield f"{path} must not be an object."
        return
    for key in keys:
        name = value.get(key)
        if isinstance(name, str) and (key, name) in named:
            yield from _errors(value, named[key, name], path)
            return
    key = min(keys)
    names = ", ".join(sorted(repr(name) for _, name in named))
    yield f"{path}.{key} must be one of {names}."


def _alternatives(rules: list[Any]) -> Iterator[Any]:
    """Rules, with references followed and alternatives of alternatives listed."""
    for rule in rules:
        if "$ref" in rule:
            rule = _loaded()["$defs"][rule["$ref"].rpartition("/")[2]]
        if "anyOf" in rule:
            yield from _alternatives(rule["anyOf"])
        else:
            yield rule


def _type_of(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a text", bool: "a boolean"}
    if value is None:
        return "null"
    return names.get(type(value), "a number")
