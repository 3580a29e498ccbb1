from ._aggregator import PATEAggregator
from ._agreement import plurality_agreement, subsample_votes
from ._argmax import noisy_argmax
from ._pate import PATEClassifier

__all__ = [
    "PATEAggregator",
    "PATEClassifier",
    "noisy_argmax",
    "plurality_agreement",
    "subsample_votes",
]
