"""Display of attacks beside what certificates allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np

from skpuffer.audit import (
    DistinguishingAttack,
    MapAttack,
    MembershipAttack,
    allowed_roc,
    membership_attack,
)
from skpuffer.audit._scores import clopper_pearson
from skpuffer.exceptions import value_error
from skpuffer.kernel.numbers import check_positive

from ._drawing import line_options, pyplot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike

    from skpuffer.audit import MapAttack
    from skpuffer.kernel.numbers import Floats
    from skpuffer.privacy import Certificate
    from skpuffer.utils._types import Table


_PRIOR = "prior alone"


class Drawn(NamedTuple):
    """Lines that were drawn."""

    line: Line2D
    bound: Line2D | None


def check_guesses(
    epsilons: Any,
    attacks: Sequence[MapAttack],
    certificates: Sequence[Certificate] | None,
) -> tuple[Floats, Floats | None]:
    """Return budgets in nats, and what is allowed at each, before anything is drawn."""
    budgets = np.array([check_positive(epsilons=one) for one in np.ravel(epsilons)])
    for name, given in (("attacks", attacks), ("certificates", certificates)):
        if given is not None and len(given) != len(budgets):
            raise value_error(
                "inspection.guesses_not_per_budget",
                name=name,
                n_budgets=len(budgets),
                n_given=len(given),
            )
    if not len(budgets):
        raise value_error("inspection.guesses_epsilons_empty")
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
    """Draw accuracy with its interval, what is allowed, and the prior's guesses."""
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


#: Rates at which a curve is drawn, for each power of ten of an axis.
_PER_DECADE = 40

_CHANCE = "chance"


