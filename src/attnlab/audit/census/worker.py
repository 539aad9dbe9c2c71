"""One process of a census: class names come in line by line, a row of the table goes out for each."""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any

from attnlab.audit.hub import NotBuilt, causal_classes, tiny_model
from attnlab.audit.models.causality import first_leak, switched_to
from attnlab.audit.models.subject import Model
from attnlab.audit.randomness import borrowed

_LENGTHS = (12, 40)


def row_of(class_name: str) -> dict[str, Any]:
    """What is seen of one class: built or not, and whether the future counts under any implementation."""
    try:
        model = tiny_model(class_name)
    except NotBuilt as reason:
        return {"class": class_name, "outcome": "not built", "evidence": str(reason)}
    both_ways = model.both_ways
    tried: list[str] = []
    leaks: list[str] = []
    for implementation in model.implementations:
        try:
            with switched_to(model, implementation):
                _look(model, f"{implementation} attention", tried, leaks)
        except Exception as error:  # an implementation it does not have after all, or that fails
            tried.append(f"not {implementation}: {type(error).__name__}: {str(error).strip()[:100]}")
    ran = [word for word in tried if not word.startswith("not ")]
    if leaks and both_ways:
        return _row(class_name, "by design bidirectional", both_ways, tried)
    if leaks:
        return _row(class_name, "leak", "; ".join(leaks), tried)
    if not ran:
        return _row(class_name, "not built", "; ".join(tried), tried)
    return _row(class_name, "pass", f"no logits moved: {', '.join(tried)}", tried)


def _look(model: Model, word: str, tried: list[str], leaks: list[str]) -> None:
    leak = first_leak(model, model.lengths(*_LENGTHS), word)
    if leak is None and "attention_mask" in model.options:
        leak = first_leak(model, model.lengths(12), f"{word}, a mask of ones given", masked=True)
    tried.append(word)
    if leak is not None:
        leaks.append(leak.told())


def _row(class_name: str, outcome: str, evidence: str, tried: list[str]) -> dict[str, Any]:
    return {"class": class_name, "outcome": outcome, "evidence": evidence, "tried": tried}


def main() -> None:
    """Reads names, writes rows. Whatever a library prints goes to the error stream, out of the "
    "table's way."""
    table = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    warnings.simplefilter("ignore")
    causal_classes()  # the import of the library is done before the first clock runs
    table.write("ready\n")
    for line in sys.stdin:
        name = line.strip()
        with borrowed():
            try:
                row = row_of(name)
            except Exception as error:  # a class that fails in an unforeseen way is one row of the table
                row = _row(name, "not built", f"{type(error).__name__}: {str(error).strip()[:160]}", [])
        table.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
