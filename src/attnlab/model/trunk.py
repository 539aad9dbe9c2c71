"""What every model here has in common: embeddings, blocks and a final norm. Heads are put on top of it.

Shapes: B batch, H heads, T tokens, S keys, N real tokens of a flat stream, D model width.
"""

from __future__ import annotations

from typing import Self

import torch
from pydantic import model_validator
from torch import Tensor, nn

from attnlab.attention import Attention, Dims, Layout, Learned, Mixer, Position, State
from attnlab.attention.dropout import dropout
from attnlab.model.block import Block
from attnlab.spec import Count, Positive, Rate, Spec


class Stack(Spec):
    """The sizes and parts of a model's trunk. The defaults are minGPT's smallest configuration."""

    layers: Positive = 3
    heads: Positive = 3
    width: Positive = 48
    context: Positive = 100
    mlp_ratio: Count = 4  # width of the MLP, in widths of the model; 0: attention alone
    dropout: Rate = 0.1
    position: Position = Learned()
    mixer: Mixer = Attention()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        for reason in (
            self.mixer.misfit(self.dims),
            self.position.misfit(self.dims),
            self.mixer.refuses(self.position),
        ):
            if reason:
                raise ValueError(reason)
        return self

    @property
    def dims(self) -> Dims:
        return Dims(
            width=self.width,
            heads=self.heads,
            context=self.context,
            layers=self.layers,
            dropout=self.dropout,
        )


class Trunk(nn.Module):
    """Tokens in, a vector for each of them out."""

    def __init__(self, spec: Stack, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, spec.width)
        self.position = spec.position.build(spec.dims)
        blocks = [Block(spec.mixer, spec.dims, spec.mlp_ratio) for _ in range(spec.layers)]
        self.blocks: list[Block] = nn.ModuleList(blocks)  # type: ignore[assignment]  # a list that owns weights
        self.norm = nn.LayerNorm(spec.width)
        self.dropout = spec.dropout

    def hidden(self, tokens_N: Tensor, layout: Layout, states: list[State] | None = None) -> Tensor:
        """(N, D): what a head is put on. With `states`, the tokens continue what those remember."""
        x_ND = self.position.embed(self.embedding(tokens_N), layout.positions_N)
        x_ND = dropout(x_ND, self.dropout, self.training)
        for index, block in enumerate(self.blocks):
            x_ND = block(x_ND, layout, self.position, states[index] if states else None)
        normed: Tensor = self.norm(x_ND)
        return normed

    @property
    def device(self) -> torch.device:
        """Where its weights are, and where its inputs must be."""
        return self.embedding.weight.device

    @torch.no_grad()
    def attention_maps(self, tokens_N: Tensor, layout: Layout) -> list[Tensor | None]:
        """For every layer (B, H, T, S): how much each token takes from each other one."""
        x_ND = self.position.embed(self.embedding(tokens_N), layout.positions_N)
        maps: list[Tensor | None] = []
        for block in self.blocks:
            maps.append(block.mixer.weights(block.norm_mix(x_ND), layout, self.position))
            x_ND = block(x_ND, layout, self.position)
        return maps
