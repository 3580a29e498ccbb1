"""Pure promises about choices by noisy scores: their largest losses add up."""

import math
from typing import Any

from skpuffer.accountants._base import Account, Calibration
from skpuffer.accountants._selection import selection_curve, selection_noises
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.noise import Noise
from skpuffer.privacy import Certificate, Notion
from skpuffer.releases import SelectionRelease
from skpuffer.scenarios import Adjacency, BoundScenario
from skpuffer.scenarios._facts import arbitrary_coupling

__all__ = ["pure_account"]

# By which rounding may fall short of a scale.
_DIGITS = 1e-12


def pure_account(
    accountant: Any, fact: Adjacency, release: SelectionRelease, bound: BoundScenario
) -> Account:
    """Return the account of a selection by an accountant of pure promises.

    Parameters
    ----------
    accountant : GroupPrivacy
        Of an infinite order.
    fact : Adjacency
    release : SelectionRelease
    bound : BoundScenario

    Returns
    -------
    Account

    Raises
    ------
    UnsupportedError
        If the order is finite, or more records than known may differ.
    """
    name = type(accountant).__name__
    if accountant.delta is not None or not math.isinf(accountant._order):
        raise UnsupportedError(
            Statement("selection.pure_promises_alone", owner=name, name=release.name)
        )
    if not fact.count_is_certain:
        raise UnsupportedError(
            Statement("selection.pure_count_uncertain", owner=name, name=release.name)
        )
    count, relation = int(fact.count), fact.relation

    def certify(noise: Noise) -> Certificate:
        curve, shift, source, statement = selection_curve(
            noise, release, relation, count
        )
        coupling = fact.coupling_id
        # any records may differ: how far each of them moves gains nothing
        if not math.isinf(fact.move) or fact.relabelled:
            coupling = arbitrary_coupling(relation, count)
        compared = count == 1 and not fact.any_records
        return Certificate(
            notion=Notion.PURE_DP if fact.certified else Notion.ESTIMATED,
            epsilon=float(curve.renyi(math.inf)),
            alpha=math.inf,
            delta=0.0,
            relation=relation,
            curve=curve,
            coupling_id=coupling,
            coupling_count=count,
            composable=fact.certified and coupling is not None,
            assumptions=(*fact.assumptions, statement, *release.assumptions),
            sensitivity=float(shift.radius),
            norm=float(shift.norm),
            record_sensitivity=float(shift.radius) if compared else None,
            source=source,
            **accountant._identity(bound, release),
        )

    def calibrate(noise: Noise, rng: Any) -> Calibration:
        # both families cost the same, and the first errs less
        family = selection_noises(noise, release)[0]
        total = count * sum(release.ranges(relation))
        chosen = family(total / float(accountant.epsilon) * (1 + _DIGITS))
        return Calibration(chosen, certify(chosen))

    return Account(calibrate, certify)
