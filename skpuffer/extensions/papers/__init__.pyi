from ._discrepancy_caps import (
    mismatch_mean_square,
    monte_carlo_caps,
    realised_mean_square,
    tail_cap,
    tail_route_epsilon,
)
from ._sampled_privacy_loss import SampledPrivacyLoss
from ._vote_simulation import (
    VoteUtilityDisplay,
    argmax_distribution,
    hardmax_auc,
    hardmax_utility,
    make_vote_histograms,
)

__all__ = [
    "SampledPrivacyLoss",
    "VoteUtilityDisplay",
    "argmax_distribution",
    "hardmax_auc",
    "hardmax_utility",
    "make_vote_histograms",
    "mismatch_mean_square",
    "monte_carlo_caps",
    "realised_mean_square",
    "tail_cap",
    "tail_route_epsilon",
]
