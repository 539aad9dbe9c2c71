"""The plainest of our decoders by a compiled kernel: a step costs the arithmetic, and not the calls.

It reads as `StatefulReading` does, which is its oracle, and which every other model has. Its sums do not
depend on the batch: a text is the same to the last bit, however many are written beside it.

Shapes: B continuations, T tokens, C places in the cache, D width, F width of the MLP, V vocabulary.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from attnlab.attention import Attention, Causal, Dot, Learned, Separate, compiled
from attnlab.attention.weigh import Softmax
from attnlab.model import DecoderModel

_FIRST = 64  # places in the cache to begin with; it grows by doubling


class _Sizes(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("layers", "heads", "width", "inner", "vocabulary", "capacity")),
        ("eps", ctypes.c_float),
        ("scale", ctypes.c_float),
    ]


@cache
def kernel() -> ctypes.CDLL | None:
    """The compiled kernel; None, said once, where it cannot be had."""
    made = compiled.library_or_warning(
        Path(__file__).with_name("decoder_kernel.cpp"),
        "texts are written by PyTorch, about half as fast",
    )
    if made is None:
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    sizes = ctypes.POINTER(_Sizes)
    made.decoder_step.argtypes = [pointer, sizes, *[pointer] * 3, *[number] * 3, *[pointer] * 3]
    made.decoder_head.argtypes = [pointer, sizes, pointer, number, number, pointer]
    made.decoder_step.restype = made.decoder_head.restype = None
    made.lanes.restype = number
    return made


def not_compiled_because(model: DecoderModel) -> str | None:
    """Why the kernel does not compute this model; None when it does."""
    spec = model.spec
    mixer = spec.mixer
    if type(mixer) is not Attention:
        return f"its mixer is {mixer.name!r}"
    plain = {"score": Dot(), "mask": Causal(), "weigh": Softmax(), "project": Separate()}
    for part, only in plain.items():
        if getattr(mixer, part) != only:
            return f"its {part} is {getattr(mixer, part).name!r}, or has other settings"
    if mixer.kernel == "stages":
        return "it is to be computed in stages"
    if spec.position != Learned():
        return f"its positions are {spec.position.name!r}"
    if any(p.dtype != torch.float32 or p.device.type != "cpu" for p in model.parameters()):
        return "its weights are not fp32 on the CPU"
    return None


class CompiledReading:
    """B texts, their keys and values, and how far they are read."""

    def __init__(self, model: DecoderModel) -> None:
        library = kernel()
        assert library is not None  # whoever asks has looked
        self.library, self.model, self.packed, self.seen = library, model, _packed(model), 0
        spec = model.spec
        self.sizes = _Sizes(
            layers=spec.layers,
            heads=spec.heads,
            width=spec.width,
            inner=spec.mlp_ratio * spec.width,
            vocabulary=model.head.out_features,
            capacity=0,
            eps=model.norm.eps,
            scale=Dot().dot_scale(spec.dims),
        )
        self.keys = self.values = torch.empty(0)

    def read(self, tokens_BT: Tensor) -> Tensor:
        B, T = tokens_BT.shape
        _refuse_outside(tokens_BT, self.model.embedding.num_embeddings)
        self._make_room(B, self.seen + T)
        position: Any = self.model.position  # learned, as was made sure
        embedding, positions = self.model.embedding.weight, position.table.weight
        tokens_BT = tokens_BT.to(torch.int64).contiguous()
        hidden_TBD = torch.empty(T, B, self.sizes.width)
        for place in range(T):
            self.library.decoder_step(
                self.packed.body.data_ptr(), self.sizes, embedding.data_ptr(), positions.data_ptr(),
                tokens_BT.data_ptr() + place * tokens_BT.element_size(), T, B, self.seen + place,
                self.keys.data_ptr(), self.values.data_ptr(), hidden_TBD[place].data_ptr(),
            )  # fmt: skip
        self.seen += T
        self.vectors_BTD = hidden_TBD.transpose(0, 1)
        logits_BV = torch.empty(B, self.sizes.vocabulary)
        self.library.decoder_head(
            self.packed.head.data_ptr(), self.sizes, hidden_TBD[-1].data_ptr(), self.sizes.width, B,
            logits_BV.data_ptr(),
        )  # fmt: skip
        return logits_BV

    def keep(self, rows_B: Tensor) -> None:
        self.keys, self.values = self.keys[rows_B], self.values[rows_B]

    def _make_room(self, B: int, length: int) -> None:
        before = self.sizes.capacity
        if before and len(self.keys) != B:
            raise IndexError(f"{B} texts go on where {len(self.keys)} are read: `keep` says which")
        if length <= before:
            return
        n, known = self.sizes, self.model.spec.context
        if length > known:
            raise IndexError(f"position {length - 1} is beyond the {known} that the model knows")
        n.capacity = min(max(_FIRST, 2 * length), self.model.spec.context)
        d = n.width // n.heads
        keys = torch.empty(B, n.layers, n.heads, d, n.capacity)
        values = torch.empty(B, n.layers, n.heads, n.capacity, d)
        if before:
            keys[..., :before], values[..., :before, :] = self.keys, self.values
        self.keys, self.values = keys, values


class _Packed:
    """A model's weights as the kernel reads them."""

    def __init__(self, model: DecoderModel) -> None:
        pieces: list[Tensor] = []

        def product(*layers: nn.Linear) -> None:
            pieces.append(_panels(torch.cat([layer.weight for layer in layers])))
            pieces.append(_filled(torch.cat([layer.bias for layer in layers])))

        def norm(layer: nn.LayerNorm) -> None:
            pieces.extend((layer.weight, layer.bias))

        for block in model.blocks:
            project: Any = block.mixer.project
            merge: Any = block.mixer.merge
            norm(block.norm_mix)
            product(project.query, project.key, project.value)
            product(merge)
            if block.mlp is not None:
                norm(block.norm_mlp)
                product(block.mlp.up)
                product(block.mlp.down)
        norm(model.norm)
        self.body = torch.cat([piece.detach().flatten() for piece in pieces])
        self.head = _panels(model.head.weight.detach())
        self.made_from = _versions(model)


