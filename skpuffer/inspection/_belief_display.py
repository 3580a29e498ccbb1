"""Display of a declared belief beside what public rows tell of the secret."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.utils.validation import check_is_fitted

from skpuffer.exceptions import (
    PrivacyLeakWarning,
    Statement,
    scenario_error,
    type_error,
)
from skpuffer.kernel.numbers import check_count, check_option, check_positive
from skpuffer.privacy_loss._overlap import OddsOverlap, finite_overlap
from skpuffer.scenarios import AttributeScenario, BoundedOdds
from skpuffer.scenarios._attribute._belief import believed
from skpuffer.utils._reading import is_frame, matching_names, to_pandas
from skpuffer.utils._silence import warn

from ._drawing import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats
    from skpuffer.synthesis import PrivateTableSynthesizer
    from skpuffer.utils._types import RandomState, Table


#: Name of the row that is about all columns together.
ALL = "all columns"

#: Shares of the people, of each kind, of whom nothing is assumed.
_SHARES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)

#: Probabilities nearer to zero and one than this are a guesser's overconfidence.
_SURE = 1e-6

#: A column with more values that are no numbers is a name, and gives everybody away.
_MOST_LEVELS = 255


@dataclass(frozen=True)
class BeliefAudit:
    """Evidence of public rows on a secret, beside what is declared.

    Parameters
    ----------
    columns : DataFrame
        A row for all columns together and for each one: `auc` with which it guesses the
        secret, and how far it shifts the odds (largest over smallest factor) but for
        the outermost 5 and 1 percent on either side, `odds_90` and `odds_98`. For
        several values these are of the worst pair, and `pair` is the one that is
        guessed best.
    etas : DataFrame
        By epsilon: η as `declared`, as `measured` by the odds of the guess from all
        columns, and whether the former `covers` the latter.
    shares : DataFrame
        By the share of the people of whom nothing is assumed: the range of odds `w` of
        all others, and η of ``BoundedOdds(w, share)`` at each epsilon.
    roc : tuple of (ndarray, ndarray)
        False and true positive rates of the guess from all columns, of that pair.
    counts : Series of int
        How many of the public rows have each value of the secret.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skpuffer.inspection import audit_belief
    >>> from skpuffer.scenarios import AttributeScenario, BoundedOdds
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(0, 2, 600)
    >>> height = 1.7 + 0.08 * sex + rng.normal(0, 0.08, 600)
    >>> public = pd.DataFrame({"sex": sex, "height": height})
    >>> declared = AttributeScenario("sex", level="record", prior=BoundedOdds(4.0))
    >>> audit = audit_belief(declared, public, guesser=LogisticRegression())
    >>> bool(audit.columns.loc["height", "auc"] > 0.6), int(audit.counts.sum())
    (True, 600)
    >>> bool(audit.etas["covers"].all())  # by what was declared
    True
    """

    columns: pd.DataFrame
    etas: pd.DataFrame
    shares: pd.DataFrame
    roc: tuple[Floats, Floats]
    counts: pd.Series

    def __str__(self) -> str:
        columns = self.columns
        if len(self.counts) == 2:
            columns = columns.drop(columns="pair")  # there is no other
        parts = (
            ("How well the secret is guessed", columns),
            ("What is left to hide: η", self.etas),
            ("If nothing is assumed of a share of the people", self.shares),
        )
        rows = ", ".join(f"{value}: {count:,}" for value, count in self.counts.items())
        return "\n\n".join(
            (
                f"{self.counts.sum():,} public rows, {rows}",
                # whole, however wide, and odds to as many digits as they are worth
                *(
                    f"{title}\n{table.to_string(float_format='{:.3g}'.format)}"
                    for title, table in parts
                ),
            )
        )


def audit_belief(
    scenario: AttributeScenario,
    public: Any,
    *,
    epsilon: ArrayLike = (0.1, 0.3, 1.0),
    delta: float = 1e-5,
    guesser: Any = None,
    cv: int = 3,
    n_jobs: int | None = None,
) -> BeliefAudit:
    """Compare a declared belief with public rows.

    A guess of the secret is cross-fitted on public rows. No private row is read. The
    result is an estimate, and a better guesser may find more: declare with a margin.

    Parameters
    ----------
    scenario : AttributeScenario
        With a declared belief as its prior.
    public : data frame of shape (n_rows, n_columns)
        Public rows with the secret; all other columns are used to guess it.
    epsilon : float or array-like of float, default=(0.1, 0.3, 1.0)
    delta : float, default=1e-5
    guesser : classifier, default=None
        With `predict_proba`, of frames as they are. None is gradient boosting.
    cv : int, default=3
        Number of folds.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib.

    Returns
    -------
    BeliefAudit

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skpuffer.inspection import audit_belief
    >>> from skpuffer.scenarios import AttributeScenario, BoundedOdds
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(0, 2, 600)
    >>> public = pd.DataFrame(
    ...     {"sex": sex, "height": 170 + 8 * sex + rng.normal(0, 8, 600)}
    ... )
    >>> scenario = AttributeScenario("sex", level="record", prior=BoundedOdds(4.0))
    >>> audit = audit_belief(scenario, public)
    >>> bool(audit.columns.loc["height", "odds_90"] > 4)  # more than is declared
    True
    """
    if not isinstance(scenario, AttributeScenario):
        raise type_error("audit.scenario_not_attribute", scenario=scenario)
    budgets = [check_positive(epsilon=one) for one in np.atleast_1d(epsilon).tolist()]
    check_count(cv=cv, least=2)
    declared = scenario.explain(budgets, delta=delta)
    frame, secret, values = _public_rows(scenario, public)
    guesser = _booster() if guesser is None else guesser
    folds = StratifiedKFold(cv, shuffle=True, random_state=0)
    names = list(frame.columns)
    guesses = Parallel(n_jobs=n_jobs)(
        delayed(cross_val_predict)(
            clone(guesser), frame[used], secret, cv=folds, method="predict_proba"
        )
        for used in (names, *([name] for name in names))
    )
    rows = [_of_guess(guess, secret, values) for guess in guesses]
    columns = pd.DataFrame(rows, index=[ALL, *names])
    columns = columns.iloc[[0, *(1 + np.argsort(-columns["auc"].to_numpy()[1:]))]]
    return BeliefAudit(
        columns=columns,
        etas=_etas(declared, guesses[0], secret, budgets),
        shares=_shares(guesses[0], secret, budgets),
        roc=_roc(guesses[0], secret),
        counts=pd.Series(np.bincount(secret), index=pd.Index(values, name=None)),
    )


def _public_rows(
    scenario: AttributeScenario, public: Any
) -> tuple[pd.DataFrame, Any, Any]:
    """Public rows without the secret, fit for the guesser; its codes and values."""
    if not is_frame(public) or matching_names(public) is None:
        raise scenario_error("audit.public_not_named_frame")
    frame = to_pandas(public)
    if scenario.column not in frame.columns:
        raise scenario_error(
            "audit.public_secret_column_missing", column=scenario.column
        )
    secret, values = pd.factorize(frame[scenario.column], sort=True)
    if len(values) < 2 or np.any(secret < 0):
        raise scenario_error(
            "audit.public_secret_column_unusable", column=scenario.column
        )
    frame = frame.drop(columns=scenario.column)
    if not frame.shape[1]:
        raise scenario_error("audit.public_no_guessing_columns")
    texts = [n for n in frame if not pd.api.types.is_numeric_dtype(frame[n])]
    for name in texts:
        if frame[name].nunique() > _MOST_LEVELS:
            raise scenario_error(
                "audit.public_column_too_many_levels",
                name=name,
                most_levels=_MOST_LEVELS,
            )
    return frame.astype(dict.fromkeys(texts, "category")), secret, values


def _booster() -> HistGradientBoostingClassifier:
    # cautious: a guess that is too sure of itself says that odds range far
    return HistGradientBoostingClassifier(
        learning_rate=0.05,
        max_iter=100,
        max_leaf_nodes=8,
        min_samples_leaf=50,
        categorical_features="from_dtype",
        random_state=0,
    )


def _pairs(guess: Floats, secret: Any) -> Iterator[tuple[Any, Floats]]:
    """Yield, by pair of values, who has the second, and log odds of it by the guess."""
    for a, b in combinations(range(guess.shape[1]), 2):
        mine = (secret == a) | (secret == b)
        p = np.clip(guess[mine], _SURE, None)
        yield secret[mine] == b, np.log(p[:, b]) - np.log(p[:, a])


def _of_guess(guess: Floats, secret: Any, values: Any) -> dict[str, Any]:
    """AUC and ranges of the odds, each of the worst pair, and the one guessed best."""
    aucs, inner, outer = [], [], []
    for has, odds in _pairs(guess, secret):
        aucs.append(float(roc_auc_score(has, odds)))
        inner.append(float(np.exp(np.subtract(*np.quantile(odds, [0.95, 0.05])))))
        outer.append(float(np.exp(np.subtract(*np.quantile(odds, [0.99, 0.01])))))
    best = list(combinations(values, 2))[int(np.argmax(aucs))]
    return {
        "auc": max(aucs),
        "odds_90": max(inner),
        "odds_98": max(outer),
        "pair": "{}, {}".format(*best),
    }


def _etas(
    declared: pd.DataFrame, guess: Floats, secret: Any, budgets: Sequence[float]
) -> pd.DataFrame:
    """η as declared, and by the guess's odds at the public rows."""
    measured = []
    for epsilon in budgets:
        etas: list[float] = []
        for _, odds in _pairs(guess, secret):
            # Bayes, with the rows for what is believed of a record
            given = 1 / (1 + np.exp(-odds))
            p, q = given / given.sum(), (1 - given) / (1 - given).sum()
            etas += finite_overlap(p, q).etas(epsilon)
        measured.append(max(etas))
    table = pd.DataFrame(
        {"declared": declared["eta"], "measured": measured}, index=declared.index
    )
    table["covers"] = table["declared"] >= table["measured"]
    return table


