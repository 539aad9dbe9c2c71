"""scipy.stats, loaded when something of it is first asked for (PEP 562): that takes longer than a study's own
code, and training does not need it."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("scipy.stats"), name)
