"""The census of two released versions of transformers, each in an environment of its own, side by side.

    python benchmarks/transformers_census.py 5.17.0 5.23.0 --out docs/census

Each version is installed with its own dependencies into a temporary folder that is put before everything else
on the path. torch is none of them, so both versions run on the torch at hand. The tables are written as
`<version>.md`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
_LIST = (
    "from attnlab.audit.hub import causal_classes, library;"
    "print(library().__version__, *causal_classes(), sep='\\n')"
)


def table_of(version: str, out: Path) -> str:
    """Installs a version, takes its census, writes its table; the line that sums it up."""
    sys.path.insert(0, str(SOURCE))
    from attnlab.audit.census import take_census

    with tempfile.TemporaryDirectory() as folder:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder]
        same_numpy = f"numpy=={importlib.metadata.version('numpy')}"  # the one that torch was tried with
        subprocess.run([*install, f"transformers=={version}", same_numpy], check=True)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, str(SOURCE)])}
        listed = subprocess.run(
            [sys.executable, "-c", _LIST], env=environment, check=True, capture_output=True, text=True
        )
        found_version, *names = listed.stdout.split("\n")[:-1]
        if found_version != version:
            raise SystemExit(f"{version} was asked for, and {found_version} was imported")
        census = take_census(names, environment=environment)
    counts = {word: census.count(word) for word in ("pass", "leak", "by design bidirectional", "not built")}
    summary = (
        f"{len(census.rows)} classes of transformers {version}: "
        + ", ".join(f"{n} {word}" for word, n in counts.items())
        + f" ({census.share_built:.0%} built, {census.seconds:.0f} s)"
    )
    order = {
        word: place for place, word in enumerate(("leak", "by design bidirectional", "not built", "pass"))
    }
    rows = sorted(census.rows, key=lambda row: (order[row["outcome"]], row["class"]))
    lines = [f"| {row['class']} | {row['outcome']} | {row['evidence'].replace('|', '/')} |" for row in rows]
    head = [
        f"# transformers {version}",
        "",
        summary + ".",
        "",
        "| class | outcome | evidence |",
        "|---|---|---|",
    ]
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{version}.md").write_text("\n".join([*head, *lines, ""]), encoding="utf-8")
    return summary


def main() -> None:
    """One table per version named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("versions", nargs="+")
    parser.add_argument("--out", type=Path, default=Path("docs/census"))
    options = parser.parse_args()
    for version in options.versions:
        print(table_of(version, options.out), flush=True)


if __name__ == "__main__":
    main()
