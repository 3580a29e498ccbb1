"""Quilts: records that, once known, hide a protected one from all beyond them."""

from ._base import Quilts

__all__ = ["Quilts"]
