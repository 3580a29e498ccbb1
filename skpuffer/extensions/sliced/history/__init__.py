"""Caps of gradients that hold whatever the run released before."""

__all__: list[str] = []
