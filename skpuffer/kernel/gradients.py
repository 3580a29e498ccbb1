"""Releases of many sums of clipped gradients."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from skpuffer.exceptions import Statement, type_error, value_error
from skpuffer.kernel.numbers import (
    Floats,
    check_all_positive,
    check_at_least_one,
    check_count,
    check_option,
    check_positive,
)
from skpuffer.kernel.queries import Sensitivity
from skpuffer.kernel.releases import PublicContext, Release
from skpuffer.kernel.sampling import PoissonSampling, SamplingScheme, sampling_scheme


class ClippedGradient(Protocol):
    """How far a record's clipped gradient moves with the record."""

    @property
    def ceiling(self) -> float:
        """Move of a contribution beyond which it need not be known how far it is."""

    def point(self, X: object, y: object) -> Floats:
        """Return what the gradient is a function of, one row a record."""

    def gradient_move(self, move: float) -> float:
        """Bound how far the gradient moves with its point, in the l2 norm."""

    def statement(self, move: float) -> Statement:
        """Say how far that is."""


@dataclass(frozen=True, kw_only=True)
class GradientRelease(Release):
    """Gradient release: noisy sums of clipped per-example gradients, one a step.

    At each step some records are chosen, each one's gradient is scaled down to the clip
    norm, their sum is released with noise and divided by the public `divisor`. Each
    gradient may depend on everything released before. Any function of the noisy sums is
    post-processing. The `contribution` is no gradient but a point of each record, by
    whose move the gradient's is bounded at every step, if `record` states such a bound.

    Parameters
    ----------
    n_records, n_steps : int
        Number of records, and of noisy sums.
    batch_size : int, default=None
        Records of a step: the expected number under ``'poisson'``, the exact one
        otherwise. None, and required to be so, is all records for ``'full_batch'``.
    sampling : str or SamplingScheme, default='poisson'
        Kept as the scheme, which also draws the batches. ``'full_batch'`` takes all
        records at each step. ``'poisson'`` takes each one with probability ``batch_size
        / n_records``. ``'fixed_size'`` is a uniform subset, ``'with_replacement'``
        independent uniform draws. ``'shuffled_epochs'`` deals all records anew in each
        epoch to ``ceil(n_records / batch_size)`` batches. Under ``'fresh_bins'`` each
        record draws one batch of each epoch by itself, and under ``'balls_in_bins'``
        one for all epochs.
    clip_norm : float or tuple of float, default=1.0
        Largest norm of an example's gradient; with `blocks`, one for each block.
    clip_order : float, default=2
        Order of that norm, in [1, inf].
    blocks : tuple of int, default=None
        Sizes of consecutive parts of the parameter vector that are clipped apart.
    dim : int, default=None
        Length of the parameter vector, where known.
    noise_proportions : tuple of float, default=None
        Scale of the noise of each of the `blocks`, in proportion to each other. None is
        one scale for all. In proportion to the clip norms each block pays alike.
    noise_position : {'gradient', 'update'}, default='gradient'
        Where the noise enters: each sum of clipped gradients, or each iterate after the
        step, its penalty and its projection, without momentum.
    published : {'all', 'result'}, default='all'
        Visible part of the run: all noisy sums, or only what `optimiser` returns at its
        end.
    noise_correlation : NoiseStrategy, default=None
        Strategy of ``skpuffer.noise.strategies``. None is independent noise.
    optimiser : Optimiser, default=None
        Post-processing of the noisy sums; None leaves it to whoever gets them.
    record : object, default=None
        How far one record's clipped gradient moves with the record, at any point of the
        run; for l2 clipping of the whole vector. None: a record may become any other.
        See :class:`~skpuffer.training.RecordGradient`.
    name : str, default='gradients'
    context : PublicContext, default=None
        The public facts of the table; made from `n_records` if None.
    assumptions : tuple of Statement
        Facts taken as public or true; written in the certificate.

    Attributes
    ----------
    sampling_rate : float
        Probability that a record is in a step's batch.
    divisor : float
        Public number a step's sum is divided by: the expected size of a batch.
    steps_per_epoch, n_epochs : int
        Steps that visit as many records as there are, and epochs begun; rounded up.
    total_clip_norm : float
        Largest norm of one example's gradient over all blocks.
    units : tuple of float or None
        Proportion of the noise of each coordinate, by `noise_proportions`.
    sampling_statement : Statement
        Assumption of the sampling scheme.

    References
    ----------
    Abadi et al. (2016), Deep learning with differential privacy, Algorithm 1.

    Examples
    --------
    >>> from skpuffer.releases import GradientRelease
    >>> release = GradientRelease(n_records=1000, batch_size=10, n_steps=50)
    >>> release.sampling.name, release.sampling_rate, release.divisor
    ('poisson', 0.01, 10.0)
    """

    #: What a certificate says of its last digits, where it is drawn on a grid.
    last_digits: ClassVar[str] = "assume.gradient_sums_on_grid"

    # Fields are what accountants have to say they read. What follows from them is set
    # in `__post_init__`, and is no field.
    n_records: int
    n_steps: int
    batch_size: int | None = None
    # frozen and without parameters, so one instance can be everybody's default
    sampling: str | SamplingScheme = PoissonSampling()
    clip_norm: float | tuple[float, ...] = 1.0
    clip_order: float = 2.0
    blocks: tuple[int, ...] | None = None
    dim: int | None = None
    noise_proportions: tuple[float, ...] | None = None
    noise_position: str = "gradient"
    published: str = "all"
    # a strategy of `skpuffer.noise`, which nothing here imports
    noise_correlation: Any = None
    # an `Optimiser` of `skpuffer.releases`, which nothing here imports
    optimiser: Any = None
    record: Any = None
    name: str = "gradients"
    # Two runs are the same, and take the same noise, whatever is known of their tables.
    context: PublicContext | None = field(default=None, compare=False)
    assumptions: tuple[Statement, ...] = field(default=(), compare=False)

    # by clipping, for any record whatever
    is_bounded = True

    def __post_init__(self) -> None:
        # integers of Python, whatever was given
        for name in ("n_records", "n_steps"):
            count = check_count(**{name: getattr(self, name)})
            object.__setattr__(self, name, count)
        self._check_clipping()
        if self.noise_proportions is not None:
            self._spread_noise()
        self._check_use()
        if self.noise_correlation is not None:
            self._check_correlation()
        scheme = self._resolve_sampling()
        if self.record is not None:
            self._state_moves()
        # after the rest, which it quotes
        statement = scheme.statement(self)
        object.__setattr__(self, "sampling_statement", statement)
        # last: the context is compared with a number of records that has been checked
        self._meet_context()

    def _check_use(self) -> None:
        """Refuse what is made of the sums, or seen of them, where it is not known."""
        optimiser = self.optimiser
        if optimiser is not None and not hasattr(optimiser, "recalibration"):
            raise type_error("gradient.optimiser_wrong_type", optimiser=optimiser)
        check_option(("gradient", "update"), noise_position=self.noise_position)
        check_option(("all", "result"), published=self.published)
        if optimiser is None:
            return
        # its velocity is made of gradients that no noise has hidden
        if self.noise_position == "update" and optimiser.momentum:
            raise value_error("gradient.update_noise_with_momentum")
        if optimiser.recalibration is not None:
            self._check_recalibration(optimiser.recalibration.n_steps)

    def _resolve_sampling(self) -> SamplingScheme:
        """Set what follows from the scheme and the sizes, and is no field."""
        scheme = sampling_scheme(self.sampling)
        n, size = self.n_records, scheme.batch_size(self.n_records, self.batch_size)
        norm, per_epoch = self.clip_norm, scheme.steps_per_epoch(n, size)
        # blocks stand side by side: the norm of the whole is that of the blocks' norms
        if isinstance(norm, tuple):
            norm = float(np.linalg.norm(norm, ord=self.clip_order))
        self.sampling_rate: float
        self.divisor: float
        self.steps_per_epoch: int
        self.n_epochs: int
        self.total_clip_norm: float
        self.sampling_statement: Statement
        resolved = {
            "sampling": scheme,
            "batch_size": size,
            "sampling_rate": scheme.rate(n, size),
            "divisor": scheme.divisor(n, size),
            "steps_per_epoch": per_epoch,
            # rounded up: an epoch that was begun may have read any record
            "n_epochs": -(-self.n_steps // per_epoch),
            "total_clip_norm": norm,
        }
        # a frozen dataclass is complete once made: accounting and execution read the
        # same
        for name, value in resolved.items():
            object.__setattr__(self, name, value)
        return scheme

    def _check_clipping(self) -> None:
        # below one there is no triangle inequality by which clipped gradients add up
        check_at_least_one(clip_order=self.clip_order)
        norms, n_blocks = self.clip_norm, len(self.blocks or ())
        if self.blocks is None:
            if np.ndim(norms):
                raise value_error("gradient.clip_norms_need_blocks")
            object.__setattr__(self, "clip_norm", check_positive(clip_norm=norms))
            return
        for size in self.blocks:
            check_count(blocks=size)
        if not isinstance(norms, tuple) or len(norms) != n_blocks:
            raise value_error(
                "gradient.clip_norms_count_mismatch", n_blocks=n_blocks, norms=norms
            )
        norms = check_all_positive(clip_norm=norms)
        object.__setattr__(self, "clip_norm", norms)
        # a parameter outside of every block would be clipped by none
        if self.dim is not None and sum(self.blocks) != self.dim:
            raise value_error(
                "gradient.blocks_sum_mismatch", dim=self.dim, blocks=self.blocks
            )

    def _spread_noise(self) -> None:
        """Set the proportion of the noise of each coordinate, by its block's."""
        given, blocks = self.noise_proportions, self.blocks
        if blocks is None or not isinstance(given, tuple) or len(given) != len(blocks):
            raise value_error(
                "gradient.noise_proportions_count_mismatch", given=given, blocks=blocks
            )
        # positive: a block without noise would leave exactly
        each = check_all_positive(noise_proportions=given)
        units = tuple(np.repeat(each, blocks).tolist())
        object.__setattr__(self, "noise_proportions", each)
        object.__setattr__(self, "units", units)

    def clip_norm_in(self, scales: Floats) -> float:
        """Bound an example's gradient whose coordinates are divided by scales >= 0.

        Blocks are clipped apart, so their norms may all be as long as they can be at
        once: the norm of the order `clip_order` of ``clip_norm / scale`` over the
        blocks, each by its least scale. It is attained where scales are equal within
        blocks, and infinite where a scale is zero.

        Parameters
        ----------
        scales : ndarray of shape (dim,)

        Returns
        -------
        float
        """
        blocks = (len(scales),) if self.blocks is None else self.blocks
        dim = sum(blocks) if self.dim is None else self.dim
        if len(scales) != dim:
            raise value_error(
                "gradient.noise_scales_mismatch",
                name=self.name,
                dim=dim,
                n_scales=len(scales),
            )
        starts = np.cumsum((0, *blocks[:-1]))
        with np.errstate(divide="ignore"):  # a scale of zero
            lengths = np.divide(self.clip_norm, np.minimum.reduceat(scales, starts))
        return float(np.linalg.norm(np.atleast_1d(lengths), ord=self.clip_order))

    def _check_recalibration(self, n_last: int) -> None:
        """Refuse other last steps where more is stated than clipping makes true."""
        # a gradient clipped to another norm and scaled moves otherwise with its record
        stated = ("record", "blocks")
        settings = [f"{name}=None" for name in stated if getattr(self, name)]
        if self.noise_position != "gradient":
            settings.append("noise_position='gradient'")
        if settings:
            raise value_error("gradient.recalibration_unsupported", setting=settings[0])
        if n_last >= self.n_steps:
            raise value_error(
                "gradient.recalibration_too_many_steps",
                n_last=n_last,
                n_steps=self.n_steps,
            )

    def _check_correlation(self) -> None:
        """Refuse what is no strategy, or none for such a run."""
        strategy = self.noise_correlation
        if not hasattr(strategy, "check_run"):
            raise type_error("gradient.noise_correlation_wrong_type", strategy=strategy)
        if self.noise_position != "gradient":
            raise value_error("gradient.noise_correlation_of_updates")
        strategy.check_run(self.n_steps)
        if strategy.is_identity:
            object.__setattr__(self, "noise_correlation", None)

    def _state_moves(self) -> None:
        """Set what bounds the sum's move by that of a record, from facts of the run."""
        # Scaling down to another norm than l2 is no projection: it may double how far
        # two gradients are apart. Of parts that are clipped apart, each moves.
        if self.clip_order != 2 or self.blocks is not None:
            raise value_error(
                "gradient.record_needs_whole_l2_clipping",
                clip_order=self.clip_order,
                blocks=self.blocks,
            )
        # the radius is the one that is executed, and no statement of its own; noise of
        # the updates comes after the projection, and leaves the ball
        inside = self.optimiser is not None and self.noise_position == "gradient"
        radius = self.optimiser.radius if inside else None
        clipped = self.record.clipped(self.clip_norm, radius)
        if clipped is not None:
            object.__setattr__(self, "_clipped", clipped)
            object.__setattr__(self, "contribution", clipped.point)
            object.__setattr__(self, "modulus", clipped.gradient_move)

    _clipped: ClassVar[ClippedGradient | None] = None

    @property
    def clipped(self) -> ClippedGradient | None:
        """Facts by `record` about a gradient as this release clips it, or None."""
        return self._clipped

    @property
    def shift_ceiling(self) -> float:
        """Move of a contribution beyond which it need not be known how far it is."""
        return 0.0 if self.clipped is None else float(self.clipped.ceiling)

    def shift_norm(self, norm: float) -> float:
        """Norm in which contributions are compared."""
        # that of the clipping, as `modulus` was proved in no other
        return 2.0

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of one step's sum to an arbitrary record."""
        # replacement follows: one clipped gradient out, another one in
        relabel = getattr(self.record, "label_move", None)
        return Sensitivity(
            add_remove={self.clip_order: self.total_clip_norm},
            relabel=None if relabel is None else {2: relabel(self.clip_norm)},
        )
