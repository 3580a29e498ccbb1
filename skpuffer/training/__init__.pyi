from ._base import Gradients, LinearGradients
from ._engine import OptimiserRun, RunDefaults, Step, run_defaults, train
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
