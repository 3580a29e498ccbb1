"""Noise families: sampling, privacy curves against a shift, and calibration.

`sample` draws in double precision, whose low bits can reveal a value (Mironov, 2012);
estimators without a seed draw from exact distributions on a public grid.
"""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
