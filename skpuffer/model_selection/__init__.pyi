from ._private_score import PrivateScore
from ._search import PrivateGridSearchCV, PrivateRandomizedSearchCV

__all__ = ["PrivateGridSearchCV", "PrivateRandomizedSearchCV", "PrivateScore"]
