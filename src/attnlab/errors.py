"""Every error a user can meet, as one small tree.

An `AttnlabError` is a mistake we can explain: the command line prints its text, without a traceback,
and leaves with its `exit_code`. Anything else that escapes is a defect of ours.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class AttnlabError(Exception):
    """What attnlab could not do, and what would help."""

    exit_code = 2


class RequestError(AttnlabError):
    """The request itself was wrong: an unknown name, a value out of range, a file that is not there."""


class CorpusError(RequestError):
    """The text cannot be read, or there is too little of it for what was asked."""


class TargetError(RequestError):
    """What should be audited could not be loaded or called."""


class StoreError(RequestError):
    """A study's directory cannot be used: not writable, not ours, or holding another study."""


class WorkError(AttnlabError):
    """The work ran, and something in it failed."""

    exit_code = 1


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a declaration: where it stands, and what to write instead."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class DeclarationError(RequestError):
    """Everything wrong with a declaration, found at once."""

    def __init__(self, problems: Sequence[Problem], source: str = "the declaration") -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        super().__init__("\n".join([f"{source}: {count}", *(f"  {problem}" for problem in self.problems)]))


def unknown(what: str, value: object, valid: Iterable[str]) -> str:
    """The sentence for a name that does not exist: the name, the nearest match, all that would do."""
    names = sorted(valid)
    near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    if any("," in name for name in names):  # a list of such is only clear in quotation marks
        names = [repr(name) for name in names]
    return f"no {what} is called {value!r}{hint} (valid: {', '.join(names) or 'none'})"
