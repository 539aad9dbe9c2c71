"""Reports: a study's directory as one page a reader can check, and as a table to print or paste."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnlab.report.notebook import drawn
    from attnlab.report.page import write
    from attnlab.report.printed import table

# Loaded when first asked for: what draws the pictures takes longer to load than some records to read.
_HOMES = {
    "drawn": "attnlab.report.notebook",
    "table": "attnlab.report.printed",
    "write": "attnlab.report.page",
}

__all__ = ["drawn", "table", "write"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'attnlab.report' has no attribute {name!r}")
