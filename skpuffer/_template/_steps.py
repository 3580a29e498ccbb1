"""What each step of a pipeline does with private rows, and which ran before a fit."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_selector,
)
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler, SkewedChi2Sampler
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.model_selection._search import BaseSearchCV
from sklearn.multiclass import (
    OneVsOneClassifier,
    OneVsRestClassifier,
    OutputCodeClassifier,
)
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import get_tags

from skpuffer.exceptions import Statement
from skpuffer.utils._silence import parts_of

from . import RELEASING


def is_known(node: Any) -> bool:
    """Whether an estimator is of a library whose estimators are known here."""
    return type(node).__module__.partition(".")[0] in ("sklearn", "skpuffer")


def chooses_by_rows(columns: Any) -> bool:
    """Whether columns are chosen by more than their names.

    A single malformed cell changes the type of a column, and with it which columns
    there are: the choice must be made on public rows.
    """
    # by exact type: another selector may look at values
    if type(columns) is make_column_selector:
        return columns.dtype_include is not None or columns.dtype_exclude is not None
    return callable(columns)


@dataclass(frozen=True)
class StepAudit:
    """Uses of private rows by one step.

    Parameters
    ----------
    name : str
        Where it is: names of steps and parameters, joined by two underscores.
    estimator : str
        Its class.
    kind : {'private', 'public', 'row_wise', 'leak', 'scores'}
        'private' releases with a certificate of its own. 'public' learns nothing from
        the rows, and 'row_wise' changes each by itself. A 'leak' fits something without
        noise, lets rows change others, or counts a record more than once. 'scores'
        chooses by private rows: certificates hold, and do not cover what was chosen.
    reason : Statement
        Why, and what would do instead.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skpuffer.compose import audit_pipeline
    >>> from skpuffer.linear_model import PrivateLogisticRegression
    >>> model = make_pipeline(StandardScaler(), PrivateLogisticRegression())
    >>> step = audit_pipeline(model).steps[0]
    >>> step.name, step.estimator, step.kind
    ('standardscaler', 'StandardScaler', 'leak')
    >>> print(step.reason)
    is fitted on private rows without noise. Use a private estimator, a Schema, or
    PublicPreprocessing with public rows.
    """

    name: str
    estimator: str
    kind: str
    reason: Statement

    def statement(self) -> Statement:
        """Return what the step does, with its name, as a statement."""
        return Statement(
            "pipeline.step_with_reason",
            name=self.name,
            estimator=self.estimator,
            reason=self.reason,
        )

    def __str__(self) -> str:
        return str(self.statement())


def step_of(node: Any, name: str, kind: str, reason: Statement) -> StepAudit:
    kind_of = type(node).__name__
    return StepAudit(name or kind_of.lower(), kind_of, kind, reason)


def under(name: str, part: str) -> str:
    return f"{name}__{part}" if name else part


# What is known of an estimator, by its class; subclasses inherit it, as they do `fit`.


_FOREIGN = Statement("pipeline.step_runs_foreign_code")

#: What is said of a part of a column transformer whose columns a function chooses.
CHOSEN_COLUMNS = Statement("pipeline.step_columns_chosen_privately")


@singledispatch
def audited(node: Any, name: str) -> Iterator[StepAudit]:
    """Steps of an estimator that nothing is known of."""
    if node is None or isinstance(node, str):  # 'passthrough', 'drop'
        return
    if isinstance(node, tuple(RELEASING)):
        yield step_of(node, name, "private", Statement("pipeline.step_has_certificate"))
    elif not hasattr(node, "fit"):
        yield step_of(node, name, "leak", Statement("pipeline.step_no_estimator"))
    # of others the tag may only say that a prior can predict
    elif hasattr(node, "transform") and not get_tags(node).requires_fit:
        if is_known(node):
            yield step_of(
                node, name, "row_wise", Statement("pipeline.step_learns_nothing")
            )
        else:
            yield step_of(node, name, "leak", _FOREIGN)
    elif inner := _nested(node):
        yield step_of(
            node,
            name,
            "leak",
            Statement("pipeline.step_fits_inner_unknown"),
        )
        for part, one in inner.items():
            yield from audited(one, under(name, part))
    else:
        yield step_of(
            node,
            name,
            "leak",
            Statement("pipeline.step_fitted_without_noise"),
        )


def _nested(node: Any) -> dict[str, Any]:
    """Estimators among the parameters of an estimator."""
    if not hasattr(node, "get_params"):
        return {}
    given = node.get_params(deep=False)
    return {part: one for part, one in given.items() if hasattr(one, "fit")}


@audited.register
def _(node: FrozenEstimator, name: str) -> Iterator[StepAudit]:
    if any(map(_is_foreign, parts_of(node, set(), frozen=True))):
        yield step_of(node, name, "leak", _FOREIGN)
        return
    yield step_of(node, name, "public", Statement("pipeline.step_fitted_elsewhere"))


def _is_foreign(part: Any) -> bool:
    """Whether a part of a fitted transformer runs code that is not known here."""
    return not is_known(part) or getattr(part, "func", None) is not None


@audited.register
def _(node: FunctionTransformer, name: str) -> Iterator[StepAudit]:
    if not _is_foreign(node):
        yield step_of(node, name, "row_wise", Statement("pipeline.step_passes_rows_on"))
        return
    yield step_of(
        node,
        name,
        "leak",
        Statement("pipeline.step_function_may_mix"),
    )


def _of_columns(node: Any, name: str) -> StepAudit:
    """Step of a class that learns no more than the number of columns."""
    if not is_known(node):
        return step_of(
            node,
            name,
            "leak",
            Statement("pipeline.step_subclass_unknown"),
        )
    reason = Statement("pipeline.step_learns_column_count")
    return step_of(node, name, "row_wise", reason)


@audited.register(GaussianRandomProjection)
@audited.register(SparseRandomProjection)
def _(node: Any, name: str) -> Iterator[StepAudit]:
    if node.n_components == "auto":
        yield step_of(
            node,
            name,
            "leak",
            Statement("pipeline.step_components_auto"),
        )
        return
    yield _of_columns(node, name)


@audited.register(PolynomialFeatures)
@audited.register(SkewedChi2Sampler)
def _(node: Any, name: str) -> Iterator[StepAudit]:
    yield _of_columns(node, name)


@audited.register
def _(node: RBFSampler, name: str) -> Iterator[StepAudit]:
    if node.gamma == "scale":
        yield step_of(
            node,
            name,
            "leak",
            Statement("pipeline.step_gamma_scale"),
        )
        return
    yield _of_columns(node, name)


@audited.register
def _(node: Pipeline, name: str) -> Iterator[StepAudit]:
    for part, one in node.steps:
        yield from audited(one, under(name, part))


@audited.register
def _(node: FeatureUnion, name: str) -> Iterator[StepAudit]:
    for part, one in node.transformer_list:
        yield from audited(one, under(name, part))


@audited.register
def _(node: ColumnTransformer, name: str) -> Iterator[StepAudit]:
    for part, one, columns in node.transformers:
        if chooses_by_rows(columns):
            yield step_of(one, under(name, part), "leak", CHOSEN_COLUMNS)
        else:
            yield from audited(one, under(name, part))
    yield from audited(node.remainder, under(name, "remainder"))


def _of_parts(node: Any, name: str) -> Iterator[StepAudit]:
    """Steps of a wrapper that fits what is within it on the rows as they are."""
    for part, one in getattr(node, "estimators", ()):
        yield from audited(one, under(name, part))
    for part, one in _nested(node).items():
        yield from audited(one, under(name, part))
    given = node.get_params(deep=False)
    for part in ("estimator", "regressor", "final_estimator"):
        if part in given and given[part] is None:
            yield step_of(node, under(name, part), "leak", _PLAIN)


_PLAIN = Statement("pipeline.step_none_is_plain")

for passing in (
    ClassifierChain,
    FixedThresholdClassifier,
    MultiOutputClassifier,
    MultiOutputRegressor,
    OneVsOneClassifier,
    OneVsRestClassifier,
    OutputCodeClassifier,
    RegressorChain,
    RFE,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
):
    # each fit is a release, and what else is made of them is made of releases
    audited.register(passing, _of_parts)


def _and_parts(
    kind: str, reason: Statement, applies: Callable[[Any], bool] = lambda node: True
) -> Callable[[Any, str], Iterator[StepAudit]]:
    """Steps of a wrapper that does something of its own besides."""

    def audited(node: Any, name: str) -> Iterator[StepAudit]:
        if applies(node):
            yield step_of(node, name, kind, reason)
        yield from _of_parts(node, name)

    return audited


_REPEATS = Statement("pipeline.step_bootstraps_records")
_WEIGHS = Statement("pipeline.step_weighs_records")
_CALIBRATES = Statement("pipeline.step_calibrates_on_private")
_TUNES = Statement("pipeline.step_tunes_threshold")
_COUNTS = Statement("pipeline.step_max_features_private")
_CHOOSES = Statement("pipeline.step_searches_on_private")

for bagging in (BaggingClassifier, BaggingRegressor):
    audited.register(
        bagging, _and_parts("leak", _REPEATS, lambda node: bool(node.bootstrap))
    )
for boosting in (AdaBoostClassifier, AdaBoostRegressor):
    audited.register(boosting, _and_parts("leak", _WEIGHS))
audited.register(CalibratedClassifierCV, _and_parts("leak", _CALIBRATES))
audited.register(TunedThresholdClassifierCV, _and_parts("leak", _TUNES))
audited.register(
    SelectFromModel,
    _and_parts("leak", _COUNTS, lambda node: callable(node.max_features)),
)
audited.register(RFECV, _and_parts("scores", _CHOOSES))


def _candidates(node: Any) -> Iterator[tuple[str, Any]]:
    """Estimators that a search tries in place of another."""
    given = node.get_params(deep=False)
    grids = given.get("param_grid", given.get("param_distributions"))
    for grid in grids if isinstance(grids, list) else [grids]:
        for part, values in grid.items():
            for one in values if isinstance(values, list | tuple) else ():
                if hasattr(one, "fit"):
                    yield part, one


@audited.register(GridSearchCV)
@audited.register(RandomizedSearchCV)
def _(node: Any, name: str) -> Iterator[StepAudit]:
    yield step_of(node, name, "scores", _CHOOSES)
    yield from audited(node.estimator, under(name, "estimator"))
    for part, one in _candidates(node):
        yield from audited(one, under(under(name, "estimator"), part))


@audited.register
def _(node: TransformedTargetRegressor, name: str) -> Iterator[StepAudit]:
    # its transformer is fitted on the target, as any other is on features
    if node.transformer is None and node.func is not None:
        yield step_of(
            node,
            under(name, "func"),
            "leak",
            Statement("pipeline.step_target_function_may_mix"),
        )
    yield from _of_parts(node, name)


# -- steps that ran before a fit -------------------------------------------------------


#: Wrappers that hand on other records, or other weights, than they were given.
_CHANGING = (AdaBoostClassifier, AdaBoostRegressor, BaggingClassifier, BaggingRegressor)


def leaks_before(
    node: Any, place: int | None, of_answers: bool = False
) -> Iterator[StepAudit]:
    """Yield leaks of a pipeline before one of its steps, or of a wrapper."""
    if isinstance(node, Pipeline):
        for name, step in node.steps[: -1 if place is None else place]:
            yield from (s for s in audited(step, name) if s.kind in ("leak", "scores"))
    elif isinstance(node, TransformedTargetRegressor):
        found = audited(node, "")
        yield from (s for s in found if s.name in ("transformer", "func"))
    elif of_answers:
        for name, one in getattr(node, "estimators", ()):
            yield from (s for s in audited(one, name) if s.kind in ("leak", "scores"))
    elif isinstance(node, _CHANGING) or _is_unknown(node):
        own = type(node).__name__
        yield from (s for s in audited(node, "") if s.estimator == own)


def _is_unknown(node: Any) -> bool:
    """Whether nothing is known of how a wrapper fits what is in it."""
    is_own = type(node).__module__.partition(".")[0] == "skpuffer"
    known = is_own or isinstance(node, BaseSearchCV)
    return not known and audited.dispatch(type(node)) is audited.dispatch(object)
