"""Group privacy: sensitivity to one record, times the records that differ."""

import math
from typing import Any, ClassVar

from skpuffer.accountants._base import Account, Found, accounts_for
from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.kernel.answers import SELECTION_FIELDS, selection_curve, selection_noises
from skpuffer.kernel.certificates import Claim
from skpuffer.kernel.facts import arbitrary_coupling
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.sums import STAGE_FIELDS
from skpuffer.noise import Noise
from skpuffer.releases import AdaptiveRelease, SelectionRelease
from skpuffer.scenarios import Adjacency, BoundScenario

from ._base import _AdditiveAccountant

__all__ = ["GroupPrivacy"]


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

    def certify(noise: Noise) -> Claim:
        curve, shift, source, statement = selection_curve(
            noise, release, relation, count
        )
        coupling = fact.coupling_id
        # any records may differ: how far each of them moves gains nothing
        if not math.isinf(fact.move) or fact.relabelled:
            coupling = arbitrary_coupling(relation, count)
        compared = count == 1 and not fact.any_records
        return Claim(
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
        )

    def calibrate(noise: Noise, rng: Any) -> Found:
        # both families cost the same, and the first errs less
        family = selection_noises(noise, release)[0]
        total = count * sum(release.ranges(relation))
        chosen = family(total / float(accountant.epsilon) * (1 + _DIGITS))
        return Found(chosen, certify(chosen))

    return Account(calibrate, certify)


class GroupPrivacy(_AdditiveAccountant):
    """Noise that covers the records that differ between neighbouring tables.

    Works from adjacency: how many records differ and how far each moves, under one
    coupling of the two tables. Under :class:`~skpuffer.scenarios.RecordScenario` it is
    the Gaussian or Laplace mechanism of differential and group privacy. Certificates of
    one and the same coupling compose.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget in nats.
    alpha : float, default=None
        Rényi order, greater than 1; 2 if neither it nor `delta` is given. Infinity asks
        for a pure promise, which Gaussian noise cannot keep (choices by scores, such as
        quantiles, have noise of their own all the same, and a pure promise alone).
    delta : float, default=None
        If given, the promise is an (epsilon, delta) one, calibrated exactly through the
        noise's own trade-off. Not together with `alpha`.
    noise : {'auto', 'gaussian', 'laplace', 'generalized_gaussian', \
'generalized_cauchy', 'discrete_laplace'} or Noise, default='auto'
        Family of the noise, or a noise whose scale calibration replaces. 'auto' takes,
        of Gaussian, Laplace and (of integers) discrete Laplace noise, the one of least
        mean square error over all coordinates, by public facts alone; the certificate's
        `choice` says which. For sums in turn it is Gaussian noise (Laplace noise for a
        pure promise). Gaussian and generalised Cauchy noise measure shifts in l2,
        Laplace and discrete Laplace noise in l1, and generalised Gaussian noise in the
        norm of order min(beta, 2). Discrete Laplace noise is for releases of integers.
    beta : float, default=None
        Shape of generalised Gaussian noise, at least 1; only for that name.

    See Also
    --------
    GeneralWasserstein : Compares output distributions; less noise where it applies.

    References
    ----------
    Dwork and Roth (2014), Theorem 2.2 (groups); Pierquin et al. (2024), Proposition
    3.1 (the Wasserstein mechanism never needs more) and Corollary 3.1 (Rényi costs).

    Examples
    --------
    >>> from skpuffer.accountants import GroupPrivacy
    >>> GroupPrivacy(epsilon=0.5, delta=1e-5)
    GroupPrivacy(delta=1e-05, epsilon=0.5)
    """

    needs = (Adjacency,)
    _takes_joint_noise = True
    reads: ClassVar = _AdditiveAccountant.reads | {
        AdaptiveRelease: STAGE_FIELDS,
        SelectionRelease: SELECTION_FIELDS,
    }
    # Adjacency is about two whole tables under one coupling, so what a second release
    # reveals is bounded pair of tables by pair of tables, and costs add up. A distance
    # of output distributions is about each output alone.
    _composable = True
    _source = Statement("source.group_privacy_one_coupling")

    @accounts_for(SelectionRelease)
    def _account_of_selection(
        self, fact: Adjacency, release: SelectionRelease, bound: BoundScenario
    ) -> Account:
        return pure_account(self, fact, release, bound)
