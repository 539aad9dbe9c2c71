"""Declarations in files: TOML, YAML or Python, and the studies that come with attnlab."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import tomli_w
import yaml

from attnlab.errors import DeclarationError, Problem, RequestError, unknown
from attnlab.spec import Plain, merge, validate
from attnlab.study.changes import DEEPEST, written_out
from attnlab.study.kind import Setup
from attnlab.study.kinds import KINDS
from attnlab.study.study import UNDECIDING, Study, arms_in
from attnlab.userfile import load_from_file, splits_into_file_and_name

_HEAD = (*UNDECIDING, "arms")
_READERS: dict[str, Callable[[str], Any]] = {
    ".toml": tomllib.loads,
    ".yaml": yaml.safe_load,
    ".yml": yaml.safe_load,
}


def load_study(target: str | Path, settings: Iterable[str] = ()) -> Study:
    """The study that `target` names: a built-in's name, or a `.toml`, `.yaml` or `.py` file.

    `settings` are `place=value` pairs that are laid over the file, as `--set` gives them.
    """
    path = find_study(target)
    if path.suffix == ".py" or splits_into_file_and_name(str(target)):
        return _from_python(str(target), path, list(settings))
    plain, problems = _with_settings(read_plain(path), settings)
    # A built-in has no files beside it: what it names, or is given, lies where the user is.
    base = Path.cwd() if str(target) in built_in_studies() else path.parent
    return study_from_plain(plain, source=str(target), base=base, problems=problems)


def find_study(target: str | Path) -> Path:
    """The file that a study's name or path stands for."""
    built_in = built_in_studies()
    if str(target) in built_in:
        return built_in[str(target)]
    text = str(target).rsplit(":", 1)[0] if splits_into_file_and_name(str(target)) else str(target)
    path = Path(text)
    try:
        path = path.expanduser()
        if path.is_file():
            return path.resolve()
        if text and path.is_dir():
            raise RequestError(f"{text!r} is a directory: name a .toml, .yaml or .py file in it")
    except (OSError, ValueError, RuntimeError):  # too long for a name, not a name at all, nobody's home
        pass
    if path.suffix in (".toml", ".yaml", ".yml", ".py"):
        beside = [p.name for p in path.parent.glob(f"*{path.suffix}")] if path.parent.is_dir() else []
        raise RequestError(unknown("file", path.name, beside) + f" in {path.parent}")
    raise RequestError(unknown("study", str(target), built_in) + "; or name a .toml, .yaml or .py file")


def built_in_studies() -> dict[str, Path]:
    """The studies that come with attnlab, by name."""
    package = Path(__file__).resolve().parents[1] / "studies"  # where a wheel puts them
    folder = package if package.is_dir() else package.parents[2] / "studies"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def read_plain(path: Path) -> Plain:
    """A TOML or YAML file as nested dictionaries."""
    if path.suffix not in _READERS:
        raise RequestError(unknown("kind of study file", path.suffix, [*_READERS, ".py"]))
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RequestError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise RequestError(f"{path}: not a text file (byte {error.start} is no UTF-8)") from None
    return plain_from_text(text, path.suffix, source=str(path))


def plain_from_text(text: str, suffix: str = ".toml", *, source: str = "the declaration") -> Plain:
    """TOML or YAML as nested dictionaries."""
    try:
        plain = _READERS[suffix](text)
    except (tomllib.TOMLDecodeError, yaml.YAMLError, RecursionError, ValueError) as error:
        raise RequestError(f"{source}: not readable as {suffix[1:].upper()}: {error}") from None
    if not isinstance(plain, dict) or not all(isinstance(key, str) for key in plain):
        raise RequestError(f"{source}: a study is a table of names and values, not {type(plain).__name__}")
    if _is_deeper(plain, DEEPEST):
        raise RequestError(f"{source}: tables within tables, more than {DEEPEST} deep: no study needs that")
    return plain


def _is_deeper(plain: Any, most: int) -> bool:
    """Whether tables and lists are nested deeper than this, or hold themselves, as YAML lets them."""
    level: dict[int, Any] = {id(plain): plain}
    for _ in range(most):
        inner = [
            v for value in level.values() for v in (value.values() if isinstance(value, dict) else value)
        ]
        level = {id(value): value for value in inner if isinstance(value, dict | list)}
    return bool(level)


