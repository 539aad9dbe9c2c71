"""An exhibit: a section of the report that only some kinds of study have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from attnlab.report.pictures.picture import Picture
from attnlab.report.tables.table import Table


@dataclass(frozen=True)
class Exhibit:
    """A heading, a line on how to look at it, and what there is to see.

    `key` tells it apart from the other sections of a page. `markup` stands for what is neither a picture nor
    a table, escaped by whoever made it.
    """

    key: str
    title: str
    note: str = ""
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    markup: Markup = Markup("")
