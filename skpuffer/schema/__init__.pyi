from ._columns import Binning, Category, Number
from ._encoding import Encoding
from ._schema import Schema

__all__ = ["Binning", "Category", "Encoding", "Number", "Schema"]
