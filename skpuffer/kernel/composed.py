"""The rule of composed steps: what a noise of each promises of all of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.composed_curves import CountLawCurve, RenyiCurve
from skpuffer.kernel.curves import GaussianCurve, PrivacyCurve, TradeOffs
from skpuffer.kernel.distribution import LOOSE, PrivacyLossCurve
from skpuffer.kernel.facts import Adjacency
from skpuffer.kernel.noise import Noise
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import Floats, check_probability
from skpuffer.kernel.pairs import ShiftPair
from skpuffer.kernel.steps import Accounting, GradientSteps, StepsOfRelease

#: How likely the numbers of records that have a curve are exceeded, relatively to
#: delta: many where curves are in closed form, and one where they take grids.
_LEVELS = np.geomspace(1e8, 1e-3, 100)
_ONE_LEVEL = np.array([0.1])

_REMARK = Statement("assume.mean_over_count_law")


def law_account(
    steps: StepsOfRelease, noise: Noise, delta: float, max_memory: float
) -> tuple[CountLawCurve, Accounting]:
    """Account of all steps by the mean over how many records differ.

    Under one coupling the number is that of a pair of tables, the same at all steps. So
    the mean is over whole runs (joint convexity), and only once. The curve is to be
    good near `delta`; the account is that of the largest number which the curve holds
    one for.
    """
    assert steps.law is not None

    def account(count: int) -> Accounting:
        return replace(steps, count=count, event=0.0, law=None).under(noise, max_memory)

    one = account(1)
    levels = _LEVELS if isinstance(one.curve, GaussianCurve) else _ONE_LEVEL
    counts, weights, beyond = _binned(np.array(steps.law), delta * levels)
    found = [account(count) for count in counts]
    curve = CountLawCurve(tuple(each.curve for each in found), weights, beyond)
    # a mean of bounds that single tables attain is attained by none
    assumptions = (*found[-1].assumptions, _REMARK)
    told = replace(found[-1], tight=False, assumptions=assumptions, events=None)
    return curve, told


def _binned(
    survival: Floats, levels: Floats
) -> tuple[list[int], tuple[float, ...], float]:
    """Numbers that stand for all up to them, their weights, and the mass beyond."""
    n = len(survival)
    # the least number that is exceeded with at most each probability
    exceeded = np.minimum.accumulate(survival)
    first = np.unique(np.searchsorted(-exceeded, -levels)).tolist()
    # if all n are exceeded too often, all n are what there is
    counts = [count for count in first if count > 0]
    # mass moves to larger numbers only, which cost no less
    above = [1.0] + [exceeded[count] if count < n else 0.0 for count in counts]
    return counts, tuple(-np.diff(above)), float(above[-1])


#: Epsilon, a lower bound of it or None, the curve to certify, and remarks on both.
Reading = tuple[float, float | None, PrivacyCurve, tuple[Statement, ...]]


def worst_delta(pair: TradeOffs, epsilon: float) -> float:
    """Return the bound of the divergence in the worse direction."""
    at = np.array([epsilon])
    found = float(pair.delta(at)[0])
    if getattr(pair, "symmetric", False):
        return found
    # where a bound that takes no time is no larger already, so is the least of all
    quick = getattr(pair, "quick_reverse", None)
    if quick is not None and float(quick(at)[0]) <= found:
        return found
    return max(found, float(pair.reverse(at)[0]))


@dataclass(frozen=True)
class Promise:
    """The promise asked of a run, and how it is read off the curve of all steps.

    Parameters
    ----------
    alpha : float or None
        Rényi order; None for a promise with a delta.
    left : float or None
        The part of `delta` that the event of the steps leaves to the noise, given its
        complement.
    notion : Notion
        Where nothing is known of the records but that any may differ.
    by_renyi_costs : bool
        Whether costs of steps are added order by order.
    by_law : bool
        Whether the mean over how many records differ is read, if their law is known.
    max_memory : float
        In MiB, for a grid.
    read : callable
        Takes the curve and `left`; returns a `Reading`.
    """

    alpha: float | None
    delta: float | None
    left: float | None
    notion: Notion
    by_renyi_costs: bool
    by_law: bool
    max_memory: float
    read: Callable[..., Reading]


def claim_of_steps(
    noise: Noise, steps: StepsOfRelease, fact: Adjacency, promise: Promise
) -> Claim:
    """Claim what a noise of each step promises of all of them.

    Parameters
    ----------
    noise : Noise
        As calibrated, or as given.
    steps : StepsOfRelease
        Between tables that are neighbours by the fact.
    """
    reading, found, is_mean = _read(noise, steps, promise)
    epsilon, lower, curve, remarks = reading
    notion, event, coupling, moved = _grounds(steps, fact, promise.notion, is_mean)
    # one record against one; under differential privacy the two are the same by
    # definition
    compared = fact.count == 1 and not fact.any_records
    return Claim(
        notion=notion if fact.certified else Notion.ESTIMATED,
        epsilon=epsilon,
        alpha=promise.alpha,
        delta=0.0 if promise.delta is None else promise.delta,
        event_delta=event,
        relation=steps.relation,
        curve=curve,
        # listed by the curve itself, where it keeps them
        events=None if isinstance(curve, PrivacyLossCurve) else found.events,
        # a lower bound of the dominating pair is one of the run only if tables attain
        # it
        epsilon_lower=lower if found.tight and fact.certified else None,
        coupling_id=coupling,
        coupling_count=fact.count,
        composable=fact.certified and coupling is not None,
        assumptions=(
            *fact.assumptions,
            *moved,
            *found.assumptions,
            *remarks,
            *_evidence(found, promise),
            *steps.release.assumptions,
        ),
        sensitivity=float(found.shift.radius),
        norm=float(found.shift.norm),
        record_sensitivity=steps.any_record(found.shift) if compared else None,
        source=found.source,
    )


def _read(
    noise: Noise, steps: StepsOfRelease, promise: Promise
) -> tuple[Reading, Accounting, bool]:
    """Read the less of two costs, and whether that is a mean over pairs of tables."""
    found = steps.under(noise, promise.max_memory)
    reading = promise.read(found.curve, promise.left)
    if steps.law is not None and promise.by_law:
        delta = check_probability(delta=promise.delta)
        curve, weighed = law_account(steps, noise, delta, promise.max_memory)
        epsilon = curve.epsilon(delta)
        if epsilon < reading[0]:
            return (epsilon, None, curve, ()), weighed, True
    return reading, found, False


def _evidence(found: Accounting, promise: Promise) -> tuple[Statement, ...]:
    """What is not proved of the noise, of its Rényi costs or of its trade-off."""
    of_costs, of_trade_off = found.evidence
    # Rényi costs of other than plain steps are read off the trade-off
    plain = all(
        isinstance(pair, ShiftPair) for pair, _ in getattr(found.curve, "steps", ())
    )
    return of_costs if promise.by_renyi_costs and plain else of_trade_off


def _grounds(
    steps: StepsOfRelease, fact: Adjacency, notion: Notion, is_mean: bool
) -> tuple[Notion, float, str | None, tuple[Statement, ...]]:
    """Notion, event and coupling that a promise rests on, and how records move."""
    coupling = fact.coupling_id
    moved: tuple[Statement, ...] = ()
    if is_mean:
        # a mean over tables, which holds for this run alone
        return Notion.APPROXIMATE_PUFFERFISH, 0.0, None, ()
    if steps.event and steps.event_of_tables:
        # what rests on an event is about the prior, and on this coupling of it
        notion = Notion.APPROXIMATE_PUFFERFISH
    elif steps.moves is not None:
        # what is promised rests on how far the secret moves each record
        notion, moved = notion.pufferfish, steps.statements(fact.move)
    elif not math.isinf(fact.move) or fact.relabelled:
        # the bound takes clipped gradients of any records, not how far each moves
        coupling = fact.any_coupling(steps.relation)
    # teachers were counted by where the records are: not so of any as many
    if getattr(steps.release, "groups", None) and fact.sequences is not None:
        coupling = fact.together(coupling)
    return notion, steps.event, coupling, moved


def read_losses(
    curve: GaussianCurve | PrivacyLossCurve,
    delta: float,
    *,
    asked: float,
    max_memory: float,
) -> Reading:
    """Read epsilon off the privacy losses of all steps.

    Parameters
    ----------
    asked : float
        An epsilon that will do.
    max_memory : float
        In MiB, that the grid was given.
    """
    if isinstance(curve, GaussianCurve):
        epsilon = float(curve.epsilon(delta))
        # exact, up to rounding
        return epsilon, epsilon * (1 - 1e-9), curve, ()
    found, engine = curve.upper(delta)
    if is_of_bins(curve) and found > asked:
        # Laws differ a bit from one epsilon to the next: the one that is asked for may
        # be kept, and another just above it not. Any that is kept will do.
        pair: Any = curve.steps[0][0]
        if worst_delta(pair, asked) <= delta:
            found = asked
    remarks: tuple[Statement, ...] = ()
    # sound all the same, but whoever reads the certificate should know why it is large
    if engine == "renyi":
        remarks = (Statement("curve.grid_too_large_renyi_used", max_memory=max_memory),)
    elif engine == "coarse_grid":
        remarks = (
            Statement(
                "curve.grid_coarsened_by_memory",
                percent=100 * LOOSE,
                max_memory=max_memory,
            ),
        )
    winners = (GradientSteps.correlated or GradientSteps).winners(curve, found)
    return found, None, curve, (*winners, *remarks)


def is_of_bins(curve: GaussianCurve | PrivacyLossCurve) -> bool:
    """Whether a curve is that of one pair whose divergences take long to bound."""
    steps: Any = getattr(curve, "steps", ())
    return (
        len(steps) == 1 and steps[0][1] == 1 and hasattr(steps[0][0], "least_epsilon")
    )


def read_renyi(
    curve: GaussianCurve | PrivacyLossCurve,
    delta: float | None,
    *,
    orders: tuple[float, ...],
    alpha: float | None,
) -> Reading:
    """Read epsilon off the Rényi costs of all steps, at an order or with a delta.

    Parameters
    ----------
    orders : tuple of float
        At which costs are added, with `alpha`.
    alpha : float or None
        If there is no delta.
    """
    # The table is what the certificate holds: finitely many orders, of which any one
    # gives a promise, and the best one the epsilon.
    table = RenyiCurve(orders, renyi_costs(curve, orders))
    if alpha is not None:
        return float(table.renyi(alpha)), None, table, ()
    assert delta is not None  # one of the two is given
    # no lower bound: how much the conversion gives away is not known
    return float(table.epsilon(delta)), None, table, ()


def renyi_costs(
    curve: GaussianCurve | PrivacyLossCurve, orders: tuple[float, ...]
) -> tuple[float, ...]:
    """Return Rényi costs at each order, in nats."""
    if isinstance(curve, GaussianCurve):
        return tuple(curve.renyi(alpha) for alpha in orders)
    # of independent noise the costs of adaptive steps add up (Mironov 2017, Prop 1)
    return tuple(curve.renyi_costs(orders))
