"""What a page needs to show attention maps: markup that holds its data, a script and a style sheet.

Viewer(data).markup()    # into any page that has SCRIPT and STYLE, once; `attnlabMaps.mount()` afterwards
                         # where the page is put together later
Viewer(data).page()      # a page of its own
Viewer(data)             # in a notebook, shows itself
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from markupsafe import Markup, escape


def _template(name: str) -> str:
    return resources.files("attnlab.report").joinpath("templates", name).read_text(encoding="utf-8")


SCRIPT = _template("maps.js")
STYLE = _template("maps.css")


@dataclass(frozen=True)
class Viewer:
    """Views of models (an arm with a seed, each with the same keys as `maps.view` gives it), to be looked at
    together. `file` is what saved pictures are called."""

    views: Sequence[Mapping[str, Any]]
    left_out: str = ""
    file: str = "attention"

    def markup(self) -> Markup:
        """An element with its data; the script makes the viewer of it."""
        data = json.dumps({"views": list(self.views), "left_out": self.left_out}, ensure_ascii=False)
        # No character of the data can end the element it stands in.
        for character, instead in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
            data = data.replace(character, instead)
        return Markup(
            f'<div class="maps" data-file="{escape(self.file)}">'
            "<noscript><p>The maps themselves need scripts; the figures of every head are in the tables.</p>"
            f'</noscript><script type="application/json">{data}</script></div>'
        )

    def page(self, title: str = "Attention maps") -> str:
        """A page that holds everything it shows."""
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
            f"<title>{escape(title)}</title><style>{_template('page.css')}{STYLE}</style></head>"
            f"<body><main><h1>{escape(title)}</h1>{self.markup()}</main><script>{SCRIPT}</script></body></html>"
        )

    def _repr_html_(self) -> str:
        """In a notebook: a frame of its own, so that neither's styles and scripts reach the other's."""
        return (
            f'<iframe srcdoc="{html.escape(self.page())}" title="Attention maps" '
            'style="width: 100%; height: 56rem; border: 0"></iframe>'
        )
