"""A study's directory as a report sees it: everything optional but the contract, nothing invented.

The directory is read as it lies there, whole or half done: `results.json` where it exists, and each
`runs/<arm>/<seed>/result.json`, which comes sooner and says more.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.errors import StoreError
from attnlab.record import SCHEMA, items_in
from attnlab.report import many
from attnlab.report.logs import read_log
from attnlab.report.studied import Arm, Metric, Run, Studied

Plain = dict[str, Any]


def read(directory: Path) -> Studied:
    """The study in a directory, or a StoreError that says why it cannot be read."""
    directory = Path(directory)
    _must_be_a_study(directory)
    study = _load(directory / "study.json")
    declaration: Plain = dict(study.get("study") or {})
    path = directory / "results.json"
    results = _load(path) if path.is_file() else {}
    head: Plain = {"better": study.get("better"), **declaration, **(results.get("study") or {})}
    seeds = _declared_seeds(declaration.get("seeds"))
    found = _Runs(directory / "runs", len(declaration.get("arms") or ()), len(seeds))
    entries = _entries(declaration, results, found)
    verdicts = {v["arm"]: v for v in results.get("verdicts") or []}
    arms = [_arm(entry, found, seeds, verdicts.get(entry["name"])) for entry in entries]
    return Studied(
        directory=directory,
        name=str(head.get("name") or directory.name),
        question=str(head.get("question") or ""),
        metric=Metric.named(str(head.get("metric") or "loss"), head.get("better"), arms),
        margin=float(head.get("margin") or 0.0),
        baseline=str(head.get("baseline") or (arms[0].name if arms else "")),
        arms=tuple(arms),
        declaration=declaration,
        fingerprint=str(study.get("fingerprint") or head.get("fingerprint") or ""),
        environment=dict(study.get("environment") or {}),
        corpus=dict(study.get("corpus") or {}),
        floors={k: v for k, v in (study.get("floors") or {}).items() if isinstance(v, Mapping)},
        command=str(study.get("command") or ""),
        noise_floor=dict(results.get("noise_floor") or {}),
        floor_verdicts=tuple(results.get("floor_verdicts") or ()),
    )


def _must_be_a_study(directory: Path) -> None:
    if (directory / "study.json").is_file():
        return
    if directory.is_dir():
        inside = sorted(child.parent.name for child in directory.glob("*/study.json"))
        hint = f"; it holds the studies {', '.join(inside)}: name one of them" if inside else ""
        raise StoreError(f"{str(directory)!r} is not a study's directory: it has no study.json{hint}")
    parent = directory.parent
    names = [child.parent.name for child in parent.glob("*/study.json")] if parent.is_dir() else []
    near = difflib.get_close_matches(directory.name, names, n=1, cutoff=0.5)
    hint = f"; did you mean {str(parent / near[0])!r}?" if near else ""
    raise StoreError(f"there is no directory {str(directory)!r}{hint}")


def _load(path: Path) -> Plain:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StoreError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise StoreError(f"{str(path)!r} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise StoreError(f"{str(path)!r} holds {type(found).__name__}, where a table is wanted")
    schema = found.get("schema", SCHEMA)
    if not isinstance(schema, int) or schema > SCHEMA:
        raise StoreError(f"{str(path)!r} has schema {schema!r}; this attnlab reads up to {SCHEMA}")
    return found


class _Runs:
    """The folders below `runs/`: what is done, and what is under way, by arm and seed. Of very many, only
    the first of each arm are read whole."""

    def __init__(self, root: Path, arms: int, seeds: int) -> None:
        self.results: dict[str, dict[int, Plain]] = {}
        self.folders: dict[tuple[str, int], Path] = {}
        folders = sorted(p for p in root.glob("*/*") if p.is_dir() and p.name.isdigit())
        by_arm: dict[str, list[Path]] = {}
        for folder in sorted(folders, key=lambda folder: int(folder.name)):
            by_arm.setdefault(folder.parent.name, []).append(folder)
        # Of each arm, so many are shown one by one.
        self.each = many.seeds_alone(max(arms, len(by_arm)), max(arms * seeds, len(folders)))
        self.alone = {folder for of_arm in by_arm.values() for folder in of_arm[: self.each]}
        under_way: dict[tuple[str, int], Path] = {}  # by folder name: the arm has not been written yet
        names: dict[str, str] = {}
        for folder in folders:
            path, seed = folder / "result.json", int(folder.name)
            if path.is_file():
                result = _load(path)
                if folder not in self.alone:
                    result = _figures_of(result)
                arm = str(result.get("arm", folder.parent.name))
                names[folder.parent.name] = arm
                seed = int(result.get("seed", seed))
                self.results.setdefault(arm, {})[seed], self.folders[arm, seed] = result, folder
            elif (folder / "metrics.jsonl").is_file():
                under_way[folder.parent.name, seed] = folder
        self._running: dict[tuple[str, int], Path] = {}
        for (name, seed), folder in under_way.items():
            self._running.setdefault((_letters(names.get(name, name)), seed), folder)

    def arms(self) -> list[str]:
        return sorted(self.results)

    def running(self, arm: str, seed: int) -> Path | None:
        return self._running.get((_letters(arm), seed))


_OF_ONE = ("items", "documents", "exhibits", "sentences", "samples")  # what is shown of a run by itself


def _figures_of(result: Plain) -> Plain:
    """What means and findings are made of; the rest of very many results would fill the memory."""
    checks = [check for check in result.get("checks") or () if check.get("status") != "pass"]
    return {**{key: value for key, value in result.items() if key not in _OF_ONE}, "checks": checks}


def _letters(name: str) -> str:
    """What is left of a name however it was made into a folder's."""
    return "".join(c for c in name.lower() if c.isalnum())


