"""Bits that nobody can predict, by the cipher ChaCha of twenty rounds (RFC 8439).

Exact draws are made of them: an integer part, and bits of a uniform fraction.
"""

import math
import operator
import os
import secrets
import threading
from collections.abc import Callable
from fractions import Fraction
from functools import singledispatch
from typing import Any, NoReturn

import numpy as np

from skpuffer.exceptions import type_error, value_error
from skpuffer.kernel.numbers import Floats, Indices

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

    Notes
    -----
    ``rng.spawn`` mixes seeds by a hash that is not cryptographic. Keys of secret
    generators are drawn from the operating system, and what is seeded stays so.
    """
    if is_secret(rng):
        return [secret_generator() for _ in range(n)]
    return rng.spawn(n)


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
    seeded : bool
        Whether the noise can be reproduced by whoever knows the seed.
    """
    return (
        (secret_generator(), False) if random_state is None else _seeded(random_state)
    )


@singledispatch
def _seeded(random_state: Any) -> tuple[np.random.Generator, bool]:
    try:
        return np.random.default_rng(operator.index(random_state)), True
    except (TypeError, ValueError):
        raise value_error(
            "parameter.random_state_invalid", random_state=random_state
        ) from None


@_seeded.register
def _(random_state: np.random.Generator) -> tuple[np.random.Generator, bool]:
    # whoever made it may know its state, so noise from it counts as seeded
    return random_state, True


@_seeded.register
def _(random_state: np.random.RandomState) -> tuple[np.random.Generator, bool]:
    # drawn from the state, so that a second fit differs, as users expect
    return np.random.default_rng(random_state.randint(2**31 - 1, size=4)), True


#: Of a uniform number: its first bits, of which the others are independent.
_BITS = 64
_HALF = np.uint64(1 << (_BITS - 1))

#: Units in the last place that a product of three floats may be off by, and to spare.
_ROUND_OFF = 2.0**-50


def _words(n: int, rng: np.random.Generator) -> np.ndarray:
    """First bits of uniform numbers in (0, 1)."""
    return rng.integers(0, 2**_BITS, size=n, dtype=np.uint64, endpoint=False)


def _below(
    left: np.ndarray, right: np.ndarray | np.uint64, rng: np.random.Generator
) -> np.ndarray:
    """Whether uniform numbers are below others, by their first bits.

    Where those agree, once in 2**64, the bits that follow decide: a fair coin, as none
    of them has been looked at. (To be looked at again they would have to agree twice.)
    """
    below: np.ndarray = left < right
    tied = np.flatnonzero(left == right)
    if tied.size:
        below[tied] = rng.integers(0, 2, tied.size) > 0
    return below


def _exp_minus(
    at: np.ndarray,
    rng: np.random.Generator,
    thinned: Callable[[Indices], np.ndarray] | None = None,
) -> np.ndarray:
    """Coins that fall true with chance exp(-x), at each of some uniform numbers x.

    A run ``x > u1 > u2 > ...`` of uniform numbers has length n or more with chance
    ``x**n / n!``, and its length is even with chance exp(-x). With `thinned`, which
    draws coins of chances p for the positions it is given, a run goes on only while
    those fall true as well: the chance is exp(-p x).
    """
    even = np.ones(at.size, dtype=bool)
    running, last = np.arange(at.size), at
    while running.size:
        drawn = _words(running.size, rng)
        on = _below(drawn, last, rng)
        if thinned is not None:
            kept = np.flatnonzero(on)
            on[kept] = thinned(running[kept])
        running, last = running[on], drawn[on]
        even[running] = ~even[running]
    return even


