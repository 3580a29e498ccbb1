"""An attacker who distinguishes two worlds, and what a certificate lets him.

`assert_tight` attacks twice: the noise that was certified, and a share of it.
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

    A fifth of the draws choose the rule, the others measure it. `score` grows with the
    odds of the first world; None learns one. No finding is wrong with probability
    `confidence`.
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
    """Attack, and hold that nothing exceeds what is allowed; return the report."""
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

    `worlds` takes a noise and returns two samplers of outputs with it; `score` takes a
    noise and returns the attacker's score.
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
