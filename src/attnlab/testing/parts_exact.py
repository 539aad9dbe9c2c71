"""Cases about values: they hold in fp64 to rounding error.

Shapes: N tokens, D model width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attnlab.attention import Attention, Layout
from attnlab.testing.parts_subject import LENGTHS, Filled, Subject, tokens

_EXACT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-10}


def equals_its_reference(subject: Subject) -> None:
    """The layer, by every kernel it has, against the slow oracle: outputs, and gradients of everything."""
    kernels = [{"kernel": "auto"}, {"kernel": "stages"}] if isinstance(subject.mixer, Attention) else [{}]
    for changes in kernels:
        filled = subject.with_mixer(**changes).build()
        x_ND = tokens(LENGTHS, subject.dims.width).requires_grad_()
        ours = filled(x_ND, Layout(LENGTHS))
        theirs = torch.cat([_slowly(subject, filled, x_TD) for x_TD in x_ND.split(LENGTHS)])
        torch.testing.assert_close(ours, theirs, **_EXACT, msg=_differs("output", changes))
        upstream = torch.randn_like(ours)
        names = ["the tokens", *(name for name, _ in filled.named_parameters())]
        mine, oracle = (_gradients(y, upstream, [x_ND, *filled.parameters()]) for y in (ours, theirs))
        for name, a, b in zip(names, mine, oracle, strict=True):
            torch.testing.assert_close(
                a, b, rtol=1e-7, atol=1e-8, msg=_differs(f"gradient of {name}", changes)
            )


def gradient_is_the_derivative(subject: Subject) -> None:
    """The gradient, along a random direction, against a difference of two outputs."""
    if not subject.has_exact_gradient:
        return
    filled, layout = subject.build(), Layout(LENGTHS)
    x_ND = tokens(LENGTHS, subject.dims.width)
    along_ND, upstream = (
        tokens(LENGTHS, subject.dims.width, seed=2),
        tokens(LENGTHS, subject.dims.width, seed=3),
    )
    leaf = x_ND.clone().requires_grad_()
    (gradient,) = torch.autograd.grad((filled(leaf, layout) * upstream).sum(), leaf)
    step = 1e-6
    with torch.no_grad():
        ahead, behind = (((filled(x_ND + s * along_ND, layout)) * upstream).sum() for s in (step, -step))
    torch.testing.assert_close(
        (gradient * along_ND).sum(), (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-6
    )


def batch_members_are_independent(subject: Subject) -> None:
    """Whatever stands in the other sequences, and in whatever order they come, a sequence stays the same."""
    filled = subject.build()
    x_ND = tokens(LENGTHS, subject.dims.width)
    together = filled(x_ND, Layout(LENGTHS)).split(LENGTHS)
    for index in range(len(LENGTHS)):
        others = [7 * part for part in tokens(LENGTHS, subject.dims.width, seed=5).split(LENGTHS)]
        others[index] = x_ND.split(LENGTHS)[index]
        order = torch.randperm(len(LENGTHS), generator=torch.Generator().manual_seed(index)).tolist()
        lengths = [LENGTHS[i] for i in order]
        mixed = filled(torch.cat([others[i] for i in order]), Layout(lengths)).split(lengths)
        torch.testing.assert_close(mixed[order.index(index)], together[index], **_EXACT)


def padding_changes_nothing(subject: Subject) -> None:
    """A sequence beside longer ones comes out as it does alone."""
    filled = subject.build()
    x_ND = tokens(LENGTHS, subject.dims.width)
    padded = filled(x_ND, Layout(LENGTHS))
    alone = torch.cat([filled(x, Layout([len(x)])) for x in x_ND.split(LENGTHS)])
    torch.testing.assert_close(padded, alone, **_EXACT)


def future_changes_nothing(subject: Subject) -> None:
    """Tokens after a position replaced, by ones of the same size and by huge ones, leave it as it was."""
    filled, length = subject.build(), 8
    x_TD = tokens((length,), subject.dims.width)
    before = filled(x_TD, Layout([length]))
    for cut in range(1, length):
        for size in (1.0, 100.0):
            future = size * tokens((length - cut,), subject.dims.width, seed=cut)
            after = filled(torch.cat([x_TD[:cut], future]), Layout([length]))
            torch.testing.assert_close(after[:cut], before[:cut], **_EXACT, msg=_leaks(cut))


def cached_decoding_equals_the_full_pass(subject: Subject) -> None:
    """Token by token, and several at once, with the batch reordered on the way."""
    filled, length, batch = subject.build(), 9, 3
    x_BTD = tokens((batch * length,), subject.dims.width).view(batch, length, -1)
    for pieces in ([1] * length, [4, 1, 1, 3], [length]):
        state, done, x, outputs = filled.layer.begin(), 0, x_BTD, []
        for number, piece in enumerate(pieces):
            layout = Layout([piece] * batch, offset=done)
            made = filled(x[:, done : done + piece].flatten(0, 1), layout, state).view(batch, piece, -1)
            outputs.append(made)
            done += piece
            if number == 1:
                rows = torch.tensor([2, 0, 2])
                state.keep(rows)
                x, outputs = x[rows], [output[rows] for output in outputs]
        full = filled(x.flatten(0, 1), Layout([length] * batch)).view(batch, length, -1)
        torch.testing.assert_close(torch.cat(outputs, dim=1), full, **_EXACT)


def _slowly(subject: Subject, filled: Filled, x_TD: Tensor) -> Tensor:
    embedded = filled.position.embed(x_TD, torch.arange(len(x_TD)))
    return subject.oracle(filled.layer, embedded, filled.position)


def _gradients(y: Tensor, upstream: Tensor, wanted: list[Tensor]) -> list[Tensor]:
    gradients = torch.autograd.grad((y * upstream).sum(), wanted, allow_unused=True)
    return [torch.zeros_like(w) if g is None else g for w, g in zip(wanted, gradients, strict=True)]


def _differs(what: str, changes: dict[str, str]) -> str:
    by = f" (kernel {changes['kernel']})" if changes else ""
    return f"the {what} is not what the reference says{by}"


def _leaks(cut: int) -> str:
    return f"it claims to hide the future, but the first {cut} outputs change with the tokens after them"
