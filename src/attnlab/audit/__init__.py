"""Is it what it claims to be? Checks on anything that attends: operators, models, studies.

`attnlab.audit` is a package and, for whoever audits, a function: `attnlab.audit(my_attention)`. A package
becomes an attribute of its parent the moment it is imported, so a function of the same name beside it would
come and go with the order of imports. The module itself can be called instead; this is all there is to it.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

_HOMES = {
    "run_audit": "attnlab.audit.run",
    "exit_code": "attnlab.audit.run",
    "all_rules": "attnlab.audit.run",
    "as_text": "attnlab.audit.render",
    "as_json": "attnlab.audit.render",
}

__all__ = sorted(_HOMES)


class _CallableModule(ModuleType):
    def __call__(self, *targets: Any, **options: Any) -> Any:
        """Audits every target; see `run_audit`."""
        return self.run_audit(*targets, **options)


sys.modules[__name__].__class__ = _CallableModule


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'attnlab.audit' has no attribute {name!r}")