def _shares(guess: Floats, secret: Any, budgets: Sequence[float]) -> pd.DataFrame:
    """Range of the odds of all but a share of each kind, and what η follows."""
    rows = []
    for share in _SHARES:
        w = 1.0
        for has, odds in _pairs(guess, secret):
            ends = [
                np.quantile(odds[kind], [share / 2, 1 - share / 2])
                for kind in (has, ~has)
            ]
            low, high = np.min(ends, axis=0)[0], np.max(ends, axis=0)[1]
            w = max(w, float(np.exp(high - low)))
        # a range of one has no coin to be the worst
        overlap = OddsOverlap(max(w, 1 + 1e-9), share)
        rows.append({"w": w} | {f"η at ε={e:g}": overlap.etas(e)[0] for e in budgets})
    return pd.DataFrame(rows, index=pd.Index(_SHARES, name="share"))


def _roc(guess: Floats, secret: Any) -> tuple[Floats, Floats]:
    """ROC curve of the pair that is guessed best."""
    has, odds = max(_pairs(guess, secret), key=lambda pair: roc_auc_score(*pair))
    false, true, _ = roc_curve(has, odds)
    return false, true


_KINDS = ("odds", "roc")

#: Budgets whose divergences bound a ROC curve from above; slopes are e to these.
_EPSILONS = np.linspace(-12.0, 12.0, 481)


