"""Display of scores against privacy budgets, beside the score without privacy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted

from skpuffer.accountants import PrivacyLoss, RenyiDP
from skpuffer.exceptions import (
    SeededNoiseWarning,
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import check_option
from skpuffer.scenarios import RecordScenario
from skpuffer.schema import Schema
from skpuffer.utils._reading import as_table, drop_position, matching_names

from ._budget import (
    DEFAULT_LABEL,
    budget_label,
    budget_parameter,
    owner_name,
    search_parameter,
)
from ._drawing import line_options, pyplot
from ._validation_scores import (
    check_budgets,
    cross_validated,
    searched,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from skpuffer.kernel.numbers import Floats
    from skpuffer.utils._types import RandomState, Table


_STYLES = ("fill_between", "errorbar", None)

# from one decade on, budgets are read as ratios
_LOG_FROM = 10


class PrivacyUtilityDisplay:
    """Draw scores against the privacy budget, beside the score without privacy.

    Make one by :meth:`from_estimator` or :meth:`from_search`. All parameters are stored
    as attributes.

    .. warning::
        The scores come from held-out records and no certificate covers them. Use public
        or reference data, or count the scores as a release of their own.

    Parameters
    ----------
    epsilons : array-like of shape (n_epsilons,)
        Budgets, in ascending order.
    scores : array-like of shape (n_epsilons, n_fits)
        Scores at each budget, one for each split and repetition.
    ceiling : array-like of shape (n_splits,), default=None
        Scores without privacy.
    baselines : dict of {str: array-like of shape (n_epsilons, n_fits)}, default=None
        Scores of baselines at the same budgets.
    fallbacks : array-like of shape (n_epsilons,), default=None
        Under a declared belief, the epsilon at each budget whatever is believed.
    estimator_name : str, default=None
        Name of the curve.
    score_name : str, default=None
        Name of the vertical axis. None is "Score".
    budget_name : str, default=None
        Name of the horizontal axis. None is "Budget ε".

    Attributes
    ----------
    line_ : matplotlib Line2D or None
        The mean score. None under ``std_display_style='errorbar'``.
    fill_between_ : matplotlib PolyCollection or None
        Standard deviation around it.
    errorbar_ : matplotlib ErrorbarContainer or None
        Both, under ``std_display_style='errorbar'``.
    baseline_lines_ : list of matplotlib Line2D
        The mean scores of the baselines.
    fallback_texts_ : list of matplotlib Annotation
        The fallback at each budget.
    ceiling_line_ : matplotlib Line2D or None
        The mean score without privacy.
    ceiling_band_ : matplotlib Patch or None
        Standard deviation around it.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Notes
    -----
    Under another scenario than :class:`~skpuffer.scenarios.RecordScenario`, compare
    with plain differential privacy by ``baseline="dp"``: where the curves do not
    differ, the scenario buys nothing.

    Each point is fitted with its own budget, so a curve of five points on private data
    spends five budgets for each split, and the scores lie outside all of them.

    The bands show one standard deviation over splits and repetitions, not a confidence
    interval of the mean.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.preprocessing import scale
    >>> from skpuffer.inspection import PrivacyUtilityDisplay
    >>> from skpuffer.linear_model import PrivateLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> display = PrivacyUtilityDisplay.from_estimator(
    ...     PrivateLogisticRegression(data_norm=10.0),
    ...     scale(X),
    ...     y,
    ...     epsilons=[0.1, 1, 10],
    ...     reference=LogisticRegression(),
    ... )
    >>> display.scores.shape, display.ceiling.shape
    ((3, 5), (5,))
    >>> display.ax_.get_xlabel()
    'Budget ε: (ε, δ)-differential privacy, δ = 1e-05'
    """

    def __init__(
        self,
        *,
        epsilons: ArrayLike,
        scores: ArrayLike,
        ceiling: ArrayLike | None = None,
        baselines: Mapping[str, ArrayLike] | None = None,
        fallbacks: ArrayLike | None = None,
        estimator_name: str | None = None,
        score_name: str | None = None,
        budget_name: str | None = None,
    ):
        self.epsilons = epsilons
        self.scores = scores
        self.ceiling = ceiling
        self.baselines = baselines
        self.fallbacks = fallbacks
        self.estimator_name = estimator_name
        self.score_name = score_name
        self.budget_name = budget_name

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Table,
        y: ArrayLike | None = None,
        *,
        epsilons: ArrayLike = (0.1, 0.3, 1, 3, 10),
        reference: BaseEstimator | None = None,
        baseline: BaseEstimator | str | None = None,
        param_name: str | None = None,
        groups: ArrayLike | None = None,
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        n_repeats: int = 1,
        params: Mapping[str, Any] | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        name: str | None = None,
        ax: Axes | None = None,
        negate_score: bool = False,
        score_name: str | None = None,
        budget_name: str | None = None,
        std_display_style: str | None = "fill_between",
        line_kw: dict[str, Any] | None = None,
        fill_between_kw: dict[str, Any] | None = None,
        errorbar_kw: dict[str, Any] | None = None,
        ceiling_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Cross-validate a private estimator at several budgets and draw the scores.

        The scores are not private; see the warning of the class.

        Parameters
        ----------
        estimator : estimator object
            A private estimator, or a pipeline or other meta-estimator that holds one.
        X : {array-like, data frame, sparse matrix} of shape (n_records, n_features)
            Public or reference data, ideally.
        y : array-like of shape (n_records,), default=None
            Target, where the estimator has one.
        epsilons : array-like of shape (n_epsilons,), default=(0.1, 0.3, 1, 3, 10)
            Budgets to try.
        reference : estimator object, default=None
            The twin without privacy, such as
            :class:`~sklearn.linear_model.LogisticRegression`, scored on the same
            splits. It gets all columns of `X`, so take out a secret column.
        baseline : estimator, 'dp' or None, default=None
            Estimator with the same budgets and splits. ``'dp'`` is the same one under
            plain differential privacy, a record replaced and added or removed, without
            the secret.
        param_name : str, default=None
            Parameter that holds the budget. None finds the nested
            ``accountant__epsilon``.
        groups : array-like of shape (n_records,), default=None
            Group labels for the splitter.
        cv : int, cross-validation generator or iterable, default=None
            As in :func:`sklearn.model_selection.cross_validate`; None is 5 folds.
        scoring : str or callable, default=None
            One score. None is the `score` method of the estimator.
        n_repeats : int, default=1
            Fits on each split.
        params : dict, default=None
            Parameters of the private `fit`, such as ``secret``, and of the score.
        random_state : int, RandomState instance, Generator or None, default=None
            None is the estimator's own. A seed gives each split and repetition its own
            noise, the same for all budgets (common random numbers); it warns.
        n_jobs : int, default=None
            Number of fits in parallel, as in joblib.
        verbose : int, default=0
            Verbosity of the parallel fits.
        name : str, default=None
            Name of the curve. None is the class of the private estimator.
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.
        negate_score : bool, default=False
            Whether to draw ``-score``, for errors that are named ``neg_*``.
        score_name : str, default=None
            Name of the vertical axis. None takes it from `scoring`.
        budget_name : str, default=None
            Name of the horizontal axis. None takes it from the certificates.
        std_display_style : {'fill_between', 'errorbar'} or None, \
                default='fill_between'
            How to show one standard deviation of the scores.
        line_kw, fill_between_kw, errorbar_kw, ceiling_kw : dict, default=None
            Options of matplotlib.

        Returns
        -------
        display : PrivacyUtilityDisplay
        """
        pyplot(f"{cls.__name__}.from_estimator")
        check_option(_STYLES, std_display_style=std_display_style)
        # everything that can be refused is, before the first fit
        epsilons = check_budgets(epsilons)
        if param_name is None:
            param_name = budget_parameter(estimator)
        twins, X_twins = baselines_of(baseline, estimator, param_name, X)
        # listed once, so that all curves meet the same splits
        splitter = check_cv(cv, y, classifier=is_classifier(estimator))
        options: dict[str, Any] = {
            "param_name": param_name,
            "epsilons": epsilons,
            "groups": groups,
            "cv": list(splitter.split(*indexable(X, y, groups))),
            "scoring": scoring,
            "n_repeats": n_repeats,
            "n_jobs": n_jobs,
            "verbose": verbose,
            "random_state": random_state,
        }
        scores, ceiling, label, fallbacks = cross_validated(
            estimator, X, y, reference=reference, params=params, **options
        )
        baselines = {
            of: cross_validated(
                twin, X_twins, y, reference=None, params=None, **options
            )
            for of, twin in twins.items()
        }
        if random_state is not None:
            warnings.warn(
                SeededNoiseWarning(
                    Statement("noise.scores_from_seed", owner=cls.__name__)
                ),
                stacklevel=2,
            )
        display = cls(
            epsilons=epsilons,
            scores=scores,
            ceiling=ceiling,
            baselines={of: scored for of, (scored, *_) in baselines.items()},
            fallbacks=fallbacks,
            estimator_name=owner_name(estimator, param_name) if name is None else name,
            score_name=_score_name(score_name, scoring, negate_score),
            budget_name=label if budget_name is None else budget_name,
        )
        return display.plot(
            ax=ax,
            negate_score=negate_score,
            std_display_style=std_display_style,
            line_kw=line_kw,
            fill_between_kw=fill_between_kw,
            errorbar_kw=errorbar_kw,
            ceiling_kw=ceiling_kw,
        )

    @classmethod
    def from_preview(
        cls,
        estimator: Any,
        n_records: int,
        *,
        epsilons: ArrayLike = (0.1, 0.3, 1, 3, 10),
        param_name: str | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **known: Any,
    ) -> Self:
        """Draw the noise's error at several budgets, without reading rows.

        Parameters
        ----------
        estimator : private estimator
            With a budget.
        n_records : int
            Number of records, or a public guess at it.
        epsilons : array-like of shape (n_epsilons,), default=(0.1, 0.3, 1, 3, 10)
            Budgets.
        param_name : str, default=None
            Parameter that holds the budget. None finds it.
        name : str, default=None
            Name of the curve. None is that of the estimator.
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.
        **known : dict
            What else ``estimator.preview`` has to know, such as ``n_features``.

        Returns
        -------
        display : PrivacyUtilityDisplay
            `scores` are standard deviations of each released entry, in units of the
            data.

        Raises
        ------
        UnsupportedError
            If no deviations are known, as of models that are trained by noisy steps.

        Examples
        --------
        >>> from skpuffer.inspection import PrivacyUtilityDisplay
        >>> from skpuffer.summary import PrivateMean
        >>> display = PrivacyUtilityDisplay.from_preview(
        ...     PrivateMean(bounds=(0, 100)), 5000, n_features=1, epsilons=[0.5, 1]
        ... )
        >>> display.scores.round(3).tolist()
        [[0.028], [0.014]]
        """
        pyplot(f"{cls.__name__}.from_preview")
        budgets = check_budgets(epsilons)
        if param_name is None:
            param_name = budget_parameter(estimator)
        errors = []
        for epsilon in budgets.tolist():
            told = clone(estimator).set_params(**{param_name: epsilon})
            found = [
                np.ravel(np.asarray(part, dtype=float))
                for held in told.preview(n_records, **known).std.values()
                for part in (held.values() if isinstance(held, Mapping) else [held])
            ]
            errors.append(np.concatenate([np.empty(0), *found]))
        scores = np.array(errors)
        if not scores.size:
            raise unsupported_error(
                "release.no_confidence_intervals", owner=type(estimator).__name__
            )
        display = cls(
            epsilons=budgets,
            scores=scores,
            estimator_name=owner_name(estimator, param_name) if name is None else name,
            score_name="Standard deviation of the noise",
        )
        display.plot(ax=ax, std_display_style=None)
        display.ax_.set_yscale("log")
        return display

    @classmethod
    def from_search(
        cls,
        search: Any,
        *,
        param_name: str | None = None,
        ceiling: ArrayLike | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        negate_score: bool = False,
        score_name: str | None = None,
        budget_name: str | None = None,
        std_display_style: str | None = "fill_between",
        line_kw: dict[str, Any] | None = None,
        fill_between_kw: dict[str, Any] | None = None,
        errorbar_kw: dict[str, Any] | None = None,
        ceiling_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the scores that a fitted search over budgets holds.

        Where the search went over other parameters too, each budget shows the candidate
        with the best mean score, which is optimistic. See the warning of the class.

        Parameters
        ----------
        search : fitted GridSearchCV or RandomizedSearchCV
            With a parameter ``accountant__epsilon``, nested or not.
        param_name : str, default=None
            Parameter that holds the budget. None finds the one ``accountant__epsilon``.
        ceiling : array-like of shape (n_splits,), default=None
            Scores without privacy on the same splits.
        name : str, default=None
            Name of the curve. None is the class of the private estimator.
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.
        negate_score : bool, default=False
            Whether to draw ``-score``, for errors that are named ``neg_*``.
        score_name : str, default=None
            Name of the vertical axis. None takes it from the search.
        budget_name : str, default=None
            Name of the horizontal axis. None takes it from the best estimator's
            certificate.
        std_display_style : {'fill_between', 'errorbar'} or None, \
                default='fill_between'
            How to show one standard deviation of the scores.
        line_kw, fill_between_kw, errorbar_kw, ceiling_kw : dict, default=None
            Options of matplotlib.

        Returns
        -------
        display : PrivacyUtilityDisplay

        Raises
        ------
        ValueError
            If the search went over no budget or several, or its scores cannot be
            compared.
        """
        pyplot(f"{cls.__name__}.from_search")
        check_is_fitted(search)
        if param_name is None:
            param_name = search_parameter(search.cv_results_)
        epsilons, scores = searched(search, param_name)
        scoring = search.refit if search.multimetric_ else search.scoring
        if budget_name is None:
            budget_name = _search_label(search, param_name)
        display = cls(
            epsilons=epsilons,
            scores=scores,
            ceiling=ceiling,
            estimator_name=(
                owner_name(search.estimator, param_name) if name is None else name
            ),
            score_name=_score_name(score_name, scoring, negate_score),
            budget_name=budget_name,
        )
        return display.plot(
            ax=ax,
            negate_score=negate_score,
            std_display_style=std_display_style,
            line_kw=line_kw,
            fill_between_kw=fill_between_kw,
            errorbar_kw=errorbar_kw,
            ceiling_kw=ceiling_kw,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        name: str | None = None,
        negate_score: bool = False,
        score_name: str | None = None,
        budget_name: str | None = None,
        std_display_style: str | None = "fill_between",
        line_kw: dict[str, Any] | None = None,
        fill_between_kw: dict[str, Any] | None = None,
        errorbar_kw: dict[str, Any] | None = None,
        ceiling_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the curve.

        Budgets that span a decade or more have a logarithmic axis.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a figure.
        name : str, default=None
            Name of the curve. None is `estimator_name`.
        negate_score : bool, default=False
            Whether to draw ``-score``.
        score_name : str, default=None
            Name of the vertical axis. None is the one stored.
        budget_name : str, default=None
            Name of the horizontal axis. None is the one stored.
        std_display_style : {'fill_between', 'errorbar'} or None, \
                default='fill_between'
            How to show one standard deviation of the scores.
        line_kw, fill_between_kw, errorbar_kw, ceiling_kw : dict, default=None
            Options of matplotlib.

        Returns
        -------
        display : PrivacyUtilityDisplay
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        check_option(_STYLES, std_display_style=std_display_style)
        epsilons, scores = self._points(-1 if negate_score else 1)
        if ax is None:
            _, ax = plt.subplots()
        name = self.estimator_name if name is None else name

        self.line_ = self.fill_between_ = self.errorbar_ = None
        options: dict[str, Any]
        # over splits and repetitions together, as scikit-learn's displays do
        mean, std = scores.mean(axis=1), scores.std(axis=1)
        if std_display_style == "errorbar":
            options = {"marker": "o", "capsize": 3, "label": name}
            options |= line_options(errorbar_kw)
            self.errorbar_ = ax.errorbar(epsilons, mean, std, **options)
        else:
            options = {"marker": "o", "label": name, **line_options(line_kw)}
            (line,) = ax.plot(epsilons, mean, **options)
            self.line_ = line
            color = line.get_color()
        if std_display_style == "fill_between":
            options = {"color": color, "alpha": 0.2, "linewidth": 0}
            options |= fill_between_kw or {}
            self.fill_between_ = ax.fill_between(
                epsilons, mean - std, mean + std, **options
            )
        self._plot_baselines(ax, epsilons, negate_score)
        self._plot_fallbacks(ax, epsilons, mean)
        self._plot_ceiling(ax, negate_score, std_display_style, ceiling_kw)

        if epsilons[-1] >= _LOG_FROM * epsilons[0]:
            _log_axis(ax, epsilons)
        _name_budget(ax, budget_name, self.budget_name)
        if score_name is None:
            score_name = self.score_name
        ax.set_ylabel("Score" if score_name is None else score_name)
        if ax.get_legend_handles_labels()[0]:
            ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _points(self, sign: int) -> tuple[Floats, Floats]:
        """Return budgets and signed scores as arrays that belong together."""
        epsilons = np.asarray(self.epsilons, dtype=float)
        scores = sign * np.asarray(self.scores, dtype=float)
        if epsilons.ndim != 1 or scores.ndim != 2 or len(scores) != len(epsilons):
            raise value_error(
                "inspection.scores_shape_mismatch",
                shape=scores.shape,
                shape2=epsilons.shape,
            )
        return epsilons, scores

    def _plot_baselines(self, ax: Axes, epsilons: Floats, negate_score: bool) -> None:
        """Draw the mean scores of what this is compared with."""
        self.baseline_lines_ = []
        for name, scores in (self.baselines or {}).items():
            mean = (-1 if negate_score else 1) * np.mean(np.asarray(scores), axis=1)
            options: dict[str, Any] = {"marker": "s", "linestyle": ":", "label": name}
            self.baseline_lines_ += ax.plot(epsilons, mean, **options)

    def _plot_fallbacks(self, ax: Axes, epsilons: Floats, mean: Floats) -> None:
        """Write beside each point what it promises whatever is believed."""
        self.fallback_texts_ = []
        if self.fallbacks is None:
            return
        for epsilon, score, fallback in zip(
            epsilons, mean, np.asarray(self.fallbacks), strict=True
        ):
            self.fallback_texts_.append(
                ax.annotate(
                    f"{fallback:.2g}",
                    (epsilon, score),
                    xytext=(0, 7),
                    textcoords="offset points",
                    ha="center",
                    fontsize="small",
                    # legible on a line, such as that without privacy
                    bbox={"fc": "white", "ec": "none", "alpha": 0.8, "pad": 0.5},
                )
            )
        ax.margins(y=0.12)  # room for those above the highest points
        # an entry of the legend that draws nothing
        ax.plot([], [], " ", label="(numbers: ε whatever is believed)")

    def _plot_ceiling(
        self,
        ax: Axes,
        negate_score: bool,
        std_display_style: str | None,
        ceiling_kw: dict[str, Any] | None,
    ) -> None:
        """Draw the mean score without privacy, and its standard deviation."""
        self.ceiling_line_ = self.ceiling_band_ = None
        if self.ceiling is None:
            return
        ceiling = (-1 if negate_score else 1) * np.asarray(self.ceiling, dtype=float)
        mean, std = ceiling.mean(), ceiling.std()
        # behind the curve, and in no colour of the cycle, which belongs to curves
        options: dict[str, Any] = {"color": "0.3", "linestyle": "--", "zorder": 1.5}
        options |= {"label": "Without privacy", **line_options(ceiling_kw)}
        self.ceiling_line_ = ax.axhline(mean, **options)
        if std_display_style is not None:
            self.ceiling_band_ = ax.axhspan(
                mean - std,
                mean + std,
                color=self.ceiling_line_.get_color(),
                alpha=0.12,
                linewidth=0,
                zorder=0.5,
            )


def _log_axis(ax: Axes, epsilons: Floats) -> None:
    """Draw budgets as ratios, with ticks a person would have chosen."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    decades = np.log10(epsilons[-1] / epsilons[0])
    steps = (1, 2, 5) if decades < 1.5 else (1, 3) if decades <= 4 else (1,)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=steps))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _name_budget(ax: Axes, given: str | None, stored: str | None) -> None:
    """Name the axis of budgets; not by one notion where curves of two share it."""
    # Two notions on one axis are compared by eye only; a label that named one of them
    # would say they are the same.
    stored = DEFAULT_LABEL if stored is None else stored
    before = ax.get_xlabel()
    if given is None and before.startswith(DEFAULT_LABEL) and before != stored:
        stored = DEFAULT_LABEL
    ax.set_xlabel(stored if given is None else given)


