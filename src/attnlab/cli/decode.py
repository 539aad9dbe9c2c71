"""`attnlab decode`."""

from __future__ import annotations

import json as jsons
import sys
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from attnlab.decoding import Continuation, Recipe, Writer


def decode(
    model: str,
    /,
    *,
    prompt: Annotated[tuple[str, ...], Parameter(negative=())] = ("",),
    strategy: Annotated[tuple[str, ...], Parameter(negative=())] = ("plain",),
    n: int = 1,
    seed: int = 0,
    max_new: Annotated[int, Parameter(name=("--max-new", "--longest"))] = 40,
    arm: str | None = None,
    run: int = 0,
    inspect: int | None = None,
    check: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Let a model continue a text, by one strategy or by several.

    Exit code 1: with --check, the cache and the full pass did not agree.

    Parameters
    ----------
    model
        `hf:directory-or-name`, the folder of a run (attnlab-runs/STUDY/runs/ARM/SEED), or of a study.
    prompt
        What to continue; give several by repeating it.
    strategy
        `greedy`, `plain`, `temperature=0.8`, `top-k=20`, `top-p=0.7`, `min-p=0.05`, `typical=0.9`,
        `beam=4,length-penalty=1`, `contrastive=0.6,k=4`; filters in a row are joined by + and applied in that
        order, as in `repetition-penalty=1.2+temperature=0.8+top-k=20`. Give several by repeating it.
    n
        How many continuations of each prompt.
    seed
        Of the random numbers: the same seed gives the same texts, however many are asked for.
    max_new
        Tokens in a continuation, at most.
    arm
        Of a study: whose model; the baseline's unless given.
    run
        Of a study: the seed of the run.
    inspect
        Show the whole distribution at this step (1: the first new token) of the first continuation.
    check
        Hold the cache against a full pass over the first continuation.
    json
        Print JSON instead of text; with --inspect, the whole vocabulary.
    """
    from attnlab.decoding import Recipe, cache_check, look_at, write
    from attnlab.errors import RequestError
    from attnlab.study.trained import open_writer

    if n < 1 or max_new < 1:
        name, value = ("--n", n) if n < 1 else ("--max-new", max_new)
        raise RequestError(f"{name} takes a number from 1 up, not {value}")
    recipes = [Recipe.read(text) for text in strategy]
    writer = open_writer(model, arm, run, unfinished=lambda said: print(said, file=sys.stderr))
    told: list[dict[str, Any]] = []
    agreed = True
    for text in prompt:
        tokens = writer.encode(text)
        for recipe in recipes:
            made = write(writer, tokens, recipe, count=n, longest=max_new, seed=seed)
            entry = _told(writer, text, tokens, recipe, made)
            step = None if inspect is None else look_at(writer, tokens, recipe, made[0], inspect)
            found = cache_check(writer, tokens, made[0].tokens) if check else None
            entry |= {"step": step.plain()} if step else {}
            entry |= {"check": found.plain()} if found else {}
            agreed = agreed and (found is None or found.status == "pass")
            told.append(entry)
            if not json:
                _print(entry, recipe, len(prompt) > 1)
                _print_table(step)
    if json:
        print(jsons.dumps(told, ensure_ascii=False, indent=1))
    return 0 if agreed else 1


def _told(
    writer: Writer, text: str, tokens: list[int], recipe: Recipe, made: list[Continuation]
) -> dict[str, Any]:
    from attnlab.decoding import continuation

    return {
        "model": writer.name,
        "prompt": text,
        "strategy": recipe.notation,
        "draws": recipe.search.draws,
        "continuations": [
            {"text": continuation(writer, tokens, one.tokens), "tokens": list(one.tokens), "ended": one.ended}
            for one in made
        ],
    }


def _print(entry: dict[str, Any], recipe: Recipe, several: bool) -> None:
    if several:
        print(f"# {entry['prompt']}")
    print(f"{entry['strategy']}: {recipe}")
    made = entry["continuations"]
    if not entry["draws"] and len(made) > 1:
        print(f"  (chance has no part in it: all {len(made)} are this one)")
        made = made[:1]
    for number, one in enumerate(made, start=1):
        end = "" if one["ended"] else " …"
        print(f"{number:3}  {' '.join(one['text'].split())}{end}")
    if "check" in entry:
        print(f"  {entry['check']['status']}: {entry['check']['evidence']}")
    print()


def _print_table(step: Any) -> None:
    if step is not None:
        from attnlab.cli.terminal import Terminal

        Terminal().print(step.table())
        print()
