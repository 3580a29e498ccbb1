"""What is shipped: readable without files or network, and just the published rows."""

import hashlib
import inspect
import re
import tomllib
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import skpuffer.datasets
from skpuffer.datasets import (
    fetch_adult,
    fetch_heart,
    fetch_household_power,
    fetch_student,
    load_adult,
    load_heart,
    load_household_power,
    load_student,
)
from skpuffer.datasets._tables import published, read_excerpt
from tests.refused import refused

SHIPPED = files("skpuffer.datasets") / "data"

CASES = [
    (load_adult, {"subset": "train"}, (4000, 14)),
    (load_adult, {"subset": "test"}, (2000, 14)),
    (load_heart, {}, (303, 13)),
    (load_household_power, {"series": "hours"}, (8760, 5)),
    (load_household_power, {"series": "minutes"}, (10080, 3)),
    (load_student, {"subject": "mathematics"}, (395, 32)),
    (load_student, {"subject": "portuguese"}, (649, 32)),
]
LOADERS = list(dict.fromkeys(load for load, _, _ in CASES))
each_case = pytest.mark.parametrize("load, options, shape", CASES)


@pytest.fixture(autouse=True)
def _no_folder_of_data(monkeypatch, tmp_path):
    """Nothing that is shipped may come from the data directory."""
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "none"))
    monkeypatch.delenv("SKPUFFER_TEST_DATA", raising=False)


@each_case
def test_what_is_shipped(load, options, shape):
    bunch = load(**options)
    assert bunch.data.shape == shape
    X, y = load(**options, return_X_y=True)
    assert_frame_equal(X, bunch.data)
    pd.testing.assert_series_equal(y, bunch.target)
    arrays = load(**options, as_frame=False)
    assert isinstance(arrays.data, np.ndarray)
    assert arrays.data.shape == shape
    assert arrays.frame is None
    assert set(bunch.bounds) == set(bunch.frame.select_dtypes("number"))
    for column, (low, high) in bunch.bounds.items():
        assert bunch.frame[column].dropna().between(low, high).all(), column
    for column, codes in bunch.categories.items():
        assert set(bunch.frame[column].dropna()) <= set(codes), column


@each_case
def test_licence_source_and_choice_are_told(load, options, shape):
    text = load(**options).DESCR
    for word in ("CC BY 4.0", "https://doi.org/10.24432/", "Shipped with this package"):
        assert word in text
    notice = (SHIPPED / "ATTRIBUTION.txt").read_text()
    (doi,) = set(re.findall(r"10\.24432/\w+", text))
    assert doi in notice
    assert "creativecommons.org/licenses/by/4.0" in notice


def test_every_shipped_file_is_small_and_attributed():
    notice = (SHIPPED / "ATTRIBUTION.txt").read_text()
    shipped = [path for path in SHIPPED.iterdir() if path.name.endswith(".gz")]
    assert len(shipped) == len(CASES)
    for path in shipped:
        assert path.name in notice
        assert len(path.read_bytes()) < 100_000


def test_a_wheel_ships_them():
    root = Path(__file__).parents[2]
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    shipped = settings["tool"]["setuptools"]["package-data"]
    assert shipped["skpuffer.datasets"] == ["data/*"]
    licence = "skpuffer/datasets/data/ATTRIBUTION.txt"
    assert licence in settings["project"]["license-files"]
    assert (root / licence).is_file()


def test_parameters_and_exports():
    own = {
        load_adult: {"subset": "train"},
        load_household_power: {"series": "hours"},
        load_student: {"subject": "mathematics"},
    }
    for load in LOADERS:
        found = {
            name: parameter.default
            for name, parameter in inspect.signature(load).parameters.items()
        }
        assert found == own.get(load, {}) | {"return_X_y": False, "as_frame": True}
    names = [name for name in skpuffer.datasets.__all__ if name.startswith("load_")]
    assert names == sorted(load.__name__ for load in LOADERS)


@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize("bad", [{"as_frame": "yes"}, {"return_X_y": 1}])
def test_options_are_checked(load, bad):
    (name,) = bad
    with pytest.raises(ValueError, match=name):
        load(**bad)


def test_unknown_parts_are_refused():
    with refused(ValueError, "parameter.option_unknown", name="subset"):
        load_adult(subset="dev")
    with refused(ValueError, "parameter.option_unknown", name="series"):
        load_household_power("minutes_26_days")
    with refused(ValueError, "parameter.option_unknown", name="subject"):
        load_student("physics")


def test_all_of_adult_is_train_then_test():
    everyone = load_adult(subset="all").frame
    assert_frame_equal(everyone[:4000], load_adult().frame)
    test = load_adult(subset="test").frame
    assert_frame_equal(everyone[4000:].reset_index(drop=True), test)


@pytest.mark.parametrize("subject", published("student").files)
def test_student_files_are_the_published_bytes(subject):
    table = published("student").files[subject]
    content = read_excerpt(table.ready_name + ".gz")
    assert hashlib.sha256(content).hexdigest() == table.sha256


# Against the published files, where they are.


@pytest.mark.parametrize("subset, size", [("train", 4000), ("test", 2000)])
def test_adult_is_the_draw_it_says(data_dir, subset, size):
    whole = fetch_adult(subset=subset, data_home=data_dir, download_if_missing=False)
    drawn = np.random.default_rng(0).choice(len(whole.frame), size, replace=False)
    rows = whole.frame.iloc[np.sort(drawn)].reset_index(drop=True)
    assert_frame_equal(load_adult(subset=subset).frame, rows, check_exact=True)


@pytest.mark.parametrize(
    "series, published", [("hours", "hours"), ("minutes", "minutes_26_days")]
)
def test_power_is_the_beginning(data_dir, series, published):
    shipped = load_household_power(series).frame
    whole = fetch_household_power(
        published, data_home=data_dir, download_if_missing=False
    ).frame
    left_out = ["Global_reactive_power", "Voltage", "Global_intensity"]
    beginning = whole.drop(columns=left_out).iloc[: len(shipped)]
    assert_frame_equal(shipped, beginning, check_exact=True)


@pytest.mark.parametrize(
    "load, fetch, options",
    [
        (load_heart, fetch_heart, {}),
        (load_student, fetch_student, {"subject": "mathematics"}),
        (load_student, fetch_student, {"subject": "portuguese"}),
    ],
)
def test_small_tables_are_whole(data_dir, load, fetch, options):
    whole = fetch(data_home=data_dir, download_if_missing=False, **options)
    assert_frame_equal(load(**options).frame, whole.frame, check_exact=True)
