"""Outputs of a known prior, as a scenario offers them to accountants."""

import numpy as np

from skpuffer.releases import QueryRelease
from skpuffer.scenarios import OutputSamples, RecordScenario
from tests.accountants.contract import Offering, unread

#: What is in each of four outputs in the plane, with the published noise for them.
CORNERS = [[4.0, 1.0], [4.0, -1.0], [-4.0, 1.0], [-4.0, -1.0]]


def prior(points, weights=None, *, regime="enumerated", release=None, **fields):
    """A release and a scenario that offers outputs at points, and nothing else."""
    points = np.atleast_2d(np.asarray(points, dtype=float))
    weights = np.full(len(points), 1 / len(points)) if weights is None else weights
    weights = np.asarray(weights, dtype=float)
    options = {"n_records": 5, "dim": points.shape[1]} | (release or {})
    made = QueryRelease(query=unread, **options)
    fact = OutputSamples(
        draws=points,
        weights=weights,
        groups=np.arange(len(points)),
        regime=regime,
        **{"entropy": float(-weights @ np.log(weights)), **fields},
    )
    bound = RecordScenario().bind(made.context)
    return made, Offering(bound, OutputSamples, lambda r, norm: fact)


def line(*points, **options):
    """Outputs of one coordinate."""
    return prior(np.reshape(points, (-1, 1)), **options)


def bits(n):
    """All rows of so many bits."""
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1
