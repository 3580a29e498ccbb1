"""Which steps of a pipeline see private rows, and what each of them does with them."""

import html
from collections.abc import Collection
from dataclasses import dataclass

from sklearn.base import BaseEstimator

from skpuffer._template._steps import StepAudit as StepAudit
from skpuffer._template._steps import audited
from skpuffer.exceptions import Statement, value_error


@dataclass(frozen=True)
class PipelineAudit:
    """Uses of private rows by every step of a pipeline.

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

    A private estimator is private of the rows that reach it. Steps before it that are
    fitted on the same rows without noise, and wrappers that repeat or weigh records,
    release what no certificate covers.

    Parameters
    ----------
    estimator : estimator
        A pipeline, search or other estimator, fitted or not.
    row_wise : collection of str, default=()
        Names of steps that are declared to change each row by itself, such as
        :class:`~sklearn.preprocessing.FunctionTransformer`.

    Returns
    -------
    audit : PipelineAudit

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
