"""Before anything else: the right shape, numbers, the same ones twice, and nothing changed that was lent."""

from __future__ import annotations

import torch

from attnlab.audit.operators.subject import Operator
from attnlab.audit.randomness import reseed
from attnlab.audit.rule import Seen, fine, found, rule


@rule(
    "shape",
    tests="the output has the shape of its input (of v, where q, k and v go in) and a floating dtype",
    claims="one output vector per position, batch row and head",
    threshold="exact",
)
def shape(operator: Operator) -> Seen:
    inputs = operator.make(operator.home, seed=0)
    with torch.no_grad():
        output = operator(inputs)
    wanted = inputs[operator.inputs[-1]].shape
    if output.shape != wanted:
        return found(
            f"the output has shape {tuple(output.shape)}, and {operator.inputs[-1]} has {tuple(wanted)}",
            shape=list(output.shape),
            wanted=list(wanted),
        )
    if not output.is_floating_point():
        return found(f"the output has dtype {output.dtype}", dtype=str(output.dtype))
    return fine(f"{tuple(output.shape)}, as it should be", dtype=str(output.dtype).removeprefix("torch."))


@rule(
    "finite",
    tests="inputs of unit scale give numbers, in training and evaluation mode, in fp64, fp32 and bf16",
    claims="no NaN and no infinity at ordinary inputs in any of these precisions",
    threshold="exact",
)
def finite(operator: Operator) -> Seen:
    tried = []
    for dtype in dict.fromkeys((operator.dtype, torch.float32, torch.bfloat16)):
        if torch.finfo(dtype).eps < torch.finfo(operator.dtype).eps:
            continue
        version = operator if dtype is operator.dtype else operator.at(dtype)
        word = str(dtype).removeprefix("torch.")
        for training in operator.modes:
            try:
                with torch.no_grad():
                    output = version(version.make(version.home, seed=0), training=training)
            except (RuntimeError, TypeError, NotImplementedError, ValueError):
                continue  # refused, which it is free to do
            bad = (~torch.isfinite(output)).nonzero()
            if len(bad):
                lead = "fragile: " if dtype is not operator.dtype else ""
                place = tuple(bad[0].tolist())
                return found(
                    f"{lead}{output[place].item()} at position {place[-2]} of the output "
                    f"in {word}, from inputs of unit scale ({len(bad)} of {output.numel()} values)",
                    precision=word,
                    place=list(place),
                )
        tried.append(word)
    return fine(f"only numbers in {', '.join(dict.fromkeys(tried))}", precisions=tried)


@rule(
    "determinism",
    tests="in evaluation mode calls on the same inputs agree, also after calls on others; and what a call "
    "leaves in the global random state does not depend on what went in",
    claims="no dropout in evaluation, and no state kept between calls",
    threshold="1e-9 of the largest output in fp64 (rounding), 1e-4 in fp32, 5e-2 in 16 bits",
)
def determinism(operator: Operator) -> Seen:
    ours, other = operator.make(operator.home, seed=0), operator.make(operator.home, seed=9)
    limit = operator.tolerance
    with torch.no_grad():
        reseed()
        first, again = (operator.raw(_copy(ours)) for _ in range(2))
        gap = _gap(first, again)
        if not gap <= limit * _size(first):
            return found(
                f"two calls on the same inputs in evaluation mode are {gap:.2g} apart: something random "
                "(dropout?) or some state is left in", apart=gap,
            )  # fmt: skip
        for _ in range(3):
            operator.raw(_copy(other))
        gap = _gap(first, operator.raw(_copy(ours)))
        if not gap <= limit * _size(first):
            return found(
                f"after calls on other inputs, the first inputs give outputs {gap:.2g} away: state is kept "
                "between calls", apart=gap,
            )  # fmt: skip
        if _seeds_by_content(operator):
            return found(
                "what a call leaves in the global random state depends on the inputs: the next call sees them"
            )
    return fine("the same inputs gave the same outputs, also after other inputs")


@rule(
    "purity",
    tests="the tensors that went in are, after the call, what they were",
    claims="inputs are not changed in place",
    threshold="exact",
)
def purity(operator: Operator) -> Seen:
    for training in operator.modes:
        lent = operator.make(operator.home, seed=0)
        kept = _copy(lent)
        with torch.no_grad():
            operator.raw(lent, training=training)
        for name, tensor in lent.items():
            if tensor.shape != kept[name].shape or not torch.equal(tensor, kept[name]):
                return found(
                    f"{name} was changed in place by the call: whoever uses it next gets other values",
                    input=name,
                )
    return fine("inputs are left as they were")


@rule(
    "uses-values",
    tests="the output moves when the values at and before its position move",
    claims="the output is made of its inputs (a constant would pass every test of the future)",
    threshold="any movement",
)
def uses_values(operator: Operator) -> Seen:
    inputs, name = operator.make(operator.home, seed=0), operator.inputs[-1]
    other = operator.make(operator.home, seed=9)
    with torch.no_grad():
        before, after = operator(inputs), operator({**inputs, name: other[name]})
    still = (
        ((before - after).abs().amax(-1) == 0)
        .reshape(-1, before.shape[-2])
        .all(0)
        .nonzero()
        .flatten()
        .tolist()
    )
    if len(still) == before.shape[-2]:
        return found(f"no output moved when all of {name} was replaced", input=name)
    note = f"; those at {still[:5]} do not" if still else ""
    return fine(f"outputs follow {name}{note}", unmoved=still)


def _seeds_by_content(operator: Operator) -> bool:
    states = []
    for seed in (0, 9):
        reseed()
        operator.raw(operator.make(operator.home, seed))
        states.append(torch.get_rng_state())
    return not torch.equal(*states)


def _copy(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in inputs.items()}


def _gap(one: torch.Tensor, two: torch.Tensor) -> float:
    """Places where both are not numbers are the finite check's affair."""
    both = torch.isnan(one) & torch.isnan(two)
    return torch.where(both, 0.0, (one - two).abs()).nan_to_num(nan=float("inf")).max().item()


def _size(tensor: torch.Tensor) -> float:
    finite_ones = tensor[torch.isfinite(tensor)]
    return finite_ones.abs().max().item() if finite_ones.numel() else 0.0
