"""A command of attnlab, asked for an answer in JSON: in a process of its own that has only so long.

What it loads and runs cannot reach into the page, and ends with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.errors import RequestError

PATIENCE = 120.0  # seconds
_MOST_SAID = 2000  # characters of what a process that broke down said


def ask(arguments: Sequence[str], folder: Path, patience: float = PATIENCE) -> list[Mapping[str, Any]]:
    """The list that `attnlab ARGUMENTS` prints as JSON, started in a folder; or what it complains of."""
    process = subprocess.Popen(
        [sys.executable, "-m", "attnlab", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that what it starts ends with it
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        said, complaint = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        raise RequestError(
            f"the {arguments[0]} did not come to an end within {patience:g} seconds, and was ended"
        ) from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    try:
        # Code of others may print what it likes before the answer.
        text = said.decode("utf-8", "replace")
        found: list[Mapping[str, Any]] = json.loads(text[text.index("[\n") if "[\n" in text else 0 :])
        return found
    except ValueError:
        reason = complaint.decode("utf-8", "replace").strip()[-_MOST_SAID:]
        raise RequestError(
            reason or f"the {arguments[0]} ended with exit code {process.returncode}"
        ) from None