def exact_exponential(n: int, rng: np.random.Generator) -> tuple[Indices, np.ndarray]:
    """Draw exponential numbers of mean one, exactly.

    A uniform fraction x is kept with chance exp(-x), and each one that is not counts
    for the integer part (von Neumann 1951, Various techniques used in connection with
    random digits).

    Returns
    -------
    whole : ndarray of shape (n,)
        Integer parts.
    words : ndarray of shape (n,) of uint64
        First bits of the fractions, whose other bits are independent and uniform.
    """
    whole = np.zeros(n, dtype=np.int64)
    words = np.zeros(n, dtype=np.uint64)
    left = np.arange(n)
    while left.size:
        x = _words(left.size, rng)
        kept = _exp_minus(x, rng)
        words[left[kept]] = x[kept]
        left = left[~kept]
        whole[left] += 1
    return whole, words


def exact_normal(n: int, rng: np.random.Generator) -> tuple[Indices, np.ndarray]:
    """Draw magnitudes of standard normal numbers, exactly, as of `exact_exponential`.

    Algorithm N of Karney (2016), Sampling exactly from the normal distribution: k with
    chance in proportion to exp(-k/2), kept with chance exp(-k (k - 1) / 2), and a
    fraction x that is kept with chance exp(-x (2 k + x) / 2). Together that is in
    proportion to exp(-(k + x)**2 / 2).
    """
    whole = np.zeros(n, dtype=np.int64)
    words = np.zeros(n, dtype=np.uint64)
    left = np.arange(n)
    while left.size:
        k = _geometric(left.size, rng)
        kept = np.flatnonzero(_all_half(k * (k - 1), rng))
        x = _words(kept.size, rng)
        kept_on = _fraction_kept(k[kept], x, rng)
        kept, x = kept[kept_on], x[kept_on]
        whole[left[kept]], words[left[kept]] = k[kept], x
        left = np.delete(left, kept)
    return whole, words


#: What draws so many magnitudes, as `exact_normal` does.
Draw = Callable[[int, np.random.Generator], tuple[Indices, np.ndarray]]


class Ahead:
    """Magnitudes that one run draws ahead of their use, as many cost little more.

    How many depends on how many were asked for, which is public. Each is handed out
    once, to the process, the thread and the generator that it was drawn for, and is
    overwritten then.

    Parameters
    ----------
    rng : numpy.random.Generator
        Generator of the run.
    expected : int, default=0
        How many the run will ask for, as far as is known.
    """

    #: Drawn at once, at most, beyond what is asked for.
    block = 2**16

    def __init__(self, rng: np.random.Generator, expected: int = 0) -> None:
        self._expected = expected
        self._rng, self._owner = rng, (os.getpid(), threading.get_ident())
        self._held: dict[Draw, tuple[Indices, np.ndarray]] = {}
        self._asked: dict[Draw, int] = {}

    def __reduce__(self) -> NoReturn:
        raise type_error("draws.ahead_not_pickled")

    def take(
        self, draw: Draw, n: int, rng: np.random.Generator
    ) -> tuple[Indices, np.ndarray]:
        """Return so many magnitudes, that nobody has been given before."""
        if rng is not self._rng or self._owner != (os.getpid(), threading.get_ident()):
            return draw(n, rng)
        asked = self._asked[draw] = self._asked.get(draw, 0) + n
        empty = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
        whole, words = self._held.pop(draw, empty)
        if whole.size < n:
            # what is expected, or as many again as there were: few draws of few numbers
            # take no block, and many take hardly more than they use
            further = max(asked - n, self._expected - asked)
            more = draw(n + min(further, self.block), rng)
            whole, words = np.append(whole, more[0]), np.append(words, more[1])
        taken = whole[:n].copy(), words[:n].copy()
        whole[:n], words[:n] = 0, 0
        self._held[draw] = whole[n:], words[n:]
        return taken

    def wipe(self) -> None:
        """Overwrite what was not used."""
        for whole, words in self._held.values():
            whole[:], words[:] = 0, 0
        self._held.clear()


def _half_coins(n: int, rng: np.random.Generator) -> np.ndarray:
    """Coins of chance exp(-1/2)."""
    return _exp_minus(np.full(n, _HALF), rng)


