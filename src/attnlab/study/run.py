"""Run a study: audit every arm, work on the cells that are missing, judge, and write it all down."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from attnlab.errors import AttnlabError, RequestError, TargetError, unknown
from attnlab.record import Check, Items
from attnlab.spec import fingerprint
from attnlab.study.declaration import built_in_studies, load_study
from attnlab.study.environment import environment
from attnlab.study.executors import Executor, Listener, Local, Silent
from attnlab.study.kind import Bench
from attnlab.study.mirror import is_url
from attnlab.study.mirrored import given_out, refuse_if_unsafe
from attnlab.study.results import assemble
from attnlab.study.store import Cell, Store, describe
from attnlab.study.study import Study, slug
from attnlab.userfile import loading
from attnlab.verdict import Plan
from attnlab.wholefile import write_json

RUNS = Path("attnlab-runs")  # where studies go unless told otherwise


@dataclass(frozen=True)
class Results:
    """What a study found: its directory, and the content of its `results.json`."""

    path: Path
    plain: Mapping[str, Any]
    drawing: ClassVar[Callable[[Path], str] | None] = (
        None  # how a notebook shows it: reports know, given here
    )

    def _repr_html_(self) -> str | None:
        draw = type(self).drawing
        return draw(self.path) if draw else None

    @property
    def verdicts(self) -> list[Mapping[str, Any]]:
        return list(self.plain["verdicts"])

    @property
    def is_clean(self) -> bool:
        """Whether every run of every arm ended well and no arm is invalid."""
        arms = self.plain["arms"]
        return all(arm["status"] == "ok" and all(r["status"] == "ok" for r in arm["runs"]) for arm in arms)

    @property
    def failed(self) -> list[str]:
        """The runs that broke down, with the reason."""
        return [
            f"{arm['name']}, seed {run['seed']}: {run.get('reason')}"
            for arm in self.plain["arms"]
            for run in arm["runs"]
            if run["status"] == "failed"
        ]

    def __str__(self) -> str:
        return "\n".join(verdict["sentence"] for verdict in self.verdicts) or "no verdict yet"


def run(
    study: Study | str | Path,
    *,
    out: str | Path | None = None,
    seeds: int | None = None,
    settings: Iterable[str] = (),
    until_verdict: bool = False,
    on: Executor | None = None,
    listener: Listener | None = None,
) -> Results:
    """Run a study, or what is missing of it, in its directory; give back what it found.

    `study` is a `Study`, a built-in's name, a file, or the directory of a study that was begun, which goes
    on; `settings` are `place=value` as `--set` takes them.
    `out` is the study's directory or, with Ray, a URL that fsspec knows.
    With `until_verdict`, seeds are added at the planned looks until every arm is decided, or `seeds` of them
    (by default as many as the last look takes) are used up.
    """
    if loading.get():
        raise RequestError(
            "a file that declares a study or a part must not run one while it is being loaded: "
            'put the call to attnlab.run under `if __name__ == "__main__":`'
        )
    listener, executor = listener or Silent(), on or Local()
    begun = None if isinstance(study, Study) else _begun(study)
    if begun is not None and [*settings]:
        raise RequestError(f"{str(study)!r} goes on as it began: another setting makes another study")
    declared = begun.study() if begun else _declared(study, settings)
    home = begun.path if begun else RUNS / slug(declared.name)
    url = str(out) if out is not None and is_url(out) else ""
    if url:
        refuse_if_unsafe(declared, executor, url)
        path = RUNS / slug(url.rstrip("/").rpartition("/")[2])
    else:
        path = Path(out) if out is not None else home
    with given_out(url, path) if url else contextlib.nullcontext(Store) as make:
        if until_verdict:
            return _until_verdict(declared, seeds, path, executor, listener, make)
        asked = declared if seeds is None else declared.with_seeds(seeds)
        return _run(asked, path, executor, listener, make)


def _until_verdict(
    declared: Study,
    seeds: int | None,
    path: Path,
    executor: Executor,
    listener: Listener,
    make: Callable[[Path], Store],
) -> Results:
    """Look after look, each with more seeds, until every arm is decided."""
    looks = [look for look in Plan().looks if seeds is None or look <= seeds]
    if not looks:
        raise RequestError(f"--until-verdict looks at {Plan().looks[0]} seeds first; {seeds} are too few")
    for look in looks:
        results = _run(declared.with_seeds(look), path, executor, listener, make)
        open_arms = [verdict["arm"] for verdict in results.verdicts if verdict["verdict"] == "undecided"]
        if not open_arms:
            break
        listener.note(f"after {look} seeds still undecided: {', '.join(open_arms)}")
    return results


def _declared(study: Study | str | Path, settings: Iterable[str]) -> Study:
    return study if isinstance(study, Study) else load_study(study, settings)


def _begun(target: str | Path) -> Store | None:
    """The store that `target` names, where it is the directory of a study and no built-in's name."""
    if str(target) in built_in_studies():
        return None
    try:
        return Store(Path(target)) if (Path(target) / "study.json").is_file() else None
    except (OSError, ValueError):  # too long for a name, or not a name at all
        return None


