"""Estimates, simulations and figures of papers of the field.

The rest of the library does not rest on them; they are kept for readers of the papers.
"""

from ._sampled_privacy_loss import SampledPrivacyLoss
from ._vote_simulation import (
    argmax_distribution,
    hardmax_auc,
    hardmax_utility,
    make_vote_histograms,
)
from ._vote_utility import VoteUtilityDisplay

__all__ = [
    "SampledPrivacyLoss",
    "VoteUtilityDisplay",
    "argmax_distribution",
    "hardmax_auc",
    "hardmax_utility",
    "make_vote_histograms",
]
