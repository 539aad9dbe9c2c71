"""The whole numbers a target mentions: in its code, its closure, its attributes, the shapes of its buffers.

A leak that shows only beyond a certain length hides from any fixed list of lengths, but the length itself
has to stand somewhere in the target. Probing just below, at and above every number found there turns such a
leak into an ordinary one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from torch import Tensor, nn

LARGEST = 4096
_DEPTH = 3  # how many functions deep: a target, what it calls, and what that calls


def lengths_mentioned(target: object) -> tuple[int, ...]:
    """Every plausible length (2 to 4096) that `target` mentions, in ascending order."""
    seen: set[int] = set()
    return tuple(sorted({n for n in _numbers(target, _DEPTH, seen) if 2 <= n <= LARGEST}))


def _numbers(thing: Any, depth: int, seen: set[int]) -> Iterator[int]:
    if isinstance(thing, bool) or depth < 0:
        return
    if isinstance(thing, int):
        yield thing
    elif isinstance(thing, float) and thing.is_integer() and abs(thing) <= LARGEST:
        yield int(thing)
    elif isinstance(thing, Tensor):
        yield from thing.shape
    elif isinstance(thing, CodeType):
        yield from _in_code(thing)
    elif isinstance(thing, list | tuple | set | frozenset | dict):
        for inner in list(thing.values() if isinstance(thing, dict) else thing)[:32]:
            yield from _numbers(inner, depth - 1, seen)
    elif id(thing) not in seen:
        seen.add(id(thing))
        yield from _inside(thing, depth, seen)


def _inside(thing: Any, depth: int, seen: set[int]) -> Iterator[int]:
    if isinstance(thing, MethodType):
        yield from _numbers(thing.__self__, depth, seen)
        yield from _numbers(thing.__func__, depth, seen)
    elif isinstance(thing, FunctionType):
        yield from _in_function(thing, depth, seen)
    elif isinstance(thing, functools.partial):
        for inner in (thing.func, *thing.args, *thing.keywords.values()):
            yield from _numbers(inner, depth, seen)
    elif isinstance(thing, nn.Module):
        yield from _in_module(thing, depth, seen)
    elif hasattr(thing, "__dict__") and not isinstance(thing, type) and not inspect.ismodule(thing):
        for inner in list(vars(thing).values())[:64]:
            yield from _numbers(inner, depth - 1, seen)
        if callable(thing):
            yield from _numbers(type(thing).__call__, depth - 1, seen)


def _in_function(function: FunctionType, depth: int, seen: set[int]) -> Iterator[int]:
    yield from _in_code(function.__code__)
    held = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    held += [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
    held += [function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__]
    held += [value for name, value in vars(function).items() if name != "__wrapped__"]
    for inner in [*held, getattr(function, "__wrapped__", None)]:
        yield from _numbers(inner, depth - 1, seen)


def _in_module(module: nn.Module, depth: int, seen: set[int]) -> Iterator[int]:
    for part in module.modules():
        for value in list(vars(part).values()):
            if isinstance(value, int | float):
                yield from _numbers(value, 0, seen)
        # What torch ships is not where a stranger's length hides, and its source is full of numbers.
        if not type(part).__module__.startswith("torch."):
            yield from _numbers(type(part).forward, depth - 1, seen)
    for tensor in (*module.buffers(), *module.parameters()):
        yield from tensor.shape


def _in_code(code: CodeType) -> Iterator[int]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _in_code(constant)
        elif isinstance(constant, int | float | tuple):
            yield from _numbers(constant, 1, set())


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises when read
    except ValueError:
        return False
    return True