def _score_name(score_name: str | None, scoring: Any, negate_score: bool) -> str:
    """Name a score as scikit-learn's displays do."""
    if score_name is not None:
        return score_name
    if scoring is None:
        return "Negative score" if negate_score else "Score"
    name = (
        scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    )
    if negate_score:
        name = name[4:] if name.startswith("neg_") else f"negative_{name}"
    elif name.startswith("neg_"):
        name = f"negative_{name[4:]}"
    name = name.replace("_", " ")
    return name[:1].upper() + name[1:]


def _search_label(search: Any, param_name: str) -> str:
    """Name the axis from the best estimator, if its certificate speaks for all."""
    # one certificate names the axis of all candidates only if nothing of the promise
    # except the budget was searched over
    varied = [
        key.removeprefix("param_").split("__")
        for key, values in search.cv_results_.items()
        if key.startswith("param_") and len({repr(value) for value in values}) > 1
    ]
    promises = [p for p in varied if {"accountant", "scenario"} & set(p)]
    if promises not in ([], [param_name.split("__")]):
        return DEFAULT_LABEL
    if not hasattr(search, "best_estimator_"):
        return DEFAULT_LABEL
    return budget_label(search.best_estimator_, param_name)


# -- A private estimator's twin under plain differential privacy, to compare it with ---


