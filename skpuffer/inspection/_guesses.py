"""Drawing of guesses of a secret against the budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skpuffer.exceptions import Statement
from skpuffer.utils._checks import check_positive

from ._drawing import line_options

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from skpuffer.audit import MapAttack
    from skpuffer.privacy import Certificate
    from skpuffer.utils._types import Floats

__all__ = ["Drawn", "check_guesses", "draw_guesses"]

_PRIOR = "prior alone"


class Drawn(NamedTuple):
    """Lines that were drawn.

    Parameters
    ----------
    line : matplotlib Line2D
    bound : matplotlib Line2D or None
    """

    line: Line2D
    bound: Line2D | None


def check_guesses(
    epsilons: Any,
    attacks: Sequence[MapAttack],
    certificates: Sequence[Certificate] | None,
) -> tuple[Floats, Floats | None]:
    """Return budgets in nats, and what is allowed at each, before anything is drawn.

    Parameters
    ----------
    epsilons : array-like of shape (n_attacks,)
    attacks : sequence of MapAttack
    certificates : sequence of Certificate or None

    Returns
    -------
    epsilons : ndarray of shape (n_attacks,)
    allowed : ndarray of shape (n_attacks,) or None
    """
    budgets = np.array([check_positive(epsilons=one) for one in np.ravel(epsilons)])
    for name, given in (("attacks", attacks), ("certificates", certificates)):
        if given is not None and len(given) != len(budgets):
            raise ValueError(
                Statement(
                    "inspection.guesses_not_per_budget",
                    name=name,
                    n_budgets=len(budgets),
                    n_given=len(given),
                )
            )
    if not len(budgets):
        raise ValueError(Statement("inspection.guesses_epsilons_empty"))
    if certificates is None:
        return budgets, None
    allowed = [
        attack.allowed(certificate)
        for attack, certificate in zip(attacks, certificates, strict=True)
    ]
    return budgets, np.array(allowed)


def draw_guesses(
    ax: Axes,
    epsilons: Floats,
    attacks: Sequence[MapAttack],
    allowed: Floats | None,
    *,
    name: str | None,
    plot_prior: bool,
    line_kw: dict[str, Any] | None,
) -> Drawn:
    """Draw accuracy with its interval, what is allowed, and guesses by the prior alone.

    Parameters
    ----------
    ax : matplotlib Axes
    epsilons : ndarray of shape (n_attacks,)
    attacks : sequence of MapAttack
    allowed : ndarray of shape (n_attacks,) or None
    name : str or None
    plot_prior : bool
    line_kw : dict or None
        Options of the line of accuracies.

    Returns
    -------
    Drawn
    """
    order = np.argsort(epsilons, kind="stable")
    budgets, attacks = epsilons[order], [attacks[i] for i in order]
    reached = [attack.accuracy for attack in attacks]
    label = "MAP" if name is None else name
    options: dict[str, Any] = {"label": label, "marker": "."}
    (line,) = ax.plot(budgets, reached, **options | line_options(line_kw))
    low, high = np.array([attack.accuracy_interval() for attack in attacks]).T
    colour = line.get_color()
    ax.fill_between(budgets, low, high, color=colour, alpha=0.2, lw=0)
    bound = None
    if allowed is not None:
        text = "allowed" if name is None else f"allowed ({name})"
        (bound,) = ax.plot(budgets, allowed[order], color=colour, ls="--", label=text)
    # once, however many accountants share the axes
    if plot_prior and all(one.get_label() != _PRIOR for one in ax.lines):
        majority = [attack.majority for attack in attacks]
        ax.plot(budgets, majority, color="0.5", ls=":", label=_PRIOR)
    ax.set(xscale="log", xlabel="Epsilon", ylabel="Accuracy of guesses", ylim=(0, 1.02))
    ax.legend(loc="upper left")
    return Drawn(line, bound)
