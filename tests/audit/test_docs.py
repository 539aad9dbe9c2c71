"""The page about audits says what the code says."""

from __future__ import annotations

from pathlib import Path

import attnlab.audit as audit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "audit.md"


def table() -> str:
    """The tables of checks, from the rules themselves."""
    parts = []
    for kind, rules in audit.all_rules().items():
        rows = [f"| `{r.name}` | {r.tests} | {r.claims} | {r.threshold} |" for r in rules]
        head = f"### Of {'an' if kind[0] in 'aeiou' else 'a'} {kind}"
        parts.append(
            "\n".join(
                [head, "", "| check | tests that | a pass claims | threshold |", "|---|---|---|---|", *rows]
            )
        )
    return "\n\n".join(parts)


def test_the_tables_of_checks_are_those_of_the_code():
    inside = PAGE.read_text().split("<!-- rules -->")[1].split("<!-- /rules -->")[0]
    assert inside.strip() == table(), "write docs/audit.md anew: python -m tests.audit.test_docs"


if __name__ == "__main__":
    before, rest = PAGE.read_text().split("<!-- rules -->")
    after = rest.split("<!-- /rules -->")[1]
    PAGE.write_text(f"{before}<!-- rules -->\n{table()}\n<!-- /rules -->{after}")
