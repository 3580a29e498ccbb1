"""Displays: what privacy costs, drawn."""

from ._utility import PrivacyUtilityDisplay

__all__ = ["PrivacyUtilityDisplay"]
