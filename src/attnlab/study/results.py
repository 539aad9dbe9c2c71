"""`results.json`: every run, every arm, and the verdicts between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.record import SCHEMA, Check, Items, RunResult
from attnlab.study.kind import Held
from attnlab.study.store import Cell, Store
from attnlab.study.study import Study
from attnlab.verdict import NoiseFloor, Verdict, judge_many, noise_floor

Audits = Mapping[str, Mapping[str, Any]]  # per arm: parameters, parameter_rows, checks
FloorItems = Mapping[str, Mapping[str, Items]]  # per floor and split
_WORST_FIRST = ("fail", "error", "skip", "pass")


def assemble(store: Store, study: Study, audits: Audits, floors: FloorItems | None = None) -> dict[str, Any]:
    """The content of `results.json`, from what is in the store now; cells still missing are left out."""
    runs = {
        arm.name: [
            _judged_by(r, study.judged_by)
            for seed in range(study.seeds)
            if (r := store.result(Cell(arm.name, seed))) is not None
        ]
        for arm in study.arms
    }
    findings = {name: finding for name in runs if (finding := _finding(audits.get(name, {}), runs[name]))}
    verdicts = judged(study, runs, findings)
    against_floors = judged_against_floors(study, runs, findings, floors or {})
    # Of an invalid baseline nothing follows: one that always gives the same answer has no noise at all.
    known = study.baseline.name not in findings
    floor = baseline_noise(study, runs[study.baseline.name]) if known else None
    return {
        "schema": SCHEMA,
        "study": {
            "name": study.name,
            "question": study.question,
            "metric": study.metric,
            "better": study.judged_by.metric.better,
            "baseline": study.baseline.name,
            "margin": study.margin,
            "fingerprint": study.fingerprint,
        },
        "arms": [
            _arm(store, study, arm.name, runs[arm.name], audits.get(arm.name, {})) for arm in study.arms
        ],
        "verdicts": [{**verdict.plain(), "sentence": str(verdict)} for verdict in verdicts],
        **({"floor_verdicts": [verdict.plain() for verdict in against_floors]} if against_floors else {}),
        **({"noise_floor": floor.plain()} if floor else {}),
    }


def _judged_by(run: RunResult, held: Held) -> RunResult:
    """A run without what no verdict asks for: ten thousand of them have to be held at once."""
    wanted = {held.measure, held.weight}
    items = {
        split: Items(items.names, {what: of for what, of in items.values.items() if what in wanted})
        for split, items in run.items.items()
        if split == held.split
    }
    return replace(run, items=items, sentences=(), samples=(), exhibits={})


def _finding(audit: Mapping[str, Any], runs: Sequence[RunResult]) -> str | None:
    """What makes an arm invalid: the first check that failed, before training or on a trained model.

    A run may say of a check that its own figures stand all the same, by calling itself ok (a classifier with
    one answer has a true accuracy). That rules the arm out only when no run of it did better.
    """
    ruling = {name for name, checks in _by_name(runs).items() if all(c.status == "fail" for c in checks)}
    checks = [
        *audit.get("checks", ()),
        *(c.plain() for run in runs for c in run.checks if run.status == "invalid" or c.name in ruling),
    ]
    # The measured perplexities say more than the mechanism; both are in the report.
    checks.sort(key=lambda check: check["name"] != "prefix-only")
    return next((f"{c['name']}: {c['evidence']}" for c in checks if c["status"] == "fail"), None)


def _arm(
    store: Store, study: Study, name: str, runs: Sequence[RunResult], audit: Mapping[str, Any]
) -> dict[str, Any]:
    failures = [
        {
            "seed": seed,
            "status": "failed",
            "metrics": {},
            "seconds": 0.0,
            "tokens_per_second": 0.0,
            "reason": reason,
        }
        for seed in sorted(set(range(study.seeds)) - {run.seed for run in runs})
        if (reason := store.failure(Cell(name, seed))) is not None
    ]
    done = [
        {
            "seed": run.seed,
            "status": run.status,
            "metrics": dict(run.metrics),
            "seconds": run.seconds,
            "tokens_per_second": run.tokens_per_second,
            "evaluation_seconds": run.evaluation_seconds,
            **({"reason": run.reason} if run.reason else {}),
        }
        for run in runs
    ]
    checks = [*audit.get("checks", ()), *_worst(runs)]
    return {
        "name": name,
        "status": _status(runs, audit, bool(failures)),
        "parameters": audit.get("parameters"),
        "parameter_rows": audit.get("parameter_rows", []),
        "changes": next(arm.plain() for arm in study.arms if arm.name == name),
        "audit": {"passed": all(c["status"] in ("pass", "skip") for c in checks), "checks": checks},
        "runs": sorted([*done, *failures], key=lambda run: int(run["seed"])),
    }


def _status(runs: Sequence[RunResult], audit: Mapping[str, Any], any_failed: bool) -> str:
    if _finding(audit, runs):
        return "invalid"
    if any(run.status == "ok" for run in runs) or not (runs or any_failed):
        return "ok"
    return "diverged" if runs else "failed"


def _worst(runs: Sequence[RunResult]) -> list[dict[str, Any]]:
    """One line per check made on every run: the worst that was seen."""
    found = _by_name(runs).values()
    return [min(checks, key=lambda check: _WORST_FIRST.index(check.status)).plain() for checks in found]


def _by_name(runs: Sequence[RunResult]) -> dict[str, list[Check]]:
    """The checks made on runs, those of one name together."""
    by_name: dict[str, list[Check]] = {}
    for run in runs:
        for check in run.checks:
            by_name.setdefault(check.name, []).append(check)
    return by_name


def judged(
    study: Study, runs: Mapping[str, Sequence[RunResult]], findings: Mapping[str, str]
) -> list[Verdict]:
    """Every arm against the baseline, on the items and the seeds that both have."""
    held, baseline = study.judged_by, study.baseline.name
    others = {name: arm_runs for name, arm_runs in runs.items() if name != baseline}
    seeds = sorted(set.intersection(*({run.seed for run in arm_runs} for arm_runs in runs.values())))
    if not others or not seeds:
        return []
    first = _items(runs, held)
    if not first.names:
        return []
    reasons = dict(findings)
    if baseline in reasons:
        reason = reasons.pop(baseline)
        reasons = dict.fromkeys(others, f"the baseline is invalid ({reason})") | reasons
    for name, arm_runs in others.items():
        if held.unlike and any(
            _weights(run.items[held.split], held) != _weights(first, held)
            for run in arm_runs
            if held.split in run.items
        ):
            reasons.setdefault(name, held.unlike)
    values = {name: _values(arm_runs, seeds, first.names, held) for name, arm_runs in runs.items()}
    verdicts = judge_many(
        values[baseline],
        {name: values[name] for name in others},
        margin=study.margin,
        weights=_weights(first, held),
        metric=held.metric,
        findings=reasons,
        baseline_name=baseline,
    )
    return [_doubted(verdict, runs) for verdict in verdicts.values()]


def _doubted(verdict: Verdict, runs: Mapping[str, Sequence[RunResult]]) -> Verdict:
    """Two arms are not called equivalent where a check failed in a run of either: classifiers that give one
    answer agree with each other, and neither has learned anything."""
    failed = {
        name: [run.seed for run in runs[name] if any(check.status == "fail" for check in run.checks)]
        for name in (verdict.baseline, verdict.arm)
    }
    told = [f"{name}, seeds {', '.join(map(str, seeds))}" for name, seeds in failed.items() if seeds]
    if verdict.verdict != "equivalent" or not told:
        return verdict
    reason = f"{verdict.reason}; but a check failed in runs of it ({'; '.join(told)})"
    return replace(verdict, verdict="undecided", reason=reason)


def judged_against_floors(
    study: Study,
    runs: Mapping[str, Sequence[RunResult]],
    findings: Mapping[str, str],
    floors: FloorItems,
) -> list[Verdict]:
    """Every arm against every floor on the same items. A floor has no seeds: it is what it is for each of an
    arm's."""
    held, found = study.judged_by, list[Verdict]()
    seeds = sorted(set.intersection(*({run.seed for run in arm_runs} for arm_runs in runs.values())))
    for floor, by_split in floors.items():
        items = by_split.get(held.split)
        if items is None or held.measure not in items.values or not seeds:
            continue
        arms = {name: _values(arm_runs, seeds, items.names, held) for name, arm_runs in runs.items()}
        verdicts = judge_many(
            np.tile(np.asarray(items[held.measure], dtype=np.float64), (len(seeds), 1)),
            arms,
            margin=study.margin,
            weights=_weights(items, held),
            metric=held.metric,
            findings=findings,
            baseline_name=floor,
        )
        found += verdicts.values()
    return found


