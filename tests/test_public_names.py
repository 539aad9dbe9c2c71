"""The public names: an explicit list, each of which resolves, is typed and is documented."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import attnlab

NAMES = {
    "Arm",
    "Attention",
    "AttnlabError",
    "Decoder",
    "LanguageModel",
    "Mask",
    "Mixer",
    "Position",
    "Project",
    "Results",
    "Score",
    "Study",
    "Verdict",
    "Weigh",
    "judge",
    "judge_many",
    "load_study",
    "run",
}
ROOMS = {
    "attention",
    "audit",
    "corpus",
    "craft",
    "model",
    "report",
    "testing",
    "tokens",
    "training",
    "verdict",
}


def test_the_list_is_the_list() -> None:
    assert set(attnlab.__all__) == NAMES | ROOMS | {"__version__"}
    assert len(attnlab.__all__) == len(set(attnlab.__all__))
    assert set(attnlab.__all__) <= set(dir(attnlab))
    assert 15 <= len(NAMES) <= 25


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_name_resolves_is_typed_and_documented(name: str) -> None:
    found = getattr(attnlab, name)
    assert (inspect.getdoc(found) or "").strip(), f"{name} has no docstring"
    assert found.__module__.startswith("attnlab.")
    if issubclass(found, Exception) if inspect.isclass(found) else False:
        return
    signature = inspect.signature(found)
    untyped = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.annotation is inspect.Parameter.empty
    ]
    assert untyped == []
    if inspect.isfunction(found):
        assert signature.return_annotation is not inspect.Signature.empty


@pytest.mark.parametrize("name", sorted(ROOMS))
def test_a_room_opens_and_says_what_it_is(name: str) -> None:
    room = getattr(attnlab, name)
    assert isinstance(room, ModuleType)
    assert (room.__doc__ or "").strip()
    for public in getattr(room, "__all__", ()):
        assert hasattr(room, public), f"attnlab.{name}.{public}"


def test_every_part_is_documented() -> None:
    from attnlab import attention, corpus, tokens, training

    for room in (attention, corpus, tokens, training):
        for public in room.__all__:
            found = getattr(room, public)
            if inspect.isclass(found) or inspect.isfunction(found):
                assert (found.__doc__ or "").strip(), f"{room.__name__}.{public} has no docstring"


def test_what_does_not_exist_says_so() -> None:
    with pytest.raises(AttributeError, match="module 'attnlab' has no attribute 'Stduy'"):
        attnlab.Stduy  # noqa: B018 - asking is the test
    with pytest.raises(ImportError):
        from attnlab import Stduy  # noqa: F401


def test_everything_at_once() -> None:
    script = "from attnlab import *; print(Study.__name__, judge.__name__, attention.__name__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Study", "judge", "attnlab.attention"]


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(attnlab.__file__).parent / "py.typed").is_file()
