"""Releases: what is computed from a table and made noisy, be it a sum or a choice.

An estimator makes a release and executes it from the same object, so that what is
accounted cannot differ from what is run. A release knows no scenario, no budget and
no noise.
"""

from skpuffer.utils._rooms import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
