"""What dominates each step of a gradient release, by how its batches are drawn."""

import numpy as np

from skpuffer.exceptions import UnsupportedError
from skpuffer.noise import Shift
from skpuffer.privacy_loss import GaussianCurve, PrivacyLossCurve
from skpuffer.privacy_loss._dominating_pairs import (
    MixturePair,
    PoissonPair,
    ReplacePoissonPair,
    ShiftPair,
    SubsetPair,
)
from skpuffer.privacy_loss._poisson_groups import (
    GaussianPoissonGroup,
    GaussianPoissonPair,
)

from ._accounting import Accounting, neighbours

__all__ = ["SCHEMES", "account_for_gradients", "gradient_obstacle", "neighbours"]

#: Schemes in which only some steps' batches hold a record, by chance.
_AMPLIFIED = ("poisson", "fixed_size", "with_replacement")

# For groups up to so many it is asked what each share of them costs that comes while
# the others go, which takes a tenth of a second each; a looser bound holds for any.
_MOST_DIRECTIONS = 16


def gradient_obstacle(release, worlds):
    """Why amplification by subsampling cannot be claimed, or None if it can.

    Parameters
    ----------
    release : GradientRelease
    worlds : Neighbours

    Returns
    -------
    str or None
        A sentence with the reason and the remedy.
    """
    sampling = release.sampling
    if sampling not in _AMPLIFIED:
        return None
    if not worlds.independent:
        return (
            "amplification by subsampling assumes that only records drawn by chance "
            f"depend on the secret, but here up to {worlds.count} records change with "
            "it together, so that every batch tells of it; use sampling='full_batch', "
            "or 'shuffled_epochs', which claims no amplification"
        )
    if worlds.count > 1 and sampling != "poisson":
        return (
            f"no bound is known here for a group of {worlds.count} records under "
            f"sampling={sampling!r}; use sampling='poisson', 'full_batch' or "
            "'shuffled_epochs'"
        )
    return None


def account_for_gradients(release, noise, worlds, max_memory=500.0):
    """Find what dominates all steps of a gradient release.

    Parameters
    ----------
    release : GradientRelease
    noise : Noise
        Added to each step's sum of clipped gradients.
    worlds : Neighbours
    max_memory : float, default=500.0
        In MiB, for the grid of a :class:`PrivacyLossCurve`.

    Returns
    -------
    Accounting

    Raises
    ------
    UnsupportedError
        If no bound is known, or the clipped norm is none that the noise can use.
    """
    obstacle = gradient_obstacle(release, worlds)
    if obstacle:
        raise UnsupportedError(f"The release {release.name!r}: {obstacle}.")
    _check_norms(noise, release)
    pair, count, source = SCHEMES[release.sampling](noise, release, worlds)
    curve = PrivacyLossCurve(((pair, count),), float(max_memory))
    if isinstance(pair, ShiftPair):
        mu = noise.curve(pair.shift).gaussian_mu
        if mu is not None:
            curve = GaussianCurve(float(mu * np.sqrt(count)))
    # dealt batches are bounded one epoch at a time, from above, and a batch that is all
    # records cannot have another in its place when one is gone
    attained = release.sampling in ("full_batch", "poisson") or (
        release.sampling == "fixed_size" and release.sampling_rate < 1
    )
    tight = pair.tight and attained
    statement = _STATEMENTS[release.sampling].format(release)
    return Accounting(curve, pair.shift, source, tight, (statement,))


def _check_norms(noise, release):
    """Refuse a clip norm from which the noise can tell nothing."""
    try:
        noise.renyi(2.0, _shift(release, noise, 1))
    except ValueError as error:
        raise UnsupportedError(
            f"The gradients are clipped in the {release.clip_order:g}-norm, which is "
            f"not enough for {noise.family} noise. Use clip_order={noise.norm:g} or "
            f"less, or another noise. ({error})"
        ) from error


def _shift(release, noise, *moves):
    """Shift of clip norms times `moves`, one for each batch that changes."""
    order, dim = release.clip_order, release.dim
    if len(moves) > 1:
        # a norm in which those of the batches make up that of all of them
        order = max(order, noise.norm)
        dim = None if dim is None else len(moves) * dim
    radius = float(np.linalg.norm(moves, ord=order)) * release.total_clip_norm
    return Shift(radius, norm=order, dim=dim)


