"""An engine adds of each record what the contribution says, gaps included."""

import numpy as np
import pytest

from skpuffer.summary._cells import Bins, Level, Levels, Signs
from skpuffer.summary._count_tree import CountTree
from skpuffer.summary._gaps import Gaps, Ones, Stacked
from skpuffer.summary._mean import Moments
from skpuffer.utils._bounds import Bounds

BOUNDS = Bounds((-1.0, 5.0), (2.0, 5.5))
EDGES = (-1.0, 0.0, 0.5, 2.0, 3.0)

# columns: two numbers, their marks, codes of three levels
BLOCKS = {
    "ones": Ones(),
    "signs": Signs((0, 1)),
    "signs with gaps": Signs((0, 1), (2, 3)),
    "means": Moments((0, 1), BOUNDS),
    "moments": Moments((0, 1), BOUNDS, 2),
    "means with gaps": Moments((0, 1), BOUNDS, 1, (2, 3)),
    "moments with gaps": Moments((0, 1), BOUNDS, 2, (2, 3)),
    "bins": Bins(0, EDGES),
    "bins with gaps": Bins(0, EDGES, 2),
    "tree": CountTree(0, EDGES, 0.5),
    "tree with gaps": CountTree(0, EDGES, 0.5, 2),
    "levels": Levels(4, 3),
    "level": Level(4, 1, code=1),
    "gaps": Gaps((0, 1), (2, 3), (1.0, 1.5)),
}
BLOCKS["stacked"] = Stacked(tuple(BLOCKS.values()))


@pytest.mark.parametrize("name", BLOCKS)
def test_an_engine_adds_of_each_record_what_it_contributes(name):
    """Each record in a cell of its own, so that nothing cancels."""
    rng, n, block = np.random.default_rng(0), 60, BLOCKS[name]
    numbers = rng.normal([0.5, 5.2], [2.0, 1.0], size=(n, 2))
    X = np.column_stack([numbers, rng.random((n, 2)) < 0.3, rng.integers(3, size=n)])
    parts = block.parts(list(X.T))
    found = np.reshape([part.values for part in parts], (len(parts), n)).T
    exact = block.from_parts(found.astype(float), np.ones((n, 1)))
    np.testing.assert_allclose(exact, block(X), atol=1e-12)
    # so that no gap adds more than is paid for
    apart = np.linalg.norm(exact[:, np.newaxis] - exact, axis=2).max()
    if hasattr(block, "sensitivity"):
        most = block.sensitivity.value("replace", 2, block.dim)
        assert apart <= most * (1 + 1e-12)
