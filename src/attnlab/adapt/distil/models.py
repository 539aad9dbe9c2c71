"""Teachers and students: causal language models of transformers, a student perhaps with fewer layers."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator
from torch import nn

from attnlab.adapt.places import find
from attnlab.adapt.pretrained import Loaded, Pretrained
from attnlab.errors import RequestError
from attnlab.spec import Count, Spec


class Teacher(Spec):
    """A checkpoint that writes."""

    # A directory, package:NAME, or a name on the hub.
    checkpoint: str = Field(default="./smollm2", min_length=1)
    revision: str | None = None  # of one on the hub: a commit, so that it cannot change under a study
    trust_remote_code: bool = False

    @property
    def pretrained(self) -> Pretrained:
        return Pretrained(
            checkpoint=self.checkpoint, revision=self.revision, trust_remote_code=self.trust_remote_code
        )

    def load(self, base: Path | None) -> Loaded:
        """The model, in evaluation mode, and its tokenizer."""
        loaded = self.pretrained.load("AutoModelForCausalLM", base)
        if loaded.new:
            raise RequestError(
                f"{self.checkpoint} is no language model that writes: it has no weights for {loaded.new[0]}"
                + (f" and {len(loaded.new) - 1} more" if len(loaded.new) > 1 else "")
            )
        loaded.model.eval()
        return loaded

    def tokenizer(self, base: Path | None) -> Any:
        return self.pretrained.load_tokenizer(base)

    def identity(self, base: Path | None) -> dict[str, Any]:
        """What its texts depend on: for a directory its very contents, on the hub a name and a revision."""
        place = find(self.checkpoint, base)
        if place.folder is None:
            return {"checkpoint": self.checkpoint, "revision": self.revision}
        return {"checkpoint": Path(self.checkpoint).name, "contents": _digest(place.folder)}


class Student(Teacher):
    """A checkpoint that learns; the teacher's own, with some of its layers taken out, unless given."""

    layers_kept: tuple[Count, ...] | None = None  # their numbers, from 0, in order; all unless given

    @field_validator("layers_kept")
    @classmethod
    def _in_order(cls, kept: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if kept is not None and (not kept or list(kept) != sorted(set(kept))):
            raise ValueError("names at least one layer, each once and in order")
        return kept

    def load(self, base: Path | None) -> Loaded:
        loaded = super().load(base)
        if self.layers_kept is not None:
            keep_layers(loaded.model, self.layers_kept)
        return loaded

    def identity(self, base: Path | None) -> dict[str, Any]:
        kept = None if self.layers_kept is None else list(self.layers_kept)
        return {**super().identity(base), "layers_kept": kept}


def keep_layers(model: Any, kept: tuple[int, ...]) -> None:
    """Take all layers out of a model but those of these numbers."""
    config = model.config
    depth = int(config.num_hidden_layers)
    if kept[-1] >= depth:
        raise RequestError(f"student.layers_kept names layer {kept[-1]}; there are {depth}, 0 to {depth - 1}")
    stacks = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, nn.ModuleList) and len(child) == depth
    ]
    if len(stacks) != 1:
        raise RequestError(
            f"student.layers_kept: a {type(model).__name__} has {len(stacks)} lists of {depth} layers, and "
            "it is not clear which to take layers out of"
        )
    ((parent, name, layers),) = stacks
    left = nn.ModuleList(layers[number] for number in kept)
    for place, layer in enumerate(left):
        for part in layer.modules():
            if hasattr(part, "layer_idx"):  # its place in the cache
                setattr(part, "layer_idx", place)  # noqa: B010 - no module declares it
    setattr(parent, name, left)
    config.num_hidden_layers = len(kept)
    types = getattr(config, "layer_types", None)
    if types:
        config.layer_types = [types[number] for number in kept]


@cache
def _digest(folder: Path) -> str:
    """A fingerprint of the files that make a checkpoint."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in (".json", ".safetensors", ".txt", ".model", ".jinja", ".py"):
            digest.update(path.name.encode())
            with path.open("rb") as file:
                while piece := file.read(1 << 22):
                    digest.update(piece)
    return digest.hexdigest()[:16]
