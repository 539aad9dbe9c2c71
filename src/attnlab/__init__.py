"""attnlab: the workbench for attention experiments you can trust."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Where each public name lives. Loaded when first asked for (PEP 562), so that `import attnlab` is instant.
_HOMES: dict[str, str] = {
    **dict.fromkeys(("Arm", "LanguageModel", "Results", "Study", "load_study", "run"), "attnlab.study"),
    **dict.fromkeys(("Decoder",), "attnlab.model"),
    **dict.fromkeys(
        ("Attention", "Mask", "Mixer", "Position", "Project", "Score", "Weigh"), "attnlab.attention"
    ),
    **dict.fromkeys(("Verdict", "judge", "judge_many"), "attnlab.verdict"),
    "AttnlabError": "attnlab.errors",
}

# Rooms a user steps into: `attnlab.audit(target)`, `attnlab.verdict.judge(…)`, `attnlab.report.write(…)`.
_MODULES = (
    "attention",
    "audit",
    "corpus",
    "craft",
    "model",
    "report",
    "testing",
    "tokens",
    "training",
    "verdict",
)

__all__ = ["__version__", *_HOMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        home = importlib.import_module(_HOMES[name])
        if name in ("Results", "run"):
            home.Results.drawing = staticmethod(_drawn)
        return getattr(home, name)
    if name in _MODULES:
        return importlib.import_module(f"attnlab.{name}")
    raise AttributeError(f"module 'attnlab' has no attribute {name!r}")


def _drawn(directory: Any) -> str:
    """What a study found, as a notebook shows it: what runs studies does not know of reports."""
    text: str = importlib.import_module("attnlab.report").drawn(directory)
    return text


def __dir__() -> list[str]:
    return sorted(__all__)
