"""The audit of a part, a model's class or pasted code, in a process of its own that has only so long."""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.errors import RequestError
from attnlab.userfile import splits_into_file_and_name
from attnlab.web.asking import PATIENCE, ask
from attnlab.web.settings import Settings


def audit_named(
    target: str, against: str, settings: Settings, patience: float = PATIENCE
) -> list[Mapping[str, Any]]:
    """Audit something by its name. Code in a file, and checkpoints, are a matter of --allow-code."""
    code = splits_into_file_and_name(target) or target.startswith("hf:")
    if (code or splits_into_file_and_name(against)) and not settings.allow_code:
        raise RequestError(
            "files of code and checkpoints are read only if the page was started with --allow-code; "
            "built-ins and transformers:ClassName always are"
        )
    if target.startswith("-") or against.startswith("-"):
        raise RequestError(f"{target!r} names nothing that could be audited")
    return _audit([target], against, settings.root, patience)


def audit_pasted(
    code: str, name: str, against: str, settings: Settings, patience: float = PATIENCE
) -> list[Mapping[str, Any]]:
    """Audit a function or class of a text of Python."""
    if not settings.allow_code:
        raise RequestError("pasted code runs only if the page was started with --allow-code")
    chosen = _chosen(code, name.strip())
    with tempfile.TemporaryDirectory(prefix="attnlab-audit-") as folder:
        path = Path(folder) / "pasted.py"
        path.write_text(code, encoding="utf-8")
        audits = _audit([f"{path}:{chosen}"], against, Path(folder), patience)
    return [{**audit, "target": chosen} for audit in audits]


def _chosen(code: str, name: str) -> str:
    """Which of the names at the top level of the code is meant; the code is read, not run."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        raise RequestError(
            f"not Python{f', line {line}' if line else ''}: {getattr(error, 'msg', error)}"
        ) from None
    kinds = (ast.FunctionDef, ast.ClassDef)
    names = [node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]
    for assigned in (node for node in tree.body if isinstance(node, ast.Assign)):
        names += [target.id for target in assigned.targets if isinstance(target, ast.Name)]
    if name:
        if name not in names:
            raise RequestError(f"the code defines no {name!r} (it defines: {', '.join(names) or 'nothing'})")
        return name
    functions = [node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]
    if "attention" in functions or len(functions) == 1:
        return "attention" if "attention" in functions else functions[0]
    raise RequestError(f"say which is meant: the code defines {', '.join(names) or 'nothing'}")


def _audit(targets: Sequence[str], against: str, folder: Path, patience: float) -> list[Mapping[str, Any]]:
    return ask(["audit", *targets, "--json", *(["--against", against] if against else [])], folder, patience)
