"""Generalised Gaussian noises of several shapes that keep the same promise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from skpuffer.accountants import PrivacyLoss, scale_for_delta
from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import (
    check_count,
    check_option,
    check_positive,
    check_probability,
    check_real,
)
from skpuffer.noise import GeneralizedGaussianNoise
from skpuffer.releases import GradientRelease
from skpuffer.scenarios import RecordScenario

from ._drawing import line_options, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats


#: Shapes between which the lightest tail is looked for.
_FROM, _TO = 1.0, 4.0


def equivalent_noises(
    epsilon: float,
    delta: float,
    betas: ArrayLike,
    *,
    shift: float = 1.0,
    n_steps: int = 1,
    sampling_rate: float = 1.0,
) -> tuple[GeneralizedGaussianNoise, ...]:
    """Return the least generalised Gaussian noise of each shape for one promise.

    It is (epsilon, delta)-differential privacy, a record added or removed, of `n_steps`
    releases of one number that such a record moves by at most `shift`. No data is read.

    Parameters
    ----------
    epsilon, delta : float
        The promise, with a positive epsilon in nats.
    betas : array-like of shape (n_betas,)
        Shapes, at least 1: 1 is Laplace noise, 2 Gaussian noise.
    shift : float, default=1.0
        How far one record moves each release.
    n_steps : int, default=1
        Number of releases.
    sampling_rate : float, default=1.0
        In (0, 1]: probability that a record takes part in a release, drawn
        independently.

    Returns
    -------
    noises : tuple of GeneralizedGaussianNoise
        One for each shape, with scales rounded up. They are exact for a single release
        without sampling, and otherwise by :class:`~skpuffer.accountants.PrivacyLoss`.

    Examples
    --------
    >>> from skpuffer.inspection import equivalent_noises
    >>> for noise in equivalent_noises(1.0, 1e-5, [1, 1.5, 2]):
    ...     print(f"scale {noise.scale:.3f}, standard deviation {noise.std():.3f}")
    scale 1.000, standard deviation 1.414
    scale 2.888, standard deviation 2.482
    scale 5.276, standard deviation 3.731
    """
    epsilon, delta = check_positive(epsilon=epsilon), check_probability(delta=delta)
    shift, n_steps = check_positive(shift=shift), check_count(n_steps=n_steps)
    rate = _check_rate(sampling_rate)
    unit = [GeneralizedGaussianNoise(1.0, beta=beta) for beta in check_betas(betas)]
    # One release has a trade-off in closed form, which is inverted. Sampling and
    # repetition take the accountant's grid, whose scales are rounded up.
    if rate == n_steps == 1:
        scales = [scale_for_delta(noise, epsilon, delta, shift) for noise in unit]
    else:
        scales = [
            _calibrated(noise, epsilon, delta, shift, n_steps, rate) for noise in unit
        ]
    return tuple(n.with_scale(s) for n, s in zip(unit, scales, strict=True))


class LightestTail(NamedTuple):
    """Noise of the lightest tail, and its tail probability.

    Parameters
    ----------
    noise : GeneralizedGaussianNoise
    probability : float
        That the noise exceeds the threshold on either side.

    Examples
    --------
    >>> from skpuffer.inspection import lightest_tail
    >>> found = lightest_tail(1.5, 1e-5, threshold=2.0, betas=[1, 1.5, 2])
    >>> found.noise.beta, round(found.probability, 4)
    (1.0, 0.0498)
    """

    noise: GeneralizedGaussianNoise
    probability: float


def lightest_tail(
    epsilon: float,
    delta: float,
    threshold: float,
    *,
    betas: ArrayLike | None = None,
    shift: float = 1.0,
    n_steps: int = 1,
    sampling_rate: float = 1.0,
) -> LightestTail:
    """Find the shape of noise that is most rarely large, among those of one promise.

    Parameters
    ----------
    epsilon, delta : float
        The promise, with a positive epsilon in nats.
    threshold : float
        Value that the noise should seldom exceed, in the units of `shift`.
    betas : array-like of shape (n_betas,), default=None
        Shapes to choose from. None looks at all from 1 to 4.
    shift, n_steps, sampling_rate : float, int and float, default=1
        As of :func:`equivalent_noises`.

    Returns
    -------
    found : LightestTail
        With attributes `noise` and `probability`.

    Notes
    -----
    A single release has the lightest tails with Laplace noise. For many releases a
    shape in between is best for large thresholds.

    References
    ----------
    Rinberg et al., Beyond Laplace and Gaussian, Appendix B.5.

    Examples
    --------
    >>> from skpuffer.inspection import lightest_tail
    >>> lightest_tail(1.5, 1e-5, 2.0, betas=[1, 1.5, 2]).noise.beta
    1.0
    """
    threshold = check_positive(threshold=threshold)

    def tail(beta: float) -> LightestTail:
        (noise,) = equivalent_noises(
            epsilon,
            delta,
            [beta],
            shift=shift,
            n_steps=n_steps,
            sampling_rate=sampling_rate,
        )
        return LightestTail(noise, float(noise.tail(threshold)))

    # The tail need not be convex in the shape: a grid finds the valley, then a search
    # within one step on either side of it. The best of all that were tried is returned.
    tried = [tail(beta) for beta in check_betas(_coarse() if betas is None else betas)]
    best = min(tried, key=lambda found: found.probability)
    if betas is not None or best.noise.beta in (_FROM, _TO):
        return best
    step = _coarse()[1] - _coarse()[0]

    def height(beta: float) -> float:
        # on a logarithmic axis, as tails span many decades
        found = tail(beta)
        tried.append(found)
        return float(np.log(found.probability))

    around = (best.noise.beta - step, best.noise.beta + step)
    minimize_scalar(height, bounds=around, method="bounded", options={"xatol": 0.01})
    return min(tried, key=lambda found: found.probability)


def check_betas(betas: ArrayLike) -> list[float]:
    """Return shapes as a list of floats."""
    values = [check_real(betas=beta) for beta in np.ravel(betas).tolist()]
    if not values or not all(1 <= beta < np.inf for beta in values):
        raise value_error("inspection.betas_below_one", betas=betas)
    return values


def density(noise: GeneralizedGaussianNoise, x: ArrayLike) -> Floats:
    """Density of one coordinate of generalised Gaussian noise."""
    # exp(-|x / s|^beta) / (2 s Gamma(1 + 1 / beta))
    height = -np.log(2 * noise.scale) - gammaln(1 + 1 / noise.beta)
    heights: Floats = np.exp(height - np.abs(np.asarray(x) / noise.scale) ** noise.beta)
    return heights


def _coarse() -> Floats:
    return np.linspace(_FROM, _TO, 7)


def _check_rate(sampling_rate: float) -> float:
    rate = check_positive(sampling_rate=sampling_rate)
    if rate > 1:
        raise value_error(
            "inspection.sampling_rate_out_of_range", sampling_rate=sampling_rate
        )
    return rate


def _calibrated(
    noise: GeneralizedGaussianNoise,
    epsilon: float,
    delta: float,
    shift: float,
    n_steps: int,
    rate: float,
) -> Any:
    """Least scale of a noise for several steps, or for sampled ones."""
    # the size of a table in which the sampling rate is a whole number of records
    part = Fraction(rate).limit_denominator(10**9)
    release = GradientRelease(
        n_records=part.denominator,
        batch_size=part.numerator,
        n_steps=n_steps,
        sampling="full_batch" if rate == 1 else "poisson",
        clip_norm=shift,
        dim=1,
    )
    accountant = PrivacyLoss(epsilon, delta, noise=noise)
    return accountant.calibrate(release, RecordScenario()).noise.scale


# -- display of generalised Gaussian noises that keep one promise ----------------------


_KINDS = ("density", "log_density", "std", "tail")

#: How far out densities are drawn: this often the largest standard deviation.
_SPAN = 3.0

#: Least density on a logarithmic axis, as a part of the largest.
_FLOOR = 1e-6


class EquivalentNoiseDisplay:
    """Draw generalised Gaussian noises that all keep one promise.

    Make one by :meth:`from_budget`. All parameters are stored as attributes.

    Parameters
    ----------
    noises : sequence of GeneralizedGaussianNoise
        One for each shape, each of the least scale that keeps the promise.
    thresholds : array-like of shape (n_thresholds,), default=(1, 2, 4)
        Where tails begin, in the units of the noise.
    promise : str, default=None
        The promise they keep, for the title. None shows none.

    Attributes
    ----------
    betas, scales, stds : ndarray of shape (n_betas,)
        Shapes, scales in the units of the shift, and standard deviations.
    tails : ndarray of shape (n_betas, n_thresholds)
        Probabilities that the noise exceeds each threshold on either side.
    lines_ : list of matplotlib Line2D
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Notes
    -----
    Compare standard deviations or tails, not scales. A single release is disturbed
    least by Laplace noise; under many, the Gaussian is the best of all noises of one
    variance.

    References
    ----------
    Rinberg et al., Beyond Laplace and Gaussian, Figures 1 and 5.

    Examples
    --------
    >>> from skpuffer.inspection import EquivalentNoiseDisplay
    >>> display = EquivalentNoiseDisplay.from_budget(
    ...     epsilon=1.0, delta=1e-5, betas=[1, 2, 4], kind="std"
    ... )
    >>> display.stds.round(3)
    array([1.414, 3.731, 9.239])
    >>> display.ax_.get_xlabel()
    'Shape β'
    """

    def __init__(
        self,
        *,
        noises: Sequence[GeneralizedGaussianNoise],
        thresholds: ArrayLike = (1, 2, 4),
        promise: str | None = None,
    ):
        self.noises = noises
        self.thresholds = thresholds
        self.promise = promise

    @property
    def betas(self) -> Floats:
        """Shapes."""
        return np.array([noise.beta for noise in self.noises])

    @property
    def scales(self) -> Floats:
        """Scales, in the units of the shift."""
        return np.array([noise.scale for noise in self.noises])

    @property
    def stds(self) -> Floats:
        """Standard deviations."""
        return np.array([noise.std() for noise in self.noises])

    @property
    def tails(self) -> Floats:
        """Probabilities that the noise exceeds each threshold on either side."""
        at = np.ravel(np.asarray(self.thresholds, dtype=float))
        return np.array([noise.tail(at) for noise in self.noises])

    @classmethod
    def from_budget(
        cls,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        betas: ArrayLike = (1, 1.25, 1.5, 2, 3, 4),
        shift: float = 1.0,
        n_steps: int = 1,
        sampling_rate: float = 1.0,
        thresholds: ArrayLike = (1, 2, 4),
        kind: str = "density",
        ax: Axes | None = None,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Find the noise of each shape that keeps a promise, and draw it.

        Parameters
        ----------
        epsilon : float, default=1.0
            In nats, positive.
        delta : float, default=1e-5
            In (0, 1).
        betas : array-like of shape (n_betas,), default=(1, 1.25, 1.5, 2, 3, 4)
            Shapes, at least 1: 1 is Laplace noise, 2 Gaussian noise.
        shift : float, default=1.0
            How far one record moves each release.
        n_steps : int, default=1
            Number of releases under the promise.
        sampling_rate : float, default=1.0
            In (0, 1]; see :func:`equivalent_noises`.
        thresholds : array-like of shape (n_thresholds,), default=(1, 2, 4)
            Where tails begin, positive, in the units of `shift`.
        kind : {'density', 'log_density', 'std', 'tail'}, default='density'
            Quantity to draw; see :meth:`plot`.
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.
        line_kw : dict, default=None
            Options of matplotlib for all curves.

        Returns
        -------
        display : EquivalentNoiseDisplay
        """
        pyplot(f"{cls.__name__}.from_budget")
        check_option(_KINDS, kind=kind)
        thresholds = [check_positive(thresholds=t) for t in np.ravel(thresholds)]
        noises = equivalent_noises(
            epsilon,
            delta,
            np.unique(check_betas(betas)),
            shift=shift,
            n_steps=n_steps,
            sampling_rate=sampling_rate,
        )
        # what all the noises of one figure have in common, so that it may be compared
        promise = f"ε = {epsilon:g}, δ = {delta:g}"
        if n_steps > 1:
            promise += f", {n_steps} releases"
        if sampling_rate < 1:
            promise += f", sampling rate {sampling_rate:.3g}"
        display = cls(noises=noises, thresholds=thresholds, promise=promise)
        return display.plot(ax, kind=kind, line_kw=line_kw)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: str = "density",
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw densities, or standard deviations or tail probabilities by shape.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.
        kind : {'density', 'log_density', 'std', 'tail'}, default='density'
            Densities on a linear or a logarithmic axis; standard deviations against the
            shape; or tail probabilities against it, a curve for each threshold.
        line_kw : dict, default=None
            Options of matplotlib for all curves.

        Returns
        -------
        display : EquivalentNoiseDisplay
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        check_option(_KINDS, kind=kind)
        if ax is None:
            _, ax = plt.subplots()
        self.lines_: list[Line2D] = []
        if kind in ("std", "tail"):
            self._plot_against_shape(ax, kind, line_options(line_kw))
        else:
            self._plot_densities(ax, plt, kind == "log_density", line_options(line_kw))
        if self.promise is not None:
            ax.set_title(self.promise)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_densities(
        self, ax: Axes, plt: Any, log: bool, line_kw: dict[str, Any]
    ) -> None:
        # symmetric noise on one axis for all shapes: as far out as the widest one goes
        edge = _SPAN * float(self.stds.max())
        x = np.linspace(-edge, edge, 1001)
        # shapes are ordered, so are their colours
        colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(self.noises)))
        for noise, colour in zip(self.noises, colours, strict=True):
            options = {"color": colour, "label": f"β = {noise.beta:g}", **line_kw}
            self.lines_ += ax.plot(x, density(noise, x), **options)
        if log:
            top = max(float(density(noise, 0.0)) for noise in self.noises)
            ax.set_yscale("log")
            # room for the legend above the curves
            ax.set_ylim(_FLOOR * top, 100 * top)
            ax.legend(loc="upper center", ncols=3)
        else:
            ax.legend()
        ax.set_xlim(-edge, edge)
        ax.set_xlabel("Noise")
        ax.set_ylabel("Density")

    def _plot_against_shape(self, ax: Axes, kind: str, line_kw: dict[str, Any]) -> None:
        if kind == "std":
            self.lines_ += ax.plot(
                self.betas, self.stds, **{"marker": "o", "markersize": 4, **line_kw}
            )
            ax.set_ylabel("Standard deviation")
            ax.set_ylim(bottom=0)  # lengths are compared as ratios
        else:
            for threshold, column in zip(
                np.ravel(self.thresholds), self.tails.T, strict=True
            ):
                options: dict[str, Any] = {"label": f"τ = {threshold:g}", "marker": "o"}
                options |= {"markersize": 4, **line_kw}
                self.lines_ += ax.plot(self.betas, column, **options)
            ax.set_yscale("log")
            ax.set_ylabel("P(|noise| > τ)")
            ax.legend()
        ax.set_xlabel("Shape β")
