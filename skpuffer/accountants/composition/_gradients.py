"""What dominates each step of a gradient release, by how its batches are drawn."""

from typing import ClassVar, NamedTuple

import numpy as np

from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import Shift
from skpuffer.privacy_loss import (
    DominatingPair,
    GaussianCurve,
    GaussianPoissonGroup,
    GaussianPoissonPair,
    MixturePair,
    PoissonPair,
    PrivacyLossCurve,
    ReplacePoissonPair,
    ShiftPair,
    SubsetPair,
)
from skpuffer.releases import (
    FixedSizeSampling,
    FullBatchSampling,
    GradientRelease,
    PoissonSampling,
    ShuffledEpochsSampling,
    WithReplacementSampling,
)

from ._accounting import Accounting, StepsOfRelease

__all__ = ["GRADIENT_FIELDS", "GradientSteps"]

#: What is read of a training run, and what is known not to matter.
GRADIENT_FIELDS = frozenset(
    {
        "assumptions",
        "batch_size",
        "clip_norm",
        "clip_order",
        "context",
        "dim",
        "n_records",
        "n_steps",
        "name",
        "noise_correlation",  # read, and refused where there is any
        "sampling",
        # Immaterial: each noisy sum counts as released, whatever is made of it, and
        # blocks that are clipped apart have one norm together.
        "blocks",
        "optimiser",
    }
)

# For groups up to so many it is asked what each share of them costs that comes while
# the others go, which takes a tenth of a second each; a looser bound holds for any.
_MOST_DIRECTIONS = 16


class Dominated(NamedTuple):
    """What dominates the steps of a run.

    Parameters
    ----------
    pair : DominatingPair
        Of one step, or of one epoch where batches are dealt.
    count : int
        How many of them are composed.
    source : str
        Where it is proved.
    tight : bool
        Whether some data attain it.
    """

    pair: DominatingPair
    count: int
    source: str
    tight: bool


