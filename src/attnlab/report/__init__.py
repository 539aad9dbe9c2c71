"""Reports: a study's directory as one page a reader can check, and as a table to print or paste."""

from attnlab.report.page import write
from attnlab.report.printed import table

__all__ = ["table", "write"]
