"""Tables that are memory maps: trained on as the same rows in memory are."""

import numpy as np
import pytest

from skpuffer.linear_model import PrivateLogisticRegression, PrivateRidge
from skpuffer.summary import PrivateStandardScaler

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.PrivacyWarning")

N = 3000


@pytest.fixture
def mapped(tmp_path):
    """Give rows, and the same as a file that is mapped to memory."""
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, (N, 3))
    path = tmp_path / "rows.dat"
    whole = np.memmap(path, dtype=np.float64, mode="w+", shape=rows.shape)
    whole[:] = rows
    whole.flush()
    return rows, np.memmap(path, dtype=np.float64, mode="r", shape=rows.shape)


@pytest.mark.parametrize(
    "model",
    [
        PrivateLogisticRegression(classes=[0, 1], random_state=0),
        PrivateLogisticRegression(classes=[0, 1], batch_size=100, random_state=0),
        PrivateRidge(target_bounds=(0, 1), solver="moments", random_state=0),
    ],
    ids=["full batches", "batches", "moments"],
)
def test_a_mapped_table_trains_the_same_model(model, mapped):
    rows, file = mapped
    y = (rows[:, 0] > 0).astype(int)
    in_memory = model.fit(rows, y).coef_.copy()
    np.testing.assert_array_equal(model.fit(file, y).coef_, in_memory)


def test_a_mapped_table_is_summed_alike(mapped):
    rows, file = mapped
    scaler = PrivateStandardScaler(bounds=(-1, 1), random_state=0)
    in_memory = scaler.fit(rows).var_.copy()
    np.testing.assert_array_equal(scaler.fit(file).var_, in_memory)
