"""How a certificate shows itself: as text, and as HTML in a notebook."""

import html
import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from skpuffer.exceptions import Statement, UncertifiedError
from skpuffer.information import dp_equivalent, posterior_success
from skpuffer.kernel.composed_curves import compose_curves
from skpuffer.kernel.notions import SLICED, Notion
from skpuffer.privacy_loss._overlap import OverlapCurve, WorstOverlapCurve

from ._robustness import plain_privacy

if TYPE_CHECKING:
    from ._certificate import Certificate


#: The delta at which a Rényi promise is shown in the usual words.
_DELTA = 1e-5


def promise(certificate: "Certificate") -> str:
    """Return the numbers of the promise in one line."""
    c = certificate
    if c.mutual_information is not None:
        return f"mutual information ≤ {c.mutual_information:.4g} nats"
    parts = [f"ε = {c.epsilon:.4g}"]
    if c.alpha is not None:
        parts.append("α = ∞" if math.isinf(c.alpha) else f"α = {c.alpha:.4g}")
    if c.delta:
        parts.append(f"δ = {c.delta:.4g}")
    return ", ".join(parts)


def _equivalent(c: "Certificate") -> str:
    """The (epsilon, delta) promise that follows from a Rényi one, if any does."""
    # Of slices, averages, information and estimates none does: the table of notions
    # says so, and the conversion refuses them.
    if c.alpha is None or math.isinf(c.alpha):
        return ""
    delta = _DELTA
    # of no use to people unless it is well below one over how many there are
    while c.n_records is not None and delta * c.n_records >= 1:
        delta /= 10
    try:
        epsilon = c.to_approximate(delta).epsilon
    except (UncertifiedError, ValueError):
        return ""
    if epsilon is None or math.isinf(epsilon):
        return ""
    return f"; that is ({_rounded_up(epsilon, 4):.4g}, {delta:.0e})"


def _rounded_up(value: float, digits: int) -> float:
    """Return the value to so many digits, and no less: a bound has to hold as shown."""
    if value <= 0 or math.isinf(value):
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return math.ceil(value / unit * (1 - 1e-12)) * unit


def certificate_rows(certificate: "Certificate") -> Iterator[tuple[str, str]]:
    """Name and value of each line except the assumptions."""
    c = certificate
    yield "promise", f"{c.notion.title}: {promise(c)}{_equivalent(c)}"
    if c.mutual_information is not None:
        yield from _of_information(c, c.mutual_information)
    if c.profile is not None:
        yield "slices", c.profile
    if c.notion in SLICED:
        yield "the vector", _of_vector(c)
    if c.confidence < 1:
        yield "confidence", _confidence(c)
    if c.epsilon_lower is not None:
        yield "lower bound", f"ε ≥ {c.epsilon_lower:.4g}"
    if c.release:
        count = f" ({c.n_releases} releases)" if c.n_releases > 1 else ""
        yield "released", c.release + count
    if c.scenario:
        yield "scenario", c.scenario
    if c.accountant:
        yield "accountant", c.accountant
    if c.choice:
        yield "chosen", str(c.choice)
    if c.sensitivity is not None and c.norm is not None:
        norm = "∞" if math.isinf(c.norm) else f"{c.norm:g}"
        yield "shift covered", f"{c.sensitivity:.6g} (l{norm}, in units of the release)"
    if c.gain is not None:
        yield "gain", _gain(c, c.gain)
    if isinstance(c.curve, OverlapCurve | WorstOverlapCurve):
        yield from _of_belief(c, c.curve)
    yield "composition", _composition(c)
    if c.source:
        yield "source", str(c.source)


def _confidence(c: "Certificate") -> str:
    """How sure the promise itself is, and over what."""
    over = "the public sample" if c.mutual_information is None else "all draws"
    said = Statement("shown.confidence", confidence=c.confidence, over=over)
    return str(said)


