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
        noise of its entries, in units of the data.
    **fields
        As of the certificate of the kernel.

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
    >>> round(certificate.to_approximate(1e-5).epsilon, 3)
    4.377
    """

    # no part of the promise, and so of whether two are the same
    errors: tuple[tuple[str, float, float], ...] = field(default=(), compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return with_version(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(without_version(self, state))

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

        The numbers are the same, except for the steps of :meth:`to_approximate` and
        :meth:`to_sliced_approximate`.

        Parameters
        ----------
        notion : Notion or str
        profile : SliceProfile or str, default=None
            Slice profile of a sliced notion, or its name. None is that of this
            certificate.

        Returns
        -------
        bool
            An estimate implies only an estimate, and a sliced promise nothing about
            another profile.
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
            All fields and the `gain`, the `schema`, its `version` and a `digest`, which
            checks integrity but is no signature. The curve of an estimate is left out:
            private rows may have gone into it.
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
            If the schema, version, fields, kinds or the digest do not fit.
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
        the profile and revealed. For an averaged one it is the mean over slices of the
        epsilons at `delta`, which is an (epsilon, delta) promise of no release.

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
            If this promises nothing about slices at an order, or `delta` is out of
            range.

        References
        ----------
        Zhang and Vorobeychik, Sliced Rényi Pufferfish privacy, Theorems B.3 and B.4;
        Canonne, Kamath and Steinke (2020), Proposition 12.
        """
        delta = check_probability(delta=delta)
        self._refuse_estimate(Statement("certificate.what_sliced_approximate_promise"))
        return sliced_approximate(self, delta)

    def after_processing(self) -> "Certificate":
        """Return the promise for anything that is computed from the release.

        Returns
        -------
        Certificate
            This one. For a sliced promise only `rpp_epsilon` is left: a rotation may
            turn all information into one slice.

        Raises
        ------
        UncertifiedError
            If this is an estimate, or nothing is known of the whole output.
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
        """Return the promise if the attacker's belief is only close to a prior.

        It extends to beliefs outside the scenario that are close to one of its priors.
        Closeness is stated in one of three ways, and to the same prior for all secrets.

        Parameters
        ----------
        query_distance : float, default=None
            For 'direct' and 'a5': largest W_inf distance between the distributions of
            the query given each secret under belief and prior. It is in the norm and
            units of `sensitivity`.
        method : {'direct', 'variation', 'a3', 'a4', 'a5'}, default='direct'
            - 'direct': the sensitivity grows by twice the distance, whatever the
              notion. Best where it applies.
            - 'variation': delta grows by twice the total variation.
            - 'a3': a pure epsilon grows by twice the max-divergence.
            - 'a4': any mechanism with a Rényi promise, by Hölder's inequality.
            - 'a5': 'a4' for additive noise; at best as good as 'direct'.
        divergence : float or (float, float), default=None
            For 'a3': the max-divergence of the data's distribution given each secret
            between belief and prior, both ways. For 'a4': the Rényi divergence of the
            belief from the prior at the order ``alpha p``, and in reverse at
            ``(alpha - 1) r + 1``.
        variation : float, default=None
            For 'variation': largest total variation between the distributions of the
            query given each secret; in (0, 1/2).
        orders : (float, float, float), default=None
            For 'a4' and 'a5': (p, q, r) above one with reciprocals that sum to one. The
            promise used is at the order ``q (alpha - 1/p)``. None finds the best for
            'a5'.

        Returns
        -------
        Certificate
            In a Pufferfish notion, not composable; its assumptions say how close the
            belief must be.

        Raises
        ------
        UncertifiedError
            If this is an estimate, or lacks what the method needs.
        ValueError
            If an input is missing, superfluous or out of range, or the notion does not
            fit.

        References
        ----------
        Pierquin et al. (2024), Rényi Pufferfish privacy, Theorems A.3 to A.5 with one
        prior for both divergences; Theorem 3.3 and the triangle inequality for
        'direct'.

        Examples
        --------
        >>> from skpuffer.accountants import GeneralWasserstein
        >>> from skpuffer.distributions import PointMass
        >>> from skpuffer.noise import GaussianNoise
        >>> from skpuffer.releases import QueryRelease
        >>> from skpuffer.scenarios import LawsScenario
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
        """Return the largest success of an attacker, under a PAC budget.

        Parameters
        ----------
        prior : float, default=None
            Success of the guess without the release, in (0, 1). The question is about
            the table, or about one record or group for such a budget. None is
            `prior_success`.

        Returns
        -------
        success : float
            On average over the prior of the scenario and the noise.

        Raises
        ------
        UnsupportedError, UncertifiedError
            If this is no bound on a mutual information, or an estimate.
        """
        budget = self._information(Statement("certificate.no_bound_on_guesses"))
        prior = self.prior_success if prior is None else prior
        if prior is None:
            raise value_error("certificate.prior_success_missing")
        return posterior_success(budget, prior)

    def membership_advantage(self) -> float:
        """Return the largest advantage of a membership attack, under a PAC budget.

        Returns
        -------
        advantage : float
            True less false positive rate on a membership, or other bit of the secret,
            of prior one half; on average over the prior and the noise.

        Raises
        ------
        UnsupportedError, UncertifiedError
            If this is no bound on a mutual information, is about secrets that are not
            all fair, or is an estimate.
        """
        budget = self._information(Statement("certificate.no_bound_on_attack"))
        if self.notion != Notion.MUTUAL_INFORMATION and self.prior_success != 0.5:
            raise unsupported_error("certificate.advantage_secret_not_fair")
        return membership_advantage(budget)

    def dp_equivalent(self, delta: float = 0.0) -> float:
        """Return the epsilon that allows the same success in guessing a fair bit.

        **A comparison and no promise**: a bound on a mutual information implies
        differential privacy at no epsilon.

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
        UnsupportedError, UncertifiedError
            If this is no bound on a mutual information, or an estimate.
        ValueError
            If so little leaks that `delta` alone allows more.
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
            Cross-entropy of the prior against the reference in nats, such as
            ``information.subset_value(n_pool, size)``. None takes the prior itself.

        Returns
        -------
        report : ResidualReport

        Raises
        ------
        UnsupportedError, UncertifiedError
            If this is no bound on a mutual information with all it needs, or an
            estimate.
        ValueError
            If `value` is below the entropy of the table.

        Examples
        --------
        >>> from skpuffer.privacy import Certificate
        >>> bound = Certificate(
        ...     notion="mutual_information", mutual_information=0.5, entropy=5.5
        ... )
        >>> bound.residual_report().residual
        5.0
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
            Markdown by title, as ``skops.card.Card.add(**certificate.to_card())`` takes
            it.

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
        """Return the theorem, the noise and the assumptions as text, to be printed."""
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

certificates.certificates_are(Certificate)
