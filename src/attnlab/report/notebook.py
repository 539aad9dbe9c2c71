"""What a study found, drawn where a notebook shows it."""

from __future__ import annotations

import html
from pathlib import Path

from attnlab.report.page import render
from attnlab.report.reading import read


def drawn(directory: Path) -> str:
    """The top of the report of the study in a directory, in a frame of its own, so that neither's styles and
    scripts reach the other's."""
    study = read(directory)
    return (
        f'<iframe srcdoc="{html.escape(render([study], brief=True))}" title="{html.escape(study.name)}" '
        'style="width: 100%; height: 52rem; border: 0"></iframe>'
    )
