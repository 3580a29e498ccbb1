"""An attacker who tells two worlds apart, and what a certificate lets him.

Whoever sees one noisy output and guesses which of two worlds it came from has, for
each rule of guessing, a true-positive rate (he says "first" in the first world) and a
false-positive rate (he says so in the second). A promise bounds ``TPR - e^eps * FPR``
for every eps by a delta. Here the rule is chosen on a fifth of the draws and measured
on the others, with an exact (Clopper-Pearson) lower bound of what was measured: if that
exceeds what is allowed, the promise is broken beyond reasonable doubt.

An attack that finds nothing says little unless it would have found something. So each
one is made twice, by `assert_tight`: with the noise that was certified, and with a
share of it, which the same attacker must catch.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from skpuffer.audit import EPSILONS, Comparison, distinguishing_attack
from skpuffer.noise import Noise
from skpuffer.privacy import Certificate

#: Takes a number of draws and a generator; returns outputs of so many fresh worlds.
Draw: TypeAlias = Callable[[int, np.random.Generator], Any]

#: The part of the certified noise that every attacker must find to be too little.
SHARE = 0.7


def attack(
    first: Draw,
    second: Draw,
    certificate: Certificate,
    *,
    n_draws: int,
    rng: np.random.Generator,
    epsilons: Sequence[float] = EPSILONS,
    score: Callable[[Any], Any] | None = None,
    confidence: float = 1 - 1e-6,
    whole_curve: bool = True,
) -> Comparison:
    """Attack a promise with draws of the released output in two worlds.

    Parameters
    ----------
    first, second : callable of (n, rng)
        Return noisy outputs of shape (n,) or (n, dim), each from a fresh world.
    certificate : Certificate
    n_draws : int
        Draws in each world; a fifth of them choose the rule, the others measure it.
    rng : numpy.random.Generator
    epsilons : sequence of float
        Where to compare; the confidence is shared out over all comparisons.
    score : callable of outputs, default=None
        Grows with the odds of the first world; the log-likelihood ratio makes the
        Bayes attacker. None learns one: a coordinate itself, or a quadratic logistic
        regression in several dimensions.
    confidence : float, default=1 - 1e-6
        That no finding of the report is wrong.
    whole_curve : bool, default=True
        As in :func:`skpuffer.audit.allowed_delta`.

    Returns
    -------
    Comparison
    """
    outputs = (
        np.asarray(draw(n_draws, rng), dtype=float).reshape(n_draws, -1)
        for draw in (first, second)
    )
    attacked = distinguishing_attack(*outputs, score=score, confidence=confidence)
    return attacked.against(certificate, epsilons=epsilons, whole_curve=whole_curve)


def assert_within(
    certificate: Certificate, first: Draw, second: Draw, **options: Any
) -> Comparison:
    """Attack, and hold that nothing exceeds what is allowed; return the report.

    Parameters
    ----------
    certificate : Certificate
    first, second : callable of (n, rng)
    **options : dict
        Of `attack`.
    """
    report = attack(first, second, certificate, **options)
    assert not report.broken, f"an attacker beats the certificate {report}"
    return report


def assert_beaten(
    certificate: Certificate, first: Draw, second: Draw, **options: Any
) -> Comparison:
    """Attack, and hold that more is achieved than allowed; arguments as above."""
    report = attack(first, second, certificate, **options)
    assert report.broken, f"an attacker should beat the certificate, but {report}"
    return report


def weakened(noise: Noise, share: float = SHARE) -> Noise:
    """Noise of the same family with so much less of a scale."""
    return noise.with_scale(np.multiply(noise.scale, share).tolist())


def assert_tight(
    certificate: Certificate,
    noise: Noise,
    worlds: Callable[[Any], Sequence[Draw]],
    *,
    seed: int,
    score: Callable[[Any], Callable[[Any], Any]] | None = None,
    share: float = SHARE,
    **options: Any,
) -> None:
    """Attack the certified noise, which must do, and a share of it, which must not.

    Parameters
    ----------
    certificate : Certificate
    noise : Noise
        Noise that was certified.
    worlds : callable of a noise
        Returns two samplers of outputs with that noise.
    seed : int
    score : callable of a noise, default=None
        Returns the attacker's score if he knows that noise.
    share : float, default=SHARE
    **options : dict
        Of `attack`.
    """
    for check, used in (
        (assert_within, noise),
        (assert_beaten, weakened(noise, share)),
    ):
        check(
            certificate,
            *worlds(used),
            score=None if score is None else score(used),
            rng=np.random.default_rng(seed),
            **options,
        )
