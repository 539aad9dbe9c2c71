"""Names in the user's own files: `path/to/file.py:Name`."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import re
import sys
from contextvars import ContextVar
from pathlib import Path

from attnlab.errors import RequestError, unknown

# True while a user's file is being executed: starting a study from there would never end.
loading: ContextVar[bool] = ContextVar("loading", default=False)


def splits_into_file_and_name(text: str) -> bool:
    """Whether `text` has the form `something.py:Name`."""
    return re.fullmatch(r".+\.py:[A-Za-z_][\w.]*", text, re.DOTALL) is not None


def load_from_file(text: str, base: Path | None = None) -> object:
    """The object that `file.py:Name` names; a relative path counts from `base` (or the current directory)."""
    path_text, name = text.rsplit(":", 1)
    try:
        path = ((base or Path.cwd()) / Path(path_text).expanduser()).resolve()
        is_file = path.is_file()
    # Too long a name, a null character, a home that does not exist, a loop of links.
    except (OSError, ValueError, RuntimeError) as error:
        raise RequestError(f"{text!r}: not a usable path ({error})") from None
    if not is_file:
        raise RequestError(f"{text!r}: there is no file {path}")
    found: object = _module_of(path, path.stat().st_mtime_ns)
    for step in name.split("."):
        if not hasattr(found, step):
            names = [n for n in vars(found) if not n.startswith("_")] if hasattr(found, "__dict__") else []
            raise RequestError(f"{path.name}: {unknown('object', step, names)}")
        found = getattr(found, step)
    return found


@functools.cache
def _module_of(path: Path, _changed: int) -> object:
    running = sys.modules.get("__main__")
    if (
        running is not None
        and getattr(running, "__file__", None)
        and Path(str(running.__file__)).resolve() == path
    ):
        return running
    # Two files of one name in different folders are two modules.
    place = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    spec = importlib.util.spec_from_file_location(f"_attnlab_user_{path.stem}_{place}", path)
    if spec is None or spec.loader is None:
        raise RequestError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its own module up by name while it is being made.
    sys.modules[module.__name__] = module
    token = loading.set(True)
    try:
        spec.loader.exec_module(module)
    except RequestError:
        raise
    except (Exception, SystemExit) as error:
        raise RequestError(f"{path}: could not be loaded: {type(error).__name__}: {error}") from error
    finally:
        loading.reset(token)
    return module
