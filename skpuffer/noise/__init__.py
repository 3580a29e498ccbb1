"""Noise families: sampling, privacy curves against a shift, and calibration.

A family knows nothing of data, secrets or estimators. It tells the Rényi divergence
and the hockey-stick divergence of the pair "noise shifted by a displacement" and
"noise", and the smallest scale that keeps either below a target.

Every statement is about real arithmetic. Draws of `sample` are in double precision,
whose low bits can give a value away (Mironov, 2012); estimators without a seed draw
from exact distributions on a public grid, where a family has them.
"""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