def _entries(declaration: Plain, results: Plain, found: _Runs) -> list[Plain]:
    """An entry per arm, in declared order; what `results.json` says wins over the bare declaration."""
    known: dict[str, Plain] = {}
    declared = [arm for arm in declaration.get("arms") or [] if isinstance(arm, Mapping) and arm.get("name")]
    for arm in declared:  # a declaration writes an arm's changes beside its name, results under `changes`
        changes = arm.get("changes") or {key: value for key, value in arm.items() if key != "name"}
        known[arm["name"]] = {"name": arm["name"], "changes": changes}
    for entry in results.get("arms") or []:
        known[entry["name"]] = {**known.get(entry["name"], {}), **entry}
    for name in found.arms():
        known.setdefault(name, {"name": name})
    return list(known.values())


def _declared_seeds(seeds: Any) -> list[int]:
    if isinstance(seeds, int):
        return list(range(seeds))
    return [int(seed) for seed in seeds] if isinstance(seeds, list) else []


def _arm(entry: Plain, found: _Runs, seeds: list[int], verdict: Plain | None) -> Arm:
    name = str(entry["name"])
    summaries = {int(run["seed"]): run for run in entry.get("runs") or []}
    done = found.results.get(name, {})
    known = sorted({*seeds, *summaries, *done})
    runs = [_run(name, seed, summaries.get(seed), found, place) for place, seed in enumerate(known)]
    audit = entry.get("audit") or {}
    return Arm(
        name=name,
        status=str(entry.get("status") or _status_of(runs)),
        runs=tuple(runs),
        changes={k: v for k, v in (entry.get("changes") or {}).items() if k != "name"},
        parameters=entry.get("parameters"),
        parameter_rows=tuple(entry.get("parameter_rows") or ()),
        checks=tuple(audit.get("checks") or ()),
        reason=str(entry.get("reason") or ""),
        verdict=verdict,
    )


def _status_of(runs: list[Run]) -> str:
    """The status of an arm nobody has summed up yet: the worst that one of its runs ended with."""
    found = {run.status for run in runs}
    return next((word for word in ("invalid", "diverged", "failed", "ok") if word in found), "waiting")


def _run(arm: str, seed: int, summary: Plain | None, found: _Runs, place: int) -> Run:
    result = found.results.get(arm, {}).get(seed)
    folder = found.folders.get((arm, seed)) or found.running(arm, seed)
    alone = folder in found.alone if folder else place < found.each
    known: Plain = {**(summary or {}), **(result or {})}
    metrics = {k: float(v) for k, v in (known.get("metrics") or {}).items() if isinstance(v, int | float)}
    return Run(
        arm=arm,
        seed=seed,
        status=str(known.get("status") or ("running" if folder else "waiting")),
        metrics=metrics,
        seconds=known.get("seconds") or metrics.get("seconds") or None,
        tokens_per_second=known.get("tokens_per_second") or None,
        steps=known.get("steps") or None,
        reason=str(known.get("reason") or ""),
        checks=tuple(known.get("checks") or ()),
        sentences=tuple(known.get("sentences") or ()),
        samples=tuple(str(s) for s in known.get("samples") or ()),
        log=read_log(folder / "metrics.jsonl") if folder and alone else (),
        items=items_in(result) if result and alone else {},
        exhibits=dict(known.get("exhibits") or {}),
        folder=folder,
        alone=alone,
    )
