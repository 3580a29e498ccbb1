"""What a bound on a mutual information means for guesses about the secret."""

from typing import TYPE_CHECKING

from skpuffer.exceptions import Statement, UncertifiedError, UnsupportedError
from skpuffer.information import (
    ResidualReport,
    dp_equivalent,
    membership_advantage,
    posterior_success,
)
from skpuffer.kernel.notions import Notion

if TYPE_CHECKING:
    from ._certificate import Certificate

__all__ = ["GuessesMixin"]


class GuessesMixin:
    """What may be guessed under a PAC budget, and what stays unknown."""

    # mypy takes no mixin to be what it is mixed into, hence what it is told to ignore

    def posterior_success(self: "Certificate", prior: float | None = None) -> float:  # type: ignore[misc]
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
            raise ValueError(Statement("certificate.prior_success_missing"))
        return posterior_success(budget, prior)

    def membership_advantage(self: "Certificate") -> float:  # type: ignore[misc]
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
        budget = self._information(Statement("certificate.no_bound_on_attack"))
        if self.notion != Notion.MUTUAL_INFORMATION and self.prior_success != 0.5:
            raise UnsupportedError(Statement("certificate.advantage_secret_not_fair"))
        return membership_advantage(budget)

    def dp_equivalent(self: "Certificate", delta: float = 0.0) -> float:  # type: ignore[misc]
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

    def residual_report(  # type: ignore[misc]
        self: "Certificate", value: float | None = None
    ) -> ResidualReport:
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
            raise UnsupportedError(
                Statement("certificate.residual_report_unknown", missing=missing)
            )
        # this very prior as the reference adds nothing to its entropy
        value = self.entropy if value is None else value
        return ResidualReport(entropy=self.entropy, information=told, value=value)

    def _information(self: "Certificate", what: Statement) -> float:  # type: ignore[misc]
        """Mutual information that is promised."""
        if self.mutual_information is None:
            raise UnsupportedError(
                Statement("certificate.bounds_no_information", title=self.notion.title)
            )
        if not self.certified:
            raise UncertifiedError(
                Statement("certificate.information_is_estimate", what=what)
            )
        return self.mutual_information
