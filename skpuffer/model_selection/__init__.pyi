from ._grid_search import PrivateGridSearchCV
from ._randomized_search import PrivateRandomizedSearchCV

__all__ = ["PrivateGridSearchCV", "PrivateRandomizedSearchCV"]
