r"""What remains unknown after a release, against a reference law of density `r`.

The value :math:`V = -E \log r(X)` is the cross-entropy of the prior; a release leaves
`H(X | Y) - V`.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import (
    check_count,
    check_finite,
    check_non_negative,
    check_real,
)
from skpuffer.utils._checks import check_covariance, check_masses


@dataclass(frozen=True)
class ResidualReport:
    r"""Privacy before and after a release, in nats.

    Parameters
    ----------
    entropy : float
        Entropy `H(X)` of the input.
    information : float
        Upper bound of the mutual information between input and release.
    value : float
        Cross-entropy `V` of the prior against the reference, at least `entropy`. It is
        the reference's entropy if that is uniform, or a Gaussian of the prior's
        moments.
    discrete : bool, default=True
        Whether the input is discrete: what remains is then never negative.

    References
    ----------
    Zhang and Vorobeychik (2025), Breaking the Gaussian barrier, Definition 9 and
    Corollary 2.

    Examples
    --------
    >>> from skpuffer.information import ResidualReport, subset_value
    >>> value = subset_value(10, 5)
    >>> report = ResidualReport(entropy=value, information=0.5, value=value)
    >>> report.intrinsic, report.residual_privacy
    (0.0, -0.5)
    """

    entropy: float
    information: float
    value: float
    discrete: bool = True

    def __post_init__(self) -> None:
        check_non_negative(information=self.information)
        check_real(entropy=self.entropy)
        check_real(value=self.value)
        if not self.entropy <= self.value + 1e-9 * max(1.0, abs(self.value)):
            raise value_error(
                "pac.value_below_entropy", value=self.value, entropy=self.entropy
            )

    @classmethod
    def of_residual(
        cls, entropy: float, residual: float, value: float, *, discrete: bool = True
    ) -> "ResidualReport":
        """Report what was given as an entropy after the release.

        Parameters
        ----------
        entropy : float
            Entropy of the input.
        residual : float
            Lower bound of the entropy of the input given the release, at most
            `entropy`.
        value, discrete : float, bool
            See the class.

        Returns
        -------
        report : ResidualReport
        """
        entropy, residual = check_real(entropy=entropy), check_real(residual=residual)
        if residual > entropy + 1e-9 * max(1.0, abs(entropy)):
            raise value_error(
                "pac.residual_exceeds_entropy", residual=residual, entropy=entropy
            )
        return cls(entropy, max(0.0, entropy - residual), value, discrete)

    @property
    def residual(self) -> float:
        """Lower bound of the entropy of the input given the release."""
        left = self.entropy - self.information
        return max(0.0, left) if self.discrete else left

    @property
    def intrinsic(self) -> float:
        """Privacy of the prior against the reference, at most zero."""
        return min(0.0, self.entropy - self.value)

    @property
    def residual_privacy(self) -> float:
        """Lower bound of the privacy after the release, at most `intrinsic`."""
        return self.residual - self.value


def alphabet_value(n_values: int) -> float:
    """Return the value ``log(n_values)`` of a uniform reference on finitely many.

    Examples
    --------
    >>> from skpuffer.information import alphabet_value
    >>> round(alphabet_value(4), 6)
    1.386294
    """
    return math.log(check_count(n_values=n_values))


def subset_value(n_records: int, size: int) -> float:
    """Return the value of a uniform reference on the subsets of one size.

    Parameters
    ----------
    n_records : int
        Records of the pool.
    size : int
        Records drawn, at most as many.

    Returns
    -------
    value : float
        Logarithm of the number of subsets.

    Examples
    --------
    >>> from skpuffer.information import subset_value
    >>> round(subset_value(10, 5), 6)
    5.529429
    """
    n, k = check_count(n_records=n_records), check_count(least=0, size=size)
    if k > n:
        raise value_error(
            "pac.subset_size_exceeds_records", size=size, n_records=n_records
        )
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def membership_value(n_records: int) -> float:
    """Return the value ``n_records * log(2)`` of independent fair memberships.

    Examples
    --------
    >>> from skpuffer.information import membership_value
    >>> round(membership_value(30), 3)
    20.794
    """
    return check_count(n_records=n_records) * math.log(2)


def gaussian_value(covariance: ArrayLike) -> float:
    """Return the value of the Gaussian reference with the prior's own covariance.

    It is the entropy of that Gaussian, whatever the prior.

    Examples
    --------
    >>> from skpuffer.information import gaussian_value
    >>> round(gaussian_value([[2, 1], [1, 2]]), 6)
    3.387183
    """
    matrix = check_covariance(least=1e-12, covariance=covariance)
    log_volume = len(matrix) * math.log(2 * math.pi * math.e)
    return float(log_volume + np.linalg.slogdet(matrix)[1]) / 2


def cross_entropy_value(
    log_densities: ArrayLike, weights: ArrayLike | None = None
) -> float:
    """Return the value of any reference, by its density at the points of the prior.

    Parameters
    ----------
    log_densities : array-like of shape (n,)
        Logarithm of the reference's density, or mass if the prior is discrete.
    weights : array-like of shape (n,), default=None
        Masses of the points, or of a quadrature rule; None is equal ones.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.information import cross_entropy_value
    >>> round(cross_entropy_value(np.log([0.5, 0.25, 0.25]), [0.5, 0.5, 0.0]), 6)
    1.039721
    """
    values = check_finite(log_densities=log_densities)
    if values.ndim != 1 or not values.size:
        raise value_error("pac.log_densities_count_mismatch", shape=values.shape)
    return -float(values @ check_masses(len(values), weights=weights))


def logistic_value(points: ArrayLike, weights: ArrayLike | None = None) -> float:
    r"""Return the value of the reference that a uniform law becomes by the logit.

    Parameters
    ----------
    points : array-like of shape (n, d)
        Points of the prior.
    weights : array-like of shape (n,), default=None
        See `cross_entropy_value`.

    Returns
    -------
    value : float
        :math:`E \sum_i (x_i + 2 \log(1 + e^{-x_i}))`, not the entropy of the reference.

    Examples
    --------
    >>> from skpuffer.information import logistic_value
    >>> round(logistic_value([[0.0], [5.0]]), 6)
    3.199863
    """
    table = check_finite(points=points)
    if table.ndim != 2 or not table.size:
        raise value_error("pac.logistic_points_not_table", shape=table.shape)
    # logaddexp(0, -x) is log(1 + exp(-x)) without overflow
    log_densities = -(table + 2 * np.logaddexp(0, -table)).sum(axis=1)
    return cross_entropy_value(log_densities, weights)
