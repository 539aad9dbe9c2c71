"""Checkpoints of a few thousand parameters with random weights, each with a tokenizer of its own; and
labelled texts to tune them on."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import torch

GOOD = ("fine", "lovely", "warm", "funny", "bright")
BAD = ("dull", "awful", "cold", "boring", "bleak")
NEUTRAL = ("a", "the", "film", "plot", "music", "and", "is", "was", "with", "play", "scene", "very")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = (*SPECIAL, *NEUTRAL, *GOOD, *BAD)


def tokenizer(words: tuple[str, ...] = WORDS) -> Any:
    """A word-level tokenizer in the manner of BERT: `[CLS] a [SEP]` and `[CLS] a [SEP] b [SEP]`."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers = {word: number for number, word in enumerate(words)}
    made = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [(token, numbers[token]) for token in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ends)
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    return PreTrainedTokenizerFast(
        tokenizer_object=made, **names, model_input_names=["input_ids", "token_type_ids", "attention_mask"]
    )


def bert(folder: Path, words: tuple[str, ...] = WORDS, **changes: Any) -> Path:
    """An encoder with its tokenizer."""
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=len(words), max_position_embeddings=40, **{**sizes, **changes})
    return _saved(BertModel(config), folder, words)


def gpt2(folder: Path, words: tuple[str, ...] = WORDS) -> Path:
    """A decoder with its tokenizer, which has no padding of its own."""
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(vocab_size=len(words), n_embd=16, n_layer=2, n_head=2, n_positions=40)
    config.bos_token_id = config.eos_token_id = words.index("[SEP]")
    folder = _saved(GPT2Model(config), folder, words)
    without = tokenizer(words)
    without.pad_token, without.eos_token = None, "[SEP]"
    without.save_pretrained(folder)
    return folder


def llama(folder: Path, words: tuple[str, ...] = WORDS) -> Path:
    from transformers import LlamaConfig, LlamaModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = LlamaConfig(vocab_size=len(words), max_position_embeddings=40, pad_token_id=0, **sizes)
    config.bos_token_id = config.eos_token_id = None
    return _saved(LlamaModel(config), folder, words)


def roberta(folder: Path, words: tuple[str, ...] = WORDS) -> Path:
    """Its head has a layer of its own before the last one."""
    from transformers import RobertaConfig, RobertaModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = RobertaConfig(vocab_size=len(words), max_position_embeddings=40, pad_token_id=0, **sizes)
    config.bos_token_id, config.eos_token_id = 2, 3
    return _saved(RobertaModel(config), folder, words)


def _saved(model: Any, folder: Path, words: tuple[str, ...]) -> Path:
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:  # at a deviation of 0.02 words would hardly differ
                parameter.normal_(std=0.3)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer(words).save_pretrained(folder)
    return folder


def write_labelled(folder: Path, train: int = 96, dev: int = 32, test: int = 48) -> None:
    """`train.txt`, `dev.txt`, `test.txt`: sentences with a good or a bad word in them, and which it is."""
    draw = random.Random(0)
    for name, lines in (("train", train), ("dev", dev), ("test", test)):
        (folder / f"{name}.txt").write_text("".join(_line(draw, number) for number in range(lines)))


def _line(draw: random.Random, number: int) -> str:
    label = number % 2
    words = [draw.choice(NEUTRAL) for _ in range(draw.randrange(2, 9))]
    words.insert(draw.randrange(len(words) + 1), draw.choice(GOOD if label else BAD))
    return f"{label} {' '.join(words)}\n"