_KEPT: WeakKeyDictionary[nn.Module, _Packed] = WeakKeyDictionary()


def _packed(model: DecoderModel) -> _Packed:
    """Packed once, and again whenever a weight has changed since."""
    kept = _KEPT.get(model)
    if kept is None or kept.made_from is None or kept.made_from != _versions(model):
        _KEPT[model] = kept = _Packed(model)
    return kept


def _versions(model: nn.Module) -> list[tuple[int, int]] | None:
    """Where every weight lies and how often it was written to; None where PyTorch does not keep count."""
    if any(parameter.is_inference() for parameter in model.parameters()):
        return None
    return [(parameter.data_ptr(), parameter._version) for parameter in model.parameters()]


def _lanes() -> int:
    library = kernel()
    assert library is not None
    return int(library.lanes())


def _filled(x: Tensor) -> Tensor:
    """Zeros behind it, up to whole panels of its first dimension."""
    lanes = _lanes()
    room = x.new_zeros(-(-len(x) // lanes) * lanes, *x.shape[1:])
    room[: len(x)] = x
    return room


def _panels(weight_OI: Tensor) -> Tensor:
    """(out, in) as panels of so many outputs, (in, lanes) each."""
    filled = _filled(weight_OI)
    return filled.unflatten(0, (-1, _lanes())).transpose(1, 2).contiguous()


def _refuse_outside(tokens_BT: Tensor, vocabulary: int) -> None:
    """A kernel would read whatever lies there."""
    low, high = tokens_BT.aminmax()
    if not (int(low) >= 0 and int(high) < vocabulary):
        raise IndexError(
            f"tokens from {int(low)} to {int(high)} are not all among the {vocabulary} there are"
        )
