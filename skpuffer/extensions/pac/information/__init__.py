"""Information that leaks of a finite prior through noise."""

__all__: list[str] = []
