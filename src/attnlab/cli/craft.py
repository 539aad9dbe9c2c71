"""`attnlab craft`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from attnlab.craft import Answer, Scene


def craft(
    *wish: Annotated[str, Parameter(allow_leading_hyphen=True)],
    scene: Path | None = None,
    keys: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    values: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    scale: float | None = None,
    query: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    change: int | None = None,
    length: float | None = None,
    weigh: Literal["softmax", "argmax"] = "softmax",
    subspace: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    tolerance: float = 0.05,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Find the query, or the key, that makes attention do what you want; or say how near one can come, and
    why.

    Without a wish and a query: a tour of what can be done with the built-in keys and values. Exit code 1:
    what was wanted cannot be had within the tolerance.

    Parameters
    ----------
    wish
        `select 0`, `average 0 1` (`average` alone: all of them), `weights .5 .5 0 0`, `output .1 .2 .3`,
        `identity`, or `superpose 0 1`.
    scene
        A .json, .toml or .csv file with keys and values.
    keys
        Keys as `1,0; 0,1` or a .json or .csv file; the built-in four unless given.
    values
        Values, written alike; where only keys are given, such as show the weights.
    scale
        What scores are multiplied with; 1 unless given, as in `softmax(q K) V`.
    query
        A query, `1,0,-2`: alone, to see what comes of it; with `--change`, the one that stays.
    change
        The number of a key that may be changed, instead of the query.
    length
        The length that this key must have.
    weigh
        `argmax` takes the best key only, and shows that no gradient is left.
    subspace
        For `superpose`: directions of the subspace that the first value lives in, written as keys are.
    tolerance
        How near, by Euclidean distance, the output has to come to what is wanted.
    json
        Print JSON instead of text.
    """
    from attnlab import craft as by_hand
    from attnlab.cli import crafted
    from attnlab.craft.reading import numbers
    from attnlab.errors import RequestError

    own = any(given is not None for given in (scene, keys, values))
    if change is None and length is not None:
        raise RequestError("--length is the length of a key that is changed: name one with --change")
    if not wish and query is None and not own and weigh == "softmax":
        print(crafted.tour())
        return 0
    if wish[:1] == ("superpose",):
        print(
            crafted.superposed(
                wish[1:], by_hand.scene_from(scene, keys, values, scale) if own else None, subspace
            )
        )
        return 0
    default = by_hand.BEST_KEY if weigh == "argmax" and not own else None
    here = default or by_hand.scene_from(scene, keys, values, scale)
    q = None if query is None else numbers(query)
    if weigh == "argmax":
        print(crafted.argmax(here, wish, q))
        return 0
    if not wish:
        if q is None:
            raise RequestError("say what is wanted, such as `average 0 1`, or give a --query to look at")
        print(crafted.looked_at(here, q))
        return 0
    answers = _answers(here, wish, q, change, length, tolerance)
    print(crafted.as_json(answers) if json else "\n\n".join(map(str, answers)))
    return 0 if all(answer.solved for answer in answers) else 1


def _answers(
    scene: Scene,
    words: tuple[str, ...],
    query: list[float] | None,
    change: int | None,
    length: float | None,
    tolerance: float,
) -> list[Answer]:
    from attnlab import craft as by_hand
    from attnlab.errors import RequestError

    wanted = by_hand.wishes(words, scene)
    if change is None:
        if query is not None:
            raise RequestError("--query is what stays when a key is changed: name the key with --change")
        return [by_hand.find_query(scene, wish, tolerance) for wish in wanted]
    if query is None:
        raise RequestError("a key can be changed for a query that stays: give it with --query")
    if len(wanted) > 1:
        raise RequestError("one key cannot answer to several queries: ask for one value")
    return [by_hand.find_key(scene, query, change, wanted[0], length=length, tolerance=tolerance)]
