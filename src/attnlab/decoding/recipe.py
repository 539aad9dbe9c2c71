"""Strategies in a row, as a declaration or the command line writes them: `temperature=0.8+top-k=20`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationInfo, field_validator, model_validator

from attnlab.decoding import strategies  # the members of the family  # noqa: F401
from attnlab.decoding.strategies import Plain
from attnlab.decoding.strategy import Filter, Search, Strategy
from attnlab.errors import DeclarationError, RequestError, unknown
from attnlab.spec import Spec

_MORE = re.compile(r"\+(?=[A-Za-z./~])")  # between strategies; the + of 1e+3 is none


class Recipe(Spec):
    """Filters in the order in which they are applied, and the search that chooses by what they leave; a draw
    where none is named."""

    steps: tuple[Strategy, ...] = (Plain(),)

    @model_validator(mode="before")
    @classmethod
    def _from_notation(cls, data: Any, info: ValidationInfo) -> Any:
        if isinstance(data, str):
            return {"steps": [*_steps(data, (info.context or {}).get("base"))]}
        return {"steps": [data]} if isinstance(data, Strategy) else data

    @field_validator("steps")
    @classmethod
    def _in_order(cls, steps: tuple[Strategy, ...]) -> tuple[Strategy, ...]:
        searches = [step for step in steps if isinstance(step, Search)]
        if len(searches) > 1:
            names = " and ".join(repr(step.name) for step in searches)
            raise ValueError(f"{names} both choose the token: keep one of them")
        if searches and not isinstance(steps[-1], Search):
            raise ValueError(f"{searches[0].name!r} chooses the token: put it last")
        return steps if searches else (*steps, Plain())

    @classmethod
    def read(cls, text: str, base: Path | None = None) -> Self:
        """What a line of the compact notation stands for."""
        try:
            return cls(steps=tuple(_steps(text, base)))
        except DeclarationError as error:
            raise RequestError(f"{text!r}: {'; '.join(p.message for p in error.problems)}") from None

    @property
    def filters(self) -> tuple[Filter, ...]:
        return tuple(step for step in self.steps if isinstance(step, Filter))

    @property
    def search(self) -> Search:
        search = self.steps[-1]
        assert isinstance(search, Search)  # validated
        return search

    @property
    def notation(self) -> str:
        """What `read` makes this of: the shortest way to write it."""
        shown = self.steps[:-1] if isinstance(self.search, Plain) and self.filters else self.steps
        return "+".join(map(_written, shown))

    def __str__(self) -> str:
        """What is done, in order."""
        return ", then ".join(map(str, self.steps))


def _steps(text: str, base: Path | None) -> Iterator[Strategy]:
    for written in _MORE.split(text):
        name, *settings = (piece.strip() for piece in written.split(","))
        name, equals, value = name.partition("=")
        kind = Strategy.members.get(name)
        if kind is None and ":" not in name:
            raise RequestError(unknown("strategy", name, Strategy.members) + f" in {text!r}")
        fields: dict[str, Any] = {"part": name}
        names = [f.name for f in dataclasses.fields(kind)] if kind else []  # type: ignore[arg-type]
        if equals:
            if kind is not None and not names:
                raise RequestError(f"{name!r} takes no value: write {name!r}, not {written!r}")
            fields |= _main(Strategy.resolve(name, base), value)
        for setting in settings:
            key, equals, value = setting.partition("=")
            if not equals:
                raise RequestError(f"{setting!r} in {text!r}: settings are written field=value")
            fields[key.strip().replace("-", "_")] = _number(value)
        try:
            yield Strategy.resolve(fields, base)
        except DeclarationError as error:
            raise RequestError(f"{written!r}: {'; '.join(map(str, error.problems))}") from None


def _main(strategy: Strategy, value: str) -> Mapping[str, Any]:
    """What stands after the name is the first field's."""
    first, *_ = dataclasses.fields(strategy)  # type: ignore[arg-type]
    return {first.name: _number(value)}


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()


def _written(step: Strategy) -> str:
    """A strategy in the compact notation, without what is at its default."""
    fields = dataclasses.fields(step)  # type: ignore[arg-type]
    if not fields:
        return step.name
    first, *others = fields
    parts = [f"{step.name}={getattr(step, first.name):g}"]
    for other in others:
        if getattr(step, other.name) != other.default:
            parts.append(f"{other.name.replace('_', '-')}={getattr(step, other.name):g}")
    return ",".join(parts)