class BeliefDisplay:
    """Draw how far columns shift the odds of a secret, beside what is declared.

    Make one by :meth:`from_scenario`. All parameters are stored as attributes.

    Parameters
    ----------
    audit : BeliefAudit
        Evidence of public rows.
    scenario : AttributeScenario
        With the declared belief.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

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
            the people, with the declared range; or the ROC curve of the guess from all
            columns, and the region that the belief allows.

        Returns
        -------
        display : BeliefDisplay
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
        beliefs: list[Any] = self.scenario._beliefs()
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
        """Return the largest true positive rates that the belief allows."""
        # an event of mass α given one value has at most e^ε α + η(ε) given another
        overlap, _ = believed(self.scenario)
        bounds = [
            np.exp(epsilon) * rates + max(overlap.etas(float(epsilon)))
            for epsilon in _EPSILONS
        ]
        bound: Floats = np.minimum(1.0, np.min(bounds, axis=0))
        return bound


# -- display of released margins beside those of a synthetic table ---------------------


#: What a figure calls rows that no promise covers.
_REAL = "real rows (private)"


class MarginalDisplay:
    """Draw shares of the cells of some columns, as released and in a synthetic table.

    Make one by :meth:`from_estimator`. All parameters are stored as attributes.

    Parameters
    ----------
    released, synthetic : pandas.Series of shape (n_cells,)
        Counts by cell, with the cells' texts as the index.
    real : pandas.Series of shape (n_cells,), default=None
        Counts of the private rows, for their owner only.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skpuffer.inspection import MarginalDisplay
    >>> from skpuffer.schema import Schema
    >>> from skpuffer.synthesis import PrivateTableSynthesizer
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.integers(18, 81, size=5000)})
    >>> model = PrivateTableSynthesizer(schema=Schema({"age": (18, 80)})).fit(table)
    >>> display = MarginalDisplay.from_estimator(model, "age", random_state=0)
    >>> display.ax_.get_ylabel()
    'Share of the rows'
    """

    def __init__(
        self,
        *,
        released: pd.Series,
        synthetic: pd.Series,
        real: pd.Series | None = None,
    ):
        self.released = released
        self.synthetic = synthetic
        self.real = real

    @classmethod
    def from_estimator(
        cls,
        synthesizer: PrivateTableSynthesizer,
        columns: Hashable | Sequence[Hashable],
        *,
        synthetic: Table | None = None,
        real: Table | None = None,
        random_state: RandomState = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the released margin of some columns beside that of a synthetic table.

        Parameters
        ----------
        synthesizer : PrivateTableSynthesizer
            Fitted.
        columns : name or list of names
        synthetic : data frame, default=None
            A table that it drew; None draws one.
        real : data frame, default=None
            Private rows to draw beside it, for their owner: no promise covers the
            figure.
        random_state : int, RandomState instance, Generator or None, default=None
            Seed of a table that is drawn.
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : MarginalDisplay

        Warns
        -----
        PrivacyLeakWarning
            If real rows are given.
        """
        pyplot(f"{cls.__name__}.from_estimator")
        check_is_fitted(synthesizer)
        released = synthesizer.marginal(columns)
        if synthetic is None:
            synthetic = synthesizer.sample(random_state=random_state)
        private = None
        if real is not None:
            warn(
                Statement("inspection.marginals_of_real_rows"),
                PrivacyLeakWarning,
            )
            private = synthesizer._counted(real, columns)
        drawn = synthesizer._counted(synthetic, columns)
        display = cls(released=released, synthetic=drawn, real=private)
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the shares.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : MarginalDisplay
            The object itself. One column is drawn cell by cell, as bars; of several
            columns each cell is a point, its released share to the right.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        if ax is None:
            _, ax = plt.subplots()
        tables = {"released": self.released, "synthetic": self.synthetic}
        if self.real is not None:
            tables[_REAL] = self.real
        shares = {
            label: counts.to_numpy() / max(float(counts.sum()), 1.0)
            for label, counts in tables.items()
        }
        if self.released.index.nlevels == 1:
            self._plot_bars(ax, shares)
        else:
            self._plot_points(ax, shares)
        ax.set_title(", ".join(str(name) for name in self.released.index.names))
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_bars(self, ax: Axes, shares: dict[str, Any]) -> None:
        at = np.arange(len(self.released))
        width = 0.8 / len(shares)
        for k, (label, heights) in enumerate(shares.items()):
            ax.bar(
                at + (k - (len(shares) - 1) / 2) * width, heights, width, label=label
            )
        texts = [str(text) for text in self.released.index]
        # upright where they would run into each other
        ax.set_xticks(at, texts, rotation=90 if len(texts) > 6 else 0)
        ax.set_ylabel("Share of the rows")

    def _plot_points(self, ax: Axes, shares: dict[str, Any]) -> None:
        released = shares.pop("released")
        for k, (label, found) in enumerate(shares.items()):
            ax.plot(released, found, f"C{k + 1}o", alpha=0.6, label=label)
        most = max(float(np.max(values)) for values in (released, *shares.values()))
        ax.plot([0, most], [0, most], color="0.5", linewidth=1, zorder=0)
        ax.set_xlabel("Released share of a cell")
        ax.set_ylabel("Share of the rows")
