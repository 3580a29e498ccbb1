"""Whether plain data has the structure that the published schema says."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from scipy import optimize

from ._noise import (
    Floats,
    GaussianShift,
    LaplaceShift,
    NotRecomputableError,
)
from ._pairs import Divergence, TradeOff

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
    """The file to be checked is no certificate; the message names the field.

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
    'Certificate of skpuffer, version 5'
    """
    found: dict[str, Any] = json.loads(_schema_text())
    return found


@cache
def _loaded() -> dict[str, Any]:
    return schema()


def check_structure(plain: Any) -> None:
    """Raise a CertificateFileError unless data has the structure of the schema.

    It has the path of the first wrong field and its type, and is tested against
    `jsonschema`.
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


# -- steps added up by the library dp-accounting, where it is there --------------------


#: Part of an answer that an error may make before it is extrapolated away.
_SETTLED = 3e-3

#: Points of the finest grid, and steps, beyond which none is tried.
_MOST_POINTS, _MOST_STEPS = 2_000_000, 10_000_000

#: Divergences below it are left to the far end of a grid.
_TAIL = 1e-14

Steps = Sequence[tuple[TradeOff, int]]


def composed_epsilon(steps: Steps, delta: float, near: float) -> float:
    """Return the epsilon at delta of all steps together."""
    return _settled(steps, near, lambda law: law.get_epsilon_for_delta(delta))


def composed_delta(steps: Steps, epsilon: float) -> float:
    """Return the delta at epsilon of all steps together; see `composed_epsilon`."""
    return _settled(steps, epsilon, lambda law: law.get_delta_for_epsilon(epsilon))


def _settled(steps: Steps, near: float, ask: Callable[[Any], float]) -> float:
    """Answer of a grid that a finer one changes no more."""
    if sum(count for _, count in steps) > _MOST_STEPS:
        raise NotRecomputableError(f"more than {_MOST_STEPS} steps are not composed")
    # losses are spread by about as much as two and a half times a step's variation
    zero = np.zeros(1)
    variation = sum(count * float(pair.forward(zero)[0]) ** 2 for pair, count in steps)
    spread = 2.5 * math.sqrt(variation)
    width = min(max(near, spread, 1e-9), 4.0) / 250
    last = math.nan
    for _ in range(9):
        # about the mean of all losses and what lies around it
        _check_points((spread**2 / 2 + 12 * spread) / width)
        found = float(ask(_composed(tuple(steps), width)))
        if math.isinf(found):
            return found
        # the error falls with the square of the width
        error = (last - found) / 3
        if abs(error) <= _SETTLED * abs(found):
            return found - error
        last, width = found, width / 2
    raise NotRecomputableError("no grid of losses was fine enough")


# a search asks the same steps time and again; a law is some megabytes at most
@lru_cache(maxsize=32)
def _composed(steps: tuple[tuple[TradeOff, int], ...], width: float) -> Any:
    laws = _library()
    total = None
    for pair, count in steps:
        law = _of_one_step(pair, width, laws)
        law = law.self_compose(count) if count > 1 else law
        total = law if total is None else total.compose(law)
    return total


def _library() -> Any:
    try:
        from dp_accounting.pld import privacy_loss_distribution
    except ImportError:
        raise NotRecomputableError(
            "the library dp-accounting, which composes steps, is not installed (pip "
            "install 'skpuffer[check]')"
        ) from None
    return privacy_loss_distribution


def _of_one_step(pair: TradeOff, width: float, laws: Any) -> Any:
    """Losses of a step: those that the library knows by themselves, or of a grid."""
    options = {"value_discretization_interval": width, "sampling_prob": pair.rate}
    if pair.noise is not None and 0 < pair.noise.u < math.inf:
        _check_points((pair.noise.u**2 + 20 * pair.noise.u) / width)
    if isinstance(pair.noise, GaussianShift) and 0 < pair.noise.u < math.inf:
        return laws.from_gaussian_mechanism(1 / pair.noise.u, **options)
    if isinstance(pair.noise, LaplaceShift) and 0 < pair.noise.u < math.inf:
        return laws.from_laplace_mechanism(1 / pair.noise.u, **options)
    sides = [
        _of_grid(ahead, back, width)
        for ahead, back in (
            (pair.forward, pair.backward),
            (pair.backward, pair.forward),
        )
    ]
    return laws.PrivacyLossDistribution(sides[0], sides[1])


