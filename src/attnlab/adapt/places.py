"""Where a checkpoint lies: a directory, a package that carries one, or a name on the hub."""

from __future__ import annotations

import difflib
import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

from attnlab.errors import RequestError

PACKAGE = "package:"


@dataclass(frozen=True)
class Place:
    """What transformers is given to load from, and whether that is a directory of this machine."""

    named: str  # as the declaration says it
    source: str  # a path, or the hub's name
    folder: Path | None  # None: on the hub

    def __str__(self) -> str:
        return self.named


def find(named: str, base: Path | None = None) -> Place:
    """The place that a declaration names; a relative path counts from `base` (or the current directory).

    `package:NAME` is the directory of weights inside an installed Python package. Whatever is no directory
    here, and does not look like a path, is a name on the hub.
    """
    if not named.strip() or "\0" in named:
        raise RequestError(f"{named!r}: a checkpoint is a directory, package:NAME, or a name on the hub")
    if named.startswith(PACKAGE):
        folder = _in_package(named.removeprefix(PACKAGE))
        return Place(named, str(folder), folder)
    try:
        path = (base or Path.cwd()) / Path(named).expanduser()
        if path.is_dir():
            return Place(named, str(path), path)
    except (OSError, RuntimeError) as error:
        raise RequestError(f"{named!r}: not a usable path ({error})") from None
    if named.startswith((".", "/", "~")) or named.count("/") > 1:
        raise RequestError(_no_directory(named, path))
    return Place(named, named, None)


def _in_package(name: str) -> Path:
    try:
        files = importlib.metadata.distribution(name).files or []
    except importlib.metadata.PackageNotFoundError:
        raise RequestError(f"no package {name!r} is installed: pip install {name}") from None
    # The shallowest one: some packages carry further configurations below their model.
    folders = sorted(
        {Path(str(f.locate())).parent for f in files if f.name == "config.json"}, key=lambda p: len(p.parts)
    )
    for folder in folders:
        if any(folder.glob("*.safetensors")):
            return folder
    gguf = [f.name for f in files if f.name.endswith(".gguf")]
    if gguf:
        raise RequestError(
            f"the package {name!r} carries its weights as {gguf[0]}, a file of another format: make it "
            "a directory first (attnlab convert)"
        )
    raise RequestError(
        f"the package {name!r} carries no directory with a config.json and .safetensors weights"
    )


def _no_directory(named: str, path: Path) -> str:
    if path.is_file():
        return f"{named!r} is a file: a checkpoint is the directory with config.json and .safetensors in it"
    beside = [p.name for p in path.parent.iterdir() if p.is_dir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, beside, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"there is no directory {named!r}{hint} (a checkpoint is one, package:NAME, or a name on the hub)"
