"""Displays: what privacy costs, drawn; and the numbers behind them."""

from ._equivalent_noise import EquivalentNoiseDisplay
from ._noise_family import LightestTail, equivalent_noises, lightest_tail
from ._utility import PrivacyUtilityDisplay
from ._vote_simulation import (
    argmax_law,
    hardmax_auc,
    hardmax_utility,
    make_vote_histograms,
)
from ._vote_utility import VoteUtilityDisplay

__all__ = [
    "EquivalentNoiseDisplay",
    "LightestTail",
    "PrivacyUtilityDisplay",
    "VoteUtilityDisplay",
    "argmax_law",
    "equivalent_noises",
    "hardmax_auc",
    "hardmax_utility",
    "lightest_tail",
    "make_vote_histograms",
]