class GradientSteps(StepsOfRelease, kind=GradientRelease):
    """The steps of a training run; see :class:`StepsOfRelease`.

    A sampling scheme is accounted for by the function registered for its exact type.
    """

    #: Functions of these steps and a noise that return what dominates them.
    schemes: ClassVar[dict] = {}

    #: Schemes in which only some steps' batches hold a record, by chance.
    amplified: ClassVar[tuple] = (
        PoissonSampling,
        FixedSizeSampling,
        WithReplacementSampling,
    )

    def _obstacle(self):
        sampling = self.release.sampling
        if type(sampling) not in self.schemes:
            return (
                f"the sampling scheme {sampling} ({type(sampling).__name__}) is new to "
                "it; use one of skpuffer.releases.SAMPLING_SCHEMES"
            )
        if self.release.noise_correlation is not None:
            return (
                "its noise is correlated across steps, and independent noise is what "
                "is accounted for; use noise_correlation=None"
            )
        if type(sampling) not in self.amplified:
            return None
        if not self.independent:
            return (
                "amplification by subsampling assumes that only records drawn by "
                f"chance depend on the secret, but here up to {self.count} records "
                "change with it together, so that every batch tells of it; use "
                "sampling='full_batch', or 'shuffled_epochs', which claims no "
                "amplification"
            )
        if self.count > 1 and type(sampling) is not PoissonSampling:
            return (
                f"no bound is known here for a group of {self.count} records under "
                f"sampling={sampling.name!r}; use sampling='poisson', 'full_batch' or "
                "'shuffled_epochs'"
            )
        return None

    def under(self, noise, max_memory=500.0):
        """Find what dominates all steps; see :class:`StepsOfRelease`."""
        pair, count, source, tight = self.dominated(noise)
        mu = pair.curve.gaussian_mu if isinstance(pair, ShiftPair) else None
        if mu is None:
            curve = PrivacyLossCurve(((pair, count),), float(max_memory))
        else:
            curve = GaussianCurve(float(mu * np.sqrt(count)))
        statement = self.release.sampling.statement(self.release)
        return Accounting(curve, pair.curve.shift, source, tight, (statement,))

    def dominated(self, noise):
        """Return what dominates these steps under a noise.

        Parameters
        ----------
        noise : Noise

        Returns
        -------
        Dominated

        Raises
        ------
        UnsupportedError
            If the clipped norm is none that the noise can use.
        """
        self._check_norms(noise)
        return self.schemes[type(self.release.sampling)](self, noise)

    def _check_norms(self, noise):
        """Refuse a clip norm from which the noise can tell nothing."""
        try:
            noise.curve(self._shift(noise, 1))
        except ValueError as error:
            raise UnsupportedError(
                f"The gradients are clipped in the {self.release.clip_order:g}-norm, "
                f"which is not enough for {noise.family} noise. Use "
                f"clip_order={noise.norm:g} or less, or another noise. ({error})"
            ) from error

    def _shift(self, noise, *moves):
        """Shift of clip norms times `moves`, one for each batch that changes."""
        order, dim = self.release.clip_order, self.release.dim
        if len(moves) > 1:
            # a norm in which those of the batches make up that of all of them
            order = max(order, noise.norm)
            dim = None if dim is None else len(moves) * dim
        radius = float(np.linalg.norm(moves, ord=order)) * self.release.total_clip_norm
        return Shift(radius, norm=order, dim=dim)

    def _curve(self, noise, *moves):
        return noise.curve(self._shift(noise, *moves))

    # -- one scheme each ----------------------------------------------------------

    def _full_batch(self, noise):
        each = 1 if self.relation == "add_remove" else 2
        pair = ShiftPair(self._curve(noise, each * self.count))
        source = "adaptive composition of the noise's own trade-off"
        return Dominated(pair, self.release.n_steps, source, tight=True)

    def _shuffled_epochs(self, noise):
        # Without a record the batch sizes change by one somewhere else: a record of
        # that batch takes its place, so one batch's sum moves twice a clip norm, and
        # the other's once. A replaced record stays in its batch.
        k = self.count
        moves = (2 * k, k) if self.relation == "add_remove" else (2 * k,)
        if noise.dim is not None and len(moves) > 1:
            raise UnsupportedError(
                f"The release {self.release.name!r}: batches that are dealt take noise "
                "of one scale for all coordinates where records are added or removed. "
                f"Got {noise!r}; use relation='replace', or one scale."
            )
        pair = ShiftPair(self._curve(noise, *moves))
        source = "adaptive composition of the noise's own trade-off, epoch by epoch"
        # bounded one epoch at a time, from above
        return Dominated(pair, self.release.n_epochs, source, tight=False)

    def _poisson(self, noise):
        rate, steps, k = self.release.sampling_rate, self.release.n_steps, self.count
        if rate == 1:
            return self._full_batch(noise)
        replaced = self.relation == "replace"
        once = self._curve(noise, 1)
        if once.gaussian_mu is not None and (replaced or 1 < k <= _MOST_DIRECTIONS):
            source = (
                "worst pairs of groups in Poisson batches (Ganesh 2024; Kahane 1986)"
            )
            pair = (
                GaussianPoissonPair(once, rate, k, k)
                if replaced
                else GaussianPoissonGroup(once, rate, k)
            )
        elif k > 1:
            each = self._curve(noise, 2) if replaced else once
            source = "subsampled groups (Balle, Barthe and Gaboardi 2018, Theorem 2)"
            pair = MixturePair(each, k, rate)
        elif replaced:
            source = (
                "advanced joint convexity (Balle, Barthe and Gaboardi 2018, Theorem 2)"
            )
            pair = ReplacePoissonPair(once, rate)
        else:
            source = "dominating pairs of Poisson batches (Zhu, Dong and Wang 2022)"
            pair = PoissonPair(once, rate)
        return Dominated(pair, steps, source, tight=pair.tight)

    def _fixed_size(self, noise):
        rate, steps = self.release.sampling_rate, self.release.n_steps
        twice = self._curve(noise, 2)
        source = "batches without replacement (Zhu, Dong and Wang 2022)"
        if rate == 1:
            # a batch of all records cannot have another in the place of one that is
            # gone
            return Dominated(ShiftPair(twice), steps, source, tight=False)
        kind = PoissonPair if self.relation == "add_remove" else SubsetPair
        pair = kind(twice, rate)
        return Dominated(pair, steps, source, tight=pair.tight)

    def _with_replacement(self, noise):
        n, size = self.release.n_records, self.release.batch_size
        source = (
            "batches with replacement (Balle, Barthe and Gaboardi 2018, Theorem 10)"
        )
        if n == 1:
            pair = ShiftPair(self._curve(noise, 2 * size))
        else:
            pair = MixturePair(self._curve(noise, 2), size, 1 / n)
        return Dominated(pair, self.release.n_steps, source, tight=False)


GradientSteps.schemes |= {
    FullBatchSampling: GradientSteps._full_batch,
    ShuffledEpochsSampling: GradientSteps._shuffled_epochs,
    PoissonSampling: GradientSteps._poisson,
    FixedSizeSampling: GradientSteps._fixed_size,
    WithReplacementSampling: GradientSteps._with_replacement,
}
