"""Attention by hand: the query, or the key, that does what you ask; or how near one can come, and why not
nearer."""

from attnlab.craft.answer import Answer
from attnlab.craft.board import Board
from attnlab.craft.change import find_key
from attnlab.craft.course import Task, course
from attnlab.craft.hard import Hard, hard_attention
from attnlab.craft.query import TOLERANCE, find_query
from attnlab.craft.reading import scene_from
from attnlab.craft.scene import BEST_KEY, FOUR, Scene
from attnlab.craft.superposition import superpose, take_out, taking_out
from attnlab.craft.wish import Average, Output, Select, Weights, Wish, wishes

__all__ = [
    "BEST_KEY",
    "FOUR",
    "TOLERANCE",
    "Answer",
    "Average",
    "Board",
    "Hard",
    "Output",
    "Scene",
    "Select",
    "Task",
    "Weights",
    "Wish",
    "course",
    "find_key",
    "find_query",
    "hard_attention",
    "scene_from",
    "superpose",
    "take_out",
    "taking_out",
    "wishes",
]
