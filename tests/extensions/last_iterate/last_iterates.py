"""Training runs of which only the last iterate leaves, for tests."""

from skpuffer.releases import GradientRelease, Optimiser
from skpuffer.training import Logistic, RecordGradient

#: Rows of norm one and no intercept: a curvature of 1/4, so that steps may be 8 long.
RECORD = RecordGradient(loss=Logistic(), data_norm=1.0, intercept=0.0, n_classes=2)

#: The step at which the penalties of `penalty_for` contract by what they are for.
STEP = 4.0


def penalty_for(contraction, step=STEP):
    """Weight of the penalty under which a step contracts by so much."""
    return (1 / contraction - 1) / step


def last_iterate(n_records=60, n_steps=6, sampling="full_batch", **options):
    """A run; options of the optimiser and of the release, by their names."""
    of_steps = {"learning_rate": STEP}
    for name in Optimiser.__dataclass_fields__:
        if name in options:
            of_steps[name] = options.pop(name)
    return GradientRelease(
        **{
            "n_records": n_records,
            "n_steps": n_steps,
            "sampling": sampling,
            "published": "result",
            "record": RECORD,
            "optimiser": Optimiser(**of_steps),
        }
        | options
    )
