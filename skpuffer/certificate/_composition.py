"""Steps added up by the library dp-accounting, where it is there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from skpuffer.kernel.numbers import Floats

from ._noise import GaussianShift, LaplaceShift
from ._numbers import NotRecomputableError
from ._pairs import Divergence, TradeOff

__all__ = ["composed_delta", "composed_epsilon"]

#: Part of an answer that an error may make before it is extrapolated away.
_SETTLED = 3e-3

#: Points of the finest grid, and steps, beyond which none is tried.
_MOST_POINTS, _MOST_STEPS = 2_000_000, 10_000_000

#: Divergences below it are left to the far end of a grid.
_TAIL = 1e-14

Steps = Sequence[tuple[TradeOff, int]]


def composed_epsilon(steps: Steps, delta: float, near: float) -> float:
    """Return the epsilon at delta of all steps together.

    Parameters
    ----------
    steps : sequence of (TradeOff, int)
    delta : float
    near : float
        About what is expected, which sets the first grid.

    Raises
    ------
    NotRecomputableError
        Without the library, or if no grid is fine enough.
    """
    return _settled(steps, near, lambda law: law.get_epsilon_for_delta(delta))


def composed_delta(steps: Steps, epsilon: float) -> float:
    """Return the delta at epsilon of all steps together; see `composed_epsilon`."""
    return _settled(steps, epsilon, lambda law: law.get_delta_for_epsilon(epsilon))


def _settled(steps: Steps, near: float, ask: Callable[[Any], float]) -> float:
    """Answer of a grid that a finer one changes no more."""
    if sum(count for _, count in steps) > _MOST_STEPS:
        raise NotRecomputableError(f"more than {_MOST_STEPS} steps are not composed")
    # losses are spread by about as much as two and a half times a step's variation
    zero = np.zeros(1)
    variation = sum(count * float(pair.forward(zero)[0]) ** 2 for pair, count in steps)
    spread = 2.5 * math.sqrt(variation)
    width = min(max(near, spread, 1e-9), 4.0) / 250
    last = math.nan
    for _ in range(9):
        # about the mean of all losses and what lies around it
        _check_points((spread**2 / 2 + 12 * spread) / width)
        found = float(ask(_composed(tuple(steps), width)))
        if math.isinf(found):
            return found
        # the error falls with the square of the width
        error = (last - found) / 3
        if abs(error) <= _SETTLED * abs(found):
            return found - error
        last, width = found, width / 2
    raise NotRecomputableError("no grid of losses was fine enough")


# a search asks the same steps time and again; a law is some megabytes at most
@lru_cache(maxsize=32)
def _composed(steps: tuple[tuple[TradeOff, int], ...], width: float) -> Any:
    laws = _library()
    total = None
    for pair, count in steps:
        law = _of_one_step(pair, width, laws)
        law = law.self_compose(count) if count > 1 else law
        total = law if total is None else total.compose(law)
    return total


def _library() -> Any:
    try:
        from dp_accounting.pld import privacy_loss_distribution
    except ImportError:
        raise NotRecomputableError(
            "the library dp-accounting, which composes steps, is not installed (pip "
            "install 'skpuffer[check]')"
        ) from None
    return privacy_loss_distribution


def _of_one_step(pair: TradeOff, width: float, laws: Any) -> Any:
    """Losses of a step: those that the library knows by themselves, or of a grid."""
    options = {"value_discretization_interval": width, "sampling_prob": pair.rate}
    if pair.noise is not None and 0 < pair.noise.u < math.inf:
        _check_points((pair.noise.u**2 + 20 * pair.noise.u) / width)
    if isinstance(pair.noise, GaussianShift) and 0 < pair.noise.u < math.inf:
        return laws.from_gaussian_mechanism(1 / pair.noise.u, **options)
    if isinstance(pair.noise, LaplaceShift) and 0 < pair.noise.u < math.inf:
        return laws.from_laplace_mechanism(1 / pair.noise.u, **options)
    sides = [
        _of_grid(ahead, back, width)
        for ahead, back in (
            (pair.forward, pair.backward),
            (pair.backward, pair.forward),
        )
    ]
    return laws.PrivacyLossDistribution(sides[0], sides[1])


def _of_grid(ahead: Divergence, back: Divergence, width: float) -> Any:
    """Losses of one direction, by its divergences at the points of a grid."""
    from dp_accounting.pld import pld_pmf

    first, last = -_reach(back, width), _reach(ahead, width)
    points = np.arange(first, last + 1)
    deltas = np.concatenate(
        list(_divergences(ahead, back, width * points.astype(float)))
    )
    # what rounding may have turned around
    deltas = np.minimum.accumulate(np.clip(deltas, 0.0, 1.0))
    return pld_pmf.create_pmf_pessimistic_connect_dots(width, points, deltas)


def _divergences(ahead: Divergence, back: Divergence, at: Floats) -> Iterator[Floats]:
    below = at < 0
    # E_γ(P‖Q) = 1 - γ + γ E_{1/γ}(Q‖P)
    yield -np.expm1(at[below]) + np.exp(at[below]) * back(-at[below])
    yield ahead(at[~below])


def _reach(divergence: Divergence, width: float) -> int:
    """Points from zero to where next to nothing of a divergence is left."""
    end = 1
    while float(divergence(np.array([end * width]))[0]) > _TAIL:
        end *= 2
        _check_points(end)
    return end


def _check_points(points: float) -> None:
    if points > _MOST_POINTS:
        raise NotRecomputableError("losses spread too far for a grid of them")