def baseline_noise(study: Study, runs: Sequence[RunResult]) -> NoiseFloor | None:
    """What the seed alone does to the baseline: no difference smaller than that means anything."""
    held = study.judged_by
    first = _items({study.baseline.name: runs}, held)
    values = _values(runs, [run.seed for run in runs], first.names, held)
    if np.isfinite(values).all(axis=1).sum() < 2:
        return None
    return noise_floor(
        values,
        margin=study.margin,
        weights=_weights(first, held),
        metric=held.metric,
        baseline_name=study.baseline.name,
    )


def _items(runs: Mapping[str, Sequence[RunResult]], held: Held) -> Items:
    """The items to pair on, as the first run that has them knows them."""
    found = (
        run.items[held.split] for arm_runs in runs.values() for run in arm_runs if held.split in run.items
    )
    return next(found, Items((), {}))


def _weights(items: Items, held: Held) -> tuple[float, ...] | None:
    return items[held.weight] if held.weight and items.names else None


def _values(
    runs: Sequence[RunResult], seeds: Sequence[int], names: tuple[str, ...], held: Held
) -> NDArray[np.float64]:
    """(seeds, items); a run that kept none, because it diverged, is a row of NaN and leaves its pair."""
    by_seed = {run.seed: run for run in runs}
    values = np.full((len(seeds), len(names)), np.nan)
    for row, seed in enumerate(seeds):
        items = by_seed[seed].items.get(held.split)
        if items is not None:
            by_name = dict(zip(items.names, items[held.measure], strict=True))
            values[row] = [by_name.get(name, np.nan) for name in names]
    return values
