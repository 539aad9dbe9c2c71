"""Plan and run a study: kinds, the run store, executors."""

from attnlab.study.declaration import built_in_studies, load_study, to_toml
from attnlab.study.kinds import KINDS, LanguageModel
from attnlab.study.run import Results, run
from attnlab.study.store import Store, open_study
from attnlab.study.study import Arm, Study

__all__ = [
    "KINDS",
    "Arm",
    "LanguageModel",
    "Results",
    "Store",
    "Study",
    "built_in_studies",
    "load_study",
    "open_study",
    "run",
    "to_toml",
]
