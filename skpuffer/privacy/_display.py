"""How a certificate shows itself: as text, and as HTML in a notebook."""

import html
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from skpuffer.exceptions import UncertifiedError
from skpuffer.information import dp_equivalent, posterior_success
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
    # rounded up to four digits, as it is to hold
    unit = 10.0 ** (math.floor(math.log10(epsilon)) - 3) if epsilon > 0 else 1.0
    shown = math.ceil(epsilon / unit * (1 - 1e-12)) * unit
    return f"; that is ({shown:.4g}, {delta:.0e})"


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
        over = "the public sample" if c.mutual_information is None else "all draws"
        yield "confidence", f"{c.confidence:.4g} (over {over})"
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
        plain = "RecordScenario(relation='replace')"
        # against as many records as are believed of together
        if isinstance(c.curve, OverlapCurve):
            plain = str(plain_privacy(c))
        if c.gain <= 1 + 1e-9:
            text = f"none: {plain} would have needed no more noise"
        elif math.isinf(c.gain):
            text = "complete: the pairs of secrets do not move it, and it has no noise"
        else:
            text = f"{c.gain:.3g} times less noise than {plain}"
        yield "gain", text
    if isinstance(c.curve, OverlapCurve | WorstOverlapCurve):
        yield from _of_belief(c, c.curve)
    yield "composition", _composition(c)
    if c.source:
        yield "source", str(c.source)


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


def certificate_text(certificate: "Certificate") -> str:
    """Return the certificate as readable text."""
    rows = list(certificate_rows(certificate))
    width = max(len(name) for name, _ in rows)
    lines = ["Certificate" if certificate.certified else "Certificate (ESTIMATE ONLY)"]
    lines += [f"  {name:<{width}}  {value}" for name, value in rows]
    if certificate.assumptions:
        lines.append("  assuming")
        lines += [f"    - {text}" for text in certificate.assumptions]
    return "\n".join(lines)


def certificate_html(certificate: "Certificate") -> str:
    """Return the certificate as an HTML table."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(str(value))}</td></tr>"
        for name, value in certificate_rows(certificate)
    )
    assumptions = "".join(
        f"<li>{html.escape(str(a))}</li>" for a in certificate.assumptions
    )
    if assumptions:
        rows += (
            "<tr><th style='text-align:left'>assuming</th><td style='text-align:left'>"
            f"<ul style='margin:0;padding-left:1.2em'>{assumptions}</ul></td></tr>"
        )
    caption = "Certificate" if certificate.certified else "Certificate: estimate only"
    return (
        "<table class='skpuffer-certificate'>"
        f"<caption style='text-align:left'><b>{caption}</b></caption>{rows}</table>"
    )


# -- A certificate as sections of a model card -----------------------------------------


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
