"""Privacy loss of records in bins."""

__all__: list[str] = []
