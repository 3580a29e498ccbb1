"""Shapes of noise to start a search from: there are local minima."""

from collections.abc import Iterator, Sequence

import numpy as np

from skpuffer.utils._types import Booleans, Floats

from ._atoms import Atoms

#: Kinds of starting shapes.
STARTS = ("waterfill", "iso", "inverse", "collapsed")

#: Variance of a direction that is given up, as a share of what it would get.
_COLLAPSED = 1e-6


def starting_shapes(
    kinds: Sequence[str],
    filled: Floats,
    basis: Floats,
    priors: Sequence[Atoms],
    budget: float,
) -> Iterator[tuple[str, Floats]]:
    """Yield shapes of noise by name.

    Parameters
    ----------
    kinds : sequence of str
        Of `STARTS`.
    filled : ndarray of shape (d, d)
        The water-filling noise.
    basis : ndarray of shape (d, d)
        Eigenvectors of the outputs' covariance, the largest variance first.
    priors : sequence of Atoms
    budget : float
        In nats.

    Yields
    ------
    name : str
    shape : ndarray of shape (d, d)
    """
    variances = np.einsum("ij,ik,kj->j", basis, filled, basis)
    if "waterfill" in kinds:
        yield "waterfill", filled
    if "iso" in kinds:
        yield "iso", np.eye(len(filled)) * variances.mean()
    if "inverse" in kinds and len(variances) > 1:
        yield "inverse", (basis * variances[::-1]) @ basis.T
    if "collapsed" in kinds:
        for name, chosen in _affordable(basis, priors, budget):
            kept = np.where(chosen, _COLLAPSED, 1.0)
            yield f"collapsed {name}", (basis * (variances * kept)) @ basis.T


def _affordable(
    basis: Floats, priors: Sequence[Atoms], budget: float
) -> Iterator[tuple[str, Booleans]]:
    """Sets of directions whose exact release costs less than the budget.

    Single directions, the leading ones and the trailing ones. A set that holds one too
    dear is too dear itself.
    """
    d = len(basis)

    def cost_of(chosen: Booleans) -> float:
        return max(a.projected_entropy(basis[:, chosen]) for a in priors)

    seen = set()
    ranks = np.arange(d)
    single = [ranks == i for i in range(d)]
    for name, ends in (
        ("leading", [ranks < k for k in range(1, d)]),
        ("trailing", [ranks >= d - k for k in range(1, d)]),
        ("single", single if d > 2 else []),
    ):
        for chosen in ends:
            key, cost = chosen.tobytes(), cost_of(chosen)
            if cost >= budget:
                if name == "single":
                    continue
                # more of them cost more
                break
            # directions that do not vary are no gain
            if key not in seen and cost > 0:
                seen.add(key)
                yield f"{name} {np.flatnonzero(chosen).tolist()}", chosen
