"""Audits on the page: in a process of their own, and pasted code only with leave."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.web.auditing import audit_named, audit_pasted
from attnlab.web.settings import Settings
from attnlab.web.views.audits import CODE

from .page import Page


@pytest.fixture
def shut(tmp_path: Path) -> Settings:
    return Settings(tmp_path.resolve())


@pytest.fixture
def open_(tmp_path: Path) -> Settings:
    return Settings(tmp_path.resolve(), allow_code=True)


@pytest.fixture(scope="module")
def trusting(root: Path) -> Iterator[Page]:
    page = Page(root, "--allow-code")
    yield page
    assert page.close() == ""


def test_a_built_in_is_audited(page: Page) -> None:
    text = page.send("/audit", how="named", target="softmax").text
    assert "Nothing was found" in text
    assert "causality" in text


def test_code_that_leaks_is_found_out(trusting: Page) -> None:
    """The example that the page begins with masks after the softmax."""
    assert "weights.tril()" in trusting.ask("/audit").text
    text = trusting.send("/audit", how="pasted", code=CODE, name="").text
    assert "Found: " in text
    assert "causality" in text


def test_code_is_not_run_without_leave(page: Page, shut: Settings, tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n" + CODE
    answer = page.send("/audit", how="pasted", code=code, name="")
    assert answer.status == 422
    assert "--allow-code" in answer.text
    assert "<textarea" not in page.ask("/audit").text
    (tmp_path / "own.py").write_text(code)
    for target in (f"{tmp_path}/own.py:attention", "own.py:attention", f"hf:{tmp_path}"):
        with pytest.raises(RequestError, match="--allow-code"):
            audit_named(target, "", shut)
        with pytest.raises(RequestError, match="--allow-code"):
            audit_named("softmax", "own.py:attention", shut)
    with pytest.raises(RequestError, match="--allow-code"):
        audit_pasted(code, "", "", shut)
    assert not (tmp_path / "ran").exists()


def test_no_option_comes_in_as_a_target(shut: Settings) -> None:
    with pytest.raises(RequestError, match="names nothing"):
        audit_named("--trust-remote-code", "", shut)


def test_it_has_so_long_and_no_longer(open_: Settings, tmp_path: Path) -> None:
    """What it starts ends with it."""
    late = f"import time; time.sleep(8); open({str(tmp_path / 'late')!r}, 'w').close()"
    started = f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {late!r}])\n"
    code = f"{started}time.sleep(60)\n{CODE}"
    began = time.monotonic()
    with pytest.raises(RequestError, match="did not come to an end within 6 seconds"):
        audit_pasted(code, "attention", "", open_, patience=6.0)
    assert time.monotonic() - began < 30
    time.sleep(4)
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [
        ("def attention(q", "", "not Python, line 1"),
        ("x = 1", "", "say which is meant: the code defines x"),
        ("", "", "the code defines nothing"),
        (CODE, "atention", "defines no 'atention'"),
        ("def a(): pass\ndef b(): pass", "", "say which is meant: the code defines a, b"),
    ],
)
def test_code_without_a_target_is_not_run(open_: Settings, code: str, name: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        audit_pasted(code, name, "", open_)


def test_code_that_breaks_down_says_how(open_: Settings) -> None:
    (audit,) = audit_pasted("raise ValueError('of mine')\n" + CODE, "attention", "", open_)
    assert "of mine" in str(audit["checks"])
    assert not audit["passed"]
