"""Reports, as they lie in the directory or as they would be now."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse

from attnlab.errors import RequestError
from attnlab.web.shelf import Shelf

# A report brings its own policy, which lets its one script run; in a sandbox it is nobody to this page.
_SANDBOX = {
    "content-security-policy": "sandbox allow-scripts allow-downloads allow-modals allow-popups",
    "cache-control": "no-cache",
}
_KEPT = 4  # drawn reports that are remembered
_drawn: OrderedDict[tuple[tuple[str, float], ...], str] = OrderedDict()


def report(request: Request) -> HTMLResponse:
    """The report of one study: the file, where nothing was measured since it was written."""
    shelf: Shelf = request.app.state.shelf
    folder = shelf.folder(request.path_params["name"])
    written = folder / "report.html"
    if written.is_file() and written.stat().st_mtime >= _measured(folder):
        return HTMLResponse(written.read_bytes(), headers=_SANDBOX)
    return HTMLResponse(_render([folder]), headers=_SANDBOX)


def joined(request: Request) -> HTMLResponse:
    """One report of several studies."""
    shelf: Shelf = request.app.state.shelf
    names = list(dict.fromkeys(request.query_params.getlist("study")))
    if not names:
        raise RequestError("a report needs at least one study: choose some in the list of studies")
    return HTMLResponse(_render([shelf.folder(name) for name in names]), headers=_SANDBOX)


def _render(folders: Sequence[Path]) -> str:
    key = tuple((str(folder), _measured(folder)) for folder in folders)
    if key not in _drawn:
        from attnlab.report.page import render
        from attnlab.report.reading import read

        _drawn[key] = render([read(folder) for folder in folders])
        while len(_drawn) > _KEPT:
            _drawn.popitem(last=False)
    return _drawn[key]


def _measured(folder: Path) -> float:
    """When the latest result came in."""
    results = [*folder.glob("results.json"), *folder.glob("runs/*/*/result.json"), folder / "study.json"]
    return max(path.stat().st_mtime for path in results)
