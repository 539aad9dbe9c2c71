"""Requests that try: other names, other origins, other places, too much."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from .conftest import SECRET
from .page import Page


def test_the_page_itself_is_let_in(page: Page) -> None:
    assert page.ask("/").status == 200
    assert page.ask("/", host=f"localhost:{page.port}").status == 200
    assert page.ask("/", origin=page.address).status == 200
    assert page.ask("/", sec_fetch_site="cross-site", sec_fetch_mode="navigate").status == 200  # a link


@pytest.mark.parametrize(
    "host", ["", "evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "evil:{port}"]
)
def test_no_other_name_is_answered(page: Page, host: str) -> None:
    """A name that somebody else owns can be made to point at this machine."""
    answer = page.ask("/", host=host.format(port=page.port))
    assert answer.status in (400, 403)
    assert "Studies" not in answer.text


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "http://localhost"],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_other_origin_is_answered(page: Page, origin: str, method: str) -> None:
    body = "declaration=x" if method == "POST" else None
    assert page.ask("/check", method, body, origin=origin.format(port=page.port)).status == 403


def test_nothing_is_written_for_who_does_not_say_where_from(page: Page) -> None:
    for path in ("/check", "/start", "/audit", "/studies/score/continue", "/studies/score/stop"):
        assert page.ask(path, "POST", "a=b").status == 403, path
        assert page.ask(path, "POST", "a=b", sec_fetch_site="same-site").status == 403, path
    assert page.ask("/check", "POST", "declaration=", sec_fetch_site="same-origin").status == 200


def test_nothing_is_written_by_looking(page: Page) -> None:
    for path in ("/check", "/start", "/studies/score/continue", "/studies/score/stop"):
        assert page.ask(path).status == 405, path
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert page.ask("/", method, origin=page.address).status == 405, method


def test_no_other_site_can_use_it_as_a_part(page: Page) -> None:
    assert page.ask("/", sec_fetch_site="cross-site", sec_fetch_mode="no-cors").status == 403
    headers = page.ask("/").headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "'unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_a_report_is_a_stranger_to_the_page(page: Page) -> None:
    """Its script may run, and may not act as the page."""
    policy = page.ask("/studies/score/report").headers["content-security-policy"]
    assert policy.startswith("sandbox ")
    assert "allow-same-origin" not in policy


OUT = [
    "/static/../../../../../../etc/passwd",
    "/static/..%2f..%2f..%2f..%2fetc%2fpasswd",
    "/static/%2e%2e/%2e%2e/server.py",
    "/static//etc/passwd",
    "/static/vendor",
    "/static/page.css%00",
    "/studies/..",
    "/studies/../secret.json",
    "/studies/..%2fsecret.json",
    "/studies/%2e%2e/report",
    "/studies/..%2f..%2f..%2fetc/report",
    "/studies/%2Fetc/report",
    "/studies/nothing",
    "/studies/nothing/report",
    "/studies/.page",
    "/studies/score%00/report",
    "/studies/score%2fruns/report",
    "/compare?run=../secret.txt",
    "/compare?run=score/../../secret",
    "/compare/curves?run=score/dot/0/..",
    "/report?study=../studies/score",
    "/report?study=/etc",
    "/new?from=../../etc/passwd",
    "/new?like=..",
]


@pytest.mark.parametrize("path", OUT)
def test_nothing_outside_is_found(page: Page, path: str) -> None:
    answer = page.ask(path)
    assert answer.status in (400, 404), answer.text[:200]
    assert SECRET not in answer.text
    assert "root:" not in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("study.json", "secret.json"),
        ("report.html", "secret.txt"),
        ("results.json", "secret.json"),
        ("runs/dot/0/metrics.jsonl", "secret.txt"),
        ("runs/dot/1", "."),
        ("runs", "."),
    ],
)
def test_a_link_leads_nowhere(page: Page, root: Path, link: str, target: str) -> None:
    folder = root / "linked"
    shutil.copytree(root / "score", folder)
    try:
        place = folder / link
        shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
        place.symlink_to(root.parent / target)
        for path in (
            "/studies/linked",
            "/studies/linked/report",
            "/studies/linked/curves",
            "/new?like=linked",
        ):
            assert page.ask(path).status == 404, path
        listed = page.ask("/").text
        assert SECRET not in listed
        assert "a link that leads out" in listed
    finally:
        shutil.rmtree(folder)


def test_a_folder_that_is_a_link_leads_nowhere(page: Page, root: Path) -> None:
    (root.parent / "elsewhere").mkdir()
    shutil.copy(root.parent / "secret.json", root.parent / "elsewhere" / "study.json")
    (root / "away").symlink_to(root.parent / "elsewhere")
    try:
        assert page.ask("/studies/away").status == 404
        assert SECRET not in page.ask("/").text
    finally:
        (root / "away").unlink()


def test_too_much_is_not_read(page: Page) -> None:
    assert page.ask("/check", "POST", b"x" * (300 * 1024), origin=page.address).status == 413
    assert page.ask("/check", "POST", b"", origin=page.address, content_length="99999999999").status == 413
    assert page.ask("/check", "POST", b"", origin=page.address, content_length="-1").status in (400, 413)
    pieces = b"".join(b"8000\r\n" + b"x" * 0x8000 + b"\r\n" for _ in range(12)) + b"0\r\n\r\n"
    answer = page.ask("/check", "POST", pieces, origin=page.address, transfer_encoding="chunked")
    assert answer.status == 413
    many = "&".join(f"a{i}=b" for i in range(5000))
    assert page.ask("/check", "POST", many, origin=page.address).status == 422


def test_others_need_the_token(root: Path) -> None:
    page = Page(root, "--host", "0.0.0.0")
    try:
        assert page.token
        assert page.ask("/").status == 401
        assert page.ask("/?token=guess").status == 401
        assert page.ask("/", authorization="Bearer guess").status == 401
        assert page.ask("/", cookie="attnlab-token=guess").status == 401
        assert page.ask("/check", "POST", "a=b", origin=page.address).status == 401
        entered = page.ask(f"/?token={page.token}")
        assert entered.status == 303
        assert entered.headers["location"] == "/"
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert page.ask("/", cookie=cookie.split(";")[0]).status == 200
        assert page.ask("/", authorization=f"Bearer {page.token}").status == 200
        assert page.ask("/", host=f"evil.example:{page.port}", cookie=cookie.split(";")[0]).status == 403
    finally:
        page.close()


def test_only_this_machine_is_listened_to(page: Page) -> None:
    assert page.token is None
    outside = [
        info[4][0]
        for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        if not info[4][0].startswith("127.")
    ]
    if not outside:
        pytest.skip("this machine has no other address")
    with pytest.raises(OSError, match=r"refused|timed out|unreachable"):
        socket.create_connection((outside[0], page.port), timeout=2).close()


def test_what_cannot_be_served_is_said(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from attnlab.cli import main

    file = tmp_path / "file"
    file.touch()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for words, said in [
            ([str(root), "--port", port], "cannot listen on 127.0.0.1"),
            ([str(root), "--port", "70000"], "--port takes a number from 0"),
            ([str(root), "--host", "no such host"], "cannot listen on no such host"),
            ([str(file)], "not a usable directory"),
            ([str(root / "score")], "name what holds it"),
        ]:
            assert main(["ui", *words]) == 2, words
            assert said in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["file"]
