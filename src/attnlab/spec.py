"""Frozen declarations: what a user writes, validated all at once, compared, fingerprinted, kept as TOML.

A `Spec` is a section of a declaration: its fields are known beforehand. A `Part` is chosen by name from
a family (a score, a mask, a corpus, an optimiser); its fields depend on which one was chosen. In a file a
part is its name, or a table with its name under `part` and its fields beside it:

    score = "additive"
    score = {part = "additive", hidden = 32}
    score = "my_scores.py:Gated"            # one of the user's own, by file and class
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
)
from pydantic._internal._model_construction import ModelMetaclass
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from attnlab.errors import DeclarationError, Problem, RequestError, unknown
from attnlab.userfile import load_from_file, splits_into_file_and_name

Positive = Annotated[int, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
PositiveFloat = Annotated[float, Field(gt=0.0)]

Plain = dict[str, Any]
S = TypeVar("S", bound="Spec")
_SPEC_CONFIG = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _ExplainsItself(ModelMetaclass):
    """Turns pydantic's error, when a spec is made in Python, into ours: every problem, with its place."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:  # noqa: N805 - the instance of a metaclass is a class
        try:
            return super().__call__(*args, **fields)
        except ValidationError as error:
            raise DeclarationError(problems_in(error, cast(type[BaseModel], cls)), cls.__name__) from None


class Spec(BaseModel, metaclass=_ExplainsItself):
    """A section of a declaration: frozen, keyword-only, and closed to names it does not know."""

    model_config = _SPEC_CONFIG

    def plain(self) -> Plain:
        """This section as nested dictionaries of plain values, with every default written out."""
        return self.model_dump(mode="json")


class Part:
    """A frozen dataclass that is chosen by name from its family.

    A family is a direct subclass made with `family="…"`; its members are the subclasses defined inside
    attnlab, under their class name in kebab case. A user's own are reached as `path/to/file.py:Name`.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)
    family: ClassVar[str]
    members: ClassVar[dict[str, type[Part]]]

    def __init_subclass__(cls, family: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if family is not None:
            cls.family, cls.members = family, {}
        elif not inspect.isabstract(cls) and cls.__module__.startswith("attnlab."):
            cls.members[cls.part_name()] = cls

    @classmethod
    def part_name(cls) -> str:
        """The name in declarations: the class name in kebab case."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()

    @property
    def name(self) -> str:
        """How a declaration names this part: a built-in's name, or `file.py:Name`."""
        cls = type(self)
        if cls.members.get(cls.part_name()) is cls:
            return cls.part_name()
        file = _file_of(cls)
        return f"{file}:{cls.__qualname__}" if file else cls.__qualname__

    def plain(self) -> Plain:
        """Name and fields, as a declaration would hold them."""
        if self.name not in self.members and not splits_into_file_and_name(self.name):
            raise RequestError(
                f"{self.name!r} cannot be named in a declaration: put the class at the top level of a file, "
                "where another process can find it as file.py:Name"
            )
        return {"part": self.name, **_adapter(type(self)).dump_python(cast(Any, self), mode="json")}

    @classmethod
    def resolve(cls, value: object, base: Path | None = None) -> Self:
        """The part that `value` (a part, a name, or a table with a name under `part`) stands for."""
        if isinstance(value, Part):
            if not isinstance(value, cls):
                raise RequestError(f"a {cls.family} is wanted here, not the {value.family} {value.name!r}")
            if not dataclasses.is_dataclass(value):
                raise RequestError(_no_dataclass(cls, type(value).__name__))
            fields: Plain = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            chosen: type[Part] = type(value)
        elif isinstance(value, str):
            chosen, fields = cls._find(value, base), {}
        elif isinstance(value, Mapping):
            fields = {str(k): v for k, v in value.items() if k != "part"}
            if "part" not in value:
                raise RequestError(f"a table for a {cls.family} names it under 'part' ({cls._valid()})")
            chosen = cls._find(value["part"], base)
        else:
            raise RequestError(
                f"{value!r} is not a {cls.family}: write its name, or a table ({cls._valid()})"
            )
        try:
            return cast(Self, _adapter(chosen).validate_python(fields, context={"base": base}))
        except ValidationError as error:
            raise DeclarationError(
                problems_in(error, chosen), f"{cls.family} {chosen.part_name()!r}"
            ) from None

    @classmethod
    def _find(cls, name: object, base: Path | None) -> type[Part]:
        if not isinstance(name, str):
            raise RequestError(f"a {cls.family} is chosen by its name, not by {name!r} ({cls._valid()})")
        if name in cls.members:
            return cls.members[name]
        if splits_into_file_and_name(name):
            found = load_from_file(name, base)
            if not (isinstance(found, type) and issubclass(found, cls) and dataclasses.is_dataclass(found)):
                raise RequestError(_no_dataclass(cls, name))
            return found
        raise RequestError(unknown(cls.family, name, cls.members))

    @classmethod
    def _valid(cls) -> str:
        return "valid: " + ", ".join(sorted(cls.members))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if "members" not in cls.__dict__:  # one part of a family: its own fields
            return handler(source)
        return core_schema.with_info_plain_validator_function(
            _validator_of(cls), serialization=core_schema.plain_serializer_function_ser_schema(cls.plain)
        )


