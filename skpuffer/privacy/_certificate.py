"""The certificate: what one release promised, in which notion, assuming what."""

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from skpuffer.exceptions import UncertifiedError, UnsupportedError
from skpuffer.information import (
    ResidualReport,
    dp_equivalent,
    membership_advantage,
    posterior_success,
)
from skpuffer.privacy_loss.overlap import OverlapCurve, WorstOverlapCurve
from skpuffer.utils._checks import check_probability
from skpuffer.utils._plain import from_plain, to_plain

from ._card import certificate_card
from ._curve import Curve
from ._display import certificate_html, certificate_text
from ._notions import Notion
from ._robustness import shifted
from ._slices import SLICED, processed, sliced_approximate

if TYPE_CHECKING:
    from skpuffer.transport import SliceProfile

__all__ = ["Certificate"]


# How far from the budget, in parts of it, what the noise spends may be: above it by
# rounding alone, below it by as much as a search for the scale may leave.
_ABOVE, _BELOW = 1e-6, 1e-2

#: What the data of a certificate says it is, and the version of its fields and curves.
#: A field, a notion or a kind of curve that is new is a new version.
SCHEMA, VERSION = "skpuffer.certificate", 1


@dataclass(frozen=True, kw_only=True, repr=False)
class Certificate:
    """Privacy guarantee of a release: its notion, its numbers, its assumptions.

    Plain data, made by an accountant and never changed. It never upgrades itself.

    Parameters
    ----------
    notion : Notion or str
        The privacy notion the promise is stated in.
    epsilon : float or None
        The bound in nats; None if the promise is a mutual information.
    alpha : float or None
        Rényi order, where the notion has one; infinity for a pure promise.
    delta : float
        The delta of an approximate notion, for each pair of secrets and each prior.
    event_delta : float
        The part of `delta` that no noise can buy back: the mass outside the event
        that `curve` speaks of.
    mutual_information : float or None
        A PAC budget in nats. It never stands in `epsilon`.
    table_information : float or None
        Where that is about single records or groups: what the whole table leaks, in
        nats, held with the same confidence.
    entropy : float or None
        Shannon entropy of the table under the prior of a PAC budget, in nats.
    prior_success : float or None
        Probability with which the secret of a PAC budget, of several the likeliest, is
        guessed under the prior alone.
    worst_leakage : float or None
        Under a PAC budget, what the secret that leaks most leaks, in nats; estimated.
    confidence : float
        Probability, over the public sample, that the statement holds; 1 if certain.
    relation : str or None
        How neighbouring tables differ: 'add_remove', 'replace', or None.
    curve : Curve or None
        The whole privacy curve the numbers came from: `renyi(alpha)`,
        `delta(epsilon)`, `epsilon(delta)`.
    epsilon_lower : float or None
        A lower bound of the true epsilon where one is known; `epsilon` is the upper.
    rpp_epsilon : float
        The Rényi-Pufferfish epsilon at the same order that follows for secrets about
        the values of as many records, or infinity. Under 'add_remove' a value changes
        in two steps, so it is more than `epsilon`. Of a sliced promise, what the whole
        noisy vector is worth.
    profile : str or None
        Name of the slice profile that a sliced promise is about.
    coupling_id : str or None
        Names the coupling of neighbouring tables that the promise rests on.
        Certificates with the same one may be composed, and those for any neighbouring
        tables count under a coupling of the same table that changes no more records.
    coupling_count : int or None
        How many records that coupling changes at most, where that is known. Under a
        declared belief both are of the fallback, which may hold only of all records
        of one block; see `fallback`.
    table : str or None
        The public name of the table that was read, as the scenario gives it.
    n_records : int or None
        How many records it has.
    columns : tuple of str or None
        Names of the columns of it that were there to be read, besides the secret;
        None where they have none.
    record : str or None
        Under a declared belief, what it is that the belief speaks of. Promises under
        one belief about the same are composed first and amplified once.
    composable : bool
        Whether it may be added to others at all.
    assumptions : tuple of str
        What must be true for the promise to hold, in sentences.
    sensitivity : float or None
        Bound on the output's sensitivity that the noise covers, in the units of the
        release: half the range of each column in a summary, the clip norm of gradients
        in a training run, otherwise the unit of the output.
    norm : float or None
        The norm of `sensitivity`.
    record_sensitivity : float or None
        Sensitivity to an arbitrary change of one record, in the same norm: what plain
        differential privacy covers.
    noise_gain : float or None
        The `gain`, where it is not the ratio of the two sensitivities.
    source : str
        Where the statement is proved.
    scenario, accountant, release : str
        What was protected, who accounted, what left.
    choice : str
        Which family of noise was taken, or whom an accountant that asks others took,
        and how the others compared.
    n_releases : int
        How many releases are composed in it.

    Examples
    --------
    >>> from skpuffer.accountants import GroupPrivacy
    >>> from skpuffer.releases import QueryRelease, Sensitivity
    >>> from skpuffer.scenarios import RecordScenario
    >>> release = QueryRelease(
    ...     query=lambda X, y: X.mean(axis=0),
    ...     n_records=100,
    ...     dim=1,
    ...     sensitivity=Sensitivity(add_remove={2: 0.01}),
    ... )
    >>> accountant = GroupPrivacy(epsilon=1.0, alpha=4, noise="gaussian")
    >>> certificate = accountant.calibrate(release, RecordScenario()).certificate
    >>> certificate.notion, certificate.epsilon, certificate.alpha
    (<Notion 'renyi_dp'>, 1.0, 4.0)
    >>> round(certificate.to_approximate(1e-5).epsilon, 3)
    2.943
    """

    # Defaults promise nothing: an infinite epsilon for values, no curve, not
    # composable.
    notion: Notion
    epsilon: float | None = None
    alpha: float | None = None
    delta: float = 0.0
    # apart from `delta`, which a conversion may raise: this part stays as it is
    event_delta: float = 0.0
    # a field of its own: a bound on it implies no epsilon, and must not be read as one
    mutual_information: float | None = None
    table_information: float | None = None
    entropy: float | None = None
    prior_success: float | None = None
    worst_leakage: float | None = None
    confidence: float = 1.0
    relation: str | None = None
    curve: Curve | None = None
    epsilon_lower: float | None = None
    # infinity says that nothing is known to follow
    rpp_epsilon: float = math.inf
    profile: str | None = None
    coupling_id: str | None = None
    coupling_count: int | None = None
    table: str | None = None
    n_records: int | None = None
    columns: tuple[str, ...] | None = None
    record: str | None = None
    composable: bool = False
    assumptions: tuple[str, ...] = ()
    sensitivity: float | None = None
    norm: float | None = None
    record_sensitivity: float | None = None
    noise_gain: float | None = None
    source: str = ""
    scenario: str = ""
    accountant: str = ""
    choice: str = ""
    release: str = ""
    n_releases: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.notion, Notion):
            # for mypy a notion is never given by its name
            object.__setattr__(self, "notion", Notion.of(self.notion))  # type: ignore[unreachable]
        # tuples, also of what is read back from JSON: certificates compare by value
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))

    @property
    def certified(self) -> bool:
        """Whether this is a promise (True) or an estimate (False)."""
        return self.notion.certified

    @property
    def gain(self) -> float | None:
        """Noise that one arbitrary record would need, over the noise used here.

        Under a belief about several records together, such as those of a household,
        the noise that differential privacy of these would need: what the `fallback` is
        of, and the certificate names. 1.0 or less: the scenario gained nothing over
        plain differential privacy. None where the comparison makes no sense.
        """
        if self.noise_gain is not None:
            return self.noise_gain
        # By the sensitivities, to which noise is in proportion. A secret about many
        # records, or about no bounded ones, has no record to compare.
        if self.record_sensitivity is None or self.sensitivity is None:
            return None
        # no noise at all, where plain differential privacy would need some
        if self.sensitivity == 0:
            return math.inf
        return self.record_sensitivity / self.sensitivity

    @property
    def fallback(self) -> float | None:
        """Epsilon at `delta` whatever is believed of the record, under a belief.

        Plain differential privacy of one replaced record, or of those that the belief
        takes together. Under a `coupling_id` such as 'replace:3' these are any three,
        otherwise all records of one block or household and no others. None where no
        belief is declared.
        """
        if not isinstance(self.curve, OverlapCurve | WorstOverlapCurve):
            return None
        return float(self.curve.curve.epsilon(self.delta - self.event_delta))

    def implies(
        self, notion: Notion | str, profile: "SliceProfile | str | None" = None
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
                    "The parameter 'profile' goes with a sliced notion, and "
                    f"{notion.title} is about the whole output; omit it."
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

    def to_approximate(self, delta: float) -> "Certificate":
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
        self._refuse_estimate("an (epsilon, delta) promise")
        # without a curve one order would have to stand for all of them
        if self.curve is None:
            raise UncertifiedError("This certificate holds no curve to convert.")
        # from an average over subsamples or projections, say, no (epsilon, delta)
        # follows
        if self.notion.approximate is None:
            of_slices = ""
            if self.notion in SLICED:
                of_slices = (
                    " One about slices is what to_sliced_approximate() gives, and "
                    "after_processing() what is known of the whole output."
                )
            raise UncertifiedError(
                f"No (epsilon, delta) promise is known to follow from "
                f"{self.notion.title}.{of_slices}"
            )
        event = self.event_delta
        if delta <= event:
            raise ValueError(
                f"The parameter 'delta' must exceed {event:g}, the mass outside the "
                f"event this certificate rests on. Got {delta!r}."
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

    def to_sliced_approximate(self, delta: float) -> "Certificate":
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
        self._refuse_estimate("an (epsilon, delta) promise about slices")
        return sliced_approximate(self, delta)

    def after_processing(self) -> "Certificate":
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
        self._refuse_estimate("a promise about what is computed from it")
        return processed(self)

    def under_prior_shift(
        self,
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
        self._refuse_estimate("a promise about another belief")
        # it averages over a prior, so nothing is left of it under another one
        if self.mutual_information is not None or self.epsilon is None:
            raise UncertifiedError(
                "This certificate bounds a mutual information under its own prior; "
                "nothing is known under another."
            )
        if self.notion in SLICED:
            raise UncertifiedError(
                "This certificate is about slices of the output. Ask "
                "after_processing(), which is about all of it, for another belief."
            )
        # another belief is a Pufferfish question, whatever notion the promise began in
        notion = self.notion.pufferfish
        if not self.implies(notion):
            raise ValueError(
                "This certificate is about records that come and go, not about their "
                "values, so it speaks of no prior. Use RecordScenario(relation="
                "'replace') or a scenario with priors."
            )
        given = {
            "query_distance": query_distance,
            "divergence": divergence,
            "variation": variation,
        }
        # the formulas stand in `_robustness`, one for each method
        return shifted(self, notion, method, given, orders)

    def posterior_success(self, prior: float | None = None) -> float:
        """Most that an attacker's success may be, under a PAC budget.

        Parameters
        ----------
        prior : float, default=None
            Success of the guess without the release, in (0, 1). It is of any question
            about the table, or, where the budget is about single records or groups,
            about one of these. None is `prior_success`.

        Returns
        -------
        success : float
            On average over the prior of the scenario and the noise.

        Raises
        ------
        UnsupportedError
            If this is no bound on a mutual information.
        UncertifiedError
            If it is an estimate.
        ValueError
            If `prior` is no probability, or is None and `prior_success` is not known.

        See Also
        --------
        skpuffer.information.posterior_success : The formula.

        Examples
        --------
        >>> from skpuffer.privacy import Certificate
        >>> bound = Certificate(notion="mutual_information", mutual_information=0.125)
        >>> round(bound.posterior_success(0.5), 6)
        0.74464
        """
        budget = self._information("no bound on what is guessed")
        prior = self.prior_success if prior is None else prior
        if prior is None:
            raise ValueError(
                "The parameter 'prior' must be given: this certificate does not know "
                "how often the secret is guessed without the release."
            )
        return posterior_success(budget, prior)

    def membership_advantage(self) -> float:
        """Most that true and false positives of a membership attack may differ by.

        Returns
        -------
        advantage : float
            Of a membership, or any other bit of the secret, that is as likely as not
            under the prior of the scenario; on average over that and the noise.

        Raises
        ------
        UnsupportedError
            If this is no bound on a mutual information, or one about single records or
            groups whose secrets are not all fair.
        UncertifiedError
            If it is an estimate.

        See Also
        --------
        posterior_success : At any prior.

        Examples
        --------
        >>> from skpuffer.privacy import Certificate
        >>> bound = Certificate(notion="mutual_information", mutual_information=0.125)
        >>> round(bound.membership_advantage(), 6)
        0.489281
        """
        budget = self._information("no bound on an attack")
        if self.notion != Notion.MUTUAL_INFORMATION and self.prior_success != 0.5:
            raise UnsupportedError(
                "The advantage is that of a fair secret, and those of this certificate "
                "are not all fair: use posterior_success(), at their own prior."
            )
        return membership_advantage(budget)

    def dp_equivalent(self, delta: float = 0.0) -> float:
        """Epsilon that allows a guess of a fair bit the success that this one does.

        Parameters
        ----------
        delta : float, default=0.0
            In [0, 1).

        Returns
        -------
        epsilon : float
            In nats. Infinite from log 2 nats of information on.

        Raises
        ------
        UnsupportedError
            If this is no bound on a mutual information.
        UncertifiedError
            If it is an estimate.
        ValueError
            If so little leaks that `delta` alone allows more.

        Notes
        -----
        A convention by which the two are compared, and no promise: a bound on a mutual
        information implies differential privacy at no epsilon.

        Examples
        --------
        >>> from skpuffer.privacy import Certificate
        >>> bound = Certificate(notion="mutual_information", mutual_information=0.125)
        >>> round(bound.dp_equivalent(), 6)
        1.070228
        """
        budget = self._information("no equivalent")
        if budget == 0 and delta == 0:
            return 0.0
        return dp_equivalent(budget, delta)

    def residual_report(self, value: float | None = None) -> ResidualReport:
        """Return what stays unknown of the whole table, measured against a reference.

        Parameters
        ----------
        value : float, default=None
            Cross-entropy of the prior against the reference, in nats, such as
            ``information.subset_value(n_pool, size)``. None takes the prior itself for
            the reference, which is the uniform one where all tables are as likely.

        Returns
        -------
        report : ResidualReport
            Where a budget is about single records or groups, by what is promised of
            the whole table beside it.

        Raises
        ------
        UnsupportedError
            If this is no bound on a mutual information, or does not say what there is
            to know of the table and what the release tells of it.
        UncertifiedError
            If it is an estimate.
        ValueError
            If `value` is below the entropy of the table.

        References
        ----------
        Zhang and Vorobeychik (2025), Breaking the Gaussian barrier, Definition 9 and
        Corollary 2.

        Examples
        --------
        >>> import math
        >>> from skpuffer.privacy import Certificate
        >>> bound = Certificate(
        ...     notion="mutual_information",
        ...     mutual_information=0.5,
        ...     entropy=math.log(252),
        ... )
        >>> report = bound.residual_report()
        >>> round(report.residual, 4), round(report.residual_privacy, 4)
        (5.0294, -0.5)
        """
        told: float | None = self._information("no report of what stays unknown")
        if self.notion != Notion.MUTUAL_INFORMATION:
            told = self.table_information
        if self.entropy is None or told is None:
            missing = "entropy" if self.entropy is None else "table_information"
            raise UnsupportedError(
                f"This certificate does not know its {missing!r}, from which a report "
                "follows: use a scenario that knows what is to be known of a table, "
                "such as SubsampleScenario."
            )
        # this very prior as the reference adds nothing to its entropy
        value = self.entropy if value is None else value
        return ResidualReport(entropy=self.entropy, information=told, value=value)

    def _information(self, what: str) -> float:
        """Mutual information that is promised."""
        if self.mutual_information is None:
            raise UnsupportedError(
                f"This certificate is of {self.notion.title}, which bounds no mutual "
                "information. Read 'epsilon', or use an accountant of one, such as "
                "accountants.PAC."
            )
        if not self.certified:
            raise UncertifiedError(
                f"This certificate is an estimate and gives no guarantee, so {what} "
                "either. Use a scenario that knows all tables of its prior "
                "(prior='design' of SubsampleScenario), or "
                "ResidualPAC(certificate='sampled_prior')."
            )
        return self.mutual_information

    def _refuse_estimate(self, what: str) -> None:
        if not self.certified:
            raise UncertifiedError(
                f"This certificate is an estimate and gives no guarantee, so not "
                f"{what} either. Declare what is known of the prior (prior_as='law', "
                "'support' or 'confidence'; confidence= for simulations)."
            )

    def as_asked(self, epsilon: float) -> "Certificate":
        """Return this certificate at the budget asked for, if its epsilon is near it.

        Parameters
        ----------
        epsilon : float

        Returns
        -------
        Certificate
            As it is, if the noise spends more than was asked or leaves some of it.
        """
        assert self.epsilon is not None  # every accountant here states one
        spent = self.epsilon / epsilon
        # such as an exact release, which spends nothing, or a noise that is more than
        # enough
        if not 1 - _BELOW <= spent <= 1 + _ABOVE:
            return self
        # the two go on being equal where they were
        same = self.rpp_epsilon == self.epsilon
        asked = float(epsilon)
        return replace(
            self, epsilon=asked, rpp_epsilon=asked if same else self.rpp_epsilon
        )

    def as_estimate(self, reason: str) -> "Certificate":
        """Return this certificate demoted to an estimate, for a stated reason."""
        return replace(
            self,
            # an estimate is no promise, so that nothing may follow from it or be added
            # to it
            notion=Notion.ESTIMATED,
            rpp_epsilon=math.inf,
            composable=False,
            assumptions=(*self.assumptions, reason),
        )

    def assuming(self, *assumptions: str) -> "Certificate":
        """Return this certificate with further assumptions written into it."""
        # appended, never replaced: what was assumed before still has to hold
        return replace(self, assumptions=(*self.assumptions, *assumptions))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, fit for strict JSON: infinity is the text 'inf'.

        Returns
        -------
        dict
            All fields and the `gain`, besides the name of the `schema` and its
            `version`. The curve of an estimate is left out: there is
            nothing to convert it to, and private rows may have gone into it.
        """
        # every field, whichever there are: none can be forgotten by a list of them
        out: dict[str, Any] = {"schema": SCHEMA, "version": VERSION}
        out |= {f.name: to_plain(getattr(self, f.name)) for f in fields(self)}
        out["notion"] = str(self.notion)
        # for readers; it follows from two fields and is not read back
        out["gain"] = to_plain(self.gain)
        # the curve of an estimate may have been made of private rows
        if not self.certified:
            out["curve"] = None
        return out

    def to_card(self) -> dict[str, str]:
        """Return the certificate as sections of a model card.

        Returns
        -------
        dict of {str: str}
            Markdown by title, a slash before that of a part of a section: what
            ``skops.card.Card.add(**certificate.to_card())`` takes. For a card that is
            read by machines, :meth:`to_dict` has every field.

        Examples
        --------
        >>> from skpuffer.privacy import Certificate
        >>> certificate = Certificate(notion="pure_dp", epsilon=1.0)
        >>> for title, text in certificate.to_card().items():
        ...     print(title, text.splitlines()[0], sep=": ")
        Privacy: This is a guarantee.
        Privacy/Certificate: - **promise**: pure differential privacy: ε = 1
        """
        return certificate_card(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Certificate":
        """Return the certificate that :meth:`to_dict` wrote.

        Parameters
        ----------
        plain : dict
            As it was written, or as it comes back from JSON.

        Returns
        -------
        Certificate
            The same in every field, with a curve that answers the same.

        Raises
        ------
        ValueError
            If it is of another schema or a newer version, a field is missing or
            unknown, or the notion or the curve is of a kind that is not known.

        Examples
        --------
        >>> from skpuffer.privacy import Certificate
        >>> from skpuffer.privacy_loss import GaussianCurve
        >>> certificate = Certificate(
        ...     notion="approximate_dp",
        ...     epsilon=1.0,
        ...     delta=0.127,
        ...     curve=GaussianCurve(1.0),
        ... )
        >>> Certificate.from_dict(certificate.to_dict()) == certificate
        True
        """
        schema, version = plain.get("schema"), plain.get("version")
        if schema != SCHEMA or not isinstance(version, int) or version < 1:
            raise ValueError(
                f"The data is not that of a certificate: its 'schema' must be "
                f"{SCHEMA!r} and its 'version' an integer. Got {schema!r} and "
                f"{version!r}."
            )
        if version > VERSION:
            raise ValueError(
                f"The certificate is written in version {version} of its schema, and "
                f"this version of skpuffer reads up to {VERSION}. Use a newer one."
            )
        given = set(plain) - {"gain", "schema", "version"}
        names = {f.name for f in fields(cls)}
        if names != given:
            # one that is left out would be taken for its default, which may say more
            raise ValueError(
                "The data is not that of a certificate of this version of skpuffer: "
                f"missing are {sorted(names - given)}, unknown "
                f"{sorted(given - names)}."
            )
        return cls(
            **{
                # a text such as 'inf' is a number elsewhere, and stays a text in these
                name: value if name in _TEXTS else from_plain(value)
                for name, value in plain.items()
                if name in names
            }
        )

    def __str__(self) -> str:
        return certificate_text(self)

    def __repr__(self) -> str:
        parts = [f"notion={self.notion.name!r}"]
        for name in ("epsilon", "alpha", "delta", "mutual_information"):
            value = getattr(self, name)
            # what is zero or unknown is left out: a line has to be short
            if value is not None and not (name == "delta" and value == 0):
                parts.append(f"{name}={value:.6g}")
        # the notion and its numbers; `str` says the rest, assumptions above all
        return f"Certificate({', '.join(parts)})"

    def _repr_html_(self) -> str:
        return certificate_html(self)


#: Fields that are read back as they are written, whatever they say.
_TEXTS = frozenset(
    {
        "accountant",
        "assumptions",
        "choice",
        "columns",
        "coupling_id",
        "notion",
        "profile",
        "record",
        "relation",
        "release",
        "scenario",
        "source",
        "table",
    }
)
