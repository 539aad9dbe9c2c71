"""Kinds of study, a file each."""

from attnlab.study.kind import Setup
from attnlab.study.kinds.distillation import Distillation
from attnlab.study.kinds.language_model import LanguageModel

KINDS: dict[str, type[Setup]] = {kind.kind: kind for kind in (LanguageModel, Distillation)}

__all__ = ["KINDS", "Distillation", "LanguageModel"]
