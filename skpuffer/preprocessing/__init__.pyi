from ._clipper import PublicBinner, PublicImputer, PublicMinMaxScaler, RowNormClipper
from ._one_hot import PublicOneHotEncoder

__all__ = [
    "PublicBinner",
    "PublicImputer",
    "PublicMinMaxScaler",
    "PublicOneHotEncoder",
    "RowNormClipper",
]