def _new_adapter(cls: type[Part]) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(cls)
    except (PydanticUserError, NameError) as error:
        reason = str(error).splitlines()[0]
        raise RequestError(
            f"the fields of {cls.__qualname__} need types that a declaration can hold: {reason}"
        ) from None


_adapter: Callable[[Any], TypeAdapter[Any]] = functools.cache(_new_adapter)


def _file_of(cls: type) -> str | None:
    """Where a class is written; None for one made in an interactive session."""
    try:
        file = inspect.getfile(cls)
    except (TypeError, OSError):
        return None
    return file if Path(file).is_file() else None


def _no_dataclass(family: type[Part], name: str) -> str:
    return f"{name!r} is not a {family.family}: it must be a dataclass derived from {family.__name__}"


def _validator_of(family: type[Part]) -> Callable[[Any, core_schema.ValidationInfo[Any]], Part]:
    def validate(value: Any, info: core_schema.ValidationInfo[Any]) -> Part:
        try:
            return family.resolve(value, (info.context or {}).get("base"))
        except DeclarationError as error:
            raise PydanticCustomError(
                "part", "{text}", {"text": str(error), "problems": error.problems}
            ) from None
        except RequestError as error:
            raise PydanticCustomError("part", "{text}", {"text": str(error)}) from None

    return validate


def validate(cls: type[S], data: Mapping[str, Any], *, source: str, base: Path | None = None) -> S:
    """A spec from plain data, or one error that lists everything wrong with it."""
    try:
        return cls.model_validate(dict(data), context={"base": base})
    except ValidationError as error:
        raise DeclarationError(problems_in(error, cls), source) from None


