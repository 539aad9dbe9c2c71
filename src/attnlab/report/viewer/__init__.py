"""The viewer of attention maps: one script and one style sheet, in the report, on a page, in a notebook."""

from attnlab.report.viewer.maps import maps_of
from attnlab.report.viewer.viewer import SCRIPT, STYLE, Viewer

__all__ = ["SCRIPT", "STYLE", "Viewer", "maps_of"]
