"""The certificate: what one release promised, in which notion, assuming what."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from skpuffer.exceptions import (
    CompositionError,
    Statement,
    UncertifiedError,
    unsupported_error,
    value_error,
)
from skpuffer.information import (
    ResidualReport,
    dp_equivalent,
    membership_advantage,
    posterior_success,
)
from skpuffer.kernel import certificates as certificates
from skpuffer.kernel.certificates import in_statements
from skpuffer.kernel.curves import BeliefCurve
from skpuffer.kernel.notions import SLICED, Notion
from skpuffer.kernel.numbers import check_probability
from skpuffer.utils._versions import with_version, without_version

from ._display import (
    certificate_card,
    certificate_details,
    certificate_html,
    certificate_text,
)
from ._information import processed, sliced_approximate
from ._robustness import shifted
from ._written import SEEDED, plain_of, read_back

if TYPE_CHECKING:
    from skpuffer.transport import SliceProfile


@dataclass(frozen=True, kw_only=True, repr=False)
class Certificate(certificates.Certificate):
    """Privacy guarantee of a release: its notion, its numbers, its assumptions.

    Plain data, made by an accountant and never changed. It never upgrades itself.

    Parameters
    ----------
    errors : tuple of (str, float, float)
        Name of each release, and the least and the largest standard deviation of the
        noise of its entries, in units of the data; of a fit, where they are known.
    **fields
        As of the certificate of the kernel.

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

    # no part of the promise, and so of whether two are the same
    errors: tuple[tuple[str, float, float], ...] = field(default=(), compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return with_version(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(without_version(self, state))

    @property
    def gain(self) -> float | None:
        """Noise that one arbitrary record would need, over the noise used here.

        In a fit, the root mean square of the noise by which plain differential privacy
        of one replaced record keeps the same promise, by its best accountant and family
        of noise, over that of the noise used. For a certificate that an accountant gave
        by itself, outside of a fit, it may be the ratio of the two sensitivities (where
        `noise_gain` is None), to which noise of one family is in proportion.

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
        curve: object = self.curve
        if not isinstance(curve, BeliefCurve):
            return None
        return float(curve.without_belief().epsilon(self.delta - self.event_delta))

    def as_estimate(self, reason: Statement | str) -> Self:
        """Return this certificate demoted to an estimate, for a stated reason."""
        return replace(
            self,
            # an estimate is no promise, so that nothing may follow from it or be added
            # to it
            notion=Notion.ESTIMATED,
            rpp_epsilon=math.inf,
            composable=False,
            assumptions=(*self.assumptions, *in_statements((reason,))),
        )

    def as_seeded(self) -> Self:
        """Return this certificate with the statement that its noise has a seed."""
        return replace(self, seeded=True).assuming(SEEDED)

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
                raise value_error(
                    "certificate.profile_without_slices", title=notion.title
                )
            name = profile if isinstance(profile, str) else profile.name
            # Slices say nothing about other slices. What holds of the whole output
            # holds along all of them.
            if self.notion in SLICED and name != self.profile:
                return False
        return super().implies(notion)

    def to_dict(self) -> dict[str, object]:
        """Return plain data, fit for strict JSON: infinity is the text 'inf'.

        Returns
        -------
        dict
            All fields and the `gain`, besides the name of the `schema`, its `version`
            and a `digest` of all the rest, which shows that nothing was changed by
            accident, and not who wrote it. The curve of an estimate is left out: there
            is nothing to convert it to, and private rows may have gone into it.

        See Also
        --------
        skpuffer.certificate.check : Recompute the numbers from what is written.
        """
        return plain_of(self, self.gain)

    @classmethod
    def from_dict(cls, plain: Mapping[str, object]) -> Self:
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
            unknown, the notion or the curve is of a kind that is not known, or
            the digest is not that of the data.

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
        return read_back(cls, plain)

    def __repr__(self) -> str:
        parts = [f"notion={self.notion.name!r}"]
        for name in ("epsilon", "alpha", "delta", "mutual_information"):
            value = getattr(self, name)
            # what is zero or unknown is left out: a line has to be short
            if value is not None and not (name == "delta" and value == 0):
                parts.append(f"{name}={value:.6g}")
        # the notion and its numbers; `str` says the rest, assumptions above all
        return f"Certificate({', '.join(parts)})"

    def _refuse_sum(self) -> None:
        """Raise where this is nothing that others may be added to."""
        if not self.certified:
            raise CompositionError(
                Statement("compose.estimate_not_addable", certificate=self)
            )
        if self.seeded:
            raise CompositionError(
                Statement(
                    "compose.noise_from_seed", certificate=self, release=self.release
                )
            )

    def to_sliced_approximate(self, delta: float) -> "Certificate":
        """Return the (epsilon, delta) promise about slices that follows.

        A jointly sliced promise is about one projection along a direction drawn from
        the profile and revealed, and about no more of the output. For an averaged one
        it is the mean over slices of the epsilons that each has at `delta`, which is an
        (epsilon, delta) promise of no release at all.

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
        self._refuse_estimate(Statement("certificate.what_processed_promise"))
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
        self._refuse_estimate(Statement("certificate.what_other_belief_promise"))
        # it averages over a prior, so nothing is left of it under another one
        if self.mutual_information is not None or self.epsilon is None:
            raise UncertifiedError(Statement("certificate.information_own_prior_only"))
        if self.notion in SLICED:
            raise UncertifiedError(Statement("certificate.slices_under_other_prior"))
        # another belief is a Pufferfish question, whatever notion the promise began in
        notion = self.notion.pufferfish
        if not self.implies(notion):
            raise value_error("certificate.speaks_of_no_prior")
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
        budget = self._information(Statement("certificate.no_bound_on_guesses"))
        prior = self.prior_success if prior is None else prior
        if prior is None:
            raise value_error("certificate.prior_success_missing")
        return posterior_success(budget, prior)

    def membership_advantage(self) -> float:
        """Most that true and false positives of a membership attack may differ by.

        Returns
        -------
        advantage : float
            Advantage on a membership, or any other bit of the secret, that is as likely
            as not under the prior of the scenario; on average over that and the noise.

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
        budget = self._information(Statement("certificate.no_bound_on_attack"))
        if self.notion != Notion.MUTUAL_INFORMATION and self.prior_success != 0.5:
            raise unsupported_error("certificate.advantage_secret_not_fair")
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
        budget = self._information(Statement("certificate.no_equivalent"))
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
        told: float | None = self._information(
            Statement("certificate.no_residual_report")
        )
        if self.notion != Notion.MUTUAL_INFORMATION:
            told = self.table_information
        if self.entropy is None or told is None:
            missing = "entropy" if self.entropy is None else "table_information"
            raise unsupported_error(
                "certificate.residual_report_unknown", missing=missing
            )
        # this very prior as the reference adds nothing to its entropy
        value = self.entropy if value is None else value
        return ResidualReport(entropy=self.entropy, information=told, value=value)

    def _information(self, what: Statement) -> float:
        """Mutual information that is promised."""
        if self.mutual_information is None:
            raise unsupported_error(
                "certificate.bounds_no_information", title=self.notion.title
            )
        if not self.certified:
            raise UncertifiedError(
                Statement("certificate.information_is_estimate", what=what)
            )
        return self.mutual_information

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
        Privacy/Check: Beside this card belongs the JSON of `certificate.to_dict()`. ...
        """
        return certificate_card(self)

    def __str__(self) -> str:
        return certificate_text(self)

    def details(self) -> str:
        """Return all that is stated, as text: the theorem, the noise, the assumptions.

        Returns
        -------
        str
            To be printed; ``print(certificate)`` shows no more than what everybody has
            to know.

        Examples
        --------
        >>> from skpuffer.privacy import Certificate
        >>> print(Certificate(notion="pure_dp", epsilon=1.0).details())
        Certificate
          promise      pure differential privacy: ε = 1
          composition  must not be added to any other release about these people
        """
        return certificate_details(self)

    def _repr_html_(self) -> str:
        return certificate_html(self)


def _parameters(kind: type) -> str:
    """Parameters of a class as its docstring lists them, without what follows."""
    listed = (kind.__doc__ or "").partition("----------\n")[2]
    return re.split("    [*]{2}claim|    Examples\n", listed)[0].rstrip()


if Certificate.__doc__:  # which python -OO leaves out
    _listed = map(_parameters, (certificates.Claim, certificates.Certificate))
    Certificate.__doc__ = re.sub(
        r" +\*\*fields\n.*\n", lambda _: "\n".join(_listed) + "\n", Certificate.__doc__
    )
