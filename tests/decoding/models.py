"""Small models to decode from, with weights large enough that tokens matter and some randomness remains."""

from __future__ import annotations

from typing import Any

import torch

from attnlab.attention import Attention, Mixer, Position
from attnlab.decoding import HubWriter, OwnWriter
from attnlab.model import Decoder, DecoderModel
from attnlab.tokens import Vocabulary, Words

VOCABULARY = 23
STOP = 1


def vocabulary() -> Vocabulary:
    letters = "abcdefghijklmnopqrst"
    assert len(letters) == VOCABULARY - 3
    return Words(minimum=1).fit([" ".join(letters)])


def model_with(
    mixer: Mixer | None = None, position: Position | None = None, context: int = 32
) -> DecoderModel:
    spec = Decoder(layers=2, heads=2, width=16, context=context, mixer=mixer or Attention())
    if position is not None:
        spec = spec.model_copy(update={"position": position})
    model = spec.build(VOCABULARY, seed=1).double()
    with torch.no_grad():
        for parameter in model.parameters():
            generator = torch.Generator().manual_seed(parameter.numel())
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.double)
    return model.eval()


def own_writer(**choices: Any) -> OwnWriter:
    return OwnWriter(model_with(**choices), vocabulary())


class Letters:
    """As much of a tokenizer as decoding asks for: a letter is a token."""

    bos_token_id = 0

    def __call__(self, text: str) -> Any:
        return type("Encoded", (), {"input_ids": [ord(c) - ord("a") + 3 for c in text]})

    def decode(self, tokens: list[int], skip_special_tokens: bool = False) -> str:
        return "".join(chr(t - 3 + ord("a")) for t in tokens if t >= 3 or not skip_special_tokens)


def hub_writer(family: str, seed: int = 0, ends: bool = True) -> HubWriter:
    """A tiny GPT-2 or Llama in fp64, strong enough to have opinions."""
    import transformers

    torch.manual_seed(seed)
    sizes: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "bos_token_id": 0,
        "eos_token_id": STOP if ends else None,
    }
    if family == "gpt2":
        config = transformers.GPT2Config(n_positions=48, n_embd=16, n_layer=2, n_head=2, **sizes)
        module: Any = transformers.GPT2LMHeadModel(config)
    else:
        config = transformers.LlamaConfig(
            hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=1, max_position_embeddings=48, **sizes,
        )  # fmt: skip
        module = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in module.double().parameters():
            parameter += 0.3 * torch.randn(parameter.shape, dtype=torch.double)
    return HubWriter(module, Letters(), family)
