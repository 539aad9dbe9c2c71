"""`attnlab studies`."""

from __future__ import annotations


def studies() -> None:
    """List the built-in studies: what each asks, and what it costs."""
    from rich.padding import Padding
    from rich.text import Text

    from attnlab.cli.terminal import Terminal
    from attnlab.study.declaration import built_in_studies, read_plain

    console = Terminal(highlight=False)
    for name, path in built_in_studies().items():
        console.print(Text.assemble((name, "bold"), "  ", (_cost(path.read_text("utf-8")), "dim")))
        console.print(Padding(Text(str(read_plain(path)["question"])), (0, 0, 0, 4)))


def _cost(text: str) -> str:
    """What the declaration says of itself, in a line `# Cost: …`."""
    lines = [line.removeprefix("# Cost:").strip() for line in text.splitlines() if line.startswith("# Cost:")]
    return lines[0] if lines else ""