def _full_batch(noise, release, worlds):
    each = 1 if worlds.relation == "add_remove" else 2
    pair = ShiftPair(noise, _shift(release, noise, each * worlds.count))
    return pair, release.n_steps, "adaptive composition of the noise's own trade-off"


def _shuffled_epochs(noise, release, worlds):
    # Without a record the batch sizes change by one somewhere else: a record of that
    # batch takes its place, so one batch's sum moves twice a clip norm, and the
    # other's once. A replaced record stays in its batch.
    k = worlds.count
    moves = (2 * k, k) if worlds.relation == "add_remove" else (2 * k,)
    shift = _shift(release, noise, *moves)
    if noise.dim is not None and len(moves) > 1:
        raise UnsupportedError(
            f"The release {release.name!r}: batches that are dealt take noise of one "
            "scale for all coordinates where records are added or removed. "
            f"Got {noise!r}; use relation='replace', or one scale."
        )
    pair = ShiftPair(noise, shift)
    source = "adaptive composition of the noise's own trade-off, epoch by epoch"
    return pair, release.n_epochs, source


def _poisson(noise, release, worlds):
    rate = release.sampling_rate
    if rate == 1:
        return _full_batch(noise, release, worlds)
    steps, k = release.n_steps, worlds.count
    once, twice = (_shift(release, noise, times) for times in (1, 2))
    replaced = worlds.relation == "replace"
    gaussian = noise.curve(once).gaussian_mu is not None
    if gaussian and (replaced or 1 < k <= _MOST_DIRECTIONS):
        source = "worst pairs of groups in Poisson batches (Ganesh 2024; Kahane 1986)"
        if replaced:
            return GaussianPoissonPair(noise, once, rate, k, k), steps, source
        return GaussianPoissonGroup(noise, once, rate, k), steps, source
    if k > 1:
        each = twice if replaced else once
        source = "subsampled groups (Balle, Barthe and Gaboardi 2018, Theorem 2)"
        return MixturePair(noise, each, k, rate), steps, source
    if replaced:
        source = "advanced joint convexity (Balle, Barthe and Gaboardi 2018, Theorem 2)"
        return ReplacePoissonPair(noise, once, rate), steps, source
    source = "dominating pairs of Poisson batches (Zhu, Dong and Wang 2022)"
    return PoissonPair(noise, once, rate), steps, source


def _fixed_size(noise, release, worlds):
    rate = release.sampling_rate
    twice = _shift(release, noise, 2)
    source = "batches without replacement (Zhu, Dong and Wang 2022)"
    if rate == 1:
        return ShiftPair(noise, twice), release.n_steps, source
    kind = PoissonPair if worlds.relation == "add_remove" else SubsetPair
    return kind(noise, twice, rate), release.n_steps, source


def _with_replacement(noise, release, worlds):
    twice = _shift(release, noise, 2)
    source = "batches with replacement (Balle, Barthe and Gaboardi 2018, Theorem 10)"
    if release.n_records == 1:
        moves = 2 * release.batch_size
        return ShiftPair(noise, _shift(release, noise, moves)), release.n_steps, source
    pair = MixturePair(noise, twice, release.batch_size, 1 / release.n_records)
    return pair, release.n_steps, source


SCHEMES = {
    "full_batch": _full_batch,
    "shuffled_epochs": _shuffled_epochs,
    "poisson": _poisson,
    "fixed_size": _fixed_size,
    "with_replacement": _with_replacement,
}

#: What each sampling scheme takes for granted, in a sentence.
_STATEMENTS = {
    "full_batch": "every step takes all {0.n_records} records",
    "poisson": (
        "every step takes each record independently with probability "
        "{0.sampling_rate:.6g}, and which ones it took stays secret"
    ),
    "fixed_size": (
        "every step takes a fresh uniformly random subset of {0.batch_size} of the "
        "{0.n_records} records, which stays secret"
    ),
    "with_replacement": (
        "every step draws {0.batch_size} times uniformly from the {0.n_records} "
        "records, and which ones it drew stays secret"
    ),
    "shuffled_epochs": (
        "every epoch deals each of the {0.n_records} records to one batch, at random "
        "but with no amplification claimed for it"
    ),
}