def _gain(c: "Certificate", gain: float) -> str:
    """How much more noise plain differential privacy would need."""
    plain = "RecordScenario(relation='replace')"
    # against as many records as are believed of together
    if isinstance(c.curve, OverlapCurve):
        plain = str(plain_privacy(c))
    if math.isinf(gain):
        return "complete: the pairs of secrets do not move it, and it has no noise"
    if gain > 1 + 1e-9:
        return f"{gain:.3g} times less noise than {plain}"
    if any(a.code in _DEPENDENT for a in c.assumptions):
        return str(Statement("shown.no_gain_of_dependent", plain=plain))
    return f"none: {plain} would have needed no more noise"


def _of_vector(c: "Certificate") -> str:
    """What a sliced promise is worth of all that leaves."""
    try:
        known = c.after_processing()
    except UncertifiedError:
        worth, numbers = "rpp_epsilon", "rpp_epsilon = ∞"
    else:
        worth = "rpp_epsilon" if known.alpha is not None else "as much"
        numbers = f"{known.notion.title}, {promise(known)}"
        if known.alpha is not None:
            numbers = f"rpp_epsilon = {known.epsilon:.4g} ({numbers})"
    return (
        f"{numbers}, of the noisy vector itself; what is computed from it may be worth "
        f"{worth}"
    )


def _of_information(c: "Certificate", budget: float) -> Iterator[tuple[str, str]]:
    """What a bound on a mutual information means, and what it leaves open."""
    if c.prior_success is not None:
        success = posterior_success(budget, c.prior_success)
        text = (
            f"a guess right with probability {c.prior_success:.4g} before is right "
            f"with at most {success:.4g} after, on average over the prior"
        )
        yield "attacker", text
        if c.prior_success == 0.5:
            equal = dp_equivalent(budget)
            text = f"ε = {equal:.4g} of pure DP (a convention, no promise of it)"
            yield "equal guess", text
    if c.table_information is not None:
        yield "whole table", f"may leak up to {c.table_information:.4g} nats"
    if c.worst_leakage is not None:
        yield "most exposed", f"one secret leaks {c.worst_leakage:.4g} nats (estimated)"
    if c.entropy is not None:
        whole = budget if c.table_information is None else c.table_information
        left = max(0.0, c.entropy - whole)
        yield (
            "residual",
            f"{left:.4g} of {c.entropy:.4g} nats of the table stay unknown",
        )


def _of_belief(
    c: "Certificate", curve: OverlapCurve | WorstOverlapCurve
) -> Iterator[tuple[str, str]]:
    """What is left of a promise under a belief without it, or if it is off."""
    held = f"ε = {c.fallback:.4g}, {plain_privacy(c)}"
    yield "fallback", f"whatever is believed: {held}"
    if c.epsilon is None:
        return
    etas = dict.fromkeys(f"{eta:.4g}" for eta in curve.overlap.etas(c.epsilon))
    yield "left to hide", f"η = {' and '.join(etas)} of the record, at this ε"
    # what the noise alone leaves of delta is what a curve is read at
    off = curve.if_off(c.delta - c.event_delta)
    if off:
        said = "; ".join(f"with {name}, ε = {eps:.4g}" for name, eps in off.items())
        yield "if it is off", said


def _composition(c: "Certificate") -> str:
    if c.seeded:
        return str(Statement("shown.seeded"))
    if c.notion == Notion.MUTUAL_INFORMATION and c.certified:
        return "adds up with budgets about the whole table under this scenario"
    if not c.composable:
        return "must not be added to any other release about these people"
    if c.coupling_id is not None and not isinstance(c.curve, OverlapCurve):
        return f"adds up with certificates of coupling {c.coupling_id!r}"
    if c.record is None:
        return "counts at its fallback beside other releases about these people"
    return (
        f"amplified together with certificates of one belief about {c.record}; beside "
        "others it counts at its fallback"
    )


# -- what everybody has to know, in five lines -----------------------------------------

#: Assumptions by which records depend on each other, or the secret is about several.
_DEPENDENT = frozenset(
    f"assume.{name}"
    for name in (
        "blocks_of_sizes_independent",
        "dependence_distance_bounded",
        "diffusion_langevin_states",
        "gaussian_stated_covariance",
        "group_secret_of_table",
        "joint_secret_whole_table",
        "markov_secret_state",
        "network_of_records",
        "prevalence_secret_counts",
        "prevalence_secret_rates",
    )
)

