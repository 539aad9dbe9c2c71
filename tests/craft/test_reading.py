"""Keys and values from files and from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnlab.craft import FOUR, scene_from
from attnlab.errors import RequestError

KEYS, VALUES = [[1.0, 0.0], [0.0, 1.0]], [[1.0], [2.0]]
CSV = "k0,k1,v0\n1,0,1\n0,1,2\n"
TOML = "keys = [[1, 0], [0, 1]]\nvalues = [[1], [2]]\nscale = 0.5\n"


def test_every_way_in_gives_the_same(tmp_path: Path) -> None:
    texts = {"a.json": json.dumps({"keys": KEYS, "values": VALUES}), "a.toml": TOML, "a.csv": CSV}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        scene = scene_from(tmp_path / name)
        assert (scene.keys, scene.values) == (((1, 0), (0, 1)), ((1,), (2,)))
    assert scene_from(tmp_path / "a.toml").scale == 0.5
    assert scene_from(tmp_path / "a.toml", scale=2).scale == 2
    assert scene_from(keys="1,0; 0,1", values="1;2").values == ((1,), (2,))
    (tmp_path / "k.csv").write_text("1,0\n0,1\n")
    (tmp_path / "v.json").write_text("[[1], [2]]")
    both = scene_from(keys=str(tmp_path / "k.csv"), values=str(tmp_path / "v.json"))
    assert (both.keys, both.values) == (((1, 0), (0, 1)), ((1,), (2,)))


def test_what_is_not_given() -> None:
    assert scene_from() == FOUR
    assert scene_from(keys="1,0;0,1;1,1").values == ((1, 0, 0), (0, 1, 0), (0, 0, 1))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "not readable as JSON"),
        ("a.json", "[]", "a table with `keys`"),
        ("a.json", '{"keys": [[1]]}', "values are missing"),
        ("a.json", '{"keys": 3, "values": [[1]]}', "keys is 3"),
        ("a.json", '{"kyes": [[1]]}', "did you mean 'keys'"),
        ("a.json", '{"keys": [[1]], "values": [[1]], "scale": "x"}', "the scale is 'x'"),
        ("a.json", '{"keys": [[1]], "values": [[1]], "scale": -1}', "the scale is -1"),
        ("a.toml", "keys = ", "not readable as TOML"),
        ("a.csv", "a,b\n1,2\n", "'a' is neither"),
        ("a.csv", "k0,v0\n1\n", "line 2 has 1 columns, not 2"),
        ("a.csv", "k0,v0\n1,x\n", "'x' is not a row of numbers"),
        ("a.yaml", "", "no kind of file is called '.yaml'"),
    ],
)
def test_a_file_that_does_not_do(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(RequestError, match=message):
        scene_from(tmp_path / name)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cannot be read"):
        scene_from(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b"\xff\xfe")
    with pytest.raises(RequestError, match="not a text file"):
        scene_from(tmp_path / "latin.json")
    (tmp_path / "long.json").write_text(" " * 1_000_001)
    with pytest.raises(RequestError, match="larger than"):
        scene_from(tmp_path / "long.json")
