"""What is fuzzed: each subject takes an input that hypothesis made, and must end in success or in an error of
attnlab's. Anything else, a hang included, is a finding.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
import yaml
from hypothesis import strategies as st

from attnlab.attention import Score
from attnlab.corpus import Document, Labelled, Table, Text, Tokens
from attnlab.errors import AttnlabError
from attnlab.spec import Part
from attnlab.study import load_study
from attnlab.study.declaration import built_in_studies, read_plain, study_from_plain
from attnlab.tokens import Blocks, Bpe, Characters, Sentences, Words
from attnlab.tokens.base import Framing, Tokenizer

PATIENCE = 10.0  # seconds after which an input counts as hanging


class Hangs(BaseException):
    """An input took longer than anyone waits. Not an `Exception`: no handler may swallow it."""


@contextmanager
def in_time() -> Iterator[None]:
    """Raises `Hangs` in the middle of whatever takes too long."""

    def late(*_: object) -> None:
        raise Hangs(f"nothing came of it in {PATIENCE:.0f} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ---- the ingredients ---------------------------------------------------------------------------------------

NAMES = sorted(
    {"name", "question", "seeds", "arms", "vary", "corpus", "model", "training", "part", "mask", "where"}
    | {"score", "position", "mixer", "steps", "optimizer", "learning_rate", "train", "kind", "metric"}
    | {member for family in (Score,) for member in family.members}
)
ODD = st.sampled_from(
    [None, True, -1, 0, 1, 2**70, 1e-320, 1e400, float("nan"), "", " ", "\x00", "a.py:b", "../..", "é" * 300]
)
TEXTS = st.text(max_size=60) | st.sampled_from(["\ud800", "\u2028", "\ufeff", "a\r\nb", "<START>", "<UNK>"])
PLAIN: st.SearchStrategy[Any] = st.recursive(
    ODD | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | TEXTS, inner, max_size=5)
    ),
    max_leaves=12,
)
BUILT_IN = {name: path.read_text("utf-8") for name, path in built_in_studies().items()}


@st.composite
def mangled(draw: st.DrawFn, texts: tuple[str, ...]) -> str:
    """A real text that something happened to."""
    lines = draw(st.sampled_from(texts)).split("\n")
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(lines) - 1))
        what = draw(st.integers(0, 5))
        if what == 0:
            del lines[at]
            lines = lines or [""]
        elif what == 1:
            lines.insert(at, lines[draw(st.integers(0, len(lines) - 1))])
        elif what == 2:
            cut = draw(st.integers(0, len(lines[at])))
            lines[at] = lines[at][:cut] + draw(TEXTS) + lines[at][cut:]
        elif what == 3:
            key = lines[at].partition("=")[0] or draw(st.sampled_from(NAMES))
            lines[at] = f"{key} = {draw(PLAIN)!r}"
        elif what == 4:
            lines[at] = lines[at].replace(
                *draw(st.sampled_from([("[[", "["), ("]", ""), ('"', ""), ("=", ":")]))
            )
        else:
            lines[at] = draw(TEXTS)
    return "\n".join(lines)


# ---- the subjects ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """Where inputs come from, and what is done with one."""

    name: str
    inputs: st.SearchStrategy[Any]
    take: Callable[[Any], None]

    def survives(self, given: Any) -> bool:
        """Whether it was accepted; an error of ours means that it was refused. Anything else comes out."""
        with in_time():
            try:
                self.take(given)
            except AttnlabError as error:
                if not str(error).strip():
                    raise RuntimeError("an error that says nothing") from error
                return False
            return True


# In memory where the machine has such a place: a hundred thousand small files.
_FOLDER = Path(
    tempfile.mkdtemp(prefix="attnlab-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
)


def _file(name: str, content: bytes | str) -> Path:
    path = _FOLDER / name
    path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    return path


def _declaration(given: tuple[str, bytes | str]) -> None:
    ending, content = given
    load_study(_file(f"study{ending}", content))


def _as_plain(plain: dict[str, Any]) -> None:
    study_from_plain(plain, source="fuzz", base=_FOLDER)


def _setting(setting: str) -> None:
    load_study("masking", [setting])


def _dumped(plain: dict[str, Any]) -> tuple[str, str]:
    try:
        return ".toml", tomli_w.dumps(plain)
    except (TypeError, ValueError):
        return ".yaml", yaml.dump(plain, allow_unicode=True)


_declarations = (
    st.tuples(st.just(".toml"), mangled(tuple(BUILT_IN.values())))
    | st.tuples(
        st.just(".yaml"), mangled(tuple(yaml.dump(read_plain(p)) for p in built_in_studies().values()))
    )
    | st.tuples(st.sampled_from([".toml", ".yaml"]), st.binary(max_size=200))
    | st.dictionaries(st.sampled_from(NAMES), PLAIN, max_size=6).map(_dumped)
)
# A place that is there with a value of its kind, so that some are taken; and whatever else one could write.
_settings = st.one_of(
    st.builds("{}={}".format, st.sampled_from(NAMES) | TEXTS, PLAIN),
    st.builds("training.{}={}".format, st.sampled_from(["steps", "batch", "dropout", "evaluations"]), PLAIN),
    st.builds("model.{}={}".format, st.sampled_from(["layers", "heads", "width", "context"]), st.integers()),
    st.builds("score={}".format, st.sampled_from(sorted(Score.members)) | TEXTS),
)


def _corpus(given: tuple[type[Part], dict[str, Any], str, bytes | str]) -> None:
    kind, fields, ending, content = given
    _file(f"corpus{ending}", content)
    kind.resolve({"part": kind.part_name(), "train": f"corpus{ending}", **fields}, _FOLDER).load(_FOLDER)  # type: ignore[attr-defined]


_ROWS = (
    "text,label\nthe cat sat,yes\na dog ran,no\n" * 6,
    "label\ttext\n1\tthe cat sat\n0\ta dog ran\n" * 6,
    '{"text": "the cat sat", "label": "yes"}\n{"text": "a \\ud800 dog", "label": 0}\n' * 6,
    "1 the cat sat\n0 a dog ran\n" * 12,
    "A sentence. Another one!\n\nA third one, U.S. made, of 1,000.5 words.\n" * 8,
)
_contents = mangled(_ROWS) | st.binary(max_size=300) | st.text(max_size=300)
_share = st.sampled_from([0.1, 0.3, 0.5, 0.0, 1.0, -1, "x"])
_corpora = st.one_of(
    st.tuples(
        st.just(Text),
        st.fixed_dictionaries(
            {},
            optional={
                "unit": st.sampled_from(["line", "sentence", "paragraph", "word"]),
                "document": st.sampled_from(["block", "unit", "file"]),
                "block": st.integers(-1, 5),
                "test_share": _share,
            },
        ),
        st.just(".txt"),
        _contents,
    ),
    st.tuples(
        st.just(Table),
        st.fixed_dictionaries(
            {},
            optional={
                "text": st.sampled_from(["text", "label", 1, 2, 9, "nothing"]),
                "label": st.sampled_from(["label", "text", 1, 2, None]),
                "pair": st.sampled_from(["label", None, 3]),
                "document": st.sampled_from(["label", None]),
                "unit": st.sampled_from(["whole", "lines", "sentences", "line"]),
                "header": st.booleans(),
                "dev_share": _share,
            },
        ),
        st.sampled_from([".csv", ".tsv", ".jsonl", ".json", ""]),
        _contents,
    ),
    st.tuples(st.just(Labelled), st.just({}), st.sampled_from([".txt", ""]), _contents),
    st.tuples(st.just(Tokens), st.just({}), st.just(".tokens"), _contents),
)


def _tokenized(given: tuple[Tokenizer, Framing, int, list[str], list[str]]) -> None:
    tokenizer, framing, context, units, others = given
    vocabulary = tokenizer.fit(units)
    for unit in others:
        ids = vocabulary.encode(unit)
        assert all(0 <= id < vocabulary.size and id not in (vocabulary.start, vocabulary.stop) for id in ids)
        assert len(vocabulary.ends(unit)) == len(ids)
        assert isinstance(vocabulary.decode([vocabulary.start, *ids, vocabulary.stop]), str)
    assert type(vocabulary).from_json(vocabulary.to_json()).fingerprint == vocabulary.fingerprint
    documents = [Document(f"{n}", (unit,)) for n, unit in enumerate(others)]
    if documents:
        framed = framing.frame(documents, vocabulary, context)
        assert framed.starts[-1] == len(framed.ids)


_readable = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_tokenizers = st.tuples(
    st.one_of(
        st.builds(
            Words,
            minimum=st.integers(1, 3),
            lowercase=st.booleans(),
            split=st.sampled_from(["punctuation", "space"]),
        ),
        st.builds(Characters, minimum=st.integers(1, 3)),
        st.builds(Bpe, size=st.integers(258, 300)),
    ),
    st.sampled_from([Sentences(), Blocks()]),
    st.integers(1, 20),
    st.lists(_readable | mangled(_ROWS).map(lambda t: t.encode("utf-8", "ignore").decode()), max_size=6),
    st.lists(_readable, max_size=4),
)

SUBJECTS = (
    Subject("declarations in files", _declarations, _declaration),
    Subject("declarations as tables", st.dictionaries(st.sampled_from(NAMES), PLAIN, max_size=6), _as_plain),
    Subject("settings", _settings, _setting),
    Subject("corpus readers", _corpora, _corpus),
    Subject("tokenizers and framings", _tokenizers, _tokenized),
)
