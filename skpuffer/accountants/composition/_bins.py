"""Dominating pairs of batches that records draw, as balls draw bins."""

from skpuffer.exceptions import Statement, UnsupportedError
from skpuffer.kernel.steps import Dominated, GradientSteps
from skpuffer.noise import Noise
from skpuffer.privacy_loss import allocation
from skpuffer.releases import BallsInBinsSampling, FreshBinsSampling

__all__ = ["balls_in_bins", "fresh_bins"]


def fresh_bins(steps: GradientSteps, noise: Noise) -> Dominated:
    """Return what dominates epochs in each of which records draw a bin anew."""
    # bins of an epoch do not depend on those of others, nor on what was released
    epochs, rest = divmod(steps.release.n_steps, steps.release.steps_per_epoch)
    length = steps.release.steps_per_epoch
    kept = [(length, epochs)] * (epochs > 0) + [(rest, 1)] * (rest > 0)
    return _in_bins(steps, noise, kept)


def balls_in_bins(steps: GradientSteps, noise: Noise) -> Dominated:
    """Return what dominates a run in which every record keeps its bin."""
    return _in_bins(steps, noise, [(steps.release.n_steps, 1)])


def _in_bins(
    steps: GradientSteps, noise: Noise, kept: list[tuple[int, int]]
) -> Dominated:
    """Batches that records draw: for how many steps they are kept, and how often.

    What is known of a record's own move is not read.
    """
    n_bins = steps.release.steps_per_epoch
    # all records are in one bin
    if n_bins == 1:
        return steps.full_batch(noise)
    once = steps.curve_of(noise, 1)
    if once.gaussian_mu is None:
        raise UnsupportedError(
            Statement(
                "sampling.bins_noise_not_gaussian",
                name=steps.release.name,
                sampling=str(steps.release.sampling),
                family=noise.family,
            )
        )
    replaced = steps.relation == "replace"
    # its modules load here, as they are of use for few schemes
    pairs = tuple(
        (allocation.AllocationPair(once, n_bins, n_steps, replaced), times)
        for n_steps, times in kept
    )
    source = Statement("source.worst_pairs_random_bins")
    # some tables attain these pairs, but what is known of them are upper bounds
    return Dominated(pairs, source, tight=False)


GradientSteps.schemes |= {
    FreshBinsSampling: fresh_bins,
    BallsInBinsSampling: balls_in_bins,
}
