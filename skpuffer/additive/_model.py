"""Base of additive models: reading, release, and what is made of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skpuffer._template import _classes
from skpuffer._template._classes import PrivateClassifierMixin, mark_noisy
from skpuffer._template._raw_tables import (
    ComposedMap,
    check_records,
    column_keys,
    mapped_context,
    read_raw,
)
from skpuffer._template._reading import (
    class_indices,
    declared_classes,
    names_without_secret,
    numeric_targets,
    target_values,
    without_secret,
)
from skpuffer.accountants._budget_split import stage_layout
from skpuffer.base import PrivateEstimatorMixin, WeightedFit
from skpuffer.exceptions import (
    Statement,
    unsupported_error,
    value_error,
)
from skpuffer.kernel.numbers import check_count, check_finite
from skpuffer.linear_model._base_linear import BoundedTargetMixin
from skpuffer.releases import PublicContext
from skpuffer.schema import Binning, Schema
from skpuffer.training import make_loss
from skpuffer.utils._sklearn import Interval, StrOptions

from ._basis import additive_scores, monotone, pairs_of
from ._run import (
    AdditiveRun,
    Problem,
    additive_release,
    execute,
    probabilities_of,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.noise import Noise
    from skpuffer.releases import AdaptiveRelease
    from skpuffer.scenarios import Scenario
    from skpuffer.training import Loss
    from skpuffer.utils._types import RandomState, Table


_PUBLIC = Statement("assume.code_book_public")
_NO_TARGET = Statement("assume.missing_target_in_histograms_only")
_FOUND = Statement("assume.class_labels_found_public")


def _binning_of(code: Any) -> Any:
    binning: Any = code.then if isinstance(code, ComposedMap) else code
    return binning


class PrivateAdditiveModel(PrivateEstimatorMixin):
    """Base of additive models; a subclass reads targets and makes predictions."""

    schema: Schema | None

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "bounds": ["array-like", dict, None],
        "categories": [dict, None],
        "amounts": ["array-like"],
        "interactions": ["array-like", StrOptions({"all"}), None],
        "monotone_constraints": [dict, None],
        "n_bins": [Interval(Integral, 2, None, closed="left")],
        "n_amount_bins": [Interval(Integral, 2, None, closed="left")],
        "n_rounds": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    }

    # -- what a subclass says -----------------------------------------------------

    @abstractmethod
    def _read_y(self, X: Any, y: Any) -> Any:
        """Return targets as the loss reads them; -1 or NaN where there is none."""

    @abstractmethod
    def _loss(self) -> Loss:
        """Loss of the scores."""

    @abstractmethod
    def _scale(self) -> tuple[float, float]:
        """Return what a score of zero stands for, and the unit of scores."""

    def _n_outputs(self) -> int:
        return 1

    def _of_no_target(self) -> Statement | None:
        # labels that are taken from the target are all known
        return None if self._classes_from_data() else _NO_TARGET

    # -- fit ----------------------------------------------------------------------

    fit = WeightedFit()

    def _check_weighted(self, task: Task, release: Any) -> None:
        # the run weighs the records by itself, and units are no records of it
        pass

    def _check_parameters(self, scenario: Scenario) -> None:
        check_count(least=2, n_bins=self.n_bins)
        check_count(least=2, n_amount_bins=self.n_amount_bins)
        if self.n_rounds != "auto":
            check_count(n_rounds=self.n_rounds)
        self._check_interactions()
        constraints = self.monotone_constraints
        if constraints is not None and (
            not isinstance(constraints, Mapping)
            or any(value not in (-1, 0, 1) for value in constraints.values())
        ):
            raise value_error("additive.monotone_not_a_dict", constraints=constraints)
        if self.schema is not None:
            self._check_features(self.schema.names, self.schema)
        elif self.bounds is None and self.categories is None:
            raise unsupported_error(
                "additive.code_book_missing", owner=type(self).__name__
            )

    def _check_interactions(self) -> None:
        given = self.interactions
        if given is None or (isinstance(given, str) and given == "all"):
            return
        listed = np.iterable(given) and not isinstance(given, str | Mapping)
        well = listed and all(
            not isinstance(pair, str) and np.ndim(pair) == 1 and len(pair) == 2
            for pair in given
        )
        if not well:
            raise value_error("additive.interactions_not_a_list", given=given)

    def _check_features(self, names: Any, schema: Schema) -> None:
        """Check what parameters say of features, now that there are some."""
        pairs_of(self.interactions, names)
        for name, direction in (self.monotone_constraints or {}).items():
            if name not in names:
                raise value_error(
                    "additive.monotone_unknown_feature", name=name, names=list(names)
                )
            kind = schema.select([name]).binning().kinds[0]
            if direction and kind == "levels":
                raise value_error("additive.monotone_levels_unordered", name=name)

    def _read_by(self, schema: Schema) -> Binning:
        return schema.binning(self.n_bins, self.n_amount_bins)

    def _own_schema(self, X: Any) -> Schema:
        """Code book that the parameters amount to, for the columns of a table."""
        names = column_keys(X)

        def without_secret(given: Any) -> Any:
            # the column is gone, and what is said of it says nothing; columns without
            # names are numbered without it
            if given is None or not all(isinstance(name, str) for name in given):
                return given
            kept = {*names_without_secret(self, list(given))}
            if isinstance(given, Mapping):
                return {name: held for name, held in given.items() if name in kept}
            return [name for name in given if name in kept]

        schema = Schema.from_parameters(
            names,
            bounds=without_secret(self.bounds)
            if isinstance(self.bounds, Mapping)
            else self.bounds,
            categories=without_secret(self.categories),
            amounts=without_secret(self._amount_names()),
        )
        self._check_features(names, schema)
        return schema

    def _amount_names(self) -> list[Any]:
        names = list(self.amounts)
        if not all(isinstance(name, Hashable) for name in names):
            raise value_error("additive.amounts_not_column_names", amounts=self.amounts)
        return names

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        binning = None
        if self.schema is None:
            X = read_raw(self, X, reset=True)
            binning = self._read_by(self._own_schema(X))
            X = binning(X)
        else:
            # cells already, see `_read_by`
            check_records(self, X)
            self.n_features_in_ = X.shape[1]
        return X, self._read_y(X, y), binning

    def _problem(self, binning: Binning) -> Problem:
        return Problem(
            binning=binning,
            pairs=pairs_of(self.interactions, binning.names),
            loss=self._loss(),
            n_outputs=self._n_outputs(),
        )

    def _release(self, task: Task) -> AdaptiveRelease:
        context: Any = task.context
        if task.reading is not None:
            n_columns = len(task.reading.n_cells)
            context = mapped_context(context, task.reading, n_columns)
        assumptions = [_PUBLIC]
        if self._classes_from_data():
            assumptions.append(_FOUND)
        return additive_release(
            self._problem(_binning_of(context.feature_map)),
            context,
            layout=stage_layout(task.accountant, task.scenario)._asdict(),
            rounds=None if self.n_rounds == "auto" else int(self.n_rounds),
            assumptions=tuple(assumptions),
        )

    def _classes_from_data(self) -> bool:
        return False

    def _execute(
        self, task: Task, release: Any, noise: Noise, rng: np.random.Generator
    ) -> Any:
        problem = self._problem(_binning_of(release.context.feature_map))
        weights = None
        if task.weighting is not None and task.weighting.varies:
            weights = task.weights[:, 0]
        return execute(problem, release, task.X, task.y, noise, rng, weights)

    def _publish(self, value: AdditiveRun, release: Any) -> None:
        binning = _binning_of(release.context.feature_map)
        middle, unit = self._scale()
        # a release on a fitted object is public: its context may hold private rows
        public = PublicContext(n_records=release.n_records)
        self.release_ = replace(release, context=public)
        self.binning_ = binning
        # in units of the weights that were given
        largest = self._weighting(False).largest
        counts = [largest * noisy for noisy in value.histograms]
        self.histograms_ = dict(zip(binning.names, counts, strict=True))
        self.histogram_noise_ = largest * value.deviation
        self.n_rounds_ = value.rounds
        self.plan_ = value.plan
        functions = value.shape_functions(self._problem(binning), unit)
        self.shape_functions_ = {
            f.features if len(f.features) > 1 else f.features[0]: f for f in functions
        }
        intercept = middle + unit * value.intercept
        self.intercept_ = intercept if intercept.size > 1 else float(intercept[0])
        for name, direction in (self.monotone_constraints or {}).items():
            if not direction:
                continue
            missing = binning.has_missing[binning.names.index(name)]
            # its own function, and each that it shares with another feature
            for key, one in self.shape_functions_.items():
                if name in one.features:
                    axis = one.features.index(name)
                    scores = monotone(one.scores, one.masses, direction, missing, axis)
                    self.shape_functions_[key] = replace(one, scores=scores)

    # -- post-processing ----------------------------------------------------------

    def edit(self, features: Any, scores: ArrayLike) -> Self:
        """Replace the scores of a shape function by others.

        A function of released numbers and of facts known without the private rows
        (rounded, smoothed, corrected by an expert) is post-processing and costs no
        privacy.

        Parameters
        ----------
        features : str, int or tuple of them
            A feature, or a pair that interacts.
        scores : array-like of the shape of its `scores`

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        if features not in self.shape_functions_:
            raise value_error(
                "additive.edit_features_unknown",
                known=list(self.shape_functions_),
                features=features,
            )
        old, new = self.shape_functions_[features], check_finite(scores=scores)
        if new.shape != old.scores.shape:
            raise value_error(
                "additive.edit_scores_wrong_shape",
                shape=old.scores.shape,
                given_shape=new.shape,
            )
        edited = replace(old, scores=new.copy())
        self.shape_functions_ = {**self.shape_functions_, features: edited}
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # the code book gives what is missing a cell, and text too
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    def _scores(self, X: Table) -> Floats:
        check_is_fitted(self)
        rows = without_secret(self, X)
        if self.schema is None:
            # with a schema they have been read by it
            rows = self.binning_(read_raw(self, rows, reset=False))
        check_records(self, rows, 1)
        return additive_scores(
            rows,
            self.binning_.names,
            self.shape_functions_.values(),
            self.intercept_,
        )


