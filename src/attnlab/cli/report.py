"""`attnlab report`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal


def report(
    directory: Path,
    /,
    *more: Path,
    out: Path | None = None,
    format: Literal["html", "terminal", "markdown", "latex"] = "html",
) -> None:
    """Write the report of a study, or one page for several; or print its table.

    Parameters
    ----------
    directory
        The directory of a study that was run.
    more
        Further studies to join on the page.
    out
        Where the page goes: a file, or a directory to hold report.html. Unless given, the page of one study
        goes into its directory, and that of several beside the first, in the directory that holds it.
    format
        `html` writes the page; the others print the table of arms.
    """
    from attnlab import report as reports

    directories = [directory, *more]
    if format == "html":
        print(reports.write(directories if more else directory, out))
        return
    for each in directories:
        print(reports.table(each, format))
