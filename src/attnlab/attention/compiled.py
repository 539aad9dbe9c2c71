"""Small C++ files, compiled at their first use and kept.

Plain C++ called through ctypes, without PyTorch's headers: it compiles in a second or two and needs nothing
but a compiler. The result is kept in the user's cache, under a name made of the source, the flags and the
processor, since `-march=native` code runs on no other.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

# Compiled and linked apart: linking with -ffast-math would make the whole process flush denormal numbers.
_SHARED = Path(__file__).parent  # of what any of them may include
_COMPILE = ("-O3", "-march=native", "-ffast-math", "-std=c++17", "-fPIC", f"-I{_SHARED}", "-c")
_LINK = ("-shared", "-pthread")


@functools.cache
def library(source: Path) -> ctypes.CDLL | str:
    """The compiled file, or why it cannot be had."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        return "there is no C++ compiler (c++ or g++, or one named by CXX)"
    kept = _cache() / f"{source.stem}-{_fingerprint(source, compiler)}.so"
    try:
        if not kept.exists():
            _compile(compiler, source, kept)
        return ctypes.CDLL(str(kept))
    except subprocess.CalledProcessError as error:
        return f"{compiler} could not compile {source.name}: {error.stderr.strip().splitlines()[-1:]}"
    except OSError as error:
        return f"{source.name} could not be compiled or loaded: {error}"


def library_or_warning(source: Path, without: str) -> ctypes.CDLL | None:
    """The compiled file; None where it cannot be had, with a warning that says how things go without."""
    made = library(source)
    if isinstance(made, str):
        warnings.warn(f"{without}: {made}", stacklevel=3)
        return None
    return made


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attnlab"


def _fingerprint(source: Path, compiler: str) -> str:
    about = [compiler, *_COMPILE, *_LINK, platform.machine(), _processor()]
    files = [source, *sorted(_SHARED.glob("*.h")), *sorted(source.parent.glob("*.h"))]
    texts = b"".join(file.read_bytes() for file in files)
    return hashlib.sha256(texts + "\n".join(about).encode()).hexdigest()[:16]


def _processor() -> str:
    """What the processor can do, as Linux tells it; its name elsewhere."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


def _compile(compiler: str, source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as made_in:
        made, linked = Path(made_in) / "made.o", Path(made_in) / "linked.so"
        for command in ([*_COMPILE, str(source), "-o", str(made)], [*_LINK, str(made), "-o", str(linked)]):
            subprocess.run([compiler, *command], check=True, capture_output=True, text=True)
        linked.replace(target)  # at once: another process may be doing the same