def _run(
    declared: Study, path: Path, executor: Executor, listener: Listener, make: Callable[[Path], Store]
) -> Results:
    """One look: every cell of the study done, and judged."""
    cells = [Cell(arm.name, seed) for seed in range(declared.seeds) for arm in declared.arms]
    kept = _kept(path)
    plan = executor.plan(len(cells), kept.get("threads"))
    header: dict[str, Any] = {"environment": {**environment(), **plan, **kept}, "command": _command()}
    store = make(path)
    store.open_for(declared, header)
    listener.stage("preparing")
    bench = declared.setup_of(declared.baseline.name).prepare(declared.base)
    store.refuse_if_other_text(bench.facts())
    _refuse_if_never_judged(declared, bench)
    for text in bench.shown():
        listener.note(text)
    header |= {"corpus": bench.facts(), "floors": _once(path / "floors.json", declared, bench.floors)}
    store.write_header(declared, header)
    floor_items = _once(path / "floor-items.json", declared, lambda: _plain_items(bench))
    listener.stage("auditing")
    audits = _once(path / "audit.json", declared, lambda: _audit(declared, listener))
    missing = [cell for cell in cells if store.result(cell) is None]
    how = executor.says(plan) if isinstance(executor, Local) else executor.__class__.__name__
    listener.planned(missing, len(cells) - len(missing), how)
    try:
        executor.run(store, missing, plan, listener)
    finally:
        results = assemble(store, declared, audits, _items_of(floor_items))
        store.write_results(results)
    return Results(path, results)


def _refuse_if_never_judged(study: Study, bench: Bench) -> None:
    """Only the text itself tells which splits there are to judge by."""
    splits = bench.facts().get("splits")
    if splits and study.judged_by.split not in splits:
        own = study.judged_by.split
        held_out = [study.metric.replace(own, split, 1) for split in splits if split != "train"]
        raise RequestError(unknown("metric", study.metric, held_out))


def _audit(study: Study, listener: Listener) -> dict[str, Any]:
    """Every arm before its training: how large it is, and whether it is what it claims to be."""
    audits: dict[str, Any] = {}
    for arm in study.arms:
        total, rows, checks = _examined(study.setup_of(arm.name).prepare(study.base))
        plain = [check.plain() for check in checks]
        audits[arm.name] = {"parameters": total, "parameter_rows": rows, "checks": plain}
        for check in checks:
            if check.status == "fail":
                listener.note(f"{arm.name} is invalid: {check.name}: {check.evidence}")
    return audits


def _examined(bench: Bench) -> tuple[int | None, list[dict[str, Any]], tuple[Check, ...]]:
    """Parameters, their derivation, and checks. A part of the user's own may raise anything: then its runs
    will fail with the same reason, and the other arms go on without it."""
    total, rows = None, list[dict[str, Any]]()
    try:
        total, rows = bench.parameters()
        return total, rows, bench.audit()
    except Exception as error:
        if isinstance(error, AttnlabError) and not isinstance(error, TargetError):
            raise
        return total, rows, (Check("callable", "error", describe(error)),)


def _plain_items(bench: Bench) -> dict[str, Any]:
    return {
        floor: {split: asdict(items) for split, items in by_split.items()}
        for floor, by_split in bench.floor_items().items()
    }


def _items_of(plain: Mapping[str, Any]) -> dict[str, dict[str, Items]]:
    return {
        floor: {split: Items.from_plain(items) for split, items in by_split.items()}
        for floor, by_split in plain.items()
    }


def _once(path: Path, study: Study, make: Callable[[], Any]) -> Any:
    """Made once for a declaration and kept beside its runs."""
    key = fingerprint({"study": study.fingerprint, "version": 1})
    try:
        kept = json.loads(path.read_text("utf-8"))
        if kept["key"] == key:
            return kept["value"]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    value = make()
    write_json(path, {"key": key, "value": value})
    return value


def _kept(path: Path) -> dict[str, Any]:
    """Threads and precision change the last digits of sums: a study goes on as it began."""
    try:
        began = Store(path).header["environment"]
        kept = {name: bool(began[name]) for name in ("bfloat16", "bfloat16_products") if name in began}
        return {"threads": int(began["threads"]), **kept}
    except (RequestError, KeyError, TypeError, ValueError):
        return {}


def _command() -> str:
    return shlex.join([os.path.basename(sys.argv[0]) or "python", *sys.argv[1:]])
