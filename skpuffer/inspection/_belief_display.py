"""Display of a declared belief beside what public rows tell of the secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from skpuffer.scenarios import AttributeScenario, BoundedOdds
from skpuffer.scenarios.attribute._belief import believed
from skpuffer.utils._checks import check_option

from ._belief_audit import BeliefAudit, audit_belief
from ._drawing import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from skpuffer.utils._types import Floats

__all__ = ["BeliefDisplay"]

_KINDS = ("odds", "roc")

#: Budgets whose divergences bound a ROC curve from above; slopes are e to these.
_EPSILONS = np.linspace(-12.0, 12.0, 481)


class BeliefDisplay:
    """How far columns shift the odds of a secret, beside what is declared.

    It is recommended to make one by :meth:`from_scenario`. All parameters are stored as
    attributes.

    Parameters
    ----------
    audit : BeliefAudit
        What public rows tell.
    scenario : AttributeScenario
        With the declared belief.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    audit_belief : The numbers, not drawn.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skpuffer.inspection import BeliefDisplay
    >>> from skpuffer.scenarios import AttributeScenario, BoundedOdds
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(0, 2, 600)
    >>> public = pd.DataFrame(
    ...     {"sex": sex, "height": 170 + 8 * sex + rng.normal(0, 8, 600)}
    ... )
    >>> scenario = AttributeScenario("sex", level="record", prior=BoundedOdds(4.0))
    >>> display = BeliefDisplay.from_scenario(scenario, public)
    >>> display.ax_.get_xlabel()
    'Range of the odds (largest over smallest factor)'
    """

    def __init__(self, *, audit: BeliefAudit, scenario: AttributeScenario):
        self.audit = audit
        self.scenario = scenario

    @classmethod
    def from_scenario(
        cls,
        scenario: AttributeScenario,
        public: Any,
        *,
        kind: str = "odds",
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Guess the secret on public rows, and draw how well.

        Parameters
        ----------
        scenario : AttributeScenario
            With a declared belief as its prior.
        public : data frame of shape (n_rows, n_columns)
            Public rows with the secret.
        kind : {'odds', 'roc'}, default='odds'
            See :meth:`plot`.
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.
        **options : dict
            Of :func:`audit_belief`.

        Returns
        -------
        display : BeliefDisplay
        """
        pyplot(f"{cls.__name__}.from_scenario")
        check_option(_KINDS, kind=kind)
        audit = audit_belief(scenario, public, **options)
        return cls(audit=audit, scenario=scenario).plot(ax, kind=kind)

    def plot(self, ax: Axes | None = None, *, kind: str = "odds") -> Self:
        """Draw ranges of odds by column, or the ROC curve of the best guess.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.
        kind : {'odds', 'roc'}, default='odds'
            How far each column shifts the odds of the secret for 90 and 98 percent of
            the people, with the declared range where one is; or the ROC curve of the
            guess from all columns, and the region that the belief allows.

        Returns
        -------
        display : BeliefDisplay
            The object itself.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        check_option(_KINDS, kind=kind)
        if ax is None:
            _, ax = plt.subplots()
        if kind == "odds":
            self._plot_odds(ax)
        else:
            self._plot_roc(ax)
        ax.set_title(f"What tells of {self.scenario.column!r}, on public rows")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_odds(self, ax: Axes) -> None:
        # the most telling column on top
        table = self.audit.columns.iloc[::-1]
        at = np.arange(len(table))
        for name, style in (
            ("odds_98", {"color": "C0", "alpha": 0.35, "label": "98 % of the people"}),
            ("odds_90", {"color": "C0", "label": "90 % of the people"}),
        ):
            # bars from one, which is where a column that tells nothing stands
            ax.barh(at, table[name] - 1, left=1, height=0.6, **style)
        beliefs: list[Any] = self.scenario._beliefs()  # type: ignore[no-untyped-call]
        for belief in [one for one in beliefs if isinstance(one, BoundedOdds)]:
            ax.axvline(float(belief.w), color="C1", label=f"declared: {belief.w:g}")
        ax.set_yticks(at, [str(name) for name in table.index])
        ax.set_xscale("log")
        ax.set_xlim(left=1)
        ax.set_xlabel("Range of the odds (largest over smallest factor)")
        ax.legend(loc="lower right")

    def _plot_roc(self, ax: Axes) -> None:
        false, true = self.audit.roc
        auc = self.audit.columns["auc"].iloc[0]
        rates = np.linspace(0, 1, 201)
        bound = self.declared_roc(rates)
        ax.fill_between(rates, rates, bound, color="C1", alpha=0.2)
        ax.plot(rates, bound, color="C1", label="declared")
        ax.plot(false, true, color="C0", label=f"guessed (AUC {auc:.2f})")
        ax.set_xlabel("False positive rate")
        ax.set_ylabel("True positive rate")
        ax.legend(loc="lower right")

    def declared_roc(self, rates: Floats) -> Floats:
        """Return the largest true positive rates that the belief allows.

        Parameters
        ----------
        rates : ndarray
            False positive rates.

        Returns
        -------
        ndarray
        """
        # an event of mass α given one value has at most e^ε α + η(ε) given another
        overlap, _ = believed(self.scenario)
        bounds = [
            np.exp(epsilon) * rates + max(overlap.etas(float(epsilon)))
            for epsilon in _EPSILONS
        ]
        bound: Floats = np.minimum(1.0, np.min(bounds, axis=0))
        return bound
