"""Transport of projected samples and distributions."""

__all__: list[str] = []
