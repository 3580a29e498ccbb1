"""What every part leans on, and knows of none of them."""

__all__ = []
