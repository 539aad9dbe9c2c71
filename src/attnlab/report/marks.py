"""The sign that goes with a word wherever it is shown, so that nothing is said by colour alone."""

from __future__ import annotations

MARKS = {
    "better": "▲",
    "worse": "▼",
    "equivalent": "≈",
    "undecided": "?",
    "invalid": "✕",
    "diverged": "↯",
    "failed": "!",
    "baseline": "●",
    "pass": "✓",
    "fail": "✕",
    "skip": "–",
    "error": "!",
    "ok": "✓",
    "equal": "=",
    "not equal": "≠",
}
