"""`attnlab run`."""

from __future__ import annotations

import contextlib
from typing import Annotated

from cyclopts import Parameter


def run(
    study: str,
    /,
    *,
    set: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    seeds: Annotated[int | None, Parameter(name="--seeds")] = None,
    until_verdict: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    out: str | None = None,
    on: str = "local",
    workers: int | None = None,
) -> int:
    """Run a study, or what is missing of it, and write its report.

    Running it again does only what is missing; more seeds extend it; Ctrl-C stops at a checkpoint.
    Exit code 1: the study ran, and an arm is invalid or a run diverged or failed.

    Parameters
    ----------
    study
        A built-in's name (see `attnlab studies`), a .toml, .yaml or .py file, or the directory of a study
        that was begun, which goes on.
    set
        Change a part or a field: `--set score=additive --set training.steps=500`.
    seeds
        How many seeds each arm is run with.
    until_verdict
        Add seeds at the planned looks (5, 8, 12) until every arm is decided.
    out
        The study's directory; attnlab-runs/NAME unless given. With `--on ray` also a URL of an object store,
        such as s3://BUCKET/NAME.
    on
        Where the runs are worked on: `local`; `ray`, or `ray:ADDRESS` for a cluster that is up already;
        `slurm`, or `slurm:PARTITION`.
    workers
        Worker processes, one per core unless given; on a cluster, runs at once.
    """
    from attnlab import report
    from attnlab.cli.progress import watching
    from attnlab.study import run as run_study
    from attnlab.study.executors import executor_named, ranks
    from attnlab.study.mirrored import publish

    if ranks.is_follower():
        return ranks.follow()
    executor = executor_named(on, workers)
    together = ranks.leading() if ranks.started() else contextlib.nullcontext()
    try:
        with together, watching() as listener:
            results = run_study(
                study,
                out=out,
                seeds=seeds,
                settings=set,
                until_verdict=until_verdict,
                on=executor,
                listener=listener,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt("what is done is kept, and the same command goes on from there") from None
    page = report.write(results.path)
    publish(results.path, page.name)
    print(report.table(results.path, "terminal"))
    for failure in results.failed:
        print(f"✗ {failure}")
    print(f"\nreport: {page}")
    return 0 if results.is_clean else 1
