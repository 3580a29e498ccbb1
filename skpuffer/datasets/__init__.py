"""Real tables to try private estimators on, as scikit-learn fetchers."""

from ._adult import fetch_adult
from ._heart import fetch_heart
from ._rice import fetch_rice
from ._student import fetch_student

__all__ = ["fetch_adult", "fetch_heart", "fetch_rice", "fetch_student"]
