"""Names in the user's own files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from attnlab.errors import AttnlabError, RequestError
from attnlab.spec import Part
from attnlab.userfile import load_from_file, loading, splits_into_file_and_name


@pytest.mark.parametrize("text", ["a.py:B", "/x y/a.py:B.c", "~/a.py:_b", "a:b.py:C", "a\nb.py:C"])
def test_a_file_and_a_name(text: str) -> None:
    assert splits_into_file_and_name(text)


@pytest.mark.parametrize("text", ["", "a.py", "a.py:", ".py:B", "a.py:3", "a.pyc:B", "a.py:B-c", "a.py:B\n"])
def test_not_a_file_and_a_name(text: str) -> None:
    assert not splits_into_file_and_name(text)


def test_a_relative_path_counts_from_the_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("class A:\n    class B:\n        c = 3\n")
    assert load_from_file("mine.py:A.B.c", tmp_path) == 3
    with pytest.raises(RequestError, match="there is no file"):
        load_from_file("mine.py:A.B.c", tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    assert load_from_file("mine.py:A.B.c") == 3


def test_a_file_is_loaded_once_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("value = object()\nnumber = 1\n")
    assert load_from_file(f"{path}:value") is load_from_file(f"{path}:value")
    path.write_text("number = 22\n")
    os.utime(path, ns=(1, 1))
    assert load_from_file(f"{path}:number") == 22


def test_two_files_of_one_name_do_not_mix(tmp_path: Path) -> None:
    """A part's field types are read late, from its module: that must still be its own."""
    for folder, type_ in (("one", "int"), ("two", "str")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "part.py").write_text(
            "from __future__ import annotations\n"
            "from dataclasses import dataclass\nfrom attnlab.attention import Score\n"
            f"Kind = {type_}\n"
            "@dataclass(frozen=True, kw_only=True)\nclass Mine(Score):\n    kind: Kind\n"
        )
    one = load_from_file(f"{tmp_path}/one/part.py:Mine")
    two = load_from_file(f"{tmp_path}/two/part.py:Mine")
    assert isinstance(one, type)
    assert isinstance(two, type)
    assert issubclass(one, Part)
    assert issubclass(two, Part)
    assert one.resolve(one(kind=3)).plain()["kind"] == 3  # type: ignore[call-arg]
    assert two.resolve(two(kind="x")).plain()["kind"] == "x"  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise ValueError('no')", "could not be loaded: ValueError: no"),
        ("import sys; sys.exit(3)", "could not be loaded: SystemExit: 3"),
        ("def f(:", "could not be loaded: SyntaxError"),
        ("import no_such_module_anywhere", "could not be loaded: ModuleNotFoundError"),
        ("x = 1", "no object is called 'study'"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, code: str, says: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(code)
    for _ in range(2):  # a failure is not remembered as a success
        with pytest.raises(RequestError, match=says):
            load_from_file(f"{path}:study")
    assert loading.get() is False


def test_binary_under_a_python_name(tmp_path: Path) -> None:
    path = tmp_path / "binary.py"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(RequestError, match="could not be loaded"):
        load_from_file(f"{path}:study")


def test_a_directory_and_an_unusable_path(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(RequestError, match="there is no file"):
        load_from_file(f"{tmp_path}/folder.py:study")
    for text in ("x" * 5000 + ".py:study", "null\0.py:study", "~nobody-of-that-name/x.py:study"):
        with pytest.raises(RequestError):
            load_from_file(text)


def test_a_file_knows_that_it_is_being_loaded(tmp_path: Path) -> None:
    path = tmp_path / "asks.py"
    path.write_text("from attnlab.userfile import loading\nseen = loading.get()\n")
    assert load_from_file(f"{path}:seen") is True
    assert loading.get() is False


def test_an_error_of_ours_comes_through_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "asks.py"
    path.write_text("from attnlab.errors import RequestError\nraise RequestError('in my own words')\n")
    with pytest.raises(AttnlabError, match=r"^in my own words$"):
        load_from_file(f"{path}:x")
