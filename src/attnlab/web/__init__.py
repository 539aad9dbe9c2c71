"""The local page: studies while they run, their reports, comparisons, audits, and attention by hand.

Thin: it shows what lies in a directory of studies and starts the same commands that a terminal would.
"""

from attnlab.web.server import serve

__all__ = ["serve"]
