"""Oracles of slices."""

import json
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def sliced():
    path = Path(__file__).parents[2] / "oracles" / "sliced.json"
    return json.loads(path.read_text("utf-8"))