def problems_in(error: ValidationError, root: type) -> list[Problem]:
    """Pydantic's findings in our words, each with its place and, for a name, the nearest valid one."""
    found: list[Problem] = []
    for item in error.errors(include_url=False):
        place = tuple(item["loc"])
        nested = item.get("ctx", {}).get("problems")
        if nested:
            found += [Problem(_dotted((*place, p.place)), p.message) for p in nested]
        elif item["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
            found.append(
                Problem(_dotted(place[:-1]), unknown("field", place[-1], _fields_at(root, place[:-1])))
            )
        elif item["type"] == "string_too_short" and item.get("ctx", {}).get("min_length") == 1:
            found.append(Problem(_dotted(place), "must not be empty"))
        elif item["type"] == "missing":
            found.append(Problem(_dotted(place), "is missing"))
        elif item["type"] == "part":
            found.append(Problem(_dotted(place), item["msg"]))
        elif item["type"] == "literal_error":
            expected = re.findall(r"'([^']*)'", str(item.get("ctx", {}).get("expected", "")))
            found.append(Problem(_dotted(place), unknown("choice", item["input"], expected)))
        else:
            message = item["msg"].removeprefix("Value error, ").removeprefix("Input ")
            # A check of the whole section has the section itself as its input; showing it would only shout.
            shown = f" (got {item['input']!r})" if isinstance(item["input"], str | int | float | None) else ""
            found.append(Problem(_dotted(place), message + shown))
    return found


def _dotted(place: tuple[Any, ...]) -> str:
    return re.sub(
        r"\.\[", "[", ".".join(f"[{p}]" if isinstance(p, int) else str(p) for p in place if p != "")
    )


def _fields_at(root: Any, place: tuple[Any, ...]) -> list[str]:
    for name in place:
        root = _types_of(root).get(name, root)
        root = next((a for a in getattr(root, "__args__", ()) if _types_of(a)), root)
    return list(_types_of(root))


def _types_of(owner: Any) -> dict[str, Any]:
    """The fields of a section or a part, each with its type."""
    if hasattr(owner, "model_fields"):
        return {name: field.annotation for name, field in owner.model_fields.items()}
    if isinstance(owner, type) and dataclasses.is_dataclass(owner):
        try:
            hints = get_type_hints(owner)
        except NameError:  # a class made within a function: its names are out of reach, its fields are not
            hints = {}
        return {field.name: hints.get(field.name) for field in dataclasses.fields(owner)}
    return {}


# ---- comparing ---------------------------------------------------------------------------------------------


def fingerprint(plain: Plain) -> str:
    """Sixteen hexadecimal digits that change when anything in the declaration, or in a file of the user's
    own that it names, does."""
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True, ensure_ascii=False).encode())
    for path in sorted(set(_named_files(plain))):
        try:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        except OSError as error:
            raise RequestError(f"{path}: cannot be read ({error.strerror})") from None
    return digest.hexdigest()[:16]


def _named_files(value: Any) -> Iterator[Path]:
    if isinstance(value, Mapping):
        name = value.get("part")
        if isinstance(name, str) and splits_into_file_and_name(name):
            yield Path(name.rsplit(":", 1)[0])
        for inner in value.values():
            yield from _named_files(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _named_files(inner)


def flatten(plain: Any, place: str = "") -> dict[str, Any]:
    """Nested dictionaries as one dictionary from dotted place to value."""
    if isinstance(plain, Mapping) and plain:
        parts = [flatten(v, f"{place}.{k}" if place else str(k)) for k, v in plain.items()]
        return {k: v for part in parts for k, v in part.items()}
    if isinstance(plain, list) and any(isinstance(item, Mapping) for item in plain):
        parts = [flatten(item, f"{place}[{i}]") for i, item in enumerate(plain)]
        return {k: v for part in parts for k, v in part.items()}
    return {place: plain}


@dataclasses.dataclass(frozen=True)
class Difference:
    """One place where two declarations differ; `None` stands for "not there"."""

    place: str
    before: Any
    after: Any

    def __str__(self) -> str:
        before, after = ("none" if value is None else repr(value) for value in (self.before, self.after))
        return f"{self.place}: {before} → {after}"


def differences(before: Plain, after: Plain) -> list[Difference]:
    """Where two plain declarations differ, in reading order."""
    old, new = flatten(before), flatten(after)
    places = [*old, *(place for place in new if place not in old)]
    sections = list(dict.fromkeys(place.split(".")[0] for place in places))
    places.sort(key=lambda place: sections.index(place.split(".")[0]))  # what is new stands with its like
    return [Difference(p, old.get(p), new.get(p)) for p in places if old.get(p) != new.get(p)]


def merge(base: Any, patch: Any) -> Any:
    """`base` with `patch` laid over it, table by table.

    A table that names a `part` replaces what was there; one that does not changes fields of it, also where
    the part was written as a bare name: `mask = "causal"` changed by `mask.where = "after"`.
    """
    if not isinstance(patch, Mapping) or "part" in patch:
        return patch
    if isinstance(base, Part | Spec):
        base = base.plain()
    elif isinstance(base, str):
        base = {"part": base}
    elif not isinstance(base, Mapping):
        return dict(patch)
    return {**base, **{key: merge(base.get(key), value) for key, value in patch.items()}}
