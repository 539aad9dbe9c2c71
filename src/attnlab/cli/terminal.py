"""The terminal that a command prints its answer to."""

from __future__ import annotations

from rich.console import Console


class Terminal(Console):
    """Rich's console, which leaves with exit code 1 when its reader has seen enough. That is no failure: here
    it is the error that any other print would raise, and `main` knows what it means."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
