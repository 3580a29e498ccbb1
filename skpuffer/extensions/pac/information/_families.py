"""The least noise of a family that is not Gaussian."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize

from skpuffer.exceptions import Statement
from skpuffer.kernel.numbers import Floats, check_finite, check_positive

from ._atoms import Atoms
from ._banks import Bank
from ._channel import MixtureChannel
from ._laws import NoiseLaw

#: Logarithm of the largest change of scale.
_REACH = 20.0


def search_law(
    atoms: Atoms,
    budget: float,
    family: Callable[[Floats], NoiseLaw],
    start: ArrayLike = (),
    *,
    bank: Bank,
) -> tuple[NoiseLaw, float]:
    """Return the law of least power in a family whose information is the budget.

    Each shape is scaled to the budget by a root search; shapes are compared by
    Nelder and Mead's method, all on one bank.

    Parameters
    ----------
    atoms : Atoms
    budget : float
        In nats, below the entropy of the outputs.
    family : callable
        Takes parameters, of shape (p,), returns the law at any scale.
    start : array-like of shape (p,), default=()
        Parameters to start from; empty where only the scale is free.
    bank : Bank

    Returns
    -------
    law : NoiseLaw
    information : float
        On the bank, in nats: certify it on a fresh one.

    Raises
    ------
    ValueError
        If the budget is that of the outputs themselves, or nothing meets it.

    Examples
    --------
    >>> from skpuffer.information import Atoms, Bank, LogisticMarginal, ProductLaw
    >>> from skpuffer.information import search_law
    >>> atoms = Atoms([[-1.0], [1.0]])
    >>> law, _ = search_law(
    ...     atoms,
    ...     0.5,
    ...     lambda _: ProductLaw(LogisticMarginal(), [1.0]),
    ...     bank=Bank.quadrature(atoms),
    ... )
    >>> round(float(law.covariance[0, 0]), 4)
    0.4963
    """
    budget = check_positive(budget=budget)
    start = check_finite(start=start)
    if budget >= atoms.output_entropy:
        raise ValueError(
            Statement(
                "pac.budget_exceeds_output_entropy", output_entropy=atoms.output_entropy
            )
        )

    def scaled(parameters: Floats) -> NoiseLaw:
        law = family(parameters)
        # from a spread as large as that of the outputs
        unit = math.sqrt(np.trace(atoms.covariance) / np.trace(law.covariance))

        def excess(log_scale: float) -> float:
            channel = MixtureChannel(atoms, law.scaled(unit * math.exp(log_scale)))
            information = channel.information(bank, "divergence").value
            return math.log(max(information, 1e-300) / budget)

        low = high = 0.0
        while excess(low) <= 0 and low > -_REACH:
            low -= 1.0
        while excess(high) > 0 and high < _REACH:
            high += 1.0
        if excess(low) <= 0 or excess(high) > 0:
            raise ValueError(Statement("pac.family_never_meets_budget"))
        root = float(brentq(excess, low, high, xtol=1e-10))
        # on the safe side of the root
        step = 1e-10
        while excess(root) > 0:
            root, step = root + step, 2 * step
        return law.scaled(unit * math.exp(root))

    best = scaled(start)
    if start.size:
        found = minimize(
            lambda parameters: float(np.trace(scaled(parameters).covariance)),
            start,
            method="Nelder-Mead",
            options={"xatol": 1e-5, "fatol": 1e-8, "maxiter": 200 * start.size},
        )
        best = scaled(found.x)
    return best, MixtureChannel(atoms, best).information(bank, "divergence").value
