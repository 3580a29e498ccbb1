"""Output perturbation: parameters of any estimator, released with noise."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skpuffer._template import _plan
from skpuffer._template._classes import validate_classes
from skpuffer._template._foreign_code import StatedSensitivityMixin, VectorQuery
from skpuffer._template._reading import declared_classes, target_values, without_secret
from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import Statement, scenario_error, value_error
from skpuffer.kernel.numbers import check_positive
from skpuffer.kernel.releases import PUBLIC_TARGET
from skpuffer.releases import QueryRelease, Sensitivity
from skpuffer.utils._reading import is_frame, read_numbers, validate_rows
from skpuffer.utils._silence import muted, unquoted
from skpuffer.utils._sklearn import HasMethods, Interval, StrOptions

from ._delegation import delegates, inherit_tags, offered

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    from skpuffer.accountants import Accountant
    from skpuffer.base import Task
    from skpuffer.kernel.numbers import Floats
    from skpuffer.scenarios import Scenario
    from skpuffer.schema import Schema
    from skpuffer.utils._types import Array, Matrix, RandomState


#: What a certificate says of records without a target: of a foreign estimator nothing
#: is known but of ordinary ones.
NO_LABEL = Statement("assume.unknown_label_read_first")
NO_NUMBER = Statement("assume.missing_target_read_middle")


@delegates
class OutputPerturbation(
    MetaEstimatorMixin,  # type: ignore[misc] # scikit-learn is untyped
    StatedSensitivityMixin,
    PrivateEstimatorMixin,
):
    """Add noise to the parameters of any scikit-learn estimator.

    How far the parameters may move must be known. Give a `sensitivity`, or a scenario
    that knows their distributions or simulates whole tables, such as
    :class:`~skpuffer.scenarios.SimulatorScenario`.

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn estimator. A `random_state` of None is the public seed 0, and
        `n_jobs` is set to 1. It is fitted in silence: no callbacks, output or warnings.
    query : str, list of str or callable
        Arrays to release, by default ``'coef_'``: attributes of the fitted estimator,
        or a function of it. Predictions need every attribute they read, such as
        ``['coef_', 'intercept_']``.
    scenario : Scenario, default=None
        The secret. None is one record added or removed (differential privacy).
    accountant : Accountant, default=None
        Budget and accounting. None is (1, 1e-5)-differential privacy by `PrivacyLoss`
        under a `RecordScenario`, and the same budget by `Best` otherwise.
    sensitivity : float or Sensitivity, default=None
        How far the vector moves at most when one record changes. A number is the l2
        norm; a :class:`~skpuffer.releases.Sensitivity` distinguishes relations and
        norms. The certificate states it as an assumption, which you must prove.
    lipschitz : float, default=None
        How far the vector moves at most, in l2, for each unit that one record's
        features (and a regressor's target) move in l2, for all tables. Classifiers also
        need a `sensitivity`. Scenarios that bound a record's move take less noise with
        it. You must prove it.
    n_outputs : int, default=None
        Public length of the vector. Laplace noise and
        :class:`~skpuffer.accountants.SlicedWasserstein` need it.
    units : array-like of shape (n_outputs,), default=None
        Public unit of each number of the vector, to which its noise is in proportion.
        `sensitivity` and `lipschitz` are then in these units.
    ball : float or pair (center, radius), default=None
        Public Euclidean ball (or its radius around zero) to which the vector is
        projected. :class:`~skpuffer.accountants.PAC` and
        :class:`~skpuffer.accountants.ResidualPAC` need it where outputs are known by
        draws alone. `sensitivity` and `lipschitz` are of the projected vector.
    canonical : {'sort'}, default=None
        'sort' puts the rows of what is released into one order, by the first array: for
        cluster centres, whose order is arbitrary.
    classes : array-like, default=None
        Public class labels. None takes those of `y` as public.
    schema : Schema, default=None
        Public :class:`~skpuffer.schema.Schema` by which raw columns are read, with the
        classes. Numbers are scaled by their bounds, levels become a column each, and
        rows lie in the unit ball.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws noise from the operating system's entropy. A seed warns.

    Attributes
    ----------
    value_ : ndarray or float, or dict of these
        The noisy vector in the shape of what was asked for.
    value_std_ : ndarray or float, or dict of these
        Standard deviation that the noise gives `value_`, exactly.
    estimator_ : estimator
        A fresh estimator with the noisy attributes and public facts only, if `query`
        names attributes that can be set. It makes predictions.
    classes_ : ndarray of shape (n_classes,)
        Public class labels, for a classifier.
    certificate_ : Certificate
        The promise, its notion and its assumptions.
    noise_ : Noise
        The noise that was added.
    accountant_ : Accountant
        The accountant that set it.
    feature_map_ : Encoding
        Public map to the columns that are read, ``feature_map_.names``; with a
        `schema`.
    n_features_in_ : int
        Number of features without the secret column.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if all are strings.

    Examples
    --------
    Ridge regression is strongly convex: one record moves the minimiser by at most
    ``(1 + |w|) / alpha``, and ``|w|`` is at most ``sqrt(n / alpha)``:

    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from skpuffer.compose import OutputPerturbation
    >>> from skpuffer.releases import Sensitivity
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(500, 2))
    >>> y = X @ [1.0, -1.0]
    >>> move = (1 + np.sqrt(500 / 50)) / 50
    >>> model = OutputPerturbation(
    ...     Ridge(alpha=50.0, fit_intercept=False),
    ...     sensitivity=Sensitivity(add_remove={2: move}),
    ... )
    >>> model.fit(X, y).value_.shape
    (2,)
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimatorMixin._parameter_constraints,
        "estimator": [HasMethods(["fit"])],
        "query": [str, list, tuple, callable],
        "sensitivity": [Real, Sensitivity, None],
        "lipschitz": [Interval(Real, 0, None, closed="neither"), None],
        "n_outputs": [Interval(Integral, 1, None, closed="left"), None],
        "units": ["array-like", None],
        "ball": [Interval(Real, 0, None, closed="neither"), tuple, None],
        "canonical": [StrOptions({"sort"}), None],
        "classes": ["array-like", None],
    }

    def __init__(
        self,
        estimator: BaseEstimator,
        query: Query = "coef_",
        scenario: Scenario | None = None,
        accountant: Accountant | None = None,
        *,
        sensitivity: Sensitivity | float | None = None,
        lipschitz: float | None = None,
        n_outputs: int | None = None,
        units: ArrayLike | None = None,
        ball: float | tuple[ArrayLike, float] | None = None,
        canonical: str | None = None,
        classes: ArrayLike | None = None,
        schema: Schema | None = None,
        random_state: RandomState = None,
    ):
        self.estimator = estimator
        self.query = query
        self.scenario = scenario
        self.accountant = accountant
        self.sensitivity = sensitivity
        self.lipschitz = lipschitz
        self.n_outputs = n_outputs
        self.units = units
        self.ball = ball
        self.canonical = canonical
        self.classes = classes
        self.schema = schema
        self.random_state = random_state

    # -- fit ------------------------------------------------------------------------

    def _check_parameters(self, scenario: Scenario) -> None:
        if isinstance(self.estimator, FrozenEstimator):
            raise value_error("query.estimator_frozen")
        if not callable(self.query):
            names = [self.query] if isinstance(self.query, str) else list(self.query)
            if not names or not all(isinstance(name, str) for name in names):
                raise value_error("query.no_attribute_named", query=self.query)
        self._check_stated(scenario)
        # a Lipschitz bound is about moves of numbers, and a label that changes is none
        if self.lipschitz is not None:
            check_positive(lipschitz=self.lipschitz)
            if self.sensitivity is None and is_classifier(self.estimator):
                raise value_error("query.lipschitz_ignores_labels")

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        """Check the table by the kind of the estimator inside.

        The reading is the `target` of a :class:`RecordPoint`.
        """
        # labels are encoded by the public classes, targets stay numbers
        tags = get_tags(self.estimator)
        if tags.estimator_type == "classifier":
            X, y = validate_classes(self, X, y)
            # Of a foreign estimator nothing is known with a record less, where records
            # are replaced: so it gets one of the public classes.
            return X, np.maximum(y, 0), "labels"
        options: dict[str, Any] = {"dtype": np.float64}
        # a search over regressors does not say that it requires a target
        regresses = tags.estimator_type == "regressor" and y is not None
        if not (tags.target_tags.required or regresses):
            return validate_rows(self, X, **options), None, "none"
        if self.schema is not None and self.schema.target_bounds is not None:
            low, high = self.schema.target_bounds
            X, y = (
                validate_rows(self, X, **options),
                target_values(self, self.schema, y),
            )
            check_consistent_length(X, y)
            return X, np.where(np.isnan(y), (low + high) / 2, y), "numbers"
        options["multi_output"] = tags.target_tags.multi_output
        return *validate_rows(self, X, y, y_numeric=True, **options), "numbers"

    def _of_no_target(self) -> Statement | None:
        if is_classifier(self.estimator):
            return None if declared_classes(self) is None else NO_LABEL
        if self.schema is None or self.schema.target_bounds is None:
            return None
        return NO_NUMBER

    @property
    def _accept_sparse(self) -> Any:  # type: ignore[override] # read, never assigned
        sparse = get_tags(self.estimator).input_tags.sparse
        return ["csr", "csc"] if sparse else False

    def _release(self, task: Task) -> QueryRelease:
        dim = self._public_length(task.scenario)
        query = FittedQuery(
            self.estimator,
            self.query,
            getattr(self, "classes_", None),
            dim,
            sort=self.canonical == "sort",
        )
        # What the user claims of foreign code cannot be checked, so the certificate
        # states each claim as an assumption.
        assumptions = [
            Statement("assume.shapes_and_labels_public"),
            *self._stated_assumptions(),
        ]
        ball = (0.0, self.ball) if isinstance(self.ball, Real) else self.ball
        asked = query.names or ["a function"]
        records: dict[str, Any] = {}
        if self.lipschitz is not None:
            records = self._record_moves(task.reading, float(self.lipschitz))
            assumptions.append(
                Statement("assume.lipschitz_unproved", lipschitz=self.lipschitz)
            )
        return QueryRelease(
            query=query,
            name=f"{', '.join(asked)} of {type(self.estimator).__name__}",
            n_records=task.context.n_records,
            dim=dim,
            units=self._stated_units(),
            sensitivity=self._stated_sensitivity(),
            ball=ball,
            context=task.context,
            assumptions=tuple(assumptions),
            **records,
        )

    def _record_moves(self, target: str, lipschitz: float) -> dict[str, Any]:
        """Arguments of the release for records whose moves are bounded."""
        # A record that moves by m moves the vector by at most lipschitz * m, and never
        # by more than its sensitivity to replacing a record, whichever is smaller.
        ceiling = math.inf
        stated = self._stated_sensitivity()
        if stated is not None:
            ceiling = stated.value("replace", 2, self.n_outputs)
            ceiling /= lipschitz  # further than that, a record may be any other
        point = RecordPoint(target)
        if target == "labels":
            if math.isinf(ceiling):
                raise value_error("query.sensitivity_not_in_l2")
            # Different labels count as this far apart: then a bound on the move of the
            # point, if it is smaller, says that the label stays.
            point = RecordPoint("labels", len(self.classes_), ceiling)
        return {
            "contribution": point,
            "modulus": partial(operator.mul, lipschitz),
            "shift_ceiling": ceiling,
        }

    _affine_attributes = ("value_",)
    confidence_interval = _plan.confidence_interval

    def _linear_parts(self, vector: Any, release: Any) -> dict[str, Any]:
        # The query kept shapes and facts of the machine of its one run; of its values
        # there is the noisy vector only.
        query = release.query
        arrays = query.split(vector)
        if query.names is None or isinstance(self.query, str):
            return {"value_": arrays[0]}
        return {"value_": dict(zip(query.names, arrays, strict=True))}

    def _publish(self, value: Any, release: Any) -> None:
        query = release.query
        self.value_ = self._read_off(value, release)["value_"]
        if query.names is None:
            return
        single = isinstance(self.query, str)
        noisy = {query.names[0]: self.value_} if single else self.value_
        if all(is_settable(self.estimator, name) for name in noisy):
            self.estimator_ = self._rebuild(noisy | query.environment)

    def _rebuild(self, released: dict[str, Any]) -> BaseEstimator:
        """Fresh estimator that holds released attributes and public facts alone."""
        # A clone that was never fitted: whatever else a fit leaves on an estimator
        # (residuals, support vectors, histories) carries no noise.
        fresh = clone(self.estimator)
        public = {
            name: getattr(self, name)
            for name in ("classes_", "n_features_in_", "feature_names_in_")
            if hasattr(self, name) and is_settable(fresh, name)
        }
        # scikit-learn's linear models predict with an intercept all the same
        if fresh.get_params(deep=False).get("fit_intercept") is False:
            public["intercept_"] = 0.0
        for name, given in (public | released).items():
            setattr(fresh, name, given)
        return fresh

    # -- prediction: post-processing ------------------------------------------------

    def _offers(self, name: str) -> bool:
        named = [self.query] if isinstance(self.query, str) else self.query
        if callable(named) or not all(is_settable(self.estimator, n) for n in named):
            raise AttributeError(
                Statement("query.no_attributes_to_set", name=name, query=self.query)
            )
        getattr(self.estimator, name)  # raises its own AttributeError
        return True

    def _call(self, name: str, X: Any, *args: Any, **kwargs: Any) -> Any:
        check_is_fitted(self)
        method = getattr(self.estimator_, name)
        # an inverse takes what `transform` made, which has columns of its own
        if name != "inverse_transform":
            X = read_numbers(without_secret(self, X))
            if not is_frame(X):
                X = validate_rows(self, X, reset=False, dtype=np.float64)
        # What the method reads and was not released shows itself by its absence; an
        # AttributeError of anything else is not ours to explain.
        try:
            return method(X, *args, **kwargs)
        except AttributeError as error:
            if error.obj is not self.estimator_:
                raise
            raise AttributeError(
                Statement(
                    "query.attribute_not_released",
                    estimator_type=type(self.estimator_).__name__,
                    name=name,
                    missing=error.name,
                    remedy=self._remedy(error.name),
                ),
                name=error.name,
                obj=self,
            ) from error

    def _remedy(self, missing: Any) -> Statement:
        if missing.startswith("_") or not missing.endswith("_"):
            return Statement("query.remedy_take_value")
        query: Any = self.query  # of names: a function sets no attributes
        asked = [query] if isinstance(query, str) else list(query)
        return Statement(
            "query.remedy_ask_intercept_too"
            if missing == "intercept_"
            else "query.remedy_ask_too",
            query=[*asked, missing],
        )

    @offered("get_feature_names_out")
    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Return the names of the columns that `transform` makes."""
        check_is_fitted(self)
        names: Array = self.estimator_.get_feature_names_out(input_features)
        return names

    def __sklearn_tags__(self) -> Tags:
        tags = inherit_tags(super().__sklearn_tags__(), self.estimator)
        theirs = get_tags(self.estimator).input_tags
        tags.input_tags.positive_only = theirs.positive_only
        if tags.classifier_tags is not None:
            # one column of labels, which are public
            tags.classifier_tags.multi_label = False
            tags.target_tags.multi_output = False
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = []  # noise is drawn in float64
        return tags


# -- record as a point of the metric space in which its shift is measured --------------


@dataclass(frozen=True)
class RecordPoint:
    """Map from a record to a point: its features, with its target beside them.

    Parameters
    ----------
    target : {'none', 'numbers', 'labels'}
    n_classes : int, default=0
        For labels.
    label_distance : float, default=0.0
        How far apart records of different labels are at least.
    """

    target: str
    n_classes: int = 0
    label_distance: float = 0.0

    @property
    def needs_target(self) -> bool:
        """Whether there is a target."""
        return self.target != "none"

    @property
    def move_assumptions(self) -> tuple[Statement, ...]:
        """Assumptions of :meth:`move`."""
        return (PUBLIC_TARGET,) if self.needs_target else ()

    def __call__(self, X: Any, y: Any = None) -> Floats:
        """Return points, of shape (n_records, n_coordinates)."""
        rows: Floats = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
        if self.target == "numbers":
            return np.hstack([rows, np.reshape(y, (len(rows), -1))])
        if self.target == "labels":
            labels = np.eye(self.n_classes)[np.asarray(y)]
            # two unit vectors are sqrt(2) apart, so different labels are
            # `label_distance` apart in l2, whatever the features
            return np.hstack([rows, labels * (self.label_distance / math.sqrt(2))])
        return rows

    def move(self, gaps: Floats, norm: float) -> Floats:
        """Sensitivity of points to moves of features, targets staying."""
        # coordinates of the target do not move, as `move_assumptions` says
        moves: Floats = np.linalg.norm(gaps, norm, axis=1)
        return moves


# -- query of a training table: a vector read off an estimator fitted on it ------------


#: What is released of a fitted estimator: attributes by name, or a function of it.
Query: TypeAlias = str | Sequence[str] | Callable[[Any], Any]

#: Seed of an estimator that was given none. Public: it has no part in the noise.
PUBLIC_SEED = 0

#: What a fit notes of the machine rather than of the data, and predictions read.
ENVIRONMENT = ("_n_threads",)


class FittedQuery(VectorQuery):
    """Query that fits a clone of an estimator and reads a vector off it.

    Every fit runs from the same public seed and in silence, so that two tables differ
    in nothing but their records.

    Parameters
    ----------
    query : str, list of str or callable
        Attributes of the fitted estimator, or a function of it.
    classes : ndarray of shape (n_classes,) or None
        Labels by class index, for a classifier.
    sort : bool, default=False
        Whether rows are put into one order; see :func:`sorted_rows`.
    """

    _parameter, _source = "query", "fitted estimator"

    def __init__(
        self,
        estimator: BaseEstimator,
        query: Query,
        classes: Array | None,
        dim: int | None,
        sort: bool = False,
    ):
        super().__init__(dim)
        self._estimator = _seeded(estimator)
        self._query, self._classes, self._sort = query, classes, sort
        self._needs_target = get_tags(estimator).target_tags.required
        self.environment: dict[str, Any] = {}

    @property
    def names(self) -> list[str] | None:
        """Attributes asked for, or None for a function."""
        if callable(self._query):
            return None
        return [self._query] if isinstance(self._query, str) else list(self._query)

    def __call__(self, X: Matrix, y: Array | None) -> Floats:
        """Return the stacked vector of a fit on one table."""
        if y is None and self._needs_target:
            raise scenario_error(
                "query.target_lacking_in_draws",
                estimator_type=type(self._estimator).__name__,
            )
        if self._classes is not None and y is not None:
            self._check_labels(y)
            y = self._classes[y]
        # A fresh clone each time: with warm starts, the first table would leave a trace
        # in the query of the second. Errors of foreign code are raised without values.
        name = type(self._estimator).__name__
        fitted = unquoted(name, clone(self._estimator).fit, X, y)
        self._check_classes(fitted)
        parts = self._parts(fitted)
        if self._sort:
            parts = sorted_rows([self._as_array(part) for part in parts])
        vector = self._stacked(parts)
        self.environment = {n: v for n, v in vars(fitted).items() if n in ENVIRONMENT}
        return vector

    def _check_labels(self, y: Array) -> None:
        """Refuse a table of one class, of which most classifiers learn nothing."""
        assert self._classes is not None
        # before the fit, whose own words would be withheld
        if len(self._classes) > 1 and len(y) > 1 and np.all(y == y[0]):
            raise self._without_a_class(1)

    def _check_classes(self, fitted: Any) -> None:
        """Refuse a table without records of a class: parameters would lack its rows."""
        # The classes are public; which of them occur in this table is not.
        seen = getattr(fitted, "classes_", None)
        if self._classes is None or seen is None or len(seen) == len(self._classes):
            return
        raise self._without_a_class(len(seen))

    def _without_a_class(self, n_seen: int) -> ValueError:
        assert self._classes is not None
        return ValueError(
            Statement(
                "query.table_has_one_class"
                if n_seen == 1
                else "query.table_lacks_a_class",
                n_seen=n_seen,
                n_classes=len(self._classes),
            )
        )

    def _parts(self, fitted: Any) -> list[Any]:
        """Attributes asked for, or what the function returns."""
        if callable(self._query):
            return [
                unquoted(
                    Statement("query.subject_parameter_query"), self._query, fitted
                )
            ]
        names = self.names or []
        missing = [name for name in names if not hasattr(fitted, name)]
        if missing:
            raise value_error(
                "query.attribute_missing_after_fit",
                missing=missing,
                fitted_type=type(fitted).__name__,
            )
        return [getattr(fitted, name) for name in names]


def sorted_rows(arrays: list[Floats]) -> list[Floats]:
    """Return arrays with rows in the lexicographic order of the first array."""
    if len({array.shape[:1] for array in arrays}) > 1 or not arrays[0].ndim:
        raise value_error("query.sort_rows_unequal")
    rows = arrays[0].reshape(len(arrays[0]), -1)
    # the first column decides, as the last key of the sort
    order = np.lexsort(rows.T[::-1])
    return [array[order] for array in arrays]


def is_settable(estimator: BaseEstimator, name: str) -> bool:
    """Whether an attribute can be set on an estimator: no read-only property."""
    member = getattr(type(estimator), name, None)
    return not isinstance(member, property) or member.fset is not None


def _seeded(estimator: BaseEstimator) -> BaseEstimator:
    """Muted clone that draws from public seeds."""
    # A sensitivity is that of a function of the table, which a fit from a fixed seed
    # is. The seed is public: it protects nothing, and the noise is not drawn from it.
    fresh = muted(estimator)
    seeds = {
        name: PUBLIC_SEED
        for name, value in fresh.get_params(deep=True).items()
        if value is None and name.rpartition("__")[2] == "random_state"
    }
    return fresh.set_params(**seeds) if seeds else fresh
