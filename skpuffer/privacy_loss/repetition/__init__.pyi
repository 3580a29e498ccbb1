from ._curve import BestRunCurve
from ._runs import RandomRuns

__all__ = ["BestRunCurve", "RandomRuns"]
