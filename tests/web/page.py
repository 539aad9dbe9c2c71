"""A page that runs as a user would run it, and a client that says exactly what it is told to say."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette

from attnlab.web.settings import Settings


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str


class Client:
    """Asks a page on this machine."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.address = f"http://127.0.0.1:{port}"

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: bytes | str | None = None,
        /,
        *,
        host: str | None = None,
        **headers: str,
    ) -> Answer:
        """One request, its path sent as it stands; `x_y` becomes the header X-Y."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", f"127.0.0.1:{self.port}" if host is None else host)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        sent = body.encode() if isinstance(body, str) else body
        if sent is not None and "content_length" not in headers and "transfer_encoding" not in headers:
            connection.putheader("Content-Length", str(len(sent)))
        connection.endheaders(sent)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        connection.close()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, text)

    def send(self, path: str, /, **fields: str) -> Answer:
        """A form, as the page itself sends one."""
        kind = "application/x-www-form-urlencoded"
        return self.ask(path, "POST", urlencode(fields), origin=self.address, content_type=kind)


class Page(Client):
    """`attnlab ui` over a directory, in a process of its own."""

    def __init__(self, root: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "attnlab", "ui", str(root), "--port", "0", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        found = re.match(r"http://([^/]*):(\d+)/(?:\?token=(\S+))?", self.said)
        assert found, self.said + (self.process.stderr.read() if self.process.stderr else "")
        super().__init__(int(found[2]))
        self.token = found[3]

    def close(self) -> str:
        """Ctrl-C; gives back what it complained of."""
        self.process.send_signal(signal.SIGINT)
        _, complaints = self.process.communicate(timeout=30)
        assert self.process.returncode == 0
        return complaints


@contextlib.contextmanager
def served_here(settings: Settings, app: Starlette) -> Iterator[Client]:
    """An application in this process, for a test that looks at what it does to its parts."""
    with socket.create_server(("127.0.0.1", settings.port)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        yield Client(settings.port)
        server.should_exit = True
        thread.join()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
