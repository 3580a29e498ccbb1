from ._base import Gradients
from ._base import LinearGradients as LinearGradients
from ._engine import OptimiserRun as OptimiserRun
from ._engine import RunDefaults as RunDefaults
from ._engine import Step as Step
from ._engine import run_defaults as run_defaults
from ._engine import train
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
)
from ._losses import make_loss as make_loss
from ._perceptron import PerceptronGradients as PerceptronGradients
from ._record_gradient import RecordGradient
from ._training import Training

__all__ = [
    "Gradients",
    "Hinge",
    "Huber",
    "HuberHinge",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "Multinomial",
    "RecordGradient",
    "SmoothLoss",
    "Squared",
    "Training",
    "run_defaults",
    "train",
]
