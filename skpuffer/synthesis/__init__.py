"""Synthetic tables: rows that may be shared in place of the private ones."""

from ._synthesizer import PrivateTableSynthesizer

__all__ = ["PrivateTableSynthesizer"]
