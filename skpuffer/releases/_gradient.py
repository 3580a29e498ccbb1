"""A training run: many noisy sums of clipped gradients."""

import math
from dataclasses import dataclass, field

import numpy as np

from skpuffer.utils._checks import check_count, check_option, check_positive

from ._base import Release
from ._context import PublicContext
from ._sensitivity import Sensitivity

__all__ = ["SAMPLING_SCHEMES", "GradientRelease"]

#: How the records of a step are chosen, by name.
SAMPLING_SCHEMES = (
    "full_batch",
    "poisson",
    "fixed_size",
    "with_replacement",
    "shuffled_epochs",
)


@dataclass(frozen=True, kw_only=True)
class GradientRelease(Release):
    """Noisy sums of clipped per-example gradients, one a step.

    At each step some records are chosen, each one's gradient is scaled down to the
    clip norm, their sum is released with noise and divided by the public
    :attr:`divisor`. Each gradient may depend on everything released before. Whatever is
    made of the noisy sums (momentum, averages, projections) is post-processing. What a
    record contributes depends on the run as well, so there is no `contribution`.

    Parameters
    ----------
    n_records : int
    n_steps : int
        Number of noisy sums.
    batch_size : int, default=None
        Records of a step: their expected number under ``'poisson'``, the exact one
        otherwise. None, and required to be so, is all records for ``'full_batch'``.
    sampling : str, default='poisson'
        ``'full_batch'`` takes all records at each step; ``'poisson'`` each record
        independently with probability ``batch_size / n_records`` (a batch may be
        empty, and is released with noise all the same); ``'fixed_size'`` a uniformly
        random subset of `batch_size` records; ``'with_replacement'`` `batch_size`
        independent uniform draws; ``'shuffled_epochs'`` deals all records, in a new
        random order at each epoch, to ``ceil(n_records / batch_size)`` batches whose
        sizes differ by at most one.
    clip_norm : float or tuple of float, default=1.0
        Largest norm of an example's gradient; with `blocks`, one for each block.
    clip_order : float, default=2
        Order of that norm, in [1, inf].
    blocks : tuple of int, default=None
        Sizes of consecutive parts of the parameter vector that are clipped apart.
        None clips the whole vector at once.
    dim : int, default=None
        Length of the parameter vector, where known.
    name : str, default='gradients'
    context : PublicContext, default=None
        The public facts of the table; made from `n_records` if None.
    assumptions : tuple of str
        What is taken as public or true, in sentences; written in the certificate.

    References
    ----------
    Abadi et al. (2016), Deep learning with differential privacy, Algorithm 1.

    Examples
    --------
    >>> from skpuffer.releases import GradientRelease
    >>> release = GradientRelease(n_records=1000, batch_size=10, n_steps=50)
    >>> release.sampling, release.sampling_rate, release.divisor
    ('poisson', 0.01, 10.0)
    """

    n_records: int
    n_steps: int
    batch_size: int | None = None
    sampling: str = "poisson"
    clip_norm: float | tuple[float, ...] = 1.0
    clip_order: float = 2.0
    blocks: tuple[int, ...] | None = None
    dim: int | None = None
    name: str = "gradients"
    context: PublicContext | None = field(default=None, compare=False)
    assumptions: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        check_count(n_records=self.n_records)
        check_count(n_steps=self.n_steps)
        check_option(SAMPLING_SCHEMES, sampling=self.sampling)
        self._check_batch_size()
        self._check_clipping()
        self._meet_context()

    def _check_batch_size(self) -> None:
        n, size = self.n_records, self.batch_size
        if self.sampling == "full_batch":
            if size not in (None, n):
                raise ValueError(
                    "The parameter 'batch_size' must be None or the number of records "
                    f"({n}) under sampling='full_batch'. Got {size!r}; name another "
                    "sampling to use smaller batches."
                )
            object.__setattr__(self, "batch_size", n)
            return
        if size is None:
            raise ValueError(
                f"The parameter 'batch_size' is needed under {self.sampling!r} "
                "sampling: give the number of records of a step, or use "
                "sampling='full_batch'."
            )
        check_count(batch_size=size)
        if size > n and self.sampling != "with_replacement":
            raise ValueError(
                f"The parameter 'batch_size' ({size}) must not exceed the number of "
                f"records ({n}). Use at most {n}, or sampling='full_batch'."
            )

    def _check_clipping(self) -> None:
        order = self.clip_order
        if not (isinstance(order, int | float) and order >= 1):
            raise ValueError(
                f"The parameter 'clip_order' must be in [1, inf]. Got {order!r}."
            )
        norms = self.clip_norm
        if self.blocks is None:
            if isinstance(norms, tuple):
                raise ValueError(
                    "The parameter 'clip_norm' has one norm for each block, so "
                    "'blocks' must give their sizes."
                )
            object.__setattr__(self, "clip_norm", check_positive(clip_norm=norms))
            return
        for size in self.blocks:
            check_count(blocks=size)
        if not isinstance(norms, tuple) or len(norms) != len(self.blocks):
            raise ValueError(
                f"The parameter 'clip_norm' must be a tuple with one norm for each of "
                f"the {len(self.blocks)} blocks. Got {norms!r}."
            )
        norms = tuple(check_positive(clip_norm=c) for c in norms)
        object.__setattr__(self, "clip_norm", norms)
        if self.dim is not None and sum(self.blocks) != self.dim:
            raise ValueError(
                f"The parameter 'blocks' must add up to dim={self.dim}. "
                f"Got {self.blocks!r}."
            )

    @property
    def _records(self) -> int:
        """Records of a step, as `batch_size` or all."""
        return self.n_records if self.batch_size is None else self.batch_size

    @property
    def sampling_rate(self) -> float:
        """Probability that a record is in a step's batch."""
        if self.sampling == "with_replacement":
            return -math.expm1(self._records * math.log1p(-1 / self.n_records))
        return self.divisor / self.n_records

    @property
    def divisor(self) -> float:
        """Public number a step's sum is divided by: the expected size of a batch."""
        if self.sampling == "shuffled_epochs":
            return self.n_records / self.steps_per_epoch
        return float(self._records)

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which as many records are visited as there are, rounded up."""
        return math.ceil(self.n_records / self._records)

    @property
    def n_epochs(self) -> int:
        """Epochs begun: how often a record takes part under 'shuffled_epochs'."""
        return math.ceil(self.n_steps / self.steps_per_epoch)

    @property
    def total_clip_norm(self) -> float:
        """Largest norm of one example's gradient over all blocks."""
        if isinstance(self.clip_norm, tuple):
            return float(np.linalg.norm(self.clip_norm, ord=self.clip_order))
        return self.clip_norm

    @property
    def sensitivity(self) -> Sensitivity:
        """Move of one step's sum when an arbitrary record joins or leaves the batch."""
        return Sensitivity(add_remove={self.clip_order: self.total_clip_norm})
