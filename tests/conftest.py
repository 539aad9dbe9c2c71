"""Fixtures for every test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# The models here are small: a second thread costs more than it gives. Read by torch when it is first loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real data beside the project, where it exists."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the shared data folder is not beside this checkout")
    return SHARED_DATA
