"""Kinds of study, a file each."""

from attnlab.study.kind import Setup
from attnlab.study.kinds.language_model import LanguageModel

KINDS: dict[str, type[Setup]] = {kind.kind: kind for kind in (LanguageModel,)}

__all__ = ["KINDS", "LanguageModel"]
