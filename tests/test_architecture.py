"""What may import what: the arrows of ARCHITECTURE.md, drawn again from the source."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "attnlab"

# What stands aside, and all that it may import. `testing` is for users: nothing here may lean on it.
ASIDE = {"verdict": {"errors", "record"}, "craft": {"errors"}}
NOBODY_IMPORTS = {"cli", "testing"}


def floors() -> list[list[str]]:
    """The storeys of the house from the ground up, as ARCHITECTURE.md draws them."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    drawing = text.split("## What may import what")[1].split("\n\n")[1]
    ground, *above = drawing.splitlines()
    storeys = [re.split(r"\s{2,}", line.strip().removeprefix("↑ "))[0] for line in above]
    return [[name.strip() for name in names.split(",")] for names in (ground, *storeys)]


def rooms(source: Path) -> set[str]:
    """The folders and files directly under the package."""
    found = {path.name for path in source.iterdir() if (path / "__init__.py").exists()}
    return found | {path.stem for path in source.glob("[!_]*.py")}


def imports(path: Path, source: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything a file imports from attnlab, wherever in it that stands."""
    package = ("attnlab", *path.relative_to(source).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def arrows(source: Path) -> Iterator[tuple[str, str, str]]:
    """From which room to which, and where that is written."""
    known = rooms(source)
    for path in sorted(source.rglob("*.py")):
        inside = path.relative_to(source)
        here = inside.parts[0].removesuffix(".py")
        for line, name in imports(path, source):
            parts = name.split(".")
            if parts[0] == "attnlab" and len(parts) > 1 and parts[1] in known and parts[1] != here:
                yield here, parts[1], f"{inside}:{line} imports {name}"


def uphill(source: Path) -> list[str]:
    """Every import that goes against the arrows."""
    height = {name: storey for storey, names in enumerate(floors()) for name in names}
    wrong = []
    for here, there, where in arrows(source):
        if here.startswith("__"):  # the front door, which opens onto every room
            continue
        if there in NOBODY_IMPORTS:
            allowed = False
        elif here in ASIDE:
            allowed = there in ASIDE[here]
        elif here == "testing":
            allowed = True
        elif there in ASIDE:
            allowed = height[here] >= height["evaluation"]
        else:
            allowed = height[there] < height[here] or height[here] == height[there] == 0
        if not allowed:
            wrong.append(where)
    return wrong


def test_the_drawing_shows_every_room_and_no_other() -> None:
    drawn = {name for names in floors() for name in names}
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    aside = {name for name in (*ASIDE, "testing") if f"`{name}`" in text}
    assert drawn | aside == rooms(SOURCE)


def test_no_import_goes_uphill() -> None:
    assert uphill(SOURCE) == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("attention/dims.py", "from attnlab.model import Decoder"),
        ("attention/dims.py", "import attnlab.study.run as anything"),
        ("attention/score/dot.py", "def late():\n    from attnlab import training"),
        ("attention/score/dot.py", "from ...model import decoder"),
        ("corpus/text.py", "from attnlab.tokens import Words"),
        ("record.py", "from attnlab.corpus import Text"),
        ("record.py", "from . import corpus"),
        ("verdict/decision.py", "from attnlab.spec import Spec"),
        ("verdict/decision.py", "from attnlab.model import Decoder"),
        ("model/block.py", "from attnlab.verdict import judge"),
        ("report/page.py", "from attnlab.cli import main"),
        ("report/page.py", "from attnlab.web import serve"),
        ("web/server.py", "from attnlab.cli import main"),
        ("training/loop.py", "from attnlab.testing import parts"),
    ],
)
def test_a_broken_twin_is_found_out(tmp_path: Path, file: str, line: str) -> None:
    twin = tmp_path / "attnlab"
    shutil.copytree(SOURCE, twin, ignore=shutil.ignore_patterns("__pycache__"))
    with (twin / file).open("a", encoding="utf-8") as source:
        source.write(f"\n\n{line}\n")
    found = set(uphill(twin)) - set(uphill(SOURCE))
    assert len(found) == 1
    assert found.pop().startswith(f"{file}:")


HEAVY = ("torch", "transformers", "datasets", "tokenizers", "peft")


@pytest.mark.parametrize(
    ("code", "never"),
    [
        ("import attnlab; dir(attnlab); attnlab.__version__; attnlab.AttnlabError", HEAVY),
        ("from attnlab.cli import main; main(['--help'])", HEAVY),
        ("from attnlab.cli import main; main(['--version'])", HEAVY),
        ("import attnlab.verdict; attnlab.judge", HEAVY),
        ("import attnlab.record, attnlab.spec, attnlab.errors", HEAVY),
        ("from attnlab.cli import main; main(['craft'])", HEAVY),
        ("import attnlab.study; attnlab.run", HEAVY[1:3]),
        # Each of these takes longer to load than all of ours, and a study is to begin at once.
        ("import attnlab.study.worker", ("scipy.stats", "torch._dynamo", *HEAVY[1:3])),
    ],
    ids=[
        "import attnlab",
        "--help",
        "--version",
        "verdict",
        "the ground",
        "craft",
        "study",
        "worker",
    ],
)
def test_what_is_not_needed_is_not_loaded(code: str, never: tuple[str, ...]) -> None:
    script = f"{code}\nimport sys\nprint('loaded:', sorted(set(sys.modules) & set({never!r})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded: []"
