"""Displays: what privacy costs, drawn; and the numbers behind them."""

from ._equivalent_noise import EquivalentNoiseDisplay
from ._noise_family import LightestTail, equivalent_noises, lightest_tail
from ._utility import PrivacyUtilityDisplay

__all__ = [
    "EquivalentNoiseDisplay",
    "LightestTail",
    "PrivacyUtilityDisplay",
    "equivalent_noises",
    "lightest_tail",
]
