"""Tables that are memory maps: trained on as the same rows in memory are."""

import numpy as np
import pytest

from skpuffer.linear_model import PrivateLogisticRegression, PrivateRidge
from skpuffer.releases import GradientRelease
from skpuffer.summary import (
    PrivateMean,
    PrivateQuantile,
    PrivateStandardScaler,
    PrivateSummary,
)
from skpuffer.training import LinearGradients, Logistic, Training
from tests.refused import refused

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
        PrivateLogisticRegression(
            classes=[0, 1], training=Training(batch_size=100), random_state=0
        ),
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


@pytest.mark.parametrize("sampling", ["full_batch", "fixed_size"])
def test_a_row_that_grows_during_a_run_is_refused(sampling, tmp_path):
    """Records are measured once, and are no longer than that at any later step."""
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, (N, 3))
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r+")
    gradients = LinearGradients(Logistic(), mapped, rows[:, 0] > 0)
    size = None if sampling == "full_batch" else 100
    release = GradientRelease(
        n_records=N, n_steps=2, sampling=sampling, batch_size=size, clip_norm=0.1
    )
    index = None if size is None else np.arange(size)
    parameters = np.ones(gradients.dim)
    gradients.clipped_sum(parameters, index, release)
    mapped[7] *= 1000.0
    with refused(ValueError, "gradient.memory_map_changed"):
        gradients.clipped_sum(parameters, index, release)


SUMMARIES = {
    "mean": PrivateMean(bounds=(-1, 1), random_state=0),
    "moments": PrivateStandardScaler(bounds=(-1, 1), random_state=0),
    "counts": PrivateSummary(bounds=(-1, 1), statistics=["histogram"], random_state=0),
    "tree": PrivateSummary(bounds=(-1, 1), statistics=["median"], random_state=0),
    "quantile": PrivateQuantile(bounds=(-1, 1), random_state=0),
}


def published(model):
    held = {"mean_", "var_", "result_", "quantiles_"} & vars(model).keys()
    return {name: np.asarray(getattr(model, name)) for name in held}


@pytest.mark.parametrize("value", [50.0, np.inf, np.nan])
@pytest.mark.parametrize("name", SUMMARIES)
def test_a_map_that_changes_once_it_was_read_is_clipped_or_refused(
    name, value, tmp_path, monkeypatch
):
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, (N, 3))
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r+")
    model, changed = SUMMARIES[name], rows.copy()
    changed[7, 1] = 1.0  # as it is clipped
    expected = published(model.fit(changed))
    plan = type(model)._plan_fit

    def write(self, *args, **kwargs):
        made = plan(self, *args, **kwargs)
        mapped[7, 1] = value
        return made

    monkeypatch.setattr(type(model), "_plan_fit", write)
    # the records of a quantile are compared, and NaN is read as its upper bound
    if np.isnan(value) and name != "quantile":
        with refused(
            ValueError, ("release.value_not_finite", "summary.memory_map_changed")
        ):
            model.fit(mapped)
        assert not published(model)
    else:
        found = published(model.fit(mapped))
        assert found.keys() == expected.keys()
        for key in found:
            np.testing.assert_array_equal(found[key], expected[key])
