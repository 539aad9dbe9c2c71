"""Declarations written on the page: what is wrong with them, and what they may not name."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.study.declaration import built_in_studies
from attnlab.web.declaring import check, keep
from attnlab.web.settings import Settings

from .page import Page

SHORT = """\
name = "short"
question = "Is it?"
seeds = 2
[[arms]]
name = "dot"
[[arms]]
name = "b"
score = "additive"
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path.resolve())


@pytest.mark.parametrize("name", built_in_studies())
def test_every_built_in_study_holds(settings: Settings, name: str) -> None:
    found = check(built_in_studies()[name].read_text("utf-8"), settings)
    assert found.problems == ()
    assert found.folder == name


def test_all_problems_come_at_once_with_their_place(settings: Settings) -> None:
    text = (
        SHORT.replace('"additive"', '"aditive"').replace("seeds = 2", "seeds = 0")
        + "[training]\nstepps = 3\n"
    )
    problems = {problem.place: problem.message for problem in check(text, settings).problems}
    assert problems.keys() == {"seeds", "training", "arms[1] (b).model.mixer.score"}
    assert "did you mean 'steps'?" in problems["training"]
    assert "did you mean 'additive'?" in problems["arms[1] (b).model.mixer.score"]


@pytest.mark.parametrize(
    ("text", "place"), [('name = "x\n', "line 1"), ("a = 1\nb = = 2\n", "line 2"), ("", ""), ("x = 1", "")]
)
def test_what_is_no_declaration_says_where(settings: Settings, text: str, place: str) -> None:
    found = check(text, settings)
    assert found.problems
    assert any(problem.place.startswith(place) for problem in found.problems)


def test_nothing_breaks_it(settings: Settings) -> None:
    for text in (
        "a" * 200_000,
        "a = " + "[" * 5000,
        "\0",
        "a.b.c" * 2000,
        "[[arms]]\n" * 3000,
        "name = 1e999",
    ):
        assert check(text, settings).problems


LEADS_OUT = [
    '[corpus]\npart = "text"\ntrain = "/etc/passwd"\n',
    '[corpus]\npart = "text"\ntrain = ["~/.bashrc"]\n',
    '[corpus]\npart = "text"\ntrain = "../secret.txt"\n',
    '[corpus]\npart = "text"\ntrain = "inside/../../secret.txt"\n',
    '[corpus]\npart = "text"\ntrain = "link.txt"\n',
    '[corpus]\npart = "text"\ntrain = "inside.txt"\nextra = { more = "/etc/passwd" }\n',
    '[[arms]]\nname = "c"\ncorpus = { part = "text", train = "/etc/passwd" }\n',
    '[[arms]]\nname = "c"\n"corpus.train" = "/etc/passwd"\n',
    *(f'[writer]\nof = "{place}"\n' for place in ("hf:/models/one", "hf:~/one", "hf:../one", "hf:link.txt")),
]


@pytest.mark.parametrize("more", LEADS_OUT)
def test_a_declaration_reads_nothing_outside(settings: Settings, more: str) -> None:
    outside = settings.root.parent / "outside.txt"
    outside.write_text("a secret")
    (settings.root / "link.txt").symlink_to(outside)
    (settings.root / "inside.txt").write_text("a text")
    found = check(SHORT + more, settings)
    assert any("lies outside the page's directory" in p.message for p in found.problems), found.problems
    assert found.study is None


CODE = [
    'score = "own.py:Own"',
    'score = { part = "own.py:Own" }',
    'mixer = "/tmp/own.py:Own"',
    '"model.mixer" = { part = "own.py:Own" }',
]


@pytest.mark.parametrize("arm", CODE)
def test_code_is_not_even_read_without_leave(settings: Settings, arm: str) -> None:
    """To validate a part of one's own is to run its file."""
    ran = settings.root / "ran"
    (settings.root / "own.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    found = check(f'{SHORT}[[arms]]\nname = "own"\n{arm}\n', settings)
    assert any("is code" in problem.message for problem in found.problems)
    assert not ran.exists()


def test_code_is_read_with_leave(settings: Settings) -> None:
    ran = settings.root / "ran"
    (settings.root / "own.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    with_leave = Settings(settings.root, allow_code=True)
    found = check(f'{SHORT}[[arms]]\nname = "own"\nscore = "own.py:Own"\n', with_leave)
    assert ran.exists()
    assert "Own" in str(found.problems)  # the file defines none


def test_a_declaration_is_kept_beside_its_study(settings: Settings) -> None:
    found = check(SHORT, settings)
    arguments = keep(SHORT, found, settings)
    assert arguments == ["run", str(settings.root / "short.toml"), "--out", str(settings.root / "short")]
    assert (settings.root / "short.toml").read_text() == SHORT
    (settings.root / "short").mkdir()
    assert "already" in str(check(SHORT, settings).problems)


def test_another_declaration_is_not_written_over(settings: Settings) -> None:
    from attnlab.errors import RequestError

    (settings.root / "short.toml").write_text("# mine\n")
    with pytest.raises(RequestError, match="declares something else"):
        keep(SHORT, check(SHORT, settings), settings)
    assert (settings.root / "short.toml").read_text() == "# mine\n"


def test_a_built_in_study_is_run_by_its_name(settings: Settings) -> None:
    text = built_in_studies()["masking"].read_text("utf-8")
    assert keep(text, check(text, settings), settings)[:2] == ["run", "masking"]
    assert list(settings.root.iterdir()) == []


def test_the_page_checks_as_one_types(page: Page) -> None:
    assert "2 arms × 2 seeds: 4 runs" in page.send("/check", declaration=SHORT).text
    assert "4 problems" in page.send("/check", declaration="x = 1\ny = 2\nname = 'short'").text
    answer = page.send("/start", declaration=SHORT.replace("additive", "aditive"))
    assert answer.status == 422
    assert "additive" in answer.text


def test_a_declaration_to_begin_with(page: Page) -> None:
    assert "arms" in page.ask("/new").text
    assert "after the softmax" in page.ask("/new?from=masking").text
    assert page.ask("/new?from=maskin").status == 404
    assert "question = " in page.ask("/new?like=score").text


@pytest.mark.parametrize(
    "asks",
    [
        "[model]\ntrust_remote_code = true",
        '[model]\ntrust_remote_code = "true"',
        "[model]\ntrust_remote_code = 1",
        '[search]\npart = "grid"\n[search.space]\n"model.trust_remote_code" = [true]',
        '[search]\npart = "grid"\n[search.space]\nmodel = [{ trust_remote_code = true }]',
    ],
)
def test_a_checkpoints_code_is_not_run_however_it_is_asked_for(tmp_path: Path, asks: str) -> None:
    text = f'name = "t"\nquestion = "?"\nkind = "tuning"\n{asks}\n[[arms]]\nname = "a"\n'
    barred = check(text, Settings(tmp_path.resolve())).problems
    assert any("--allow-code" in problem.message for problem in barred)
    plain = text.replace("true", "false").replace("= 1", "= false").replace('"false"', "false")
    assert not any("--allow-code" in p.message for p in check(plain, Settings(tmp_path.resolve())).problems)
