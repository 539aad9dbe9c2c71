"""Fixtures for every test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import browser as browsers

# The models here are small: a second thread costs more than it gives. Read by torch when it is first loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real data beside the project, where it exists."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the shared data folder is not beside this checkout")
    return SHARED_DATA


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser to look at pages with."""
    driver = browsers.start(tmp_path_factory.mktemp("browser"))
    yield driver
    driver.quit()
