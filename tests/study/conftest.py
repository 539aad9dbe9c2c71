"""What tests of studies share: a small study in a folder of its own, and a cache that is not the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from .small import DECLARATION, write_corpus


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a corpus and a declaration of it."""
    write_corpus(tmp_path / "text.txt")
    (tmp_path / "small.toml").write_text(DECLARATION)
    return tmp_path