# -- additive classifier: shape functions on public bins, by noisy gradients -----------


class PrivateAdditiveClassifier(PrivateClassifierMixin, PrivateAdditiveModel):
    """Fit a generalised additive model of classes, whose shape functions can be read.

    The score of a row is an intercept plus, for each feature, a function of the public
    cell that its value is in: smooth over numbers, free over levels. With two classes
    the score is the log-odds of the second one; of more, each has a score.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting, with Gaussian noise. None is (1, 1e-5)-differential
        privacy by `PrivacyLoss` under a `RecordScenario`, and `Best` otherwise.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, in place
        of `bounds`, `categories`, `amounts` and `classes`.
    bounds : pair (low, high) or dict of {column: (low, high)}, default=None
        Public bounds of the numeric features: numbers, arrays with one for each, or by
        name or position. Values outside fall into the end cell.
    categories : dict of {column: levels}, default=None
        Public levels of the other features. Other values have a cell of their own.
    amounts : sequence, default=()
        Features with a heavy tail, such as money, cut by their logarithm.
    classes : array-like, default=None
        Public class labels; others count as nothing. None takes those of the schema's
        target or, without one, those of `y` as public.
    interactions : {'all', None} or list of pairs of features, default=None
        Pairs that get a function of both, on 8 x 8 coarse cells.
    monotone_constraints : dict of {feature: -1, 0 or 1}, default=None
        Features whose shape function, and so the prediction, must not rise (-1) or fall
        (1) from cell to cell; by post-processing.
    n_bins : int, default=32
        Cells of a number; whole numbers may have fewer.
    n_amount_bins : int, default=256
        Cells of an amount.
    n_rounds : int or 'auto', default='auto'
        Number of noisy sums; 'auto' is 50 to 100, by the size of the table.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, to which a `sample_weight` of
        `fit` is clipped. Noise covers a record of the largest.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    shape_functions_ : dict of {feature or pair: ShapeFunction}
        Cells, scores (by class where there are more than two) and standard errors.
    intercept_ : float or ndarray of shape (n_classes,)
        Score of a row whose functions are zero.
    classes_ : ndarray of shape (n_classes,)
        Public class labels.
    histograms_ : dict of {feature: ndarray of shape (n_cells,)}
        Noisy numbers of records by cell; with `weight_bounds`, sums of weights.
    histogram_noise_ : float
        Standard deviation of their noise.
    binning_ : Binning
        Public map from raw columns to cells.
    n_rounds_ : int
        Number of noisy sums.
    plan_ : RoundPlan
        Clip norm, step size and momentum of the rounds.
    release_ : AdaptiveRelease
        The release that was accounted and run.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added, in the unit of the release.
    accountant_ : Accountant
        The accountant that set it.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Notes
    -----
    *The release.* The histograms of all features take a twentieth of the privacy (of mu
    squared). The rest goes to sums of the records' clipped residuals times their rows,
    in rounds. All together is one mechanism, see
    :class:`~skpuffer.releases.AdaptiveRelease`.

    *Post-processing.* The histograms give a basis of smooth functions, orthogonal under
    the noisy shares of the cells, each noisy sum a step of the heavy ball, and the last
    30 % of the iterates are averaged. The number of rounds, clipping and steps follow
    from the number of records and the noise alone.

    *When.* Where ``n * mu / sqrt(n_features)`` is below 10 (mu is about epsilon / 4 for
    delta = 1e-5), noise leaves little but the mean. On few records a linear model is as
    good.

    References
    ----------
    Nori, Caruana, Bu, Shen and Kulkarni (2021), Accuracy, interpretability, and
    differential privacy via explainable boosting; Dong, Roth and Su (2022), Gaussian
    differential privacy.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skpuffer.additive import PrivateAdditiveClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> bounds = {"mean radius": (5, 30), "mean texture": (5, 40)}
    >>> model = PrivateAdditiveClassifier(bounds=bounds, classes=[0, 1])
    >>> model.fit(X[list(bounds)], y).certificate_
    Certificate(notion='approximate_dp', epsilon=1, delta=1e-05)
    >>> model.shape_functions_["mean radius"].scores.shape
    (32,)
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateAdditiveModel._parameter_constraints,
        "classes": ["array-like", None],
    }

    predict = _classes.predict

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        schema: Schema | None = None,
        bounds: Any = None,
        categories: dict[Any, Any] | None = None,
        amounts: Sequence[Any] = (),
        classes: ArrayLike | None = None,
        interactions: Any = None,
        monotone_constraints: dict[Any, int] | None = None,
        n_bins: int = 32,
        n_amount_bins: int = 256,
        n_rounds: int | str = "auto",
        weight_bounds: tuple[float, float] | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.schema = schema
        self.bounds = bounds
        self.categories = categories
        self.amounts = amounts
        self.classes = classes
        self.interactions = interactions
        self.monotone_constraints = monotone_constraints
        self.n_bins = n_bins
        self.n_amount_bins = n_amount_bins
        self.n_rounds = n_rounds
        self.weight_bounds = weight_bounds
        self.random_state = random_state

    # -- fit ----------------------------------------------------------------------

    def _check_parameters(self, scenario: Scenario) -> None:
        super()._check_parameters(scenario)
        self._check_outputs(declared_classes(self))

    def _check_outputs(self, labels: Any) -> None:
        constrained = [k for k, v in (self.monotone_constraints or {}).items() if v]
        if labels is not None and len(labels) > 2 and constrained:
            raise value_error(
                "additive.monotone_with_many_classes", n_labels=len(labels)
            )

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        # not as other classifiers, which refuse labels that they do not know
        return PrivateAdditiveModel._validate(self, X, y)

    def _of_no_target(self) -> Statement | None:
        # not as other classifiers: the histograms count records without a label too
        return PrivateAdditiveModel._of_no_target(self)

    def _read_y(self, X: Any, y: Any) -> Any:
        codes = class_indices(self, X, y)
        self._check_outputs(self.classes_)
        return codes

    def _classes_from_data(self) -> bool:
        return declared_classes(self) is None

    def _loss(self) -> Loss:
        return make_loss("log_loss", len(self.classes_))

    def _n_outputs(self) -> int:
        return self._loss().n_outputs(len(self.classes_))

    def _scale(self) -> tuple[float, float]:
        return 0.0, 1.0

    # -- post-processing ----------------------------------------------------------

    def decision_function(self, X: Table) -> Floats:
        """Return the score of each class, or of the second of two.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_records, n_features)
            Raw columns; a secret column is ignored.

        Returns
        -------
        scores : ndarray of shape (n_records,) or (n_records, n_classes)
        """
        return self._scores(X)

    def predict_proba(self, X: Table) -> Floats:
        """Return the probability of each class, corrected for clipped residuals."""
        check_is_fitted(self)
        return probabilities_of(self.decision_function(X), self.plan_.clip)

    def predict_log_proba(self, X: Table) -> Floats:
        """Return the logarithm of :meth:`predict_proba`."""
        return np.log(self.predict_proba(X))


# -- additive regressor: shape functions on public bins, by noisy gradients ------------


class PrivateAdditiveRegressor(
    BoundedTargetMixin,
    RegressorMixin,  # type: ignore[misc] # scikit-learn is untyped
    PrivateAdditiveModel,
):
    """Fit a generalised additive model of a number, whose shape functions can be read.

    The prediction is an intercept plus, for each feature, a function of the public cell
    that its value is in: smooth over numbers, free over levels.

    Parameters
    ----------
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting, with Gaussian noise. None is (1, 1e-5)-differential
        privacy by `PrivacyLoss` under a `RecordScenario`, and `Best` otherwise.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, in place
        of `bounds`, `categories`, `amounts` and `target_bounds`.
    bounds : pair (low, high) or dict of {column: (low, high)}, default=None
        Public bounds of the numeric features: numbers, arrays with one for each, or by
        name or position. Values outside fall into the end cell.
    categories : dict of {column: levels}, default=None
        Public levels of the other features. Other values have a cell of their own.
    amounts : sequence, default=()
        Features with a heavy tail, such as money, cut by their logarithm.
    target_bounds : tuple of float, default=None
        Public bounds (low, high) of the target, to which values are clipped; required
        without a schema's.
    interactions : {'all', None} or list of pairs of features, default=None
        Pairs that get a function of both, on 8 x 8 coarse cells.
    monotone_constraints : dict of {feature: -1, 0 or 1}, default=None
        Features whose shape function, and so the prediction, must not rise (-1) or fall
        (1) from cell to cell; by post-processing.
    n_bins : int, default=32
        Cells of a number; whole numbers may have fewer.
    n_amount_bins : int, default=256
        Cells of an amount.
    n_rounds : int or 'auto', default='auto'
        Number of noisy sums; 'auto' is 50 to 100, by the size of the table.
    weight_bounds : pair (low, high), default=None
        Public bounds of weights, ``0 <= low <= high``, to which a `sample_weight` of
        `fit` is clipped. Noise covers a record of the largest.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    shape_functions_ : dict of {feature or pair: ShapeFunction}
        Cells, scores in units of the target, and standard errors.
    intercept_ : float
        Prediction for a row whose functions are zero.
    histograms_ : dict of {feature: ndarray of shape (n_cells,)}
        Noisy numbers of records by cell; with `weight_bounds`, sums of weights.
    histogram_noise_ : float
        Standard deviation of their noise.
    binning_ : Binning
        Public map from raw columns to cells.
    n_rounds_ : int
        Number of noisy sums.
    plan_ : RoundPlan
        Clip norm, step size and momentum of the rounds.
    release_ : AdaptiveRelease
        The release that was accounted and run.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added, in the unit of the release.
    accountant_ : Accountant
        The accountant that set it.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Notes
    -----
    See :class:`PrivateAdditiveClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from skpuffer.additive import PrivateAdditiveRegressor
    >>> X, y = make_friedman1(5000, random_state=0)
    >>> model = PrivateAdditiveRegressor(bounds=(0, 1), target_bounds=(0, 30))
    >>> model.fit(X, y).score(X, y) > 0.7
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateAdditiveModel._parameter_constraints,
        "target_bounds": ["array-like", None],
    }

    def __init__(
        self,
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        schema: Schema | None = None,
        bounds: Any = None,
        categories: dict[Any, Any] | None = None,
        amounts: Sequence[Any] = (),
        target_bounds: tuple[float, float] | None = None,
        interactions: Any = None,
        monotone_constraints: dict[Any, int] | None = None,
        n_bins: int = 32,
        n_amount_bins: int = 256,
        n_rounds: int | str = "auto",
        weight_bounds: tuple[float, float] | None = None,
        random_state: RandomState = None,
    ):
        self.scenario = scenario
        self.accountant = accountant
        self.schema = schema
        self.bounds = bounds
        self.categories = categories
        self.amounts = amounts
        self.target_bounds = target_bounds
        self.interactions = interactions
        self.monotone_constraints = monotone_constraints
        self.n_bins = n_bins
        self.n_amount_bins = n_amount_bins
        self.n_rounds = n_rounds
        self.weight_bounds = weight_bounds
        self.random_state = random_state

    # -- fit ----------------------------------------------------------------------

    def _read_y(self, X: Any, y: Any) -> Any:
        if self._target_may_lack:
            y = target_values(self, self.schema, y)
        else:
            y = numeric_targets(self, y)
        check_consistent_length(X, y)
        # NaN, of a record that counts as nothing, stays
        return self._target(y)

    def _loss(self) -> Loss:
        return make_loss("squared_error")

    def _scale(self) -> tuple[float, float]:
        return self._target.centre, self._target.half

    # -- post-processing ----------------------------------------------------------

    def predict(self, X: Table) -> Floats:
        """Predict the target of each row, not clipped to the bounds."""
        return self._scores(X)

    def __sklearn_tags__(self) -> Tags:
        return mark_noisy(super().__sklearn_tags__())
