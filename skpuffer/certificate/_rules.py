"""What each number of a certificate is recomputed from."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import optimize

from ._curves import BY_GRID, BY_READING, EXACT, Recomputed, alternatives, recomputed
from ._noise import GaussianShift, NotRecomputableError, number
from ._pairs import renyi_of
from ._quilts import worst_quilt
from ._report import Finding, State
from ._structure import Steps

#: Part of an epsilon or a delta of a composition by which the stated one may be below
#: what is recomputed; above, what a search for the scale leaves.
_BELOW_GRID, _ABOVE = 1e-3, {"epsilon": 2e-3, "delta": 1e-2}

#: Part by which a Rényi cost of a step may be below what is integrated, and above: the
#: products' bounds are rounded up, and integrals of small rates lose digits.
_BELOW_TABLE, _ABOVE_TABLE = 1e-3, 2e-2

#: The first part of notions in which one number is at an order of Rényi.
_ORDERED = (
    "pure_dp",
    "pure_pufferfish",
    "renyi_dp",
    "renyi_pufferfish",
    "approximate_renyi_pufferfish",
    "averaged_sliced_renyi_pufferfish",
    "joint_sliced_renyi_pufferfish",
    "sa_averaged_sliced_renyi_pufferfish",
    "sa_joint_sliced_renyi_pufferfish",
)
_PURE = ("pure_dp", "pure_pufferfish")
_INFORMATION = (
    "mutual_information",
    "record_mutual_information",
    "group_mutual_information",
)
_TABLES = ("pure_dp", "renyi_dp", "approximate_dp")
_SLICED = ("averaged_sliced_renyi_pufferfish", "joint_sliced_renyi_pufferfish")

#: Premises: fields by which it is said what is promised of whom.
_PREMISES = {
    "notion": "that the facts behind the noise are about this notion",
    "relation": "that neighbouring tables differ so",
    "coupling_id": "that this is the coupling of the tables",
    "composable": "that other releases rest on the same coupling",
    "seeded": "whether the noise came from a seed",
    "confidence": "that the public sample was drawn as is said",
    "profile": "that the slices are these",
    "table": "that this is the table that was read",
    "record": "that this is what the belief speaks of",
    "assumptions": "that they are true, and all that there are",
}

#: Rules by the name of what they yield findings of.
Rule = Callable[[dict[str, Any]], Iterator[Finding]]


def findings_of(certificate: dict[str, Any]) -> list[Finding]:
    """Return what the rules find of a certificate of the structure of the schema."""
    found: list[Finding] = []
    for field, rule in _RULES:
        try:
            _quietly(rule, certificate, found)
        except NotRecomputableError as error:
            found.append(_unknown(field, str(error)))
        # whatever absurd numbers lead to is no answer either
        except (
            ArithmeticError,
            IndexError,
            MemoryError,
            RuntimeError,
            ValueError,
        ) as error:
            kind = type(error).__name__
            found.append(_unknown(field, f"what is stated cannot be computed ({kind})"))
    return found


def _quietly(rule: Rule, certificate: dict[str, Any], found: list[Finding]) -> None:
    """Add findings of a rule; what overflows in it ends as no number, and is said so.

    What it found before it could not go on is kept.
    """
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.extend(rule(certificate))


def _follows(field: str, reason: str, stated: float, found: float) -> Finding:
    return Finding(
        field=field, state=State.RECOMPUTED, reason=reason, stated=stated, found=found
    )


def _wrong(
    field: str, reason: str, stated: float | None = None, found: float | None = None
) -> Finding:
    return Finding(
        field=field,
        state=State.DOES_NOT_FOLLOW,
        reason=reason,
        stated=stated,
        found=found,
    )


def _unknown(field: str, reason: str) -> Finding:
    return Finding(field=field, state=State.NOT_RECOMPUTABLE, reason=reason)


def _compared(
    field: str,
    stated: float,
    found: float,
    how: str,
    below: float = EXACT,
    above: float = EXACT,
) -> Finding:
    """Compare a number with what was recomputed, in parts of that."""
    # to infinity nothing else is near: its bounds are no numbers
    low, high = found - below * abs(found), found + above * abs(found)
    if stated == found or low - 1e-14 <= stated <= high + 1e-14:
        return _follows(field, f"{stated:.6g}, {how}", stated, found)
    less = "less" if stated < found else "more"
    return _wrong(
        field, f"{stated:.6g} is {less} than {found:.6g}, {how}", stated, found
    )


# -- the numbers of the promise --------------------------------------------------------


def _epsilon(c: dict[str, Any]) -> Iterator[Finding]:
    if c["epsilon"] is None:
        return
    stated, curve = number(c["epsilon"]), c["curve"]
    if c["notion"] == "estimated":
        yield _unknown("epsilon", "it is an estimate, whose curve is left out")
        return
    if curve is None:
        yield _unknown("epsilon", "the file holds no curve that it could be read off")
        return
    if c["alpha"] is not None:
        alpha = number(c["alpha"])
        found = _asked(curve, "renyi", alpha)
        _, tolerance = _tolerances(curve)
        # what is known by fewer readings is more
        above = tolerance if tolerance >= BY_READING else EXACT
        how = f"the cost at the order {alpha:g}"
        yield _compared("epsilon", stated, found, how, above=above)
        return
    bounds = _bounds(curve, c)
    if bounds is not None:
        low, high = bounds
        if not low * (1 - EXACT) <= stated <= high * (1 + EXACT):
            yield _wrong(
                "epsilon",
                f"{stated:.6g} is not between {low:.6g} and {high:.6g}",
                stated,
            )
        else:
            raise NotRecomputableError(
                f"it lies between {low:.6g} and {high:.6g}, as it must, and where is "
                "found by a search that has no second path here"
            )
        return
    _, tolerance = _tolerances(curve)
    grid = tolerance >= BY_GRID
    below = _BELOW_GRID if grid else tolerance
    # what is asked for is stated wherever a search for the noise left a little of it
    above = max(_ABOVE["epsilon"], tolerance)
    # an event is taken off delta, or divided by what is outside of it
    tried = [_asked(curve, "epsilon", delta, stated) for delta in _deltas(c)]
    nearest = min(tried, key=lambda e: abs(e - stated))
    how = f"the epsilon at delta {c['delta']:g}"
    yield _compared("epsilon", stated, nearest, how, below, above)


def _delta(c: dict[str, Any]) -> Iterator[Finding]:
    delta, event = c["delta"], c["event_delta"]
    if delta < event:
        yield _wrong("delta", f"{delta:g} is less than the event's {event:g}", delta)
        return
    if c["curve"] is None or c["alpha"] is not None or c["epsilon"] is None:
        return
    epsilon = number(c["epsilon"])
    if delta == event or epsilon == 0 or _bounds(c["curve"], c) is not None:
        return
    found = _asked(c["curve"], "delta", epsilon)
    _, tolerance = _tolerances(c["curve"])
    grid = tolerance >= BY_GRID
    below = _BELOW_GRID if grid else 10 * tolerance
    above = max(_ABOVE["delta"], 10 * tolerance)
    nearest = min(_deltas(c), key=lambda d: abs(d - found))
    how = f"the delta at epsilon {epsilon:g}"
    if event:
        how += ", beside that of the event"
    if found < nearest and _is_pure(c["curve"]):
        # of pure costs delta falls steeply: what a search left of epsilon is much of it
        at_stated = _asked(c["curve"], "epsilon", nearest, epsilon)
        if epsilon * (1 - _ABOVE["epsilon"]) <= at_stated <= epsilon:
            yield _follows("delta", f"{nearest:.6g}, {how}", nearest, found)
            return
    yield _compared("delta", nearest, found, how, below, above)


def _is_pure(curve: dict[str, Any]) -> bool:
    """Whether all steps of a curve are of pure costs."""
    pairs = [pair["kind"] for pair, _ in curve.get("steps", [])]
    return bool(pairs) and set(pairs) <= {"bounded_range_pair", "pure_pair"}


def _deltas(c: dict[str, Any]) -> list[float]:
    left = c["delta"] - c["event_delta"]
    if c["event_delta"] in (0, 1):
        return [left]
    return [left, left / (1 - c["event_delta"])]


def _rpp(c: dict[str, Any]) -> Iterator[Finding]:
    stated = number(c["rpp_epsilon"])
    if math.isinf(stated):
        return
    if c["alpha"] is None or c["epsilon"] is None:
        yield _wrong("rpp_epsilon", "is finite without an order to hold at", stated)
        return
    alpha, curve = number(c["alpha"]), c["curve"]
    if c["notion"] in _SLICED:
        if curve is None or curve.get("vector") is None:
            raise NotRecomputableError("nothing is stated of the whole vector")
        found = _asked(curve["vector"], "renyi", alpha)
        how = f"the cost of the whole vector at the order {alpha:g}"
        yield _compared("rpp_epsilon", stated, found, how)
        return
    if c["notion"] in _TABLES and c["relation"] == "add_remove":
        yield from _two_steps(stated, alpha, curve)
        return
    epsilon = number(c["epsilon"])
    yield _compared("rpp_epsilon", stated, epsilon, "the epsilon at the same order")


def _two_steps(stated: float, alpha: float, curve: Any) -> Iterator[Finding]:
    """Of a value that is replaced by a removal and an addition."""
    if curve is None or curve["kind"] != "shifted_noise":
        raise NotRecomputableError("how far a replaced record moves is not stated")
    shift = curve["shift"] | {"radius": 2 * number(curve["shift"]["radius"])}
    found = _asked(curve | {"shift": shift}, "renyi", alpha)
    compared = _compared("rpp_epsilon", stated, found, "the cost of twice the shift")
    if compared.state != State.RECOMPUTED:
        raise NotRecomputableError("how far a replaced record moves is not stated")
    yield compared


def _lower(c: dict[str, Any]) -> Iterator[Finding]:
    if c["epsilon_lower"] is None:
        return
    stated = number(c["epsilon_lower"])
    most = math.inf if c["epsilon"] is None else number(c["epsilon"])
    if stated > most * (1 + EXACT):
        yield _wrong("epsilon_lower", f"{stated:.6g} is above epsilon", stated, most)
        return
    yield _unknown(
        "epsilon_lower",
        "it is no more than epsilon, and how near it may be is not known",
    )


def _information(c: dict[str, Any]) -> Iterator[Finding]:
    names = ("mutual_information", "table_information", "entropy")
    for name in (*names, "prior_success", "worst_leakage"):
        if c[name] is not None:
            yield _unknown(
                name, "it follows from the outputs under the prior, not in the file"
            )


# -- what makes the noise --------------------------------------------------------------


def _sensitivity(c: dict[str, Any]) -> Iterator[Finding]:
    if c["sensitivity"] is None:
        return
    stated = number(c["sensitivity"])
    norm = None if c["norm"] is None else number(c["norm"])
    known = list(_shifts([c["curve"], c["events"]]))
    curve = c["curve"]
    if not known and curve is not None and curve["kind"] == "markov_quilt":
        known = _of_near_set(curve, c)
    if not known:
        yield _unknown("sensitivity", "the file states no shift of the noise")
        return
    for radius, own in known:
        if math.isclose(radius, stated, rel_tol=1e-9) and norm in (None, own):
            yield _follows(
                "sensitivity", f"{stated:.6g}, the radius of a shift", stated, radius
            )
            if norm is not None:
                yield _follows("norm", f"{norm:g}, that of the shift", norm, own)
            return
    radius, own = known[0]
    yield _wrong(
        "sensitivity",
        f"{stated:.6g} in the {norm}-norm is none of the shifts that noise covers, "
        f"such as {radius:.6g} in the {own:g}-norm",
        stated,
        radius,
    )


def _shifts(value: Any) -> Iterator[tuple[float, float]]:
    """Radius and norm of every shift within some data."""
    if isinstance(value, dict):
        if value.get("kind") == "shift":
            yield number(value["radius"]), number(value["norm"])
        for part in value.values():
            yield from _shifts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _shifts(part)


def _of_near_set(curve: dict[str, Any], c: dict[str, Any]) -> list[tuple[float, float]]:
    if c["alpha"] is None or len(curve["parts"]) != 1:
        raise NotRecomputableError("which quilt sets it depends on a search")
    (part,) = curve["parts"]
    if part["kind"] != "quilt_part":
        raise NotRecomputableError("which quilt sets it depends on a search")
    _, size = worst_quilt(curve, number(c["alpha"]))
    # that in which the noise measures a move
    norm = 1.0 if "laplace" in part["noise"]["family"] else 2.0
    return [(number(part["move"]) * size + number(part["slack"]), norm)]


def _gain(c: dict[str, Any]) -> Iterator[Finding]:
    own, of_record, covered = c["noise_gain"], c["record_sensitivity"], c["sensitivity"]
    if own is not None:
        found, how = number(own), "noise_gain"
    elif of_record is None or covered is None:
        if c["gain"] is not None:
            yield _wrong(
                "gain", "follows from nothing that is stated", number(c["gain"])
            )
        return
    else:
        both = number(of_record), number(covered)
        found = both[0] / both[1] if both[1] else math.inf
        how = "record_sensitivity over sensitivity"
    if c["gain"] is None:
        yield _wrong("gain", f"is not stated, and {how} gives {found:.6g}", None, found)
        return
    yield _compared("gain", number(c["gain"]), found, how)
    if own is None:
        yield _unknown("record_sensitivity", "how far any record moves is not stated")
    else:
        yield from _noise_gain(c, found)


def _noise_gain(c: dict[str, Any], stated: float) -> Iterator[Finding]:
    curve = c["curve"]
    if curve is None or curve["kind"] != "overlap" or c["epsilon"] is None:
        yield _unknown("noise_gain", "what other noise would need is not stated")
        return
    plain = recomputed(curve["curve"])
    noise = getattr(plain, "noise", None)
    if noise is None:
        yield _unknown("noise_gain", "it takes a search over compositions")
        return
    epsilon, delta = number(c["epsilon"]), _deltas(c)[0]
    at = np.array([epsilon])
    found = optimize.brentq(
        lambda gain: float(noise.times(1 / gain).delta(at)[0]) - delta, 1e-3, 1e3
    )
    how = "the noise that the plain curve needs at this epsilon and delta"
    compared = _compared("noise_gain", stated, float(found), how, 1e-5, 1e-5)
    if compared.state == State.DOES_NOT_FOLLOW and stated < found:
        # of a group, or of another accountant, and no more than is shown
        yield _unknown("noise_gain", "it is less than what the plain curve would need")
        return
    yield compared


def _events(c: dict[str, Any]) -> Iterator[Finding]:
    if c["curve"] is None:
        return
    curve, path = c["curve"], "curve"
    # of repeated runs they are those of one
    while curve["kind"] in ("overlap", "pairwise_overlap_curve", "repeated"):
        curve, path = curve["curve"], f"{path}.curve"
    if c["events"] is None:
        # of a table one cost sets epsilon, and the others what else is read off it
        if curve["kind"] == "renyi" and len(curve["orders"]) > 1:
            yield _unknown(f"{path}.epsilons", "of what they are costs is not stated")
        return
    if curve["kind"] == "gaussian":
        yield _of_squares(curve, path, c["events"])
    elif curve["kind"] == "renyi":
        yield from _of_orders(curve, path, c["events"])
    else:
        yield _wrong("events", f"a {curve['kind']!r} curve is composed of no others")


def _of_squares(curve: dict[str, Any], path: str, events: list[Any]) -> Finding:
    squares = 0.0
    for steps in alternatives(events):
        for pair, count in steps:
            if pair.rate != 1 or not isinstance(pair.noise, GaussianShift):
                raise NotRecomputableError("the events are not all Gaussian")
            squares += count * pair.noise.u**2
    how = "the root of the events' squared shifts in standard deviations"
    return _compared(f"{path}.mu", number(curve["mu"]), math.sqrt(squares), how)


def _of_orders(
    curve: dict[str, Any], path: str, events: list[Any]
) -> Iterator[Finding]:
    left: list[float] = []
    added, stated_events = 0, json.dumps(events, sort_keys=True)
    rows = zip(curve["orders"], curve["epsilons"], strict=True)
    for at, (order, stated) in enumerate((number(a), number(e)) for a, e in rows):
        try:
            found = _of_events(stated_events, order)
        except NotRecomputableError:
            left.append(order)
            continue
        row = f"{path}.epsilons[{at}]"
        how = f"the events' costs at the order {order:g}, added"
        compared = _compared(row, stated, found, how, _BELOW_TABLE, _ABOVE_TABLE)
        if compared.state == State.DOES_NOT_FOLLOW:
            yield compared
        else:
            added += 1
    if added:
        yield Finding(
            field=f"{path}.epsilons",
            state=State.RECOMPUTED,
            reason=f"{added} of {added + len(left)} costs, those of the events, added",
        )
    if left:
        orders = f"{len(left)} orders from {min(left):g} to {max(left):g}"
        yield _unknown(f"{path}.epsilons", f"costs at {orders} are not integrated here")


@lru_cache(maxsize=8192)
def _of_events(events: str, order: float) -> float:
    return max(
        sum(count * renyi_of(pair, order) for pair, count in steps)
        for steps in _steps_of(events)
    )


@lru_cache(maxsize=64)
def _steps_of(events: str) -> tuple[Steps, ...]:
    return tuple(alternatives(json.loads(events)))


# -- what has to agree -----------------------------------------------------------------


def _notion(c: dict[str, Any]) -> Iterator[Finding]:
    notion, alpha = c["notion"], c["alpha"]
    if notion in _INFORMATION:
        if c["mutual_information"] is None:
            yield _wrong("mutual_information", f"is missing, in the notion {notion!r}")
        if c["epsilon"] is not None:
            yield _wrong("epsilon", f"is none of the notion {notion!r}")
    elif notion != "estimated":
        if c["epsilon"] is None:
            yield _wrong("epsilon", f"is missing, in the notion {notion!r}")
        if c["mutual_information"] is not None:
            yield _wrong("mutual_information", f"is none of the notion {notion!r}")
    if notion == "estimated":
        if c["curve"] is not None or c["events"] is not None:
            yield _wrong("curve", "is kept by an estimate, which has none to convert")
        return
    if (alpha is not None) != (notion in _ORDERED):
        said = "missing" if alpha is None else "given"
        yield _wrong("alpha", f"is {said}, in the notion {notion!r}")
    elif alpha is not None and (notion in _PURE) != math.isinf(number(alpha)):
        yield _wrong("alpha", f"{alpha} is no order of the notion {notion!r}")
    if alpha is not None and c["delta"] != c["event_delta"]:
        yield _wrong("delta", "is that of the event alone, at an order", c["delta"])
    exact = notion in ("renyi_dp", "pure_dp", "renyi_pufferfish", *_SLICED)
    if exact and c["event_delta"] > 0:
        yield _wrong("event_delta", f"is none of the notion {notion!r}")


def _tables(c: dict[str, Any]) -> Iterator[Finding]:
    notion, relation, curve = c["notion"], c["relation"], c["curve"]
    if notion in _TABLES and relation is None:
        yield _wrong("relation", f"is missing, in the notion {notion!r}")
    kind = None if curve is None else curve["kind"]
    # as a part of another as well
    of_priors = sorted(_kinds_within(curve) & {*_OF_PRIORS})
    if notion in _TABLES and of_priors:
        yield _wrong(
            "notion", f"{notion!r} is about tables, and a {of_priors[0]!r} curve is not"
        )
    yield from _runs(curve)
    yield from _sampled(c)
    sliced = kind in _OF_SLICES
    if curve is not None and sliced != ("sliced" in notion):
        yield _wrong("notion", f"{notion!r} does not go with a {kind!r} curve")
    if c["composable"] and notion == "estimated":
        yield _wrong("composable", "is said of an estimate")
    if c["composable"] and notion not in _INFORMATION and c["coupling_id"] is None:
        yield _wrong("composable", "is said without a coupling to compose in")
    if c["composable"] and sliced:
        yield _wrong("composable", "is said of a promise about slices of one output")
    yield from _coupling(c)


def _coupling(c: dict[str, Any]) -> Iterator[Finding]:
    of, _, count = str(c["coupling_id"]).partition(":")
    count = count.partition(" ")[0]
    if of not in ("add_remove", "replace") or not count.isdigit():
        return
    if c["relation"] != of:
        yield _wrong("coupling_id", f"is about {of!r}, and the relation is not")
    if c["coupling_count"] is not None:
        how = "the number of records in coupling_id"
        yield _compared("coupling_count", c["coupling_count"], int(count[:9]), how)


def _kinds_within(value: Any) -> set[str]:
    return {str(node["kind"]) for _, node in _nodes(value, "") if "kind" in node}


def _runs(curve: Any) -> Iterator[Finding]:
    """Runs are independent given the records, and not given what is believed of one."""
    for path, node in _nodes(curve, "curve"):
        if node.get("kind") != "best_run":
            continue
        for kind in sorted(_kinds_within(node["curve"]) & {*_OF_PRIORS}):
            yield _wrong(
                f"{path}.curve",
                f"one run has a {kind!r} curve, and the best of several is known for "
                "any neighbouring tables alone: a belief amplifies it last",
            )


#: Pairs of batches, by the relation of tables that they say nothing of. One of a group
#: that is added or removed may stand under "replace": of half as many.
_OF_OTHER_TABLES = {
    "add_remove": ("replace_poisson_pair", "subset_pair"),
    "replace": ("poisson_pair",),
}


def _sampled(c: dict[str, Any]) -> Iterator[Finding]:
    """Batches hide a record that is replaced otherwise than one that is not there."""
    kinds = _kinds_within([c["curve"], c["events"]])
    for kind in sorted(kinds & {*_OF_OTHER_TABLES.get(str(c["relation"]), ())}):
        yield _wrong("relation", f"{c['relation']!r} is not what a {kind!r} is about")


#: Curves that speak of priors, or of slices.
_OF_SLICES = (
    "mean_square_of_slices",
    "joint_slices",
    "sampled_joint_slices",
    "shift_over_sphere",
)
_OF_PRIORS = (
    "coupling",
    "ellipsoid",
    "markov_quilt",
    "overlap",
    "pairwise_overlap_curve",
    "worst_overlap_curve",
    "count_law",
    *_OF_SLICES,
)


def _inside(c: dict[str, Any]) -> Iterator[Finding]:
    """What has to agree within a curve."""
    for path, node in _nodes(c["curve"], "curve"):
        # what one part keeps from being computed excuses no other, nor what was found
        # of it before
        try:
            yield from _within(path, node, c)
        except NotRecomputableError as error:
            yield _unknown(path, str(error))
        except (ArithmeticError, IndexError, ValueError) as error:
            kind = type(error).__name__
            yield _unknown(path, f"what is stated cannot be computed ({kind})")


def _within(path: str, node: dict[str, Any], c: dict[str, Any]) -> Iterator[Finding]:
    kind = node.get("kind")
    if kind == "finite_overlap":
        yield from _summing(f"{path}.first", node["first"])
        yield from _summing(f"{path}.second", node["second"])
    elif kind == "coupling":
        yield from _lengths(path, node)
    elif kind == "atom_moves":
        masses = np.atleast_2d(node["masses"])
        for at, row in enumerate(masses.tolist()):
            yield from _summing(f"{path}.masses{f'[{at}]' * (len(masses) > 1)}", row)
    elif kind == "count_law":
        whole = [*node["weights"], node["beyond"]]
        yield from _summing(f"{path}.weights", whole, 1e-6)
    elif kind in _OF_SLICES:
        yield from _slices(path, node)
        if kind == "sampled_joint_slices":
            yield _shortfall(path, node, c["confidence"])
    elif kind == "ellipsoid":
        yield from _longest(path, node)


def _lengths(path: str, node: dict[str, Any]) -> Iterator[Finding]:
    """Lengths of moves are those of the steps beside them, in units of the shift.

    That they agree says nothing of where they come from, so only a lie is found here.
    """
    shift = node["shift"]
    units = 1.0 if shift["weights"] is None else np.array(shift["weights"], float)
    for at, moves in enumerate(node["couplings"]):
        if moves.get("steps") is None:
            continue
        place = f"{path}.couplings[{at}].radii"
        stated = [number(radius) for radius in moves["radii"]]
        dims = {len(step) for step in moves["steps"]}
        known = {shift["dim"], np.size(units) if np.ndim(units) else None} - {None}
        if len(moves["steps"]) != len(stated) or len(dims | known) != 1:
            yield _wrong(place, "there is no step of the same kind for each of them")
            continue
        steps = np.array(moves["steps"], float) / units
        found = np.linalg.norm(steps, number(shift["norm"]), axis=1)
        if not np.allclose(stated, found, EXACT, 0):
            yield _wrong(place, "are not the lengths of the steps")


def _summing(path: str, masses: list[float], error: float = 1e-9) -> Iterator[Finding]:
    total = math.fsum(masses)
    if abs(total - 1) > error:
        yield _wrong(path, f"sums to {total:.9g}, and masses sum to 1", total, 1.0)
    else:
        yield _follows(path, "masses, which sum to 1", total, 1.0)


def _nodes(value: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
        for name, part in value.items():
            yield from _nodes(part, f"{path}.{name}")
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from _nodes(part, f"{path}[{at}]")


def _slices(path: str, node: dict[str, Any]) -> Iterator[Finding]:
    if "weights" in node:
        yield from _summing(f"{path}.weights", node["weights"])
    vector = None if node["vector"] is None else recomputed(node["vector"]).mu
    if vector is None:
        yield _unknown(path, "how far the whole vector moves is not stated")
        return
    whole = vector**2
    name = next(n for n in ("square", "most", "squares") if n in node)
    stated = max(number(s) for s in np.ravel(np.array(node[name], object)))
    how = "the square of the vector's move in standard deviations"
    if name == "most" or node["kind"] == "shift_over_sphere":
        yield _compared(f"{path}.{name}", stated, whole, how)
    elif stated > whole * (1 + EXACT):
        yield _wrong(f"{path}.{name}", f"{stated:.6g} exceeds {whole:.6g}, {how}")
    else:
        yield _unknown(
            f"{path}.{name}",
            f"no more than {whole:.6g}, {how}; by how much is not stated",
        )


def _shortfall(path: str, node: dict[str, Any], confidence: float) -> Finding:
    """How far a mean over drawn slices may be off, with the confidence stated."""
    path, stated = f"{path}.shortfall", node["shortfall"]
    if confidence >= 1:
        return _wrong(path, "is of a sample, and leaves no confidence of 1", stated)
    # Hoeffding's inequality for each pair, and for both sides of two means
    failures = math.log(4 * len(node["squares"]) / (1 - confidence))
    found = math.sqrt(failures / (2 * len(node["weights"])))
    if stated > found * (1 + EXACT):
        return _unknown(path, f"it is more than {found:.6g}, which would be enough")
    return _compared(path, stated, found, f"of a confidence of {confidence:g}")


def _longest(path: str, node: dict[str, Any]) -> Iterator[Finding]:
    """No move is longer, in standard deviations, than the ball over the least one."""
    covariance = np.array(node["noise"].get("covariance", [[1.0]]), float)
    scale = np.min(np.asarray(node["noise"]["scale"], float))
    least = math.sqrt(max(0.0, float(np.linalg.eigvalsh(covariance)[0]))) * float(scale)
    mu = number(node["mu"])
    if least > 0 and mu * least > number(node["shift"]["radius"]) * (1 + EXACT):
        yield _wrong(f"{path}.mu", "exceeds what the shift allows", mu)
        return
    yield _unknown(f"{path}.mu", "the moves that it is the longest of are not stated")


def _premises(c: dict[str, Any]) -> Iterator[Finding]:
    for name, what in _PREMISES.items():
        if c[name] not in (None, False, []):
            yield _unknown(name, f"a premise: {what} does not follow from numbers")


# -- asking a curve --------------------------------------------------------------------


def _asked(curve: dict[str, Any], what: str, *given: float) -> float:
    return _answer(json.dumps(curve, sort_keys=True), what, given)


# what is probed leaves most of a file as it is
@lru_cache(maxsize=4096)
def _answer(curve: str, what: str, given: tuple[float, ...]) -> float:
    found = float(getattr(recomputed(json.loads(curve)), what)(*given))
    if math.isnan(found):
        raise NotRecomputableError("what is stated gives no number")
    return found


def _tolerances(curve: dict[str, Any]) -> tuple[Recomputed, float]:
    made = recomputed(curve)
    return made, made.tolerance


def _bounds(curve: dict[str, Any], c: dict[str, Any]) -> tuple[float, float] | None:
    """Lower and upper bound of an epsilon that is found by a search, if it is one."""
    if curve["kind"] == "pairwise_overlap_curve":
        plain = curve | {"kind": "overlap"}
        return 0.0, max(
            _asked(plain, "epsilon", d, number(c["epsilon"])) for d in _deltas(c)
        )
    if curve["kind"] != "privacy_loss" or len(curve["steps"]) != 1:
        return None
    ((pair, count),) = curve["steps"]
    if pair["kind"] != "allocation_pair" or count != 1:
        return None
    mu = recomputed(pair["curve"]).mu
    if mu is None:
        return None
    # A record in one of b bins is seen E times. All steps added up tell no more than
    # the run, and a record whose bin is known is told apart no less.
    epochs = pair["n_steps"] / pair["n_batches"]
    low = GaussianShift(mu * math.sqrt(epochs / pair["n_batches"]))
    high = GaussianShift(mu * math.sqrt(epochs) * (2 if pair["replaced"] else 1))
    delta = max(_deltas(c))
    ends = [
        _asked({"kind": "gaussian", "mu": n.u}, "epsilon", delta, 1.0)
        for n in (low, high)
    ]
    return ends[0], ends[1]


_RULES: tuple[tuple[str, Rule], ...] = (
    ("epsilon", _epsilon),
    ("delta", _delta),
    ("rpp_epsilon", _rpp),
    ("epsilon_lower", _lower),
    ("mutual_information", _information),
    ("sensitivity", _sensitivity),
    ("gain", _gain),
    ("events", _events),
    ("notion", _notion),
    ("relation", _tables),
    ("curve", _inside),
    ("assumptions", _premises),
)
