"""Who may ask the page for what: it starts processes, so it answers to nobody but the person who started it.

Another site open in the same browser can send requests here; a name it owns can be made to mean this machine.
So the Host has to be ours, an Origin has to be the page itself, and whatever changes anything must come from
the page. Where other machines can knock, they need the token.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import socket
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attnlab.web.settings import Settings, is_loopback

MOST_BYTES = 256 * 1024  # of a request's body: the longest declaration is a few thousand
SAFE = ("GET", "HEAD")
COOKIE = "attnlab-token"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class TooLarge(Exception):
    """More bytes came than the page takes."""


class Guard:
    """Stands before the page."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._answer(scope)
        if answer is not None:
            await answer(scope, receive, sealed)
            return
        with contextlib.suppress(TooLarge):
            await self.app(scope, _limited(receive), sealed)
            return
        await PlainTextResponse(_too_large(), 413)(scope, receive, sealed)

    def _answer(self, scope: Scope) -> Response | None:
        """What to say instead of passing the request on, if anything."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_ours(host):
            return _refused(f"this page does not answer to the name {host!r}")
        if scope["method"] not in (*SAFE, "POST"):
            return PlainTextResponse("the page knows GET and POST", 405, {"allow": "GET, HEAD, POST"})
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return _refused(f"this page does not answer to {origin!r}")
        site = headers.get("sec-fetch-site")
        if scope["method"] == "POST" and origin is None and site != "same-origin":
            return _refused("a request that changes something has to come from the page itself")
        if site in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
            return _refused("this page is no part of another site")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            return PlainTextResponse(_too_large(), 413)
        return self._about_token(scope, headers)

    def _is_ours(self, host: str) -> bool:
        """Whether a Host header names this page. A name that someone else could own does not."""
        name, port = urlsplit(f"//{host}").hostname or "", _port_of(host)
        if port != self.settings.port:
            return False
        if is_loopback(name):
            return True
        if is_loopback(self.settings.host):
            return False
        with contextlib.suppress(ValueError):
            return bool(ipaddress.ip_address(name))
        return name in (self.settings.host.lower(), socket.gethostname().lower())

    def _about_token(self, scope: Scope, headers: Headers) -> Response | None:
        token = self.settings.token
        if token is None or _same(_cookie(headers), token) or _same(_bearer(headers), token):
            return None
        (given,) = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[:1]
        if scope["method"] in SAFE and _same(given, token):
            answer = RedirectResponse(scope["path"], 303)
            answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
            return answer
        return PlainTextResponse("open the address that `attnlab ui` printed: it holds the token\n", 401)


def _limited(receive: Receive) -> Receive:
    """The same stream, which ends with an error where it gets too long."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MOST_BYTES:
            raise TooLarge
        return message

    return counted


def _refused(why: str) -> Response:
    return PlainTextResponse(f"{why}\n", 403)


def _too_large() -> str:
    return f"the page takes up to {MOST_BYTES // 1024} KB at a time\n"


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _bearer(headers: Headers) -> str:
    kind, _, given = headers.get("authorization", "").partition(" ")
    return given if kind.lower() == "bearer" else ""


def _cookie(headers: Headers) -> str:
    with contextlib.suppress(CookieError):
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        return found.value if found else ""
    return ""


def _port_of(host: str) -> int | None:
    with contextlib.suppress(ValueError):
        return urlsplit(f"//{host}").port or 80
    return None
