from ._binning import Binning
from ._check import TableCheck
from ._columns import Category, Date, Number, Time
from ._encoding import Encoding
from ._schema import Schema

__all__ = [
    "Binning",
    "Category",
    "Date",
    "Encoding",
    "Number",
    "Schema",
    "TableCheck",
    "Time",
]
