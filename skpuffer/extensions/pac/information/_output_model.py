r"""A model of the output's law, which bounds what sampled outputs tell from above."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist

from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import (
    Floats,
    Indices,
    check_count,
    check_finite,
    check_positive,
    check_probability,
)
from skpuffer.utils._checks import check_covariance, check_sizes

from ._certification import InformationBound, density_bound
from ._gaussian import log_det
from ._laws import FAR

#: Entries of the largest table of distances that is held at once.
_CHUNK = 2**18

#: Least eigenvalue of a covariance that is divided by, as a share of the largest.
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class OutputModel:
    r"""Density by which the information in noisy draws of an output is bounded.

    A mixture of Gaussian noise around training outputs and of one wide Gaussian.

    Parameters
    ----------
    atoms : array-like of shape (n_atoms, d)
        Training outputs, clipped here.
    noise_covariance : array-like of shape (d, d)
        Covariance of the Gaussian noise, positive definite.
    mean, spread, radius : array-like of shape (d,), array-like of shape (d, d), float
        Centre, positive definite shape and radius of the ellipsoid that outputs are
        clipped to: :math:`w^\top \text{spread}^{-1} w \le \text{radius}^2` about the
        centre.
    share : float, default=0.05
        Weight of the wide Gaussian, in (0, 1).
    floor : float, default=5.0
        Log ratios are raised to at least ``-floor``, which raises their mean.

    Notes
    -----
    For every density `q` the mutual information is at most the mean of :math:`T = \log
    p_B(B) - \log q(M + B)` over outputs `M` and noise `B`, and the wide Gaussian bounds
    `T`. Everything here, noise included, must be fixed before the draws of `bound` are
    made. The release must be clipped by `clip`, and be none of the draws.

    References
    ----------
    Poole et al. (2019), On variational bounds of mutual information, Section 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.information import OutputModel
    >>> rng = np.random.default_rng(0)
    >>> def outputs(n):
    ...     return rng.choice([-3.0, 3.0], size=(n, 1)) + rng.normal(0, 0.5, (n, 1))
    >>> model = OutputModel.fit(outputs(500), [[1.45]])
    >>> bound = model.bound(outputs(5000), gamma=0.05, rng=rng)
    >>> round(bound.upper, 2)
    0.76
    """

    atoms: Floats
    noise_covariance: Floats
    mean: Floats
    spread: Floats
    radius: float
    share: float = 0.05
    floor: float = 5.0

    def __post_init__(self) -> None:
        atoms, mean = check_sizes(atoms=self.atoms), check_sizes(mean=self.mean)
        if atoms.ndim != 2 or not atoms.size:
            raise value_error("pac.model_atoms_not_table", shape=atoms.shape)
        matrices = {
            "noise_covariance": check_covariance(
                least=_LEAST, noise_covariance=self.noise_covariance
            ),
            "spread": check_covariance(least=_LEAST, spread=self.spread),
        }
        d = atoms.shape[1]
        shapes = {"mean": (d,), "noise_covariance": (d, d), "spread": (d, d)}
        for name, value in {"mean": mean, **matrices}.items():
            if value.shape != shapes[name]:
                raise value_error(
                    "pac.model_field_shape_wrong",
                    name=name,
                    expected=shapes[name],
                    dim=d,
                    shape=value.shape,
                )
            object.__setattr__(self, name, value)
        object.__setattr__(self, "radius", check_positive(radius=self.radius))
        object.__setattr__(self, "share", check_probability(share=self.share))
        object.__setattr__(self, "floor", check_positive(floor=self.floor))
        object.__setattr__(self, "atoms", self.clip(atoms))

    @classmethod
    def fit(
        cls,
        outputs: ArrayLike,
        noise_covariance: ArrayLike,
        *,
        radius: float | None = None,
        ball: tuple[ArrayLike, float] | None = None,
        ridge: float = 1e-3,
        share: float = 0.05,
        floor: float = 5.0,
    ) -> "OutputModel":
        """Take centre, shape and radius from a training sample of outputs.

        Parameters
        ----------
        outputs : array-like of shape (n, d)
            Independent draws, used for nothing else.
        noise_covariance : array-like of shape (d, d)
            Covariance of the Gaussian noise, positive definite.
        radius : float, default=None
            None is the largest of the training outputs.
        ball : tuple of (array-like of shape (d,), float), default=None
            Centre and radius of a Euclidean ball of all outputs, instead of `radius`.
        ridge : float, default=1e-3
            Added to the variances, as a share of their mean.
        share, floor : float
            See the class.

        Returns
        -------
        model : OutputModel
        """
        draws = check_sizes(outputs=outputs)
        if draws.ndim != 2 or len(draws) < 2 or not draws.shape[1]:
            raise value_error("pac.model_outputs_too_few", shape=draws.shape)
        if radius is not None and ball is not None:
            raise value_error("pac.radius_and_ball_both_given")
        mean = draws.mean(axis=0)
        spread = np.atleast_2d(np.cov(draws, rowvar=False, bias=True))
        size = float(np.trace(spread)) / len(mean)
        if not size > 0:
            raise value_error("pac.model_outputs_constant")
        spread += check_positive(ridge=ridge) * size * np.eye(len(mean))
        if ball is not None:
            centre = check_sizes(ball=ball[0])
            reach = check_positive(ball=ball[1]) + float(np.linalg.norm(centre - mean))
            radius = reach / math.sqrt(np.linalg.eigvalsh(spread)[0]) * (1 + 1e-9)
        elif radius is None:
            radius = float(_lengths(spread, draws - mean).max())
        noise = check_finite(noise_covariance=noise_covariance)
        return cls(draws, noise, mean, spread, radius, share, floor)

    def clip(self, outputs: ArrayLike) -> Floats:
        """Shrink outputs (n, d) towards the centre, into the ellipsoid.

        Clip training outputs, draws of the bound and the release: all of them.

        Parameters
        ----------
        outputs : array-like of shape (n, d)

        Returns
        -------
        clipped : ndarray of shape (n, d)
        """
        points = check_finite(outputs=outputs)
        if points.ndim != 2 or points.shape[1:] != self.mean.shape:
            raise value_error(
                "pac.clip_outputs_shape_wrong", dim=len(self.mean), shape=points.shape
            )
        away = points - self.mean
        lengths = _lengths(self.spread, away)
        shrink = np.minimum(1.0, self.radius / np.maximum(lengths, 1e-300))
        return self.mean + away * shrink[:, None]

    @cached_property
    def _distinct(self) -> tuple[Floats, Indices]:
        return np.unique(self.atoms, axis=0, return_counts=True)

    @cached_property
    def largest(self) -> float:
        r"""Return the bound of every log ratio in nats.

        :math:`-\log \alpha + \tfrac12 \log\det(I + S N^{-1}) + \tfrac12 R^2` with the
        share, the spread, the noise and the radius.
        """
        gap = log_det(self.spread, self.noise_covariance)
        return -math.log(self.share) + gap + self.radius**2 / 2

    def log_ratios(self, outputs: ArrayLike, noise: ArrayLike) -> Floats:
        """Return log ratios T (n,) in nats of outputs and noise (n, d), floored."""
        points, shifts = self.clip(outputs), check_finite(noise=noise)
        if shifts.shape != points.shape:
            raise value_error(
                "pac.outputs_noise_shapes_differ",
                outputs_shape=points.shape,
                noise_shape=shifts.shape,
            )
        factor = cholesky(self.noise_covariance, lower=True)
        # in units of the noise around the centre: what is left of large numbers there
        # is little
        points_seen, counts = self._distinct
        atoms = _whiten(factor, points_seen - self.mean)
        released = _whiten(factor, points - self.mean + shifts)
        # densities relative to the peak of the noise's, as its own is below
        narrow = _log_kernel(released, atoms, np.log(counts / counts.sum()))
        total = self.spread + self.noise_covariance
        wide = -(_lengths(total, points - self.mean + shifts) ** 2) / 2
        wide -= log_det(self.spread, self.noise_covariance)
        own = -(_whiten(factor, shifts) ** 2).sum(axis=1) / 2
        model = np.logaddexp(
            math.log1p(-self.share) + narrow, math.log(self.share) + wide
        )
        return np.maximum(own - model, -self.floor)

    def bound(
        self,
        outputs: ArrayLike,
        *,
        gamma: float,
        rng: np.random.Generator,
        n_noise: int = 16,
        method: str = "betting",
    ) -> InformationBound:
        """Bound the mutual information between input and release.

        Parameters
        ----------
        outputs : array-like of shape (n, d)
            Independent fresh draws, none of them used before or released.
        gamma : float
            Probability with which the bound may fail, in (0, 1).
        rng : numpy.random.Generator
            The noise is drawn from it.
        n_noise : int, default=16
            Draws of noise averaged for each output.
        method : {'betting', 'bernstein', 'asymptotic'}, default='betting'
            See `mean_lower_bound`.

        Returns
        -------
        bound : InformationBound
        """
        points = self.clip(outputs)
        if len(points) < 2:
            raise value_error("pac.bound_needs_two_draws")
        n_noise = check_count(n_noise=n_noise)
        factor = cholesky(self.noise_covariance, lower=True)
        ratios = [
            self.log_ratios(points, rng.normal(size=points.shape) @ factor.T)
            for _ in range(n_noise)
        ]
        return density_bound(
            np.stack(ratios, axis=1),
            self.largest,
            gamma=gamma,
            floor=self.floor,
            method=method,
        )


def _whiten(factor: Floats, rows: Floats) -> Floats:
    return solve_triangular(factor, rows.T, lower=True).T


def _lengths(shape: Floats, rows: Floats) -> Floats:
    """Lengths of rows in the norm of the inverse of a covariance."""
    return np.linalg.norm(_whiten(cholesky(shape, lower=True), rows), axis=1)


def _log_kernel(rows: Floats, atoms: Floats, log_weights: Floats) -> Floats:
    """Log of the weighted sum over atoms of exp(-|row - atom|² / 2), by chunks."""
    squares = (atoms**2).sum(axis=1)
    # far off, squares round off what tells near ones apart
    far = math.sqrt(squares.max()) > FAR
    shifts = log_weights if far else log_weights - squares / 2
    result: Floats = np.zeros(len(rows)) if far else -(rows**2).sum(axis=1) / 2
    size = max(1, _CHUNK // len(atoms))
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        if far:
            logits = cdist(rows[part], atoms, "sqeuclidean") / -2
        else:
            logits = rows[part] @ atoms.T
        logits += shifts
        peaks = logits.max(axis=1)
        # in place, as SciPy's own takes several times as long
        np.exp(np.subtract(logits, peaks[:, None], out=logits), out=logits)
        result[part] += peaks + np.log(logits.sum(axis=1))
    return result
