"""What `attnlab craft` prints beside the answer to a wish."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from attnlab.craft import (
    BEST_KEY,
    Answer,
    Scene,
    Select,
    course,
    hard_attention,
    superpose,
    take_out,
    taking_out,
    wishes,
)
from attnlab.craft.polytope import face_of
from attnlab.craft.reading import rows
from attnlab.craft.superposition import example
from attnlab.craft.words import in_brackets, weight_table
from attnlab.errors import RequestError

_BETAS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0)


def tour() -> str:
    """Every task of the course with its answer in a line, the argmax, and a superposition."""
    lines = [
        "Attention by hand. The built-in keys and values, and what a query (or a key) makes of them:",
        "",
        f"  {'task':<46}{'verdict':<12}{'error':>8}  {'':<5}{'query or key'}",
    ]
    for task in course():
        for answer in task.answers:
            mark = "✓" if answer.solved else "–"
            lines.append(
                f"  {f'{task.title}: {answer.wish}':<46.45}{answer.verdict:<12}{answer.error:>8.4f}  "
                f"{mark:<3}"
                f"{answer.of[0]} = {in_brackets(answer.vector)}"
            )
    lines += [
        "",
        f"  ✓ within {course()[0].tolerance:g} of what is wanted; limit: nearer still as it grows; – out "
        f"of reach",
        "",
        str(hard_attention(BEST_KEY, (-2, 1, 1))),
        "",
        superposed(("0", "1"), None, None),
        "",
        "Ask for more: attnlab craft select 2 · attnlab craft average 0 1 2 --change 2 --query 10,13,0 · "
        "attnlab craft --help",
    ]
    return "\n".join(lines)


def as_json(answers: Sequence[Answer]) -> str:
    return json.dumps([answer.plain() for answer in answers], indent=1, ensure_ascii=False)


def looked_at(scene: Scene, query: Sequence[float]) -> str:
    """What comes of a query."""
    lines = [f"query {in_brackets(scene.query(query))}"]
    lines += weight_table(scene.scores(query), scene.weights(query))
    return "\n".join([*lines, f"  output  {in_brackets(scene.output(query))}"])


def argmax(scene: Scene, words: Sequence[str], query: Sequence[float] | None) -> str:
    """Argmax attention for a query, or for the one that selects a value."""
    if words:
        if words[0] != "select":
            raise RequestError(f"argmax gives one value, so it can `select` one, and not `{' '.join(words)}`")
        (wish,) = wishes(words, scene)
        assert isinstance(wish, Select)
        chosen = wish.key
        face = face_of(scene.K_nd, [chosen])
        if len(face.members) > 1:
            others = ", ".join(str(i) for i in face.members if i != chosen)
            raise RequestError(
                f"no query likes key {chosen} best: it is a mixture of other keys (or the same as one), "
                f"and where "
                f"it scores best, {others} score as much"
            )
        query = face.direction.tolist()
    if query is None:
        query = (-2.0, 1.0, 1.0) if scene is BEST_KEY else None
    if query is None:
        raise RequestError("give a --query to look at, or a value to select: `select 0`")
    return f"query {in_brackets(np.asarray(query))}\n{hard_attention(scene, query)}"


def superposed(words: Sequence[str], scene: Scene | None, subspace: str | None) -> str:
    """Two values in one output at growing scales, and the first of them taken out again."""
    if len(words) != 2 or not all(word.isdigit() for word in words):
        raise RequestError(f"`superpose` takes the numbers of two keys, not {' '.join(words)!r}")
    a, b = map(int, words)
    directions = None if subspace is None else np.asarray(rows(subspace))
    if scene is None:
        scene, plane = example()
        directions = plane if directions is None and (a % 2, b % 2) == (0, 1) else directions
    lines = [
        f"Superposition: q = β · (k{a} + k{b}) on orthonormal keys gives the mean of v{a} and v{b} as β "
        f"grows."
    ]
    lines.append(f"  {'β':>6}{'weight of both':>18}{'error':>12}")
    for beta in _BETAS:
        found = superpose(scene, a, b, beta)
        both = found.weights[a] + found.weights[b]
        lines.append(f"  {beta:>6g}{both:>18.6f}{found.error:>12.3g}")
    if directions is not None:
        taken = take_out(taking_out(directions), scene.V_nm[a], scene.V_nm[b])
        how = "exactly" if taken.is_exact else f"but for {taken.error:.3g}"
        lines.append(
            f"  M = 2 · A · Aᵀ takes v{a} = {in_brackets(scene.V_nm[a])} out of the mean {how}: "
            f"{in_brackets(taken.recovered)}."
        )
        if not taken.is_exact:
            lines.append(
                f"  The part of v{a} outside the subspace is lost ({np.linalg.norm(taken.lost):.3g}); the "
                f"part of "
                f"v{b} inside it is added ({np.linalg.norm(taken.added):.3g})."
            )
    return "\n".join(lines)
