from skpuffer.extensions.papers import SampledPrivacyLoss as SampledPrivacyLoss
from skpuffer.extensions.papers import VoteUtilityDisplay as VoteUtilityDisplay
from skpuffer.extensions.papers import argmax_distribution as argmax_distribution
from skpuffer.extensions.papers import hardmax_auc as hardmax_auc
from skpuffer.extensions.papers import hardmax_utility as hardmax_utility
from skpuffer.extensions.papers import make_vote_histograms as make_vote_histograms
from skpuffer.extensions.papers import mismatch_mean_square as mismatch_mean_square
from skpuffer.extensions.papers import monte_carlo_caps as monte_carlo_caps
from skpuffer.extensions.papers import realised_mean_square as realised_mean_square
from skpuffer.extensions.papers import tail_cap as tail_cap
from skpuffer.extensions.papers import tail_route_epsilon as tail_route_epsilon
from skpuffer.extensions.sliced import group_privacy_costs as group_privacy_costs
from skpuffer.extensions.sliced import layer_caps as layer_caps
from skpuffer.extensions.sliced import sliced_variance as sliced_variance

__all__ = ["SampledPrivacyLoss", "VoteUtilityDisplay"]
