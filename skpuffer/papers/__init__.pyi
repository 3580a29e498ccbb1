from skpuffer.extensions.papers import (
    SampledPrivacyLoss,
    VoteUtilityDisplay,
    argmax_distribution,
    hardmax_auc,
    hardmax_utility,
    make_vote_histograms,
    mismatch_mean_square,
    monte_carlo_caps,
    realised_mean_square,
    tail_cap,
    tail_route_epsilon,
)
from skpuffer.extensions.sliced import group_privacy_costs, layer_caps, sliced_variance

__all__ = [
    "SampledPrivacyLoss",
    "VoteUtilityDisplay",
    "argmax_distribution",
    "group_privacy_costs",
    "hardmax_auc",
    "hardmax_utility",
    "layer_caps",
    "make_vote_histograms",
    "mismatch_mean_square",
    "monte_carlo_caps",
    "realised_mean_square",
    "sliced_variance",
    "tail_cap",
    "tail_route_epsilon",
]
