"""What papers of the field published and the product does not rest on.

Estimates, simulations and figures, kept importable for those who read the papers.
"""

from ._sampled_privacy_loss import SampledPrivacyLoss
from ._vote_simulation import (
    argmax_law,
    hardmax_auc,
    hardmax_utility,
    make_vote_histograms,
)
from ._vote_utility import VoteUtilityDisplay

__all__ = [
    "SampledPrivacyLoss",
    "VoteUtilityDisplay",
    "argmax_law",
    "hardmax_auc",
    "hardmax_utility",
    "make_vote_histograms",
]
