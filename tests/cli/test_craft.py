"""`attnlab craft`: what it prints, and what it refuses."""

from __future__ import annotations

import json

import pytest

from attnlab.cli import main


def test_the_tour(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["craft"]) == 0
    text = capsys.readouterr().out
    assert text.count("✓") == 11  # ten answers within the tolerance, and the line that explains the sign
    assert "(3, 2, -4), value 0" in text
    assert "out of the mean exactly" in text


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("select 0", 0, "in the limit of a growing query"),
        ("identity", 0, "select value 3"),
        ("output 0.2475 -0.59 0.3225", 0, "exact, with this query"),
        ("output -3,-3,-3", 1, "outside their hull"),
        ("select 2 --keys -1,0;1,0;0,0", 1, "mixture of keys 0 and 1"),
        ("average 0 1 2 --change 2 --query 12,16,-0.3", 0, "Only the score of key 2 moves"),
        ("select 2 --change 2 --length 1 --query -1,0,0", 1, "k = 1 · q / |q|"),
        ("--query -2,1,1", 0, "output"),
        ("--weigh argmax", 0, "every derivative is exactly zero"),
        ("select 1 --weigh argmax", 0, "value 1"),
        ("superpose 0 2", 0, "weight of both"),
        ("superpose 0 1 --keys 1,0;0,1 --values 1,0;0,1 --subspace 1,0", 0, "out of the mean exactly"),
    ],
)
def test_answers(words: str, code: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["craft", *words.split()]) == code
    assert says in " ".join(capsys.readouterr().out.split())


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["craft", "identity", "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)
    assert [answer["verdict"] for answer in answers] == ["limit"] * 4
    assert all(answer["solved"] and answer["error"] <= 0.0500001 for answer in answers)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("slect 0", "did you mean 'select'"),
        ("select 0 --query 1,2,3", "name the key with --change"),
        ("select 0 --change 1", "give it with --query"),
        ("identity --change 1 --query 1,1,1", "ask for one value"),
        ("average --length 1", "--change"),
        ("average 0 1 --weigh argmax", "argmax gives one value"),
        ("select 2 --weigh argmax --keys -1,0;1,0;0,0", "no query likes key 2 best"),
        ("--keys 1,0;0,1", "say what is wanted"),
        ("--weigh argmax --keys 1,0;0,1", "give a --query to look at"),
        ("superpose 0", "the numbers of two keys"),
        ("superpose 0 1 --keys 1,1;0,1", "key 0 has length"),
        ("select 0 --scene none.toml", "cannot be read"),
        ("select 0 --scale 0", "the scale is 0"),
        ("select 0 --tolerance 0", "the tolerance is 0"),
        ("select 0 --keys 1,x", "'1,x' is not a row of numbers"),
    ],
)
def test_refusals(words: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["craft", *words.split()]) == 2
    assert says in " ".join(capsys.readouterr().err.split())
