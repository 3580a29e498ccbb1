"""What follows from a certificate: in other notions, and for other beliefs."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from skpuffer.exceptions import Statement, UncertifiedError
from skpuffer.kernel.notions import Notion
from skpuffer.kernel.numbers import check_probability

from ._robustness import shifted
from ._slices import SLICED, processed, sliced_approximate

if TYPE_CHECKING:
    from skpuffer.transport import SliceProfile

    from ._certificate import Certificate

__all__ = ["ConsequencesMixin"]


class ConsequencesMixin:
    """What follows from a certificate; its numbers are never made up, but converted."""

    # mypy takes no mixin to be what it is mixed into, hence what it is told to ignore

    def implies(  # type: ignore[misc]
        self: "Certificate",
        notion: Notion | str,
        profile: "SliceProfile | str | None" = None,
    ) -> bool:
        """Whether a promise in `notion` follows from this one.

        At the same numbers, except for the step from a Rényi notion to an (epsilon,
        delta) one, whose numbers :meth:`to_approximate` gives, or of a sliced one
        :meth:`to_sliced_approximate`.

        Parameters
        ----------
        notion : Notion or str
        profile : SliceProfile or str, default=None
            Slice profile that a sliced notion is to be about, or its name. None is that
            of this certificate.

        Returns
        -------
        bool
            An estimate implies nothing but an estimate, and a sliced promise nothing
            about another profile.
        """
        notion = Notion.of(notion)
        if profile is not None:
            if notion not in SLICED:
                raise ValueError(
                    Statement("certificate.profile_without_slices", title=notion.title)
                )
            name = profile if isinstance(profile, str) else profile.name
            # Slices say nothing about other slices. What holds of the whole output
            # holds along all of them.
            if self.notion in SLICED and name != self.profile:
                return False
        if self.relation == "add_remove" and self.notion.differential:
            # Another value of a record is two steps of this relation away, a removal
            # and an addition, so nothing follows for replaced values at these numbers.
            return notion.differential and self.notion.implies(notion)
        # read off an explicit table: a notion that is new implies nothing but itself
        return self.notion.implies(notion)

    def to_approximate(self: "Certificate", delta: float) -> "Certificate":  # type: ignore[misc]
        """Return the (epsilon, delta) promise that follows.

        Parameters
        ----------
        delta : float
            In (0, 1), and greater than the certificate's own `delta` where its notion
            has an event outside of which nothing is promised.

        Returns
        -------
        Certificate
            From the whole curve where one is held, not from a single order.

        Raises
        ------
        UncertifiedError
            If this is an estimate or holds no curve to convert.
        ValueError
            If `delta` is not in the range.
        """
        # the number first, then what is held: neither can make up for the other
        delta = check_probability(delta=delta)
        self._refuse_estimate(Statement("certificate.what_approximate_promise"))
        # without a curve one order would have to stand for all of them
        if self.curve is None:
            raise UncertifiedError(Statement("certificate.no_curve_to_convert"))
        # from an average over subsamples or projections, say, no (epsilon, delta)
        # follows
        if self.notion.approximate is None:
            of_slices: Statement | str = ""
            if self.notion in SLICED:
                of_slices = Statement("certificate.remedy_sliced_approximate")
            raise UncertifiedError(
                Statement(
                    "certificate.no_approximate_promise_follows",
                    title=self.notion.title,
                    of_slices=of_slices,
                )
            )
        event = self.event_delta
        if delta <= event:
            raise ValueError(
                Statement("certificate.delta_below_event", event=event, delta=delta)
            )
        # delta is the noise's own trade-off given the event, plus the mass outside it
        epsilon = float(self.curve.epsilon(delta - event))
        return replace(
            self,
            notion=self.notion.approximate,
            epsilon=epsilon,
            alpha=None,
            delta=delta,
            epsilon_lower=None,
            rpp_epsilon=math.inf,
            noise_gain=None,
        )

    def to_sliced_approximate(self: "Certificate", delta: float) -> "Certificate":  # type: ignore[misc]
        """Return the (epsilon, delta) promise about slices that follows.

        Of a jointly sliced promise it is about one projection along a direction drawn
        from the profile and revealed, and about no more of the output. Of an averaged
        one it is the mean over slices of the epsilons that each has at `delta`, which
        is an (epsilon, delta) promise of no release at all.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Returns
        -------
        Certificate
            The smallest epsilon over all orders, for the noise of this certificate.

        Raises
        ------
        UncertifiedError
            If this is an estimate.
        ValueError
            If `delta` is not in the range, or this promises nothing about slices at an
            order.

        References
        ----------
        Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Theorems B.3 and B.4; by
        the conversion of Canonne, Kamath and Steinke (2020), Proposition 12.

        Examples
        --------
        >>> from skpuffer.accountants import SlicedWasserstein
        >>> from skpuffer.distributions import PointMass
        >>> from skpuffer.releases import QueryRelease
        >>> from skpuffer.scenarios import LawsScenario
        >>> release = QueryRelease(query=lambda X, y: X.sum(0), n_records=4, dim=2)
        >>> scenario = LawsScenario([(PointMass([0.0, 0.0]), PointMass([1.0, 0.0]))])
        >>> accountant = SlicedWasserstein(1.0, 4.0, "joint", profile="uniform")
        >>> certificate = accountant.calibrate(release, scenario).certificate
        >>> sliced = certificate.to_sliced_approximate(1e-5)
        >>> sliced.notion.title
        '(ε, δ)-Pufferfish privacy of one random projection'
        >>> round(sliced.epsilon, 3), round(certificate.rpp_epsilon, 3)
        (3.52, 1.402)
        """
        delta = check_probability(delta=delta)
        self._refuse_estimate(Statement("certificate.what_sliced_approximate_promise"))
        return sliced_approximate(self, delta)

    def after_processing(self: "Certificate") -> "Certificate":  # type: ignore[misc]
        """Return what is promised of whatever is computed from the release.

        Returns
        -------
        Certificate
            This one, unless it is about slices: a rotation may turn what the output
            tells into one slice, so that of a sliced promise only what is known of the
            whole output is left, `rpp_epsilon`.

        Raises
        ------
        UncertifiedError
            If this is an estimate, or nothing is known of the whole output.

        References
        ----------
        Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Appendix B.2.
        """
        self._refuse_estimate(Statement("certificate.what_processed_promise"))
        return processed(self)

    def under_prior_shift(  # type: ignore[misc]
        self: "Certificate",
        query_distance: float | None = None,
        *,
        method: str = "direct",
        divergence: float | tuple[float, float] | None = None,
        variation: float | None = None,
        orders: tuple[float, float, float] | None = None,
    ) -> "Certificate":
        """Return what is promised if the attacker's belief is only close to a prior.

        The promise extends to beliefs outside the scenario that are close to one of
        its priors, at a price. Close is said in one of three ways, and always means
        one and the same prior for all secrets.

        Parameters
        ----------
        query_distance : float, default=None
            For 'direct' and 'a5': W_inf distance between the distributions of the query
            given each secret under the belief and under the prior, at most; in the norm
            and the units of `sensitivity`.
        method : {'direct', 'variation', 'a3', 'a4', 'a5'}, default='direct'
            - 'direct': the sensitivity grows by twice the distance, whatever the
              notion. No other method is better where it applies.
            - 'variation': delta grows by twice the total variation.
            - 'a3': a pure epsilon grows by twice the max-divergence.
            - 'a4': any mechanism with a Rényi promise, by Hölder's inequality.
            - 'a5': 'a4' for additive noise; at best as good as 'direct'.
        divergence : float or (float, float), default=None
            For 'a3': the max-divergence of the data's distribution given each secret
            between belief and prior, both ways. For 'a4': the Rényi divergence of the
            belief from the prior at the order ``alpha p``, and that of the prior from
            the belief at the order ``(alpha - 1) r + 1``.
        variation : float, default=None
            For 'variation': total variation between the distributions of the query
            given each secret, at most; in (0, 1/2).
        orders : (float, float, float), default=None
            For 'a4' and 'a5': (p, q, r), above one, with reciprocals that sum to one.
            The promise used is the one at the order ``q (alpha - 1/p)``. None finds
            the best ones for 'a5'.

        Returns
        -------
        Certificate
            In a Pufferfish notion, not composable; its assumptions say how close the
            belief must be.

        Raises
        ------
        UncertifiedError
            If this is an estimate, or does not hold what the method works from.
        ValueError
            If an input is missing, superfluous or out of range, or if the method is
            not about this notion.

        References
        ----------
        Pierquin et al. (2024), Rényi Pufferfish privacy, Theorems A.3 (Song, Wang and
        Chaudhuri, 2017), A.4 and A.5, the infimum taken over one prior for both of its
        divergences; the direct bound by the triangle inequality of W_inf and Theorem
        3.3.

        Examples
        --------
        >>> from skpuffer.accountants import GeneralWasserstein
        >>> from skpuffer.noise import GaussianNoise
        >>> from skpuffer.releases import QueryRelease
        >>> from skpuffer.scenarios import LawsScenario
        >>> from skpuffer.distributions import PointMass
        >>> release = QueryRelease(query=lambda X, y: X.sum(), n_records=4, dim=1)
        >>> scenario = LawsScenario([(PointMass(0.0), PointMass(1.0))])
        >>> accountant = GeneralWasserstein(alpha=2)
        >>> certificate = accountant.certify(GaussianNoise(1.0), release, scenario)
        >>> certificate.epsilon, certificate.under_prior_shift(0.5).epsilon
        (1.0, 4.0)
        """
        self._refuse_estimate(Statement("certificate.what_other_belief_promise"))
        # it averages over a prior, so nothing is left of it under another one
        if self.mutual_information is not None or self.epsilon is None:
            raise UncertifiedError(Statement("certificate.information_own_prior_only"))
        if self.notion in SLICED:
            raise UncertifiedError(Statement("certificate.slices_under_other_prior"))
        # another belief is a Pufferfish question, whatever notion the promise began in
        notion = self.notion.pufferfish
        if not self.implies(notion):
            raise ValueError(Statement("certificate.speaks_of_no_prior"))
        given = {
            "query_distance": query_distance,
            "divergence": divergence,
            "variation": variation,
        }
        # the formulas stand in `_robustness`, one for each method
        return shifted(self, notion, method, given, orders)