_NAMES = {
    "replace": "Differential privacy, a record replaced",
    "add_remove": "Differential privacy, a record added or removed",
}


def baselines_of(
    baseline: BaseEstimator | str | None,
    estimator: BaseEstimator,
    param_name: str,
    X: Table,
) -> tuple[dict[str, Any], Any]:
    """Return baselines of an estimator by name, and data without the secret."""
    if baseline is None:
        return {}, X
    if hasattr(baseline, "fit") and not isinstance(baseline, type):
        return {f"Baseline: {type(baseline).__name__}": baseline}, X
    if baseline != "dp":
        raise value_error("inspection.baseline_invalid", baseline=baseline)
    params = estimator.get_params(deep=True)
    prefix = param_name.removesuffix("accountant__epsilon")
    if not {f"{prefix}scenario", f"{prefix}accountant"} <= set(params):
        raise value_error(
            "inspection.dp_baseline_needs_accountant", param_name=param_name
        )
    scenario, accountant = params[f"{prefix}scenario"], params[f"{prefix}accountant"]
    public: dict[str, Any] = {}
    if scenario is not None:
        table = as_table(X)
        for at in reversed(scenario.left_out(matching_names(table), table.shape[1])):
            X = table = drop_position(table, at)[0]
        # steps that are fitted on the prior's rows have no prior any more
        rows = scenario.public_table()
        public = {
            name: rows
            for name, value in params.items()
            if name.rpartition("__")[2] == "reference" and value is None
        }
        # of the table without the secret, which the scenario would leave out of it
        public |= {
            name: _without_secret(scenario, value)
            for name, value in params.items()
            if isinstance(value, Schema)
        }
    found = {}
    for relation, name in _NAMES.items():
        changed = {
            f"{prefix}scenario": RecordScenario(relation=relation),
            f"{prefix}accountant": _plain(accountant),
        }
        found[name] = clone(estimator).set_params(**public, **changed)
    return found, X


def _without_secret(scenario: Any, schema: Schema) -> Schema:
    """Return the code book of the table without the secret."""
    for at in reversed(scenario.left_out(schema.names, len(schema))):
        schema = schema.without(schema.names[at])
    return schema


def _plain(accountant: Any) -> PrivacyLoss | RenyiDP:
    """Accountant of differential privacy in the same notion and with the same noise."""
    alpha = getattr(accountant, "alpha", None)
    noise = {
        name: getattr(accountant, name)
        for name in ("noise", "beta")
        if getattr(accountant, name, None) is not None
    }
    delta = getattr(accountant, "delta", None)
    if alpha is not None and delta is None:
        return RenyiDP(1.0, None, alpha=float(alpha), **noise)
    return PrivacyLoss(1.0, 1e-5 if delta is None else float(delta), **noise)
