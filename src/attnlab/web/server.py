"""Starting the page."""

from __future__ import annotations

import contextlib
import importlib
import secrets
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from attnlab.errors import RequestError
from attnlab.web.settings import Settings, is_loopback


def serve(
    directory: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    allow_code: bool = False,
    ready: Callable[[Settings], None] = lambda settings: None,
) -> None:
    """Serve the page over a directory of studies until Ctrl-C; `ready` is told where, once it listens."""
    root = _usable(directory)
    listening = _listen(host, port)
    token = None if is_loopback(host) else secrets.token_urlsafe(24)
    settings = Settings(root, host, listening.getsockname()[1], allow_code, token)
    import uvicorn

    from attnlab.web.app import make_app

    config = uvicorn.Config(
        make_app(settings),
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    ready(settings)
    # What takes longest to load is loaded while the first page is being looked at.
    loading = threading.Timer(1.0, importlib.import_module, ["attnlab.study"])
    loading.daemon = True
    loading.start()
    with contextlib.suppress(KeyboardInterrupt):  # how a page ends
        uvicorn.Server(config).run(sockets=[listening])


def _usable(directory: Path) -> Path:
    """The directory, resolved; made where there is none, as `attnlab run` would."""
    try:
        root = directory.expanduser().resolve()
        if (root / "study.json").is_file():
            raise RequestError(
                f"{str(directory)!r} is one study's directory: name what holds it, {str(root.parent)!r}"
            )
        root.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise RequestError(f"{str(directory)!r} is not a usable directory ({error})") from None
    return root


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens. A port that is taken is an error, unless nobody asked for one in particular."""
    if not 0 <= port <= 65535:
        raise RequestError(f"--port takes a number from 0 (any free one) to 65535, not {port}")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
            made.listen(64)
        except OSError:
            made.close()
            raise
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RequestError(f"cannot listen on {host}:{port} ({reason}); name another with --port") from None
    return made
