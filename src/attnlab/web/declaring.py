"""A declaration that is written on the page: everything wrong with it at once, and what it may not name.

A declaration can name files to read and code to run. One that comes through the page names neither outside
the page's directory, and no code at all unless the page was started with --allow-code. That is looked at
before anything else, as to validate a part of one's own is to run its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.errors import DeclarationError, Problem, RequestError
from attnlab.userfile import splits_into_file_and_name
from attnlab.web.settings import Settings
from attnlab.wholefile import write_whole

if TYPE_CHECKING:
    from attnlab.study import Study

_WORDS = ("name", "question")  # that are shown, and name nothing
_MODEL = "hf:"  # before the name of a checkpoint, or of its directory


@dataclass(frozen=True)
class Checked:
    """What a text declares, or everything wrong with it."""

    problems: tuple[Problem, ...] = ()
    study: Study | None = None
    folder: str = ""

    @property
    def runs(self) -> int:
        return len(self.study.arms) * self.study.seeds if self.study else 0


def check(text: str, settings: Settings) -> Checked:
    """Read a declaration in TOML."""
    from attnlab.study.declaration import plain_from_text, study_from_plain
    from attnlab.study.study import slug

    try:
        plain = plain_from_text(text)
    except RequestError as error:
        return Checked((_unreadable(str(error)),))
    barred = tuple(_barred(plain, settings))
    if barred:
        return Checked(barred)
    try:
        study = study_from_plain(plain, source="the declaration", base=settings.root)
    except DeclarationError as error:
        return Checked(error.problems)
    except RequestError as error:
        return Checked((Problem("", str(error)),))
    folder = slug(study.name)
    if (settings.root / folder).exists():
        taken = Problem("name", f"there is a study {folder!r} here already: it goes on under its own page")
        return Checked((taken,), study, folder)
    return Checked((), study, folder)


def keep(text: str, checked: Checked, settings: Settings) -> list[str]:
    """Keep the declaration beside its study's folder-to-be; give back the arguments that run it."""
    from attnlab.study.declaration import built_in_studies

    out = ["--out", str(settings.root / checked.folder)]
    for name, path in built_in_studies().items():
        if path.read_text("utf-8").strip() == text.strip():
            return ["run", name, *out]
    file = settings.root / f"{checked.folder}.toml"
    if file.exists() and file.read_text("utf-8").strip() != text.strip():
        raise RequestError(f"{file.name} is there already and declares something else: choose another name")
    write_whole(file, text.strip() + "\n")
    return ["run", str(file), *out]


def _unreadable(message: str) -> Problem:
    where = re.search(r" \(at line (\d+), column (\d+)\)", message)
    short = message.removeprefix("the declaration: ")
    if where is None:
        return Problem("", short)
    return Problem(f"line {where[1]}, column {where[2]}", short.replace(where[0], ""))


def _barred(plain: Mapping[str, Any], settings: Settings) -> Iterator[Problem]:
    for place, value in _texts(plain):
        if place in _WORDS or re.fullmatch(r"arms\[\d+\]\.name", place):
            continue
        if splits_into_file_and_name(value):
            if not settings.allow_code:
                yield Problem(
                    place, f"{value!r} is code, which this page runs only if started with --allow-code"
                )
        elif not settings.allow_code and _leads_out(value, settings.root):
            yield Problem(place, f"{value!r} lies outside the page's directory, of which it reads nothing")
    for place, value in _leaves(plain, ""):
        # Whatever is not plainly false: "true" and 1 would do as well, and so would one value of a search.
        asked = "trust_remote_code" in re.split(r"[.\[\]]", place) and value is not False
        if asked and not settings.allow_code:
            yield Problem(place, "another's code runs here only if the page was started with --allow-code")


def _leads_out(text: str, root: Path) -> bool:
    """Whether a text, read as the name of a file, is one outside the directory."""
    text = text.removeprefix(_MODEL)
    if text.startswith(("/", "~", "file:")) or ".." in re.split(r"[/\\]", text):
        return True
    try:
        path = root / text
        return path.exists() and not path.resolve().is_relative_to(root)
    except (OSError, ValueError, RuntimeError):  # no name of any file
        return False


def _texts(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    yield from ((at, leaf) for at, leaf in _leaves(value, place) if isinstance(leaf, str))


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{index}]")
    else:
        yield place, value
