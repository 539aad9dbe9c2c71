"""The table of arms for a terminal, a README or a paper."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import Literal, get_args

from rich.console import Console
from rich.text import Text

from attnlab.errors import RequestError, unknown
from attnlab.report.reading import read
from attnlab.report.studied import Studied
from attnlab.report.tables.arms import arms_table
from attnlab.report.tables.terminal import drawn
from attnlab.report.words import headline, noise, overlap, sentences, warning

Format = Literal["terminal", "markdown", "latex"]


def table(directory: Path, format: Format = "terminal") -> str:
    """The table of arms of the study in a directory, with its verdicts, as text."""
    if format not in get_args(Format):
        raise RequestError(unknown("format", format, get_args(Format)))
    study = read(directory)
    arms = arms_table(study)
    if format == "terminal":
        return _terminal(study)
    if arms is None:
        return ""
    return arms.markdown() if format == "markdown" else arms.latex()


def _terminal(study: Studied) -> str:
    """Drawn for the terminal it will stand in; colours only where there is one."""
    width = shutil.get_terminal_size((120, 24)).columns
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=sys.stdout.isatty() or None, highlight=False)
    head = (
        (study.question, "bold"),
        (noise(study), "dim"),
        (headline(study), ""),
        (warning(study), "yellow"),
        (overlap(study), "yellow"),
    )
    for said, style in head:
        if said:
            console.print(Text(said, style=style))
    made = arms_table(study)
    if made:
        console.print(Text(), drawn(made, width), Text(), Text(made.note, style="dim"), sep="\n")
    for one in sentences(study):
        console.print(Text(), Text(one.sentence), sep="\n")
    return text.getvalue().rstrip()
