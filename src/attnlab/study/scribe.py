"""One cell of a decoding study: the prompts continued by one strategy with one seed, and what came of it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from attnlab.decoding import (
    Continuation,
    Greedy,
    Plain,
    Recipe,
    Writer,
    cache_check,
    continuation,
    look_at,
    write,
)
from attnlab.evaluation import written as texts
from attnlab.record import Items, RunResult
from attnlab.study.kinds.decoding import MEASURES, MOST_PROMPTS, DecodingBench
from attnlab.training import Interrupted, Observer
from attnlab.wholefile import write_json


@dataclass(frozen=True)
class _Made:
    """What was written after one prompt."""

    made: tuple[Continuation, ...]
    seconds: float
    tokens: int  # that were chosen in that time; the same text given several times is chosen once


@dataclass
class _Notebook:
    """What is written so far, on disk: a run that is interrupted goes on from there."""

    path: Path
    pages: list[_Made] = field(default_factory=list)

    @classmethod
    def at(cls, path: Path) -> _Notebook:
        try:
            kept = json.loads(path.read_text("utf-8"))
            pages = [
                _Made(
                    tuple(Continuation(tuple(one["tokens"]), bool(one["ended"])) for one in page["made"]),
                    float(page["seconds"]),
                    int(page["tokens"]),
                )
                for page in kept
            ]
        except (OSError, ValueError, KeyError, TypeError):
            pages = []  # not there, or damaged: it is written again, to the same words
        return cls(path, pages)

    def save(self) -> None:
        write_json(self.path, [asdict(page) for page in self.pages])


def written_run(bench: DecodingBench, arm: str, seed: int, folder: Path, observer: Observer) -> RunResult:
    """Write, then measure."""
    setup = bench.setup
    writer, second = bench.open(setup.writer, observer), bench.open(setup.second, observer)
    prompts = bench.encoded(writer)
    notebook = _Notebook.at(folder / "written.json")
    observer.begin(len(notebook.pages))
    for place, (prompt, ids) in enumerate(prompts.items()):
        if place < len(notebook.pages):
            continue
        notebook.pages.append(_continued(bench, writer, ids, seed * MOST_PROMPTS + place))
        observer.row({"step": place + 1, "of": len(prompts), "prompt": prompt})
        stop = observer.should_stop()
        if stop or observer.should_save():
            notebook.save()
        if stop:
            raise Interrupted
    notebook.save()
    written = time.perf_counter()
    pages = dict(zip(prompts, notebook.pages, strict=True))
    items = _items(writer, second, prompts, pages)
    metrics = {measure: items.mean(measure) for measure in MEASURES}
    metrics |= {f"{of}_perplexity": math.exp(min(metrics[f"{of}_loss"], 700.0)) for of in ("model", "second")}
    first = next(iter(prompts))
    check = cache_check(writer, prompts[first], pages[first].made[0].tokens)
    seconds = sum(page.seconds for page in pages.values())
    return RunResult(
        arm,
        seed,
        "ok" if check.status == "pass" else "invalid",
        metrics=metrics,
        items={"prompts": items},
        checks=(check,),
        exhibits={"decoding": _shown(bench, writer, second, prompts, pages)},
        seconds=seconds,
        evaluation_seconds=time.perf_counter() - written,
        tokens_per_second=sum(page.tokens for page in pages.values()) / seconds,
        steps=len(prompts),
        reason=None if check.status == "pass" else check.evidence,
    )


def _continued(bench: DecodingBench, writer: Writer, ids: Sequence[int], seed: int) -> _Made:
    wanted, recipe = bench.setup.written, bench.setup.strategy
    started = time.perf_counter()
    made = write(writer, ids, recipe, count=wanted.continuations, longest=wanted.longest, seed=seed)
    seconds = time.perf_counter() - started
    chosen = made if recipe.search.draws else made[:1]
    return _Made(tuple(made), seconds, sum(len(one.tokens) + one.ended for one in chosen))


def _items(
    writer: Writer, second: Writer, prompts: Mapping[str, Sequence[int]], pages: Mapping[str, _Made]
) -> Items:
    """An item a prompt: every measure of its continuations together."""
    rows: list[dict[str, float]] = []
    for prompt, ids in prompts.items():
        page = pages[prompt]
        afters = [continuation(writer, ids, one.tokens) for one in page.made]
        said = [texts.words(after) for after in afters]
        known: dict[tuple[int, ...], tuple[tuple[float, int], tuple[float, int]]] = {}
        for one, after in zip(page.made, afters, strict=True):
            if one.tokens not in known:
                other = texts.loss_elsewhere(second, writer, ids, one, (prompt, after))
                known[one.tokens] = texts.own_loss(writer, ids, one), other
        losses = [known[one.tokens] for one in page.made]
        row = {
            "model_loss": _per_token([own for own, _ in losses]),
            "second_loss": _per_token([other for _, other in losses]),
            **{f"distinct_{n}": texts.distinct(said, n) for n in (1, 2, 3)},
            "repetition": texts.repetition(said),
            "self_bleu": texts.self_bleu(said),
            "length": sum(len(one.tokens) for one in page.made) / len(page.made),
            "tokens_per_second": page.tokens / page.seconds,
        }
        rows.append(row)
    return Items(tuple(prompts), {measure: tuple(row[measure] for row in rows) for measure in rows[0]})


def _per_token(losses: Sequence[tuple[float, int]]) -> float:
    """The mean over all tokens of several texts, of which at least one has some."""
    return sum(loss for loss, _ in losses) / max(1, sum(tokens for _, tokens in losses))


def _shown(
    bench: DecodingBench,
    writer: Writer,
    second: Writer,
    prompts: Mapping[str, Sequence[int]],
    pages: Mapping[str, _Made],
) -> dict[str, Any]:
    """What the report draws beside the figures."""
    wanted, recipe = bench.setup.written, bench.setup.strategy
    chosen = list(prompts)[: wanted.shown]
    return {
        "notation": recipe.notation,
        "does": str(recipe),
        "draws": recipe.search.draws,
        "continuations": [
            {
                "prompt": prompt,
                "texts": [
                    {"text": continuation(writer, prompts[prompt], one.tokens), "ended": one.ended}
                    for one in pages[prompt].made
                ],
            }
            for prompt in chosen
        ],
        "steps": _distributions(bench, writer, chosen[0], prompts[chosen[0]]),
        "people": _of_people(bench, writer, second),
    }


def _distributions(
    bench: DecodingBench, writer: Writer, prompt: str, ids: Sequence[int]
) -> list[dict[str, Any]]:
    """The chances at some steps of one and the same text, the greedy one, and what the strategy makes of
    them. Nothing for a search that looks further than one token."""
    recipe, steps, most = bench.setup.strategy, bench.setup.written.steps, bench.setup.written.likeliest
    if not isinstance(recipe.search, Greedy | Plain):
        return []
    greedy = Recipe(steps=(Greedy(),))
    (text,) = write(writer, ids, greedy, count=1, longest=max(steps, default=1), seed=0)
    found = []
    for step in steps:
        if step > len(text.tokens) + text.ended:
            continue
        seen = look_at(writer, ids, Recipe(steps=(*recipe.filters, Plain())), text, step)
        after = [one.after[-1] if one.after else one.chance for one in seen.candidates]
        if isinstance(recipe.search, Greedy):
            best = max(range(len(after)), key=lambda at: (after[at], -seen.candidates[at].token))
            after = [float(at == best) for at in range(len(after))]
        kept = [one.chance for one, chance in zip(seen.candidates, after, strict=True) if chance > 0]
        found.append(
            {
                "prompt": prompt,
                "step": step,
                "before": seen.before,
                "kept": len(kept),
                "of": len(after),
                "held": sum(kept),
                "likeliest": [
                    {"piece": one.piece, "chance": one.chance, "after": chance}
                    for one, chance in zip(seen.candidates[:most], after, strict=False)
                ],
                "rest": {"chance": sum(c.chance for c in seen.candidates[most:]), "after": sum(after[most:])},
            }
        )
    return found


def _of_people(bench: DecodingBench, writer: Writer, second: Writer) -> dict[str, list[float]]:
    """How the held-out texts themselves go on, in what can be measured of a single text, a prompt each."""
    found: dict[str, list[float]] = {"model_loss": [], "second_loss": [], "repetition": [], "length": []}
    for before, after in bench.people.items():
        for name, reader in (("model_loss", writer), ("second_loss", second)):
            loss, tokens = texts.text_loss(reader, before, after, ended=True)
            if tokens:
                found[name].append(loss / tokens)
                if name == "model_loss":
                    found["length"].append(tokens - 1.0)
        found["repetition"].append(texts.repetition([texts.words(after)]))
    return found
