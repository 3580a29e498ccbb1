"""The accuracy benchmark: its protocol, its verdicts and what it keeps."""

import importlib
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

ROOT = Path(__file__).parents[1]


@pytest.fixture
def accuracy(monkeypatch, tmp_path):
    """Give the module, with an empty folder of results and neither peers nor files."""
    monkeypatch.syspath_prepend(ROOT)
    module = importlib.import_module("benchmarks.accuracy")
    report = importlib.import_module("benchmarks._report")
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    for name in ("DIFFPRIVLIB_PYTHON", "OPACUS_PYTHON", "TEST_DATA"):
        monkeypatch.delenv(f"SKPUFFER_{name}", raising=False)
    return module


def _row(model, accuracy, setting="defaults", epsilon=1.0, relation="add_remove"):
    return {
        "data": "wine",
        "model": model,
        "setting": setting,
        "relation": relation,
        "epsilon": epsilon,
        "n_seeds": 10,
        "accuracy": accuracy,
        "cpu_seconds": 2.0,
        "first_cpu_seconds": 3.0,
    }


def test_splits_are_scaled_by_training_rows_to_the_unit_ball(accuracy):
    X, y = accuracy.LOADERS["wine"]()
    arrays = accuracy.split(X, y, seed=3)
    for rows in (arrays.X_train, arrays.X_test):
        assert np.linalg.norm(rows, axis=1).max() <= 1 + 1e-12
    assert len(arrays.y_test) == 45
    again = accuracy.split(X, y, seed=3)
    np.testing.assert_array_equal(arrays.X_test, again.X_test)
    # what is held out never moves what is trained on
    _, held_out = train_test_split(
        np.arange(len(y)), test_size=0.25, stratify=y, random_state=3
    )
    moved = X.copy()
    moved[held_out] += 100.0
    moved_arrays = accuracy.split(moved, y, seed=3)
    np.testing.assert_array_equal(arrays.X_train, moved_arrays.X_train)
    assert not np.array_equal(arrays.X_test, moved_arrays.X_test)


def test_new_figures_replace_old_ones_of_the_same_key(accuracy):
    old = pd.DataFrame([_row("a", 0.5), _row("b", 0.6)])
    new = pd.DataFrame([_row("b", 0.7), _row("c", 0.8)])
    merged = accuracy.renewed(old, new, accuracy.KEY).set_index("model")["accuracy"]
    assert merged.to_dict() == {"a": 0.5, "b": 0.7, "c": 0.8}


def test_target_of_the_large_table_follows_the_best_without_privacy(accuracy):
    frame = pd.DataFrame(
        [
            _row(accuracy.REFERENCE, 0.90, "C=1", np.inf, "none"),
            _row(accuracy.REFERENCE, 0.91, "C=100", np.inf, "none"),
        ]
    )
    table = importlib.import_module("benchmarks._accuracy_table")
    goal = table.targets("make_classification", frame)
    assert goal == dict.fromkeys(accuracy.EPSILONS, pytest.approx(0.905))
    assert table.targets("wine", frame)[1.0] == 0.925


def test_a_miss_is_shown_as_one(accuracy, capsys):
    ours = [
        _row("PrivateLogisticRegression", value, epsilon=epsilon)
        for epsilon, value in zip(accuracy.EPSILONS, (0.87, 0.93, 0.97), strict=True)
    ]
    reference = [_row(accuracy.REFERENCE, 0.989, "C=1", np.inf, "none")]
    met, of, gap = accuracy.show("wine", pd.DataFrame(reference + ours))
    assert (met, of) == (2, 3)
    assert gap == pytest.approx(0.019)
    printed = capsys.readouterr().out
    assert "FAIL 0.8700" in printed
    assert "pass 0.9300" in printed
    assert "1.5 x" in printed  # the first fit, as a multiple of scikit-learn's


def test_missing_peers_and_files_are_said_and_skipped(accuracy, capsys, tmp_path):
    assert accuracy.main(["--only", "peers", "--data", "adult"]) == 0
    printed = capsys.readouterr().out
    assert "diffprivlib is skipped" in printed
    assert "opacus is skipped" in printed
    assert "adult is skipped" in printed
    assert not os.listdir(tmp_path)


def test_stored_peers_are_shown_with_their_version(accuracy, capsys, tmp_path):
    rows = [
        {**_row("opacus", value, f"learning rate {k}", epsilon=e), "peer": "1.6.0"}
        for e in accuracy.EPSILONS
        for k, value in enumerate((0.3, 0.9))
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "accuracy_peers.csv", index=False)
    assert accuracy.main(["--only", "peers", "--data", "wine", "--seeds", "1"]) == 0
    printed = capsys.readouterr().out
    assert "opacus 1.6.0, add_remove, best of settings (stored)" in printed
    assert "0.9000" in printed
    assert "0.3000" not in printed
