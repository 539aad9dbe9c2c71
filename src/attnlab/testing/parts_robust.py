"""Cases about circumstances: low precision, large inputs, nothing to see, saving, compiling.

Shapes: N tokens, D model width.
"""

from __future__ import annotations

import io

import torch
from torch import Tensor

from attnlab.attention import Layout
from attnlab.testing.parts_subject import LENGTHS, Filled, Subject, tokens


def survives_its_declaration(subject: Subject) -> None:
    """Written as a table and read again it is the same part."""
    part = subject.part
    family = next(cls for cls in type(part).__mro__ if "members" in vars(cls))
    again = family.resolve(part.plain())  # type: ignore[attr-defined]  # a family resolves its members
    # By their tables: a part of a user's file may be read a second time, as another class of that name.
    assert again.plain() == part.plain(), f"{part} came back from its own declaration as {again}"


def finite_in_bf16_with_large_inputs(subject: Subject) -> None:
    """Inputs a thousand times as large as they should be give no infinity and no NaN, forward or backward."""
    filled = subject.build(torch.bfloat16)
    for size in (1.0, 1e3):
        x_ND = (size * tokens(LENGTHS, subject.dims.width)).bfloat16().requires_grad_()
        _assert_finite(filled, filled(x_ND, Layout(LENGTHS)), x_ND)


def finite_where_a_row_sees_nothing(subject: Subject) -> None:
    """Under a mask that hides even the query's own key, the first token takes nothing and harms nothing."""
    for kernel in ("auto", "stages"):
        for dtype in (torch.float32, torch.bfloat16):
            filled = subject.with_mixer(mask=_StrictlyBefore(), kernel=kernel).build(dtype)
            x_ND = tokens(LENGTHS, subject.dims.width, dtype=dtype).requires_grad_()
            _assert_finite(filled, filled(x_ND, Layout(LENGTHS)), x_ND)
        weights = filled.layer.weights(x_ND, Layout(LENGTHS), filled.position)
        assert weights is not None
        assert (weights[:, :, 0] == 0).all(), "a row that sees nothing gives weight to something"


def survives_save_and_load(subject: Subject) -> None:
    """Weights written, and read into a layer made from another seed, give the same outputs."""
    first, second = subject.build(seed=0), subject.build(seed=1)
    x_ND, layout = tokens(LENGTHS, subject.dims.width), Layout(LENGTHS)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file, weights_only=True))
    torch.testing.assert_close(second(x_ND, layout), first(x_ND, layout), rtol=0, atol=0)


def works_under_compile(subject: Subject) -> None:
    """Compiled, the outputs and gradients are those of the plain layer."""
    filled = subject.build(torch.float32)
    layout = Layout(LENGTHS)
    layout.slots_N, layout.positions_N  # noqa: B018 - made once, outside of what is compiled
    compiled = torch.compile(filled)
    outputs, gradients = [], []
    for run in (filled, compiled):
        x_ND = tokens(LENGTHS, subject.dims.width, dtype=torch.float32).requires_grad_()
        outputs.append(run(x_ND, layout))
        gradients.append(torch.autograd.grad(outputs[-1].square().sum(), x_ND)[0])
    torch.testing.assert_close(*outputs, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-3)


class _StrictlyBefore:
    """A mask with which the first token sees nothing. Not a part: it should not be offered to anyone."""

    where = "before"
    hides_future = True

    def visible(self, queries_T: Tensor, keys_S: Tensor) -> Tensor:
        return keys_S < queries_T[:, None]


def _assert_finite(filled: Filled, y_ND: Tensor, x_ND: Tensor) -> None:
    assert y_ND.isfinite().all(), f"{int((~y_ND.isfinite()).sum())} of {y_ND.numel()} outputs are not finite"
    names = ["the tokens", *(name for name, _ in filled.named_parameters())]
    wanted = [x_ND, *filled.parameters()]
    for name, gradient in zip(names, torch.autograd.grad(y_ND.sum(), wanted, allow_unused=True), strict=True):
        assert gradient is None or gradient.isfinite().all(), f"the gradient of {name} is not finite"
