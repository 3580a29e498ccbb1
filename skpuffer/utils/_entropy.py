"""Bits that nobody can predict: what noise and secret draws are made of.

NumPy's own generators are fast and not secret: from a few hundred draws their state,
and with it all noise of the process, can be found. The generator here is the stream
cipher ChaCha of twenty rounds (RFC 8439), of randomgen, under a key of 256 bits of the
operating system.
"""

import numbers
import secrets
from typing import Any

import numpy as np

from skpuffer.exceptions import Statement

__all__ = ["is_secret", "own_stream", "secret_generator", "spawned"]

_KEY_BITS = 256
_ROUNDS = 20


def secret_generator() -> np.random.Generator:
    """Return a generator whose draws tell nothing of each other.

    Returns
    -------
    numpy.random.Generator
        As fast as NumPy's own, to half.
    """
    # not before it is asked for: not every import draws
    from randomgen import ChaCha

    return np.random.Generator(
        ChaCha(key=secrets.randbits(_KEY_BITS), counter=0, rounds=_ROUNDS)
    )


def is_secret(rng: np.random.Generator) -> bool:
    """Whether a generator is of the kind that `secret_generator` returns."""
    from randomgen import ChaCha

    return isinstance(rng.bit_generator, ChaCha)


def spawned(rng: np.random.Generator, n: int) -> list[np.random.Generator]:
    """Return independent generators, secret ones where the parent is one.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int

    Returns
    -------
    list of n numpy.random.Generator

    Notes
    -----
    ``rng.spawn`` mixes seeds by a hash that is not cryptographic. Keys of secret
    generators are drawn from the operating system, and what is seeded stays so.
    """
    if is_secret(rng):
        return [secret_generator() for _ in range(n)]
    return rng.spawn(n)


def own_stream(random_state: Any) -> Any:
    """Return the `random_state` of a copy, which shares no stream with the original.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None

    Returns
    -------
    int, RandomState, Generator or None
        A generator that is independent of the given one; a seed or None as it is.
    """
    if isinstance(random_state, np.random.Generator):
        try:
            return random_state.spawn(1)[0]
        except TypeError:  # made without a seed sequence
            return np.random.default_rng(random_state.integers(2**63, size=4))
    if isinstance(random_state, np.random.RandomState):
        return np.random.RandomState(random_state.randint(2**31 - 1, size=4))
    return random_state


def noise_generator(
    random_state: int | np.random.RandomState | np.random.Generator | None,
) -> tuple[np.random.Generator, bool]:
    """Return a generator for noise.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None
        None draws from a stream cipher under a key of the operating system, which
        nobody can predict or recover. NumPy's global state is never used, as
        scikit-learn's `check_random_state` would: a call to ``np.random.seed`` anywhere
        in the process would make the noise predictable.

    Returns
    -------
    rng : numpy.random.Generator
    seeded : bool
        Whether the noise can be reproduced by whoever knows the seed.
    """
    if random_state is None:
        return secret_generator(), False
    # whoever made it may know its state, so noise from it counts as seeded
    if isinstance(random_state, np.random.Generator):
        return random_state, True
    if isinstance(random_state, np.random.RandomState):
        # drawn from the state, so that a second fit differs, as users expect
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4)), True
    if not isinstance(random_state, numbers.Integral):
        raise ValueError(
            Statement("parameter.random_state_invalid", random_state=random_state)
        )
    return np.random.default_rng(random_state), True
