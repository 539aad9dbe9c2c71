"""A directory of made-up studies, and a page over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..report.synthetic_study import HALF_DONE, HOSTILE, HUGE, INVALID, NORMAL
from .page import Page

SECRET = "nothing of this may be seen on the page"


@pytest.fixture(scope="package")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    above = tmp_path_factory.mktemp("above")
    (above / "secret.json").write_text(f'{{"study": {{"question": "{SECRET}"}}}}')
    (above / "secret.txt").write_text(SECRET)
    root = above / "studies"
    for case in (NORMAL, INVALID, HALF_DONE, HUGE, HOSTILE):
        case.write(root / case.name)
    (root / "nothing").mkdir()
    (root / "broken").mkdir()
    (root / "broken" / "study.json").write_text("{")
    return root


@pytest.fixture(scope="package")
def page(root: Path) -> Iterator[Page]:
    served = Page(root)
    yield served
    assert served.close() == ""