#: Assumptions that say what is secret.
_SECRETS = frozenset(
    f"assume.{name}"
    for name in (
        "attribute_secret_column",
        "belief_secret_column",
        "belief_secret_position",
        "dependence_secret_any_record",
        "diffusion_secret_start",
        "gaussian_secret",
        "gaussian_secret_in_columns",
        "group_secret_of_table",
        "joint_secret_record_value",
        "joint_secret_whole_table",
        "markov_secret_state",
        "prevalence_secret_counts",
        "prevalence_secret_rates",
        "subsample_secret_functions",
        "subsample_secret_record_drawn",
        "subsample_secret_who_drawn",
    )
)

_OF_BLOCK = "assume.within_a_block"

#: And those that say how neighbouring tables differ, and what is public of their size.
_NEIGHBOURS = {
    "assume.neighbouring_tables": Statement("shown.size_public"),
    "assume.neighbouring_tables_size_declared": "",
    "assume.neighbouring_tables_size_private": "",
}

#: False positive rate at which a guess is measured.
_FALSE_ALARMS = 0.01

#: Epsilons at which a curve is read for that.
_READ_AT = (*np.linspace(0, 8, 49), 10.0, 14.0, 20.0)


def five_lines(certificate: "Certificate") -> Iterator[tuple[str, str]]:
    """Name and value of the lines that stand before all details."""
    c = certificate
    # those of a block are said of it
    of_block = [a.parameters["text"] for a in c.assumptions if a.code == _OF_BLOCK]
    said = (*c.assumptions, *of_block)
    codes = {a.code: a for a in said}
    secret = next((a for a in said if a.code in _SECRETS), None)
    near = next((codes[code] for code in _NEIGHBOURS if code in codes), None)
    if not c.certified:
        yield "protected", str(Statement("shown.estimate_protects_nothing"))
    elif near is not None and secret is None:
        yield "protected", str(Statement("shown.whether_records", **near.parameters))
        size = _NEIGHBOURS[near.code]
        yield "not protected", str(Statement("shown.open_to_all", size=size))
    else:
        secret = secret or Statement("shown.secret_of_scenario", scenario=c.scenario)
        yield "protected", str(Statement("shown.from_believers", secret=secret))
        rest = ""
        if c.fallback is not None:
            rest = str(Statement("shown.fallback", epsilon=c.fallback))
        yield "not protected", str(Statement("shown.other_secrets", rest=rest))
    sure = "" if c.confidence == 1 else f" {_confidence(c)}"
    yield "budget", f"{c.notion.title}: {promise(c)}{_equivalent(c)}{sure}{_guess(c)}"
    yield "noise", _noise(c)
    yield "next", _next(c)


def _guess(c: "Certificate") -> str:
    """What the budget means for somebody's guess."""
    if not c.certified:
        return ""
    if c.mutual_information is not None:
        if c.prior_success is None:
            return ""
        after = _rounded_up(posterior_success(c.mutual_information, c.prior_success), 4)
        said = Statement("shown.success", before=c.prior_success, after=after)
    elif c.epsilon is None or c.notion.approximate is None or c.profile is not None:
        return ""
    elif not c.delta and (c.alpha is None or math.isinf(c.alpha)):
        if c.epsilon > 50:
            return ""
        said = Statement("shown.odds", factor=_rounded_up(math.exp(c.epsilon), 3))
    else:
        found = _true_positives(c)
        if found is None:
            return ""
        right, wrong = _rounded_up(100 * found, 3), 100 * _FALSE_ALARMS
        said = Statement("shown.best_guess", right=right, wrong=wrong)
    return f". {said}"


def _true_positives(c: "Certificate") -> float | None:
    """Largest rate of true positives at so few false ones."""
    points = [] if c.epsilon is None or c.alpha is not None else [(c.epsilon, c.delta)]
    if c.curve is not None:
        with suppress(NotImplementedError):
            points += [(e, c.curve.delta(e) + c.event_delta) for e in _READ_AT]
    if not points:
        return None
    # on either side of the curve
    bounds = [math.exp(min(e, 50.0)) * _FALSE_ALARMS + d for e, d in points]
    bounds += [1 - math.exp(-e) * (1 - d - _FALSE_ALARMS) for e, d in points]
    return min(1.0, *bounds)


