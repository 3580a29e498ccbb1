"""Markov quilts: records given which a protected one is independent of those beyond."""

from ._base import Quilts

__all__ = ["Quilts"]
