"""How a model's distributions become text: strategies compared on the same prompts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from attnlab.corpus import Corpus
from attnlab.corpus.split import spread
from attnlab.decoding import OwnWriter, Recipe, Writer
from attnlab.decoding.writer import room
from attnlab.errors import RequestError
from attnlab.record import Check, RunResult
from attnlab.spec import Count, Positive, Spec
from attnlab.study.kind import Bench, Held, Setup
from attnlab.study.kinds.language_model import LanguageModelBench
from attnlab.study.within import Trained, trained_writer
from attnlab.training import Observer
from attnlab.verdict import Metric

WITHIN = "trained"  # the decoder that the study trains for itself
MOST_PROMPTS = 1000  # so that the random numbers of two prompts, or of two seeds, do not meet

# What is measured of every prompt's continuations, and which direction is called good. Random text has the
# most distinct words of all; more is called better because strategies err by having few.
MEASURES: Mapping[str, str] = {
    "model_loss": "lower",
    "second_loss": "lower",
    "distinct_1": "higher",
    "distinct_2": "higher",
    "distinct_3": "higher",
    "repetition": "lower",
    "self_bleu": "lower",
    "length": "higher",
}


class Source(Spec):
    """A model: `trained` for the one of the section of that name, or what `attnlab decode` takes."""

    of: str = Field(default=WITHIN, min_length=1)
    arm: str | None = None  # of a study: whose model; the baseline's unless given
    run: Count = 0  # of a study, or of the decoder trained here: the seed of the training


class Prompts(Spec):
    """What is continued."""

    texts: Annotated[tuple[str, ...], Field(max_length=MOST_PROMPTS)] = ()
    held_out: Count = 8  # further ones: the beginnings of sentences of the test split
    words: Positive = 6  # in each of those


class Written(Spec):
    """How much is written, and what of it the report shows."""

    continuations: Positive = 10
    longest: Positive = 40  # new tokens
    shown: Positive = 3  # prompts whose continuations stand side by side in the report
    # After the first of them, along the greedy text, the whole distribution is looked at, at these steps.
    steps: tuple[Positive, ...] = (1, 5)
    likeliest: Positive = 20  # tokens of it that are listed; the others are summed up


class Decoding(Setup):
    """Strategies on the same model and the same prompts."""

    kind: ClassVar[str] = "decoding"
    default_metric: ClassVar[str] = "repetition"
    default_margin: ClassVar[float] = 0.02  # of the 4-grams
    shorthands: ClassVar[Mapping[str, str]] = {}

    strategy: Recipe = Recipe()
    writer: Source = Source()
    second: Source = Source(run=1)
    trained: Trained = Trained()
    prompts: Prompts = Prompts()
    written: Written = Written()

    @classmethod
    def metric(cls, name: str) -> Held | None:
        if name not in MEASURES:
            return None
        return Held("prompts", name, Metric(name, "lower" if MEASURES[name] == "lower" else "higher"))

    @classmethod
    def metric_names(cls) -> tuple[str, ...]:
        return tuple(MEASURES)

    def settled(self, environment: Mapping[str, Any]) -> Self:
        training = self.trained.training.settled(bool(environment.get("bfloat16")))
        trained = self.trained.model_copy(update={"training": training})
        return self.model_copy(update={"trained": trained})

    def prepare(self, base: Path | None) -> DecodingBench:
        return DecodingBench(self, base)


# All arms have these in common: they are made once.


@lru_cache(maxsize=2)
def _stored(source: Source, base: Path | None) -> Writer:
    """A model that was there before this study."""
    from attnlab.study.trained import open_writer  # it knows studies, and studies know this kind

    return open_writer(source.of, source.arm, source.run, base)


@lru_cache(maxsize=2)
def _bench(trained: Trained, base: Path | None) -> LanguageModelBench:
    return trained.bench(base)


@lru_cache(maxsize=2)
def _audited(trained: Trained, base: Path | None) -> tuple[Check, ...]:
    return _bench(trained, base).audit()


@lru_cache(maxsize=2)
def _cut(corpus: Corpus, base: Path | None, wanted: int, words: int) -> tuple[tuple[str, str], ...]:
    """Beginnings of held-out sentences, evenly over the test split, and how each of them goes on."""
    test = corpus.load(base).test
    units = [found for document in test for unit in document.units if len(found := unit.split()) > 2 * words]
    if not units:
        raise RequestError(
            f"prompts.words: no sentence of the test split has more than {2 * words} words, so none can be "
            f"cut after {words}; ask for fewer, or set prompts.held_out to 0"
        )
    chosen = [units[at] for at in spread(len(units), min(wanted, len(units)))]
    return tuple((" ".join(unit[:words]), " " + " ".join(unit[words:])) for unit in chosen)


class DecodingBench(Bench):
    """A model, a second one that reads what it writes, and prompts."""

    def __init__(self, setup: Decoding, base: Path | None) -> None:
        self.setup, self.base = setup, base
        if not setup.prompts.texts and not setup.prompts.held_out:
            raise RequestError("prompts: give texts, or a number of held_out ones to cut from the test split")
        held_out = self._held_out if setup.prompts.held_out else ()
        self.prompts = tuple(dict.fromkeys((*setup.prompts.texts, *(before for before, _ in held_out))))
        if len(self.prompts) > MOST_PROMPTS:
            raise RequestError(f"prompts: there are {len(self.prompts):,}; {MOST_PROMPTS:,} are the most")
        self.people = dict(held_out)  # how the text itself goes on
        for source in (setup.writer, setup.second):
            self.encoded(self._any(source))  # what cannot be read is told before anything is written

    @property
    def _is_within(self) -> bool:
        return self.setup.writer.of == WITHIN

    @property
    def trained(self) -> LanguageModelBench:
        """The corpus and the decoder of the section `trained`."""
        return _bench(self.setup.trained, self.base)

    @property
    def _held_out(self) -> tuple[tuple[str, str], ...]:
        wanted = self.setup.prompts
        return _cut(self.setup.trained.corpus, self.base, wanted.held_out, wanted.words)

    def facts(self) -> Mapping[str, Any]:
        about = dict(self.trained.facts()) if self._is_within or self.setup.prompts.held_out else {}
        splits = {**about.get("splits", {}), "prompts": {"documents": len(self.prompts)}}
        return {**about, "splits": splits, "writer": self.setup.writer.of, "second": self.setup.second.of}

    def floors(self) -> Mapping[str, Mapping[str, float]]:
        return {}

    def parameters(self) -> tuple[int, list[dict[str, Any]]]:
        if self._is_within:
            return self.trained.parameters()
        writer: Any = self._any(self.setup.writer)
        module = writer.model if isinstance(writer, OwnWriter) else writer.module
        return sum(parameter.numel() for parameter in module.parameters()), []

    def audit(self) -> tuple[Check, ...]:
        """Of the decoder trained here, whether it leaks. Every run holds its cache against the full pass."""
        return _audited(self.setup.trained, self.base) if self._is_within else ()

    def _any(self, source: Source) -> Writer:
        """A model, trained or not yet."""
        if source.of == WITHIN:
            return OwnWriter(
                self.trained.model(source.run), self.trained.vocabulary, "the decoder trained here"
            )
        return _stored(source, self.base)

    def open(self, source: Source, observer: Observer) -> Writer:
        """A model that can write."""
        if source.of == WITHIN:
            return trained_writer(self.setup.trained, self.trained, source.run, observer)
        return _stored(source, self.base)

    def encoded(self, writer: Writer) -> dict[str, list[int]]:
        """Every prompt in the writer's tokens; one that leaves no room is refused."""
        tokens = {prompt: writer.encode(prompt) for prompt in self.prompts}
        for prompt, ids in tokens.items():
            if room(writer, len(ids) + 1, 1) < 1:
                raise RequestError(
                    f"the prompt {prompt[:60]!r} has {len(ids)} tokens, and {writer.name} reads "
                    f"{writer.longest} at most: nothing can follow it"
                )
        return tokens

    def run(self, arm: str, seed: int, folder: Path, observer: Observer) -> RunResult:
        from attnlab.study.scribe import written_run

        return written_run(self, arm, seed, folder, observer)
