"""What the documents say is there is there: commands and options, files, pictures, studies, make targets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import cyclopts
import pytest

from attnlab.cli import app
from attnlab.study import built_in_studies, load_study

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELLS = ("sh", "bash", "shell", "console")
ENDS = {"|", "||", "&&", ";", "&", ">", ">>", "2>", "<"}  # where the shell takes over


def blocks(text: str) -> Iterator[tuple[str, int, str]]:
    """Language, line and content of every fenced block."""
    for match in re.finditer(r"^```([\w-]*)[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield match[1], text.count("\n", 0, match.start()) + 1, match[2]


def commands(text: str, program: str) -> Iterator[tuple[int, list[str]]]:
    """Line and words of every call of a program in the shell blocks of a page."""
    for language, line, content in blocks(text):
        if language not in SHELLS:
            continue
        joined = content.replace("\\\n", "  ")
        for offset, command in enumerate(joined.splitlines(), start=1):
            lexer = shlex.shlex(command.strip().removeprefix("$ "), posix=True, punctuation_chars="|&;<>")
            lexer.whitespace_split = True
            words: list[str] = []
            for word in [*lexer, ";"]:
                if word not in ENDS:
                    words.append(word)
                    continue
                while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):  # VARIABLE=value before a command
                    words.pop(0)
                if words and words[0].rsplit("/", 1)[-1] == program:
                    yield line + offset, words[1:]
                words = []


def found(program: str) -> list[object]:
    return [
        pytest.param(words, id=f"{page.relative_to(ROOT)}:{line}")
        for page in PAGES
        for line, words in commands(page.read_text("utf-8"), program)
    ]


def problem_with(words: list[str]) -> str | None:
    """Why the command line would not take these words, or None."""
    if words in (["--help"], ["--version"], []):
        return None
    try:
        app.parse_args(words, exit_on_error=False, print_error=False)
    except cyclopts.CycloptsError as error:
        return str(error)
    return None


@pytest.mark.parametrize("words", found("attnlab"))
def test_a_command_of_ours_is_one(words: list[str]) -> None:
    assert problem_with(words) is None


@pytest.mark.parametrize("words", found("attnlab"))
def test_a_study_that_is_named_exists_and_takes_its_settings(words: list[str]) -> None:
    studies = {"run": words[1:2], "diff": words[1:3]}.get(words[0] if words else "", [])
    settings = [value for option, value in pairwise(words) if option == "--set"]
    for name in studies:
        if "/" in name or "." in name or name.isupper():  # a file of the reader's own, or a stand-in
            continue
        assert name in built_in_studies()
        load_study(name, settings)


@pytest.mark.parametrize("words", found("make"))
def test_a_make_target_exists(words: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in (word for word in words if "=" not in word and not word.startswith("-")):
        assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), target


def links(text: str) -> set[str]:
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"`[^`\n]*`", "", prose)
    inline = re.findall(r"\]\(\s*<?([^)\s>]+)", prose)
    return {
        *inline,
        *re.findall(r"^\[[^\]]+\]:\s*(\S+)", prose, re.MULTILINE),
        *re.findall(r'src="([^"]+)"', prose),
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    lost = [
        link
        for link in sorted(links(page.read_text("utf-8")))
        if not re.match(r"[a-z][a-z+.-]*:|#", link) and not (page.parent / link.split("#")[0]).exists()
    ]
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_of_the_project_that_are_named_exist(page: Path) -> None:
    """`studies/x.toml`, `src/attnlab/…` and the like, in back quotes."""
    named = re.findall(
        r"`((?:src|tests|docs|studies|benchmarks)/[\w./-]*\w/?|[a-z]+/[\w/]+\.py)`", page.read_text("utf-8")
    )
    lost = [n for n in named if not ((ROOT / n).exists() or (ROOT / "src" / "attnlab" / n).exists())]
    assert lost == []


@pytest.mark.parametrize("name", built_in_studies())
def test_a_built_in_study_says_what_it_costs(name: str) -> None:
    study = load_study(name)
    assert study.question.endswith("?")
    assert built_in_studies()[name].read_text("utf-8").startswith("#")  # what it is, for who opens the file


# ---- that these tests can fail -----------------------------------------------------------------------------

PAGE = """\
Text with a [link](there.md), ![a picture](pictures/x.png) and `[no](link)`.

```console
$ attnlab run masking --seeds 3   # a remark
$ VARIABLE=1 attnlab studies | head && make demo
attnlab run \\
    score
```

```toml
attnlab run nothing
```
"""


def test_commands_and_links_are_found() -> None:
    assert [words for _, words in commands(PAGE, "attnlab")] == [
        ["run", "masking", "--seeds", "3"],
        ["studies"],
        ["run", "score"],
    ]
    assert [words for _, words in commands(PAGE, "make")] == [["demo"]]
    assert links(PAGE) == {"there.md", "pictures/x.png"}


@pytest.mark.parametrize(
    "line", ["runn masking", "run masking --sed 3", "run", "run masking --seeds x", "judge a.csv", "diff a"]
)
def test_a_wrong_command_is_found_out(line: str) -> None:
    assert problem_with(line.split()) is not None
