"""Decompositions from one noisy release of second moments."""

__all__: list[str] = []
