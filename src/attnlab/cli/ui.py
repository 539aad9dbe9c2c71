"""`attnlab ui`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def ui(
    directory: Path = Path("attnlab-runs"),
    /,
    *,
    port: int = 8765,
    host: str = "127.0.0.1",
    allow_code: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Open a local page over a directory of studies, until Ctrl-C.

    Parameters
    ----------
    directory
        The directory that holds the studies, each in its own. Nothing outside it is shown.
    port
        Where the page listens; 0 for any free port.
    host
        The address to listen on. Any but this machine's own asks everyone for a token, which is printed.
    allow_code
        Let code that is pasted into the page, or named in a declaration written there, run on this machine.
    """
    from attnlab.web import serve
    from attnlab.web.settings import Settings

    def say(settings: Settings) -> None:
        print(f"{settings.address}  over {settings.root}; Ctrl-C ends it, studies go on", flush=True)

    serve(directory, host=host, port=port, allow_code=allow_code, ready=say)
