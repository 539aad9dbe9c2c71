"""`attnlab studies`."""

from __future__ import annotations


def studies() -> None:
    """List the built-in studies: what each asks, and what it costs."""
    from rich.console import Console
    from rich.table import Table

    from attnlab.study.declaration import built_in_studies, read_plain

    table = Table("study", "question", "cost", box=None, padding=(0, 2, 0, 0))
    for name, path in built_in_studies().items():
        plain = read_plain(path)
        table.add_row(name, str(plain["question"]), _cost(path.read_text("utf-8")))
    Console().print(table)


def _cost(text: str) -> str:
    """What the declaration says of itself, in a line `# Cost: …`."""
    lines = [line.removeprefix("# Cost:").strip() for line in text.splitlines() if line.startswith("# Cost:")]
    return lines[0] if lines else ""