class AuditDisplay:
    """Draw an attack beside the best one that a certificate allows.

    For scores in two worlds the ROC curve is drawn on logarithmic axes; for guesses of
    a secret the share of right ones, budget by budget. Make one by
    :meth:`from_estimator`, :meth:`from_attack`, :meth:`from_predictions` or
    :meth:`from_map_attacks`. All parameters are stored as attributes.

    Parameters
    ----------
    attack : MembershipAttack, DistinguishingAttack or sequence of MapAttack
        Scores in two worlds, or guesses at each budget.
    certificate : Certificate or sequence of Certificate, default=None
        Promise at each budget of guesses. None draws no bound.
    name : str, default=None
        Name of the curve.
    epsilons : array-like of shape (n_attacks,), default=None
        Budgets of guesses, in nats.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The attack's ROC curve, or the accuracy of guesses.
    bound_ : matplotlib Line2D or None
        Bound by the certificate.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.inspection import AuditDisplay
    >>> from skpuffer.linear_model import PrivateLogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = PrivateLogisticRegression().fit(X[:200], y[:200])
    >>> display = AuditDisplay.from_estimator(model, X[:200], y[:200], X[200:], y[200:])
    >>> display.ax_.get_xlabel()
    'False positive rate'
    """

    def __init__(
        self,
        *,
        attack: MembershipAttack | DistinguishingAttack | Sequence[MapAttack],
        certificate: Certificate | Sequence[Certificate] | None = None,
        name: str | None = None,
        epsilons: ArrayLike | None = None,
    ):
        self.attack = attack
        self.certificate = certificate
        self.name = name
        self.epsilons = epsilons

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X_members: Table,
        y_members: ArrayLike,
        X_others: Table,
        y_others: ArrayLike,
        *,
        certificate: Certificate | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Attack a fitted model, and draw how well.

        Parameters
        ----------
        estimator : estimator
            Fitted, private or not.
        X_members, X_others : table of shape (n, n_features)
            Records it was fitted to, and others of the same population.
        y_members, y_others : array-like of shape (n,)
            Their targets.
        certificate : Certificate, default=None
            None takes that of the model, if it has one.
        name : str, default=None
            Name of the curve. None takes the name of the estimator's class.
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.
        **options : dict
            Of :func:`skpuffer.audit.membership_attack`.

        Returns
        -------
        display : AuditDisplay
        """
        pyplot(f"{cls.__name__}.from_estimator")
        attack = membership_attack(
            estimator, X_members, y_members, X_others, y_others, **options
        )
        if certificate is None:
            certificate = getattr(estimator, "certificate_", None)
        name = type(estimator).__name__ if name is None else name
        return cls(attack=attack, certificate=certificate, name=name).plot(ax)

    @classmethod
    def from_attack(
        cls,
        attack: MembershipAttack | DistinguishingAttack,
        certificate: Certificate | None = None,
        *,
        name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw an attack that was made.

        Parameters
        ----------
        attack : MembershipAttack or DistinguishingAttack
        certificate : Certificate, default=None
            The promise. None draws no bound.
        name : str, default=None
            Name of the curve.
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : AuditDisplay
        """
        return cls(attack=attack, certificate=certificate, name=name).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        labels: ArrayLike,
        scores: ArrayLike,
        certificate: Certificate | None = None,
        *,
        relation: str = "replace",
        confidence: float = 0.95,
        name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw a membership attack by its scores.

        Parameters
        ----------
        labels : array-like of bool of shape (n_records,)
            Whether each record is a member.
        scores : array-like of shape (n_records,)
            Scores that grow with the odds that it is.
        certificate : Certificate, default=None
            The promise. None draws no bound.
        relation : {'replace', 'add_remove'}, default='replace'
            How members were drawn, as in :class:`skpuffer.audit.MembershipAttack`.
        confidence : float, default=0.95
            Confidence of intervals.
        name : str, default=None
            Name of the curve.
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : AuditDisplay
        """
        attack = MembershipAttack(
            np.asarray(scores), np.asarray(labels), confidence, relation
        )
        return cls.from_attack(attack, certificate, name=name, ax=ax)

    @classmethod
    def from_map_attacks(
        cls,
        epsilons: ArrayLike,
        attacks: Sequence[MapAttack],
        certificates: Sequence[Certificate] | None = None,
        *,
        name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw guesses of a secret against the budget.

        Parameters
        ----------
        epsilons : array-like of shape (n_attacks,)
            Budgets, in nats.
        attacks : sequence of MapAttack
            On what was released at each of them.
        certificates : sequence of Certificate, default=None
            Promise at each. None draws no bound.
        name : str, default=None
            Name of the curve.
        ax : matplotlib Axes, default=None
            Axes to draw on, to which several accountants may go. None makes a figure.

        Returns
        -------
        display : AuditDisplay

        Examples
        --------
        >>> from skpuffer.audit import map_attack
        >>> from skpuffer.inspection import AuditDisplay
        >>> from skpuffer.noise import GaussianNoise
        >>> epsilons = [0.1, 1.0, 10.0]
        >>> attacks = [
        ...     map_attack([[0.0], [1.0]], GaussianNoise((2 / epsilon) ** 0.5))
        ...     for epsilon in epsilons
        ... ]
        >>> AuditDisplay.from_map_attacks(epsilons, attacks).ax_.get_ylabel()
        'Accuracy of guesses'
        """
        made = cls(
            attack=tuple(attacks),
            certificate=None if certificates is None else tuple(certificates),
            name=name,
            epsilons=epsilons,
        )
        return made.plot(ax)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        plot_chance_level: bool = True,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the curve, its interval at each point, and what is allowed.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on, to which several attacks may go. None makes a figure.
        plot_chance_level : bool, default=True
            Whether the line of guessing is drawn: by chance, or by the prior alone.
        line_kw : dict, default=None
            Options of the attack's line, for matplotlib.

        Returns
        -------
        display : AuditDisplay
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        if not isinstance(self.attack, MembershipAttack | DistinguishingAttack):
            return self._plot_guesses(plt, ax, plot_chance_level, line_kw)
        attack, certificate, bound = self.attack, cast(Any, self.certificate), None
        if certificate is not None:
            # before anything is drawn: a certificate may bound no attack
            relation = getattr(attack, "relation", None)
            bound = allowed_roc(certificate, relation=relation)
        if ax is None:
            _, ax = plt.subplots()
        # axes with another attack keep what they show
        shared = (ax.get_xlim()[0], ax.get_ylim()[0]) if ax.lines else None
        labels = attack.labels
        n, m = int(labels.sum()), int((~labels).sum())
        # below one false alarm nothing was measured
        rates = _rates(1 / m)
        fpr, tpr = attack.roc()
        # a step function: the best rule with at most this rate
        measured = tpr[np.searchsorted(fpr, rates * (1 + 1e-9), side="right") - 1]
        options: dict[str, Any] = {
            "label": self._label(attack),
            "drawstyle": "steps-post",
        }
        self.line_: Line2D
        (self.line_,) = ax.plot(rates, measured, **options | line_options(line_kw))
        failure = (1 - attack.confidence) / 2
        hits = np.rint(measured * n).astype(int)
        low, high = np.array([clopper_pearson(int(k), n, failure) for k in hits]).T
        colour = self.line_.get_color()
        ax.fill_between(rates, low, high, color=colour, alpha=0.2, step="post", lw=0)
        self.bound_: Line2D | None = None
        if bound is not None:
            most = np.interp(rates, *bound)
            area = float(np.trapezoid(bound[1], bound[0]))
            (self.bound_,) = ax.plot(
                rates, most, color=colour, ls="--", label=f"allowed (AUC {area:.3f})"
            )
        # once, however many attacks share the axes
        if plot_chance_level and all(line.get_label() != _CHANCE for line in ax.lines):
            ax.plot(rates, rates, color="0.5", ls=":", label=_CHANCE)
        ax.set(xscale="log", yscale="log")
        left, low_end = 1 / m, min(1 / m, 1 / n)
        if shared:
            left, low_end = min(left, shared[0]), min(low_end, shared[1])
        ax.set(xlim=(left, 1), ylim=(low_end, 1.2))
        ax.set_xlabel("False positive rate")
        ax.set_ylabel("True positive rate")
        ax.legend(loc="lower right")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_guesses(
        self,
        plt: Any,
        ax: Axes | None,
        plot_prior: bool,
        line_kw: dict[str, Any] | None,
    ) -> Self:
        attacks: Any = self.attack
        certificates: Any = self.certificate
        # before anything is drawn: a certificate may bound no attack
        budgets, allowed = check_guesses(self.epsilons, attacks, certificates)
        if ax is None:
            _, ax = plt.subplots()
        self.line_, self.bound_ = draw_guesses(
            ax,
            budgets,
            attacks,
            allowed,
            name=self.name,
            plot_prior=plot_prior,
            line_kw=line_kw,
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _label(self, attack: MembershipAttack | DistinguishingAttack) -> str:
        low, high = attack.auc_interval()
        area = f"AUC {attack.auc:.3f} [{low:.3f}, {high:.3f}]"
        return area if self.name is None else f"{self.name} ({area})"


def _rates(least: float) -> Floats:
    decades = max(1.0, -float(np.log10(least)))
    return np.geomspace(least, 1.0, int(_PER_DECADE * decades))