def _noise(c: "Certificate") -> str:
    """Deviations of the noise, in units of the data."""
    gain = "" if c.gain is None else f"; gain {_gain(c, c.gain)}"
    if not c.errors:
        return f"{Statement('shown.noise_unknown')}{gain}"
    said = (
        Statement("shown.deviation", name=name, least=least)
        if most - least <= 1e-3 * most
        else Statement("shown.deviations", name=name, least=least, most=most)
        for name, least, most in c.errors
    )
    return f"{', '.join(map(str, said))}{gain}"


def _next(c: "Certificate") -> str:
    """What may be released beside it, and what two such releases would cost."""
    believed = isinstance(c.curve, OverlapCurve | WorstOverlapCurve)
    if not c.composable or c.seeded or believed or c.curve is None:
        return _composition(c)
    curve, event = compose_curves([c.curve, c.curve]), 2 * c.event_delta
    if c.alpha is None:
        # of the part that noise can buy back, as much as of one
        noise = c.delta - c.event_delta
        epsilon = float(curve.epsilon(noise))
    else:
        noise, epsilon = 0.0, float(curve.renyi(c.alpha))
    both = replace(c, epsilon=epsilon, delta=event + noise, event_delta=event)
    return str(Statement("shown.adds_up", promise=promise(both)))


def _caption(certificate: "Certificate") -> str:
    return "Certificate" if certificate.certified else "Certificate (ESTIMATE ONLY)"


def certificate_text(certificate: "Certificate") -> str:
    """Return the certificate in five lines."""
    rows = list(five_lines(certificate))
    width = max(len(name) for name, _ in rows)
    lines = [_caption(certificate)]
    lines += [f"  {name:<{width}}  {value}" for name, value in rows]
    if not certificate.certified:
        # why it is none
        return "\n".join([*lines, *_assuming(certificate)])
    said = Statement("shown.details", n_assumptions=len(certificate.assumptions))
    return "\n".join([*lines, f"  {said}"])


def _assuming(certificate: "Certificate") -> list[str]:
    if not certificate.assumptions:
        return []
    return ["  assuming", *(f"    - {text}" for text in certificate.assumptions)]


def certificate_details(certificate: "Certificate") -> str:
    """Return the whole certificate as readable text."""
    rows = list(certificate_rows(certificate))
    width = max(len(name) for name, _ in rows)
    lines = [_caption(certificate)]
    lines += [f"  {name:<{width}}  {value}" for name, value in rows]
    return "\n".join([*lines, *_assuming(certificate)])


def certificate_html(certificate: "Certificate") -> str:
    """Return the certificate as an HTML table, the details folded."""
    details = list(certificate_rows(certificate))
    details += [("assuming", str(text)) for text in certificate.assumptions]
    return (
        "<div class='skpuffer-certificate'>"
        f"<b>{_caption(certificate)}</b>{_table(five_lines(certificate))}"
        f"<details><summary>details</summary>{_table(details)}</details></div>"
    )


def _table(rows: Iterable[tuple[str, str]]) -> str:
    """Return rows as an HTML table."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(str(value))}</td></tr>"
        for name, value in rows
    )
    return f"<table>{cells}</table>"


# -- A certificate as sections of a model card -----------------------------------------


def certificate_card(certificate: "Certificate") -> dict[str, str]:
    """Return sections of a model card, as Markdown by title."""
    kind = "This is a guarantee." if certificate.certified else _ESTIMATE
    card = {
        "Privacy": f"{kind}\n\n{_named(five_lines(certificate))}",
        "Privacy/Certificate": _named(certificate_rows(certificate)),
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


def _named(rows: Iterable[tuple[str, str]]) -> str:
    return _bullets(f"**{name}**: {_plain(value)}" for name, value in rows)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _plain(said: object) -> str:
    """Return text that Markdown shows as it is."""
    text = str(said)
    for mark in ("\\", "*", "_", "`", "[", "|"):
        text = text.replace(mark, f"\\{mark}")
    return html.escape(text, quote=False)
