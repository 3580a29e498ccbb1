from ._base import Gradients
from ._engine import Step, train
from ._linear import LinearGradients
from ._losses import (
    Hinge,
    Huber,
    HuberHinge,
    Logistic,
    Loss,
    MulticlassHinge,
    Multinomial,
    SmoothLoss,
    Squared,
    make_loss,
)
from ._optimiser import OptimiserRun, RunDefaults, run_defaults
from ._perceptron import PerceptronGradients
from ._record_gradient import RecordGradient
from ._training import Training

__all__ = [
    "Gradients",
    "Hinge",
    "Huber",
    "HuberHinge",
    "LinearGradients",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "Multinomial",
    "OptimiserRun",
    "PerceptronGradients",
    "RecordGradient",
    "RunDefaults",
    "SmoothLoss",
    "Squared",
    "Step",
    "Training",
    "make_loss",
    "run_defaults",
    "train",
]