def study_from_plain(
    plain: Mapping[str, Any], *, source: str, base: Path | None, problems: Iterable[Problem] = ()
) -> Study:
    """A study from nested dictionaries, or one error that lists everything wrong with them, `problems`
    that were found before included."""
    name = plain.get("kind", "language-model")
    if not isinstance(name, str) or name not in KINDS:
        raise DeclarationError([Problem("kind", unknown("kind of study", name, KINDS))], source)
    kind = KINDS[name]
    problems = list(problems)
    head = {key: plain[key] for key in _HEAD if key in plain}
    sections = {key: plain[key] for key in plain if key in kind.model_fields}
    valid = [*_HEAD, "kind", "vary", *kind.model_fields]
    problems += [Problem("", unknown("field", key, valid)) for key in plain if key not in valid]
    if "vary" in plain:
        try:
            named = head.get("arms", [])
            if isinstance(named, list):  # anything else is explained below
                head["arms"] = [*named, *_varied(plain["vary"], kind)]
        except DeclarationError as error:
            problems += error.problems
    setup: Setup | None = None
    try:
        setup = validate(kind, sections, source=source, base=base)
    except DeclarationError as error:
        problems += error.problems
    setup = setup or _as_far_as_valid(kind, sections, base)
    try:
        study = validate(Study, {**head, "setup": setup}, source=source, base=base)
    except DeclarationError as error:
        # Arms are held against the set-up once the head is right: here, as if it were.
        arms = head.get("arms", [])
        in_arms = arms_in(setup, arms, base)[1] if isinstance(arms, list) else []
        found = [*error.problems, *(p for p in in_arms if p not in error.problems)]
        # What an arm changes in a section that was wrong, and is not there now, is no mistake of the arm's.
        gone = {name for name in sections if sections[name] and getattr(setup, name) is None}
        problems += [problem for problem in found if _section_of_arm(problem) not in gone]
    if problems:
        raise DeclarationError(problems, source)
    return study


def _section_of_arm(problem: Problem) -> str:
    """In which section of an arm it was found; nothing where it is no arm's."""
    place = re.match(r"arms\[\d+\] \(.*\)\.(\w+)", problem.place)
    return place[1] if place else ""


def _as_far_as_valid(kind: type[Setup], sections: Mapping[str, Any], base: Path | None) -> Setup:
    """The set-up without its sections that are wrong: what arms are held against meanwhile."""
    good: Plain = {}
    for name, section in sections.items():
        try:
            validate(kind, {**good, name: section}, source=name, base=base)
        except DeclarationError:
            continue
        good[name] = section
    return validate(kind, good, source="the set-up", base=base)


def to_toml(study: Study) -> str:
    """The declaration with every default written out, as a file that gives the same study."""
    return tomli_w.dumps(_without_none(study.plain()))


def _varied(vary: Any, kind: type[Setup]) -> list[Plain]:
    """`score = ["dot", "additive"]` as an arm for each value, the first one the baseline."""
    if not isinstance(vary, Mapping) or len(vary) != 1:
        raise DeclarationError(
            [Problem("vary", 'takes one part and a list of its values: score = ["dot", …]')]
        )
    ((key, values),) = vary.items()
    while isinstance(values, Mapping):  # model.layers = […] is a table within a table
        ((inner, values),) = values.items() if len(values) == 1 else (("", None),)
        key = f"{key}.{inner}"
    if not isinstance(values, list) or not values:
        raise DeclarationError([Problem(f"vary.{key}", "takes a list of values")])
    return [{"name": _arm_name(key, value), key: value} for value in values]


def _arm_name(key: str, value: Any) -> str:
    if isinstance(value, str):
        return value.rsplit(":", 1)[-1]
    if isinstance(value, Mapping):
        fields = [f"{k}={v}" for k, v in value.items() if k != "part"]
        part = [str(value["part"]).rsplit(":", 1)[-1]] if "part" in value else []
        return " ".join([*part, *fields]) or key
    return f"{key.split('.')[-1]}={value}"


def _with_settings(plain: Plain, settings: Iterable[str]) -> tuple[Plain, list[Problem]]:
    """The declaration with `place=value` pairs laid over it, and what was wrong with those."""
    kind = KINDS.get(str(plain.get("kind", "language-model")), KINDS["language-model"])
    defaults = kind().plain()
    problems: list[Problem] = []
    for setting in settings:
        place, equals, text = setting.partition("=")
        place = place.strip()
        if not equals or not place:
            problems.append(Problem("--set", f"takes place=value, not {setting!r}"))
            continue
        if place in UNDECIDING:
            plain = {**plain, place: _value(text)}
            continue
        try:
            patch = written_out(kind, place, _value(text))
            # Over the defaults: `mask.where` means the mask there is, also where the file names none.
            (section,) = patch
            whole = merge(defaults[section], plain[section]) if section in plain else defaults[section]
            plain = {**plain, section: merge(whole, patch[section])}
        except DeclarationError as error:
            problems += [Problem(f"--set {place}", p.message) for p in error.problems]
    return plain, problems


def _value(text: str) -> Any:
    """`3`, `0.5`, `true`, `[1, 2]` and `{part = "additive"}` as TOML reads them; `none` for nothing (a budget
    in another unit wants `--set training.steps=none`); anything else is a word."""
    if text.strip() == "none":
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def _from_python(target: str, path: Path, settings: list[str]) -> Study:
    named = target if splits_into_file_and_name(target) else f"{path}:study"
    found = load_from_file(named)
    if not isinstance(found, Study):
        raise RequestError(f"{named!r} is a {type(found).__name__}, not an attnlab.Study")
    if not settings:
        return found.at(path.parent)
    plain, problems = _with_settings(found.plain(), settings)
    return study_from_plain(plain, source=target, base=path.parent, problems=problems)


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_without_none(inner) for inner in value]
    return value
