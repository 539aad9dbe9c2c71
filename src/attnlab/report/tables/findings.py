"""What the audit saw in each arm, before training and in its runs, with the evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace

from attnlab.report import many, numbers
from attnlab.report.studied import Arm, Studied
from attnlab.report.tables.table import Cell, Column, Row, Table, badge, table

_WORST_FIRST = ("fail", "error", "skip", "pass")
_FIRST = 5  # findings that stand for very many like them


@dataclass(frozen=True)
class Finding:
    """One check of one arm; `seeds` are those of the runs that saw it, none for the audit before training."""

    arm: str
    check: str
    status: str
    evidence: str
    seeds: tuple[int, ...] = ()

    @property
    def told_seeds(self) -> str:
        return ", ".join(many.seeds(self.seeds))


def findings(study: Studied) -> list[Finding]:
    """Every check once per arm and evidence, what failed first."""
    found = [finding for arm in study.arms for finding in _of(arm)]
    return sorted(found, key=lambda finding: _place(finding.status))


def _place(status: str) -> int:
    return _WORST_FIRST.index(status) if status in _WORST_FIRST else len(_WORST_FIRST)


def _of(arm: Arm) -> list[Finding]:
    seen: dict[tuple[str, str, str], list[int]] = {}
    for check in arm.checks:
        seen.setdefault(_key(check), [])
    for run in arm.runs:
        for check in run.checks:
            seen.setdefault(_key(check), []).append(run.seed)
    return _folded([Finding(arm.name, *key, seeds=tuple(seeds)) for key, seeds in seen.items()])


def _folded(found: list[Finding]) -> list[Finding]:
    """Every run may tell the same of a check in figures of its own: of very many, the first, and how many
    more there are."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for one in found:
        alike.setdefault((one.check, one.status), []).append(one)
    folded: list[Finding] = []
    for same in alike.values():
        if len(same) <= many.LISTED:
            folded += same
            continue
        more = tuple(seed for one in same[_FIRST:] for seed in one.seeds)
        told = f"the same in figures of their own, in {numbers.times(len(more), 'further run')}"
        folded += [*same[:_FIRST], replace(same[0], evidence=told, seeds=more)]
    return folded


def _key(check: object) -> tuple[str, str, str]:
    known = check if isinstance(check, dict) else {}
    return str(known.get("name", "")), str(known.get("status", "")), str(known.get("evidence", ""))


def failed(found: list[Finding]) -> list[Finding]:
    return [finding for finding in found if finding.status in ("fail", "error")]


def matrix(study: Studied, found: list[Finding]) -> Table | None:
    """A check a row, an arm a column, the worst that was seen in each place."""
    checks = list(dict.fromkeys(finding.check for finding in found))
    worst: dict[tuple[str, str], str] = {}
    for finding in found:  # worst first
        worst.setdefault((finding.check, finding.arm), finding.status)
    arms = [arm.name for arm in study.arms]
    columns = [Column("check", number=False), *(Column(name, number=False) for name in arms)]
    rows = [
        Row((Cell(check), *(badge(worst.get((check, arm), "")) for arm in arms))) for check in sorted(checks)
    ]
    return table("checks", "Checks", columns, rows)


def evidence_table(found: list[Finding]) -> Table | None:
    columns = [Column(name, number=False) for name in ("check", "arm", "result", "seeds", "evidence")]
    rows = [
        Row(
            (
                Cell(finding.check),
                Cell(finding.arm),
                badge(finding.status),
                Cell(finding.told_seeds),
                Cell(finding.evidence),
            )
        )
        for finding in found
    ]
    return table("evidence", "Every check with its evidence", columns, rows, grouped=True)
