"""Attention by hand on a page and in a notebook: one component, a few scripts and a style sheet."""

from attnlab.craft.board.board import SCRIPTS, STYLE, Board

__all__ = ["SCRIPTS", "STYLE", "Board"]
