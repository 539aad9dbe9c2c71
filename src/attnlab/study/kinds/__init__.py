"""Kinds of study, a file each."""

from attnlab.study.kind import Setup
from attnlab.study.kinds.classifier import Classifier
from attnlab.study.kinds.decoding import Decoding
from attnlab.study.kinds.distillation import Distillation
from attnlab.study.kinds.language_model import LanguageModel
from attnlab.study.kinds.tuning import Tuning

_ALL: tuple[type[Setup], ...] = (LanguageModel, Classifier, Distillation, Tuning, Decoding)
KINDS: dict[str, type[Setup]] = {kind.kind: kind for kind in _ALL}

__all__ = ["KINDS", "Classifier", "Decoding", "Distillation", "LanguageModel", "Tuning"]
