from ._aggregator import (
    PATEAggregator,
    noisy_argmax,
    plurality_agreement,
    subsample_votes,
)
from ._pate import PATEClassifier

__all__ = [
    "PATEAggregator",
    "PATEClassifier",
    "noisy_argmax",
    "plurality_agreement",
    "subsample_votes",
]
