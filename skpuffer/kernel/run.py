"""The run: who pays is told first, then noise is drawn."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from skpuffer.exceptions import Statement, UncertifiedError, value_error
from skpuffer.kernel.noise import Noise
from skpuffer.kernel.numbers import Floats
from skpuffer.kernel.rounding import add_noise

if TYPE_CHECKING:
    from skpuffer.kernel.certificates import Certificate
    from skpuffer.kernel.queries import QueryRelease
    from skpuffer.kernel.releases import Release

__all__ = ["noise_rows", "noisy_scores", "noisy_value", "run"]

#: What an execution returns.
Output = TypeVar("Output")


def run(
    certificate: "Certificate",
    noise: Noise,
    release: "Release",
    execute: Callable[[Noise, np.random.Generator], Output],
    rng: np.random.Generator,
    tell: Callable[[], None],
) -> Output:
    """Draw what a certificate is of, once whoever pays for it was told.

    Parameters
    ----------
    certificate : Certificate
        Of this release.
    noise : Noise
        That it certifies.
    release : Release
    execute : callable
        Computes from the rows, and draws. Takes the noise and the generator.
    rng : numpy.random.Generator
    tell : callable
        Tells whoever pays for it, and raises if somebody refuses.

    Returns
    -------
    object
        All that leaves.

    Raises
    ------
    UncertifiedError
        If the certificate is of another release.
    """
    if certificate.release != release.name or certificate.n_releases != 1:
        raise UncertifiedError(
            Statement("proof.other_release", release=release.name, other=certificate)
        )
    tell()
    return execute(noise, rng)


def noisy_value(
    release: "QueryRelease",
    X: object,
    y: object,
    noise: Noise,
    rng: np.random.Generator,
) -> Floats:
    """Compute the exact value of a release, which nobody sees, and add noise.

    Parameters
    ----------
    release : QueryRelease
    X, y : array-like
        The private rows.
    noise : Noise
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (dim,)
    """
    exact = release.run(X, y)
    if not np.all(np.isfinite(exact)):
        raise value_error("release.value_not_finite", name=release.name)
    return add_noise(
        exact, noise, rng, n_records=release.n_records, integer=release.is_integer
    )


def noisy_scores(scores: Floats, noise: Noise, rng: np.random.Generator) -> Floats:
    """Add noise to scores that are in units of its scale.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates,)
    noise : GumbelNoise or ExponentialNoise
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_candidates,)
        Of which no number leaves: only which is the largest.
    """
    drawn: Floats = noise.sample(scores.shape, rng) / noise.scale
    return scores + drawn


# So many numbers of noise are drawn at once: enough to pay for the call.
_NOISE_BLOCK = 2**13


def noise_rows(
    noise: Noise, dim: int, n_rows: int, rng: np.random.Generator
) -> Iterator[Floats]:
    """Yield independent draws of noise, several small ones made at a time.

    Parameters
    ----------
    noise : Noise
    dim, n_rows : int
    rng : numpy.random.Generator

    Yields
    ------
    ndarray of shape (dim,)
    """
    # by the number of parameters, which is public
    at_once = max(1, _NOISE_BLOCK // dim)
    for start in range(0, n_rows, at_once):
        yield from noise.sample((min(at_once, n_rows - start), dim), rng)
