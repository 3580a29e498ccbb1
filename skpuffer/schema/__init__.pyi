from ._binning import Binning
from ._columns import Category, Number
from ._encoding import Encoding
from ._schema import Schema

__all__ = ["Binning", "Category", "Encoding", "Number", "Schema"]
