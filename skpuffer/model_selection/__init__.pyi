from ._search import PrivateGridSearchCV, PrivateRandomizedSearchCV

__all__ = ["PrivateGridSearchCV", "PrivateRandomizedSearchCV"]