def _of_grid(ahead: Divergence, back: Divergence, width: float) -> Any:
    """Losses of one direction, by its divergences at the points of a grid."""
    from dp_accounting.pld import pld_pmf

    first, last = -_reach(back, width), _reach(ahead, width)
    points = np.arange(first, last + 1)
    deltas = np.concatenate(
        list(_divergences(ahead, back, width * points.astype(float)))
    )
    # what rounding may have turned around
    deltas = np.minimum.accumulate(np.clip(deltas, 0.0, 1.0))
    return pld_pmf.create_pmf_pessimistic_connect_dots(width, points, deltas)


def _divergences(ahead: Divergence, back: Divergence, at: Floats) -> Iterator[Floats]:
    below = at < 0
    # E_γ(P‖Q) = 1 - γ + γ E_{1/γ}(Q‖P)
    yield -np.expm1(at[below]) + np.exp(at[below]) * back(-at[below])
    yield ahead(at[~below])


def _reach(divergence: Divergence, width: float) -> int:
    """Points from zero to where next to nothing of a divergence is left."""
    end = 1
    while float(divergence(np.array([end * width]))[0]) > _TAIL:
        end *= 2
        _check_points(end)
    return end


def _check_points(points: float) -> None:
    if points > _MOST_POINTS:
        raise NotRecomputableError("losses spread too far for a grid of them")


# -- the best of a random number of runs, recomputed from what one run costs -----------


#: Probabilities and epsilons that are tried.
_TRIED = 2000


def log_slope(runs: dict[str, Any]) -> Callable[[Floats], Floats]:
    """Return the logarithm of f' at 1 - p, for f the generating function of a number.

    From its series: of a number with chances in proportion to ``(1 - stop)**k`` times
    those of a negative binomial one, or of a Poisson one, given that it is not zero.
    """
    mean, shape = float(runs["mean"]), float(runs["shape"])
    if math.isinf(shape):
        rate = optimize.brentq(lambda r: r / -math.expm1(-r) - mean, 1e-12, mean + 1)
        return lambda p: math.log(mean) - rate * p

    def mean_of(stop: float) -> float:
        if shape < 1e-9:
            return (1 / stop - 1) / -math.log(stop)
        return shape * (1 - stop) / stop / -math.expm1(shape * math.log(stop))

    log_stop = optimize.brentq(
        lambda log: math.log(mean_of(math.exp(log)) / mean), -60.0, -1e-12
    )
    stop = math.exp(log_stop)

    def at(p: Floats) -> Floats:
        found: Floats = math.log(mean) + (shape + 1) * (
            log_stop - np.log(stop + (1 - stop) * p)
        )
        return found

    return at


def most_probable(
    delta: Callable[[float], float], far: float, pure: float
) -> tuple[Floats, Floats]:
    """Return probabilities of an event, and the most they may be beside them.

    Read off the hockey-stick divergences of one run, at many epsilons up to `far`.
    """
    epsilons = np.linspace(0.0, far, _TRIED // 10)
    deltas = np.array([delta(float(e)) for e in epsilons])
    if math.isfinite(pure):
        epsilons, deltas = np.append(epsilons, pure), np.append(deltas, 0.0)
    p = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, _TRIED)])
    there = np.exp(epsilons)[:, None] * p + deltas[:, None]
    away = 1 - np.exp(-epsilons)[:, None] * (1 - deltas[:, None] - p)
    most: Floats = np.minimum(1.0, np.minimum(there, away).min(axis=0))
    return p, np.maximum(most, p)
