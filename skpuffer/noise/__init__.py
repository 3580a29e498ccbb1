"""Noise families: sampling, privacy curves against a shift, and calibration.

A family knows nothing of data, secrets or estimators. Of the pair "noise shifted by a
displacement" and "noise" it tells the Rényi divergence, the hockey-stick divergence,
and the smallest scale that keeps either below a target.

Every statement is about real arithmetic. The noise is drawn in double precision, whose
low bits can give a value away (Mironov, 2012); round a release to a public grid where
that matters.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
