"""Answers in words: the reasons, and the table of scores, weights and output."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlab.craft.scene import Array

if TYPE_CHECKING:
    from attnlab.craft.answer import Answer
    from attnlab.craft.family import Projection
    from attnlab.craft.nearest import Nearest

WIDTH = 100


# ---- reasons -----------------------------------------------------------------------------------------------


def why_exact(projection: Projection) -> tuple[str, ...]:
    if not np.any(projection.query_d):
        return ("The query 0 scores every key alike, whatever the keys are: the weights are equal.",)
    return (
        "A softmax gives these weights exactly where the scores are their logarithms, up to a constant; with "
        "these keys such scores exist. This is the shortest query that has them.",
    )


def why_limit(projection: Projection, scale: float, tolerance: float) -> tuple[str, ...]:
    n, members = len(projection.weights_n), projection.face.members
    left = [i for i in range(n) if i not in members]
    kept = "score alike and above" if len(members) > 1 else "scores above"
    return (
        f"No finite query does it: a softmax leaves every key some weight, and {_keys(left)} should have "
        f"none.",
        f"But there is a direction along which {_keys(members)} {kept} all others "
        f"(by {projection.face.margin:.3g} for each unit of length; no direction does better): along it the "
        f"error goes to zero as the query grows.",
        f"From scale {_figure(scale)} on it stays within {tolerance:g}.",
    )


def why_no_weights(projection: Projection, wanted_n: Array) -> tuple[str, ...]:
    """Why the softmax cannot have the weights that were wanted."""
    face, chosen = projection.face, np.flatnonzero(wanted_n > 0).tolist()
    said = []
    if face.witness is not None:
        said.append(_mixed(face.witness, chosen))
    elif projection.relation_n is not None:
        terms = _sum([(r, f"log w{i}") for i, r in enumerate(projection.relation_n) if abs(r) > 1e-9])
        on = projection.relation_n != 0
        off = float(projection.relation_n[on] @ np.log(wanted_n[on]))
        said.append(
            f"These keys depend on one another, so for every query {terms} = 0. For the weights that are "
            f"wanted "
            f"the sum is {off:.4g}."
        )
    said.append(
        f"By relative entropy the weights {_row(projection.weights_n)} are the nearest, "
        f"{projection.divergence:.4g} nats from those wanted: the mean of the keys under them is the same "
        f"(to "
        f"{projection.moment_gap:.0e}), which proves it."
    )
    return tuple(said)


def _mixed(witness_n: Array, chosen: Sequence[int]) -> str:
    used = np.flatnonzero(witness_n > 1e-9).tolist()
    one = len(used) == 1
    mixture = f"key {used[0]}" if one else f"a mixture of {_keys(used)} ({_row(witness_n[used])})"
    where = (
        f"at the place of key {chosen[0]}" if len(chosen) == 1 else f"in line with {_keys(chosen)}"
    )  # the flat through them
    return (
        f"{mixture[0].upper()}{mixture[1:]} lies {where}, so "
        + ("its score is" if one else "the same mixture of their scores is")
        + (f" that of key {chosen[0]}" if len(chosen) == 1 else " decided by theirs")
        + ": no query favours "
        + ("it" if len(chosen) == 1 else "them")
        + " and leaves "
        + ("that one" if one else "those")
        + " without weight."
    )


def why_nearest(near: Nearest, tolerance: float) -> tuple[str, ...]:
    """How near the output can come, and what proves that it is not nearer."""
    said = []
    if near.hull:
        said.append(
            f"An output is a mixture of the values, and the target is outside their hull, {near.hull:.4g} "
            f"away: "
            "nothing comes nearer than that."
        )
    if not near.distance:
        return ("The values depend on one another, so many weights give this output; these keys allow some.",)
    if near.floor >= near.distance * (1 - 1e-6):
        said.append(f"The output shown is the nearest: {near.distance:.4g} away.")
    elif near.floor > near.hull:
        said.append(
            f"The nearest output that was found is {near.distance:.4g} away. That none is nearer than "
            f"{near.floor:.4g} is proved: all scores these keys allow were divided into boxes, and none "
            f"holds a "
            "nearer one."
        )
    else:
        said.append(
            f"The nearest output that was found is {near.distance:.4g} away; that none is nearer would "
            f"take too "
            "long to prove."
        )
    if near.distance <= tolerance < near.distance * 1.0001:
        said.append("This is as near as the tolerance asks, by a hair.")
    return tuple(said)


# ---- numbers -----------------------------------------------------------------------------------------------


def _keys(numbers: Sequence[int]) -> str:
    named = list(map(str, numbers))
    if len(named) == 1:
        return f"key {named[0]}"
    return f"keys {', '.join(named[:-1])} and {named[-1]}"


def _sum(terms: Sequence[tuple[float, str]]) -> str:
    """`0.5 log w0 - log w1`"""
    text = ""
    for factor, name in terms:
        size = "" if abs(abs(factor) - 1) < 1e-9 else f"{abs(factor):.4g} "
        sign = (" - " if factor < 0 else " + ") if text else ("-" if factor < 0 else "")
        text += f"{sign}{size}{name}"
    return text


def _row(numbers: Array) -> str:
    return ", ".join(f"{x:.4g}" for x in numbers)


def _figure(x: float) -> str:
    return f"{x:.4g}"


def in_brackets(numbers: Array) -> str:
    """`(0.47, 0.65, 0.6)`, with a true zero where there is one."""
    return f"({', '.join(f'{x + 0.0:.4g}' for x in np.where(np.abs(numbers) < 5e-13, 0.0, numbers))})"


# ---- text --------------------------------------------------------------------------------------------------


def as_text(answer: Answer) -> str:
    """An answer for a terminal."""
    lines = [answer.headline]
    lines += [f"  {answer.of:<8}{in_brackets(answer.vector)}"]
    if answer.direction is not None and answer.scale is not None:
        lines += [f"          grown to scale {answer.scale:.4g} along {in_brackets(answer.direction)}"]
    lines += [*weight_table(answer.scores, answer.weights)]
    lines += [
        f"  output  {in_brackets(answer.output)}",
        f"  target  {in_brackets(answer.target)}",
        f"  error   {answer.error:.4g}   ({'within' if answer.solved else 'above'} {answer.tolerance:g})",
    ]
    for reason in answer.why:
        lines += textwrap.wrap(reason, WIDTH, initial_indent="  · ", subsequent_indent="    ")
    return "\n".join(lines)


def weight_table(scores_n: Array, weights_n: Array) -> list[str]:
    """A line for each key: its number, its score, its weight, and a bar as long as that."""
    lines = [f"  {'key':<6}{'score':>10}{'weight':>10}"]
    for i, (score, weight) in enumerate(zip(scores_n, weights_n, strict=True)):
        bar = "█" * round(30 * weight)
        lines.append(f"  {i:<6}{score + 0.0:>10.4g}{weight:>10.4f}  {bar}".rstrip())
    return lines