def _geometric(n: int, rng: np.random.Generator) -> Indices:
    """Draw integers k with chances in proportion to exp(-k/2)."""
    k = np.zeros(n, dtype=np.int64)
    left = np.arange(n)
    while left.size:
        left = left[_half_coins(left.size, rng)]
        k[left] += 1
    return k


def _all_half(counts: Indices, rng: np.random.Generator) -> np.ndarray:
    """Whether so many coins of chance exp(-1/2) all fall true."""
    kept = np.ones(counts.size, dtype=bool)
    left = np.flatnonzero(counts > 0)
    remaining = counts[left]
    while left.size:
        true = _half_coins(left.size, rng)
        kept[left[~true]] = False
        left, remaining = left[true], remaining[true] - 1
        left, remaining = left[remaining > 0], remaining[remaining > 0]
    return kept


def _fraction_kept(k: Indices, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Coins of chance exp(-x (2 k + x) / 2): k + 1 of chance exp(-x p), all true.

    With ``p = (2 k + x) / (2 k + 2)``: of so many faces the first 2 k are true, the
    next one is true where another uniform number is below x, and the last is not.
    """
    kept = np.ones(k.size, dtype=bool)
    left, remaining = np.arange(k.size), k + 1
    while left.size:
        at, faces = x[left], k[left]

        def thinned(
            where: Indices, at: np.ndarray = at, faces: Indices = faces
        ) -> np.ndarray:
            face = rng.integers(0, 2 * faces[where] + 2)
            true = face < 2 * faces[where]
            edge = np.flatnonzero(face == 2 * faces[where])
            true[edge] = _below(_words(edge.size, rng), at[where[edge]], rng)
            return true

        true = _exp_minus(at, rng, thinned)
        kept[left[~true]] = False
        left, remaining = left[true], remaining[true] - 1
        left, remaining = left[remaining > 0], remaining[remaining > 0]
    return kept


def rounded_multiple(
    ratio: float | Floats,
    whole: Indices,
    words: np.ndarray,
    rng: np.random.Generator,
    *,
    down: bool = False,
) -> Indices:
    """Round `ratio` times an exact number to an integer, exactly.

    Parameters
    ----------
    ratio : float or ndarray of shape (n,)
        Non-negative, at most ``2**40``.
    whole, words : ndarray of shape (n,)
        The numbers, as drawn here: an integer part, and the first bits of a fraction.
    rng : numpy.random.Generator
        Further bits of the few numbers of which the first do not tell.
    down : bool, default=False
        Whether to round down, and not to the nearest integer.

    Returns
    -------
    ndarray of shape (n,) of int64
    """
    shift = 0.0 if down else 0.5
    ratio = np.broadcast_to(np.asarray(ratio, dtype=float), whole.shape)
    product = ratio * (whole + words * 2.0**-_BITS) + shift
    found = np.floor(product).astype(np.int64)
    # further from the next integer than what rounding and the other bits may add
    unsure = _ROUND_OFF * (product + ratio + 1)
    fraction = product - np.floor(product)
    near = np.flatnonzero((fraction < unsure) | (1 - fraction < unsure))
    for i in near:
        found[i] = _rounded_one(
            Fraction(float(ratio[i])),
            int(whole[i]),
            int(words[i]),
            rng,
            Fraction(shift),
        )
    return found


def _rounded_one(
    ratio: Fraction, whole: int, bits: int, rng: np.random.Generator, shift: Fraction
) -> int:
    """Round one product in integers, with as many bits as it takes."""
    known = _BITS
    while True:
        least = whole + Fraction(bits, 1 << known)
        below = math.floor(ratio * least + shift)
        # the bits that follow add less than one of the last place
        above = math.ceil(ratio * (least + Fraction(1, 1 << known)) + shift) - 1
        if below >= above:
            return below
        bits = (bits << _BITS) | int(_words(1, rng)[0])
        known += _BITS
