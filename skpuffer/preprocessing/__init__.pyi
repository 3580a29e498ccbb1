from ._binner import PublicBinner
from ._clipper import RowNormClipper
from ._imputer import PublicImputer
from ._min_max import PublicMinMaxScaler
from ._one_hot import PublicOneHotEncoder

__all__ = [
    "PublicBinner",
    "PublicImputer",
    "PublicMinMaxScaler",
    "PublicOneHotEncoder",
    "RowNormClipper",
]
