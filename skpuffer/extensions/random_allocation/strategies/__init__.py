"""Noise that is correlated across the steps of a run."""

__all__: list[str] = []
