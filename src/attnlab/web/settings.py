"""What the page was started with."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """A directory of studies, where the page listens, and what it may do."""

    root: Path  # resolved: nothing outside it is read
    host: str = "127.0.0.1"
    port: int = 0
    allow_code: bool = False  # whether code that comes through the page may run
    token: str | None = None  # asked of everyone, where others than this machine can knock

    @property
    def address(self) -> str:
        """Where a browser on this machine finds the page."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::", "") else self.host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/" + (f"?token={self.token}" if self.token else "")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
