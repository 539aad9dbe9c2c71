"""The three things a token is projected to."""

from typing import Literal

Role = Literal["query", "key", "value"]
ROLES: tuple[Role, ...] = ("query", "key", "value")
