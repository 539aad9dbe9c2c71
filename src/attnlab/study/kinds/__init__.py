"""Kinds of study, a file each."""

from attnlab.study.kind import Setup
from attnlab.study.kinds.classifier import Classifier
from attnlab.study.kinds.distillation import Distillation
from attnlab.study.kinds.language_model import LanguageModel
from attnlab.study.kinds.tuning import Tuning

KINDS: dict[str, type[Setup]] = {
    kind.kind: kind for kind in (LanguageModel, Classifier, Distillation, Tuning)
}

__all__ = ["KINDS", "Classifier", "Distillation", "LanguageModel", "Tuning"]
