"""What scikit-learn's tasks tell of the steps before an estimator in its pipeline."""

from collections.abc import Iterator

from sklearn.callback import CallbackContext

from skpuffer.exceptions import Statement

__all__ = ["unnoised_steps"]

#: Names of the tasks in which a pipeline fits its steps.
_STEP = ("fit-transform-", "fit-final-", "fit-predict-final-")


def unnoised_steps(task: CallbackContext) -> tuple[Statement, ...]:
    """State each step before an estimator that was fitted without noise.

    Parameters
    ----------
    task : CallbackContext
        Of the fit of the estimator.

    Returns
    -------
    tuple of Statement
        Those that are known: steps that support callbacks name themselves, as
        `StandardScaler` does, and others do not.
    """
    found: list[str] = []
    while task.parent is not None:
        if str(task.source_task_name).startswith(_STEP):
            for other in task.parent:
                if other.parent is task.parent and other.task_id < task.task_id:
                    found += _fitted_alone(other)
        task = task.parent
    return tuple(
        Statement("pipeline.unnoised_step_before", step=step)
        for step in dict.fromkeys(found)
    )


def _fitted_alone(step: CallbackContext) -> Iterator[str]:
    """Classes of what was fitted in a step, and is no part of a release."""
    parents = {id(task.parent) for task in step}
    for task in step:
        # the root task of an estimator in that of its pipeline, without any of its own
        if task.source_task_name is not None and id(task) not in parents:
            yield task.estimator_name
