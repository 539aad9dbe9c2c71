"""A llama of a few thousand parameters that takes chats, and dialogues to summarise."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import torch

WORDS = (
    *("[PAD]", "[UNK]", "[END]", "user", "model", "say", "it", "short"),
    *("tom", "ann", "asks", "tells", "about", "rain", "tea", "work", "home", "and", "then", "the", "a", ":"),
)
TEMPLATE = (
    "{% for m in messages %}{{ m['role'] + ' ' + m['content'] + ' ' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'model ' }}{% endif %}"
)


def chat_llama(
    folder: Path, words: tuple[str, ...] = WORDS, layers: int = 3, template: str | None = TEMPLATE
) -> Path:
    """With its tokenizer; `[END]` ends a turn, and is the padding too."""
    from transformers import LlamaConfig, LlamaForCausalLM

    end = words.index("[END]")
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=32,
        max_position_embeddings=96,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=end,
        tie_word_embeddings=True,
    )
    torch.manual_seed(1)
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:  # at a deviation of 0.02 words would hardly differ
                parameter.normal_(std=0.3)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    made = _tokenizer(words)
    made.chat_template = template
    made.save_pretrained(folder)
    return folder


def _tokenizer(words: tuple[str, ...]) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    numbers = {word: number for number, word in enumerate(words)}
    made = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="[END]", unk_token="[UNK]", pad_token="[END]"
    )


def write_dialogues(folder: Path, train: int = 24, dev: int = 6, test: int = 8) -> Path:
    """`train.jsonl`, `dev.jsonl`, `test.jsonl`; test with two summaries of each dialogue."""
    draw = random.Random(0)
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("train", train), ("dev", dev), ("test", test)):
        lines = [json.dumps(_row(draw, two=name == "test")) for _ in range(rows)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def _row(draw: random.Random, *, two: bool) -> dict[str, str]:
    who, whom = draw.sample(["tom", "ann"], 2)
    topic = draw.choice(["rain", "tea", "work", "home"])
    turns = [f"{who} : the {topic}" for _ in range(draw.randrange(1, 5))]
    summary = f"{who} tells {whom} about {topic}"
    row = {"dialogue": "\n".join(turns)}
    if two:
        return {**row, "summary1": summary, "summary2": f"{whom} asks about the {topic}"}
    return {**row, "summary": summary}
