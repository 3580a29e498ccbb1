"""Which steps of a pipeline see private rows, and what each of them does with them."""

import html
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
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
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import get_tags

from skpuffer.base import PrivateEstimatorMixin
from skpuffer.exceptions import Statement, value_error
from skpuffer.utils._silence import parts_of

from ._fixed_steps import chooses_by_rows, is_known
from ._public_preprocessing import PublicPreprocessing


@dataclass(frozen=True)
class StepAudit:
    """What one step does with private rows.

    Parameters
    ----------
    name : str
        Where it is: names of steps and parameters, joined by two underscores.
    estimator : str
        Its class.
    kind : {'private', 'public', 'row_wise', 'leak', 'scores'}
        'private' releases with a certificate of its own. 'public' learns nothing from
        the rows, and 'row_wise' changes each by itself. A 'leak' fits something without
        noise, lets rows change others, or counts a record more than once; no
        certificate holds behind it. 'scores' chooses by private rows without noise: the
        certificates of what is fitted hold, and what was chosen is outside of them.
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


@dataclass(frozen=True)
class PipelineAudit:
    """What every step of a pipeline does with private rows.

    Parameters
    ----------
    steps : tuple of StepAudit
        In the order in which they see the rows.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skpuffer.compose import audit_pipeline
    >>> from skpuffer.linear_model import PrivateLogisticRegression
    >>> from skpuffer.preprocessing import RowNormClipper
    >>> for step in (StandardScaler(), RowNormClipper()):
    ...     audit = audit_pipeline(make_pipeline(step, PrivateLogisticRegression()))
    ...     print(audit.is_private, [leak.estimator for leak in audit.leaks])
    False ['StandardScaler']
    True []
    """

    steps: tuple[StepAudit, ...]

    @property
    def leaks(self) -> tuple[StepAudit, ...]:
        """Steps because of which no certificate holds."""
        return tuple(step for step in self.steps if step.kind == "leak")

    @property
    def scores(self) -> tuple[StepAudit, ...]:
        """Steps that choose by private rows, outside of all certificates."""
        return tuple(step for step in self.steps if step.kind == "scores")

    @property
    def is_private(self) -> bool:
        """Whether all that leaves is under certificates."""
        private = any(step.kind == "private" for step in self.steps)
        return private and not self.leaks and not self.scores

    def __str__(self) -> str:
        width = max((len(step.kind) for step in self.steps), default=0)
        lines = [f"  {step.kind:<{width}}  {step}" for step in self.steps]
        said = "is private" if self.is_private else "is not private as a whole"
        return "\n".join([f"Pipeline that {said}", *lines])

    def _repr_html_(self) -> str:
        cells = (
            (step.kind, step.name, step.estimator, step.reason) for step in self.steps
        )
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td style='text-align:left'>{html.escape(str(text))}</td>"
                for text in row
            )
            + "</tr>"
            for row in cells
        )
        return f"<table class='skpuffer-audit'>{rows}</table>"


def audit_pipeline(
    estimator: BaseEstimator, *, row_wise: Collection[str] = ()
) -> PipelineAudit:
    """Name each step that sees private rows, before any row is there.

    A private estimator is private of the rows that reach it. A step before it that is
    fitted on the same rows without noise, a wrapper that repeats or weighs records and
    whatever is fitted beside it release what no certificate covers.

    Parameters
    ----------
    estimator : estimator
        A pipeline, search or other estimator, fitted or not.
    row_wise : collection of str, default=()
        Names of steps that are declared to change each row by itself, for
        :class:`~sklearn.preprocessing.FunctionTransformer` and estimators that are not
        known here: as the audit names them, or their last part.

    Returns
    -------
    audit : PipelineAudit

    Raises
    ------
    ValueError
        If `row_wise` names a step that is not there.

    See Also
    --------
    PublicPreprocessing : Preprocessing fitted on public rows.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skpuffer.compose import audit_pipeline
    >>> from skpuffer.linear_model import PrivateLogisticRegression
    >>> audit = audit_pipeline(
    ...     make_pipeline(StandardScaler(), PrivateLogisticRegression())
    ... )
    >>> [(step.name, step.kind) for step in audit.steps]
    [('standardscaler', 'leak'), ('privatelogisticregression', 'private')]
    >>> audit.is_private
    False
    """
    declared = set(row_wise)
    found = []
    used = set()
    for step in audited(estimator, ""):
        names = {step.name, step.name.rpartition("__")[2]} & declared
        if names and step.kind == "leak":
            step = StepAudit(
                step.name,
                step.estimator,
                "row_wise",
                Statement("pipeline.step_declared_row_wise"),
            )
        used |= names
        found.append(step)
    if declared - used:
        raise value_error(
            "pipeline.audit_row_wise_unknown",
            declared=sorted(declared - used),
            found=[step.name for step in found],
        )
    return PipelineAudit(tuple(found))


def _step(node: Any, name: str, kind: str, reason: Statement) -> StepAudit:
    kind_of = type(node).__name__
    return StepAudit(name or kind_of.lower(), kind_of, kind, reason)


def _under(name: str, part: str) -> str:
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
    if not hasattr(node, "fit"):
        yield _step(node, name, "leak", Statement("pipeline.step_no_estimator"))
    # of others the tag may only say that a prior can predict
    elif hasattr(node, "transform") and not get_tags(node).requires_fit:
        if is_known(node):
            yield _step(
                node, name, "row_wise", Statement("pipeline.step_learns_nothing")
            )
        else:
            yield _step(node, name, "leak", _FOREIGN)
    elif inner := _nested(node):
        yield _step(
            node,
            name,
            "leak",
            Statement("pipeline.step_fits_inner_unknown"),
        )
        for part, one in inner.items():
            yield from audited(one, _under(name, part))
    else:
        yield _step(
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
def _(node: PrivateEstimatorMixin, name: str) -> Iterator[StepAudit]:
    yield _step(node, name, "private", Statement("pipeline.step_has_certificate"))


@audited.register
def _(node: PublicPreprocessing, name: str) -> Iterator[StepAudit]:
    yield _step(
        node,
        _under(name, "transformer"),
        "public",
        Statement("pipeline.step_fitted_on_public"),
    )
    yield from audited(node.estimator, _under(name, "estimator"))


@audited.register
def _(node: FrozenEstimator, name: str) -> Iterator[StepAudit]:
    if any(map(_is_foreign, parts_of(node.estimator, set()))):
        yield _step(node, name, "leak", _FOREIGN)
        return
    yield _step(node, name, "public", Statement("pipeline.step_fitted_elsewhere"))


def _is_foreign(part: Any) -> bool:
    """Whether a part of a fitted transformer runs code that is not known here."""
    return not is_known(part) or getattr(part, "func", None) is not None


@audited.register
def _(node: FunctionTransformer, name: str) -> Iterator[StepAudit]:
    if not _is_foreign(node):
        yield _step(node, name, "row_wise", Statement("pipeline.step_passes_rows_on"))
        return
    yield _step(
        node,
        name,
        "leak",
        Statement("pipeline.step_function_may_mix"),
    )


def _of_columns(node: Any, name: str) -> StepAudit:
    """Step of a class that learns no more than the number of columns."""
    if not is_known(node):
        return _step(
            node,
            name,
            "leak",
            Statement("pipeline.step_subclass_unknown"),
        )
    return _step(node, name, "row_wise", Statement("pipeline.step_learns_column_count"))


@audited.register(GaussianRandomProjection)
@audited.register(SparseRandomProjection)
def _(node: Any, name: str) -> Iterator[StepAudit]:
    if node.n_components == "auto":
        yield _step(
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
        yield _step(
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
        yield from audited(one, _under(name, part))


@audited.register
def _(node: FeatureUnion, name: str) -> Iterator[StepAudit]:
    for part, one in node.transformer_list:
        yield from audited(one, _under(name, part))


@audited.register
def _(node: ColumnTransformer, name: str) -> Iterator[StepAudit]:
    for part, one, columns in node.transformers:
        if chooses_by_rows(columns):
            yield _step(one, _under(name, part), "leak", CHOSEN_COLUMNS)
        else:
            yield from audited(one, _under(name, part))
    yield from audited(node.remainder, _under(name, "remainder"))


def _of_parts(node: Any, name: str) -> Iterator[StepAudit]:
    """Steps of a wrapper that fits what is within it on the rows as they are."""
    for part, one in getattr(node, "estimators", ()):
        yield from audited(one, _under(name, part))
    for part, one in _nested(node).items():
        yield from audited(one, _under(name, part))
    given = node.get_params(deep=False)
    for part in ("estimator", "regressor", "final_estimator"):
        if part in given and given[part] is None:
            yield _step(node, _under(name, part), "leak", _PLAIN)


_PLAIN = Statement("pipeline.step_none_is_plain")

for passing in (
    FixedThresholdClassifier,
    MultiOutputClassifier,
    MultiOutputRegressor,
    OneVsOneClassifier,
    OneVsRestClassifier,
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
            yield _step(node, name, kind, reason)
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
    yield _step(node, name, "scores", _CHOOSES)
    yield from audited(node.estimator, _under(name, "estimator"))
    for part, one in _candidates(node):
        yield from audited(one, _under(_under(name, "estimator"), part))


@audited.register
def _(node: TransformedTargetRegressor, name: str) -> Iterator[StepAudit]:
    # its transformer is fitted on the target, as any other is on features
    if node.transformer is None and node.func is not None:
        yield _step(
            node,
            _under(name, "func"),
            "leak",
            Statement("pipeline.step_target_function_may_mix"),
        )
    yield from _of_parts(node, name)
