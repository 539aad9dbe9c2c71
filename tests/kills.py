"""`make kills`: studies of every kind, killed at random moments and begun again until they end, each as if
nothing had been.

python -m tests.kills [KILLS] [--seed N] [--kinds KIND…]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from .study import small, small_classifier, small_decoding, small_distillation, small_tuning, watched_run
from .study.killed import Attempt, first_told
from .study.small import but_for_clocks, records

PATIENCE = 600.0  # seconds without an event after which a process counts as one that hangs
ROUNDS = 30  # studies of a kind, at most


def language_models(folder: Path) -> Path:
    small.write_corpus(folder / "text.txt")
    path = folder / "study.toml"
    path.write_text(small.DECLARATION.replace("steps = 12", "steps = 60"))
    return path


def classifiers(folder: Path) -> Path:
    longer = small_classifier.PRETRAINED.replace("steps = 8", "steps = 40")
    path = small_classifier.write_study(folder, longer)
    path.write_text(path.read_text().replace("steps = 30", "steps = 40"))
    return path


def tuned(folder: Path) -> Path:
    small_tuning.write_texts(folder)
    path = folder / "study.toml"
    arms = small_tuning.arms('"full"', '"LoRA"\namount = "lora"')
    path.write_text(small_tuning.HEAD + small_tuning.SEARCH + arms)
    return path


def distilled(folder: Path) -> Path:
    path = small_distillation.write_study(folder)
    path.write_text(path.read_text().replace("steps = 6", "steps = 12"))
    return path


def decoded(folder: Path) -> Path:
    path = small_decoding.write_study(folder)
    path.write_text(path.read_text().replace("steps = 30", "steps = 60"))
    return path


KINDS: dict[str, Callable[[Path], Path]] = {
    "language-model": language_models,
    "classifier": classifiers,
    "tuning": tuned,
    "distillation": distilled,
    "decoding": decoded,
}


@dataclass
class Tally:
    """What was seen of one kind."""

    kind: str
    fell: Counter[str] = field(default_factory=Counter)  # in which stage so many kills fell
    studies: int = 0  # that were killed, and came to their end
    went_on: int = 0  # kills after which the run that was hit went on in its midst
    differ: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return self.fell.total()

    def row(self) -> str:
        fell = ", ".join(f"{stage} {count}" for stage, count in self.fell.most_common())
        equal = "yes" if not self.differ else f"NO: {'; '.join(self.differ)}"
        return f"| {self.kind} | {self.kills} | {self.studies} | {fell} | {self.went_on} | {equal} |"


HEAD = (
    "| kind | kills | studies | stages they fell in | went on in the midst of a run | equal |\n"
    "|---|---|---|---|---|---|"
)


def found(out: Path) -> dict[str, Any]:
    """All that a study found and a clock does not decide: its results, verdicts included, and every run's."""
    results = json.loads((out / "results.json").read_text("utf-8"))
    return {"results.json": but_for_clocks(results), **records(out)}


def start(study: Path, home: Path, number: int) -> tuple[BaseProcess, Attempt]:
    events, began = home / f"events-{number}.jsonl", time.time()
    return watched_run.start(study, home, events), Attempt(home, events, began)


def kill(process: BaseProcess) -> None:
    assert process.pid is not None
    with contextlib.suppress(ProcessLookupError):  # it has ended this moment
        os.killpg(process.pid, signal.SIGKILL)
    process.join()


def wait(process: BaseProcess, attempt: Attempt, until: Callable[[], bool]) -> None:
    """Until something is so, or the process has ended, well or not at all."""
    heard, size = time.monotonic(), -1
    while process.is_alive() and not until():
        now = attempt.events.stat().st_size if attempt.events.exists() else 0
        heard, size = (heard, size) if now == size else (time.monotonic(), now)
        if time.monotonic() - heard > PATIENCE:
            kill(process)
            raise SystemExit(f"it hangs: {attempt.home}")
        time.sleep(0.005)
    if process.exitcode not in (None, 0):
        raise SystemExit(
            f"it ended with exit code {process.exitcode}:\n{(attempt.home / 'said.txt').read_text()}"
        )


def undisturbed(study: Path, home: Path) -> tuple[Attempt, float]:
    """The study as it is when nothing happens, and how long it takes from its first word on."""
    home.mkdir()
    process, attempt = start(study, home, 0)
    wait(process, attempt, lambda: False)
    return attempt, duration(attempt)


def duration(attempt: Attempt) -> float:
    """From its first word to its last."""
    told = attempt.told()
    return float(told[-1]["at"] - told[0]["at"])


def killed(study: Path, home: Path, tally: Tally, wanted: int, seconds: float, draw: random.Random) -> None:
    """One study, killed again and again as long as kills are wanted, and begun again until it ends."""
    home.mkdir()
    whole = first_told(
        Attempt(home.with_name("undisturbed"), home.with_name("undisturbed") / "events-0.jsonl")
    )
    hit: Attempt | None = None
    for number in range(10_000):
        process, attempt = start(study, home, number)
        wait(process, attempt, lambda attempt=attempt: bool(attempt.told()))  # type: ignore[misc]
        moment = time.monotonic() + draw.uniform(0, seconds)
        wait(process, attempt, lambda moment=moment: tally.kills < wanted and time.monotonic() >= moment)  # type: ignore[misc]
        ended = not process.is_alive()
        if not ended:
            kill(process)
        tally.went_on += hit is not None and attempt.goes_on_from(hit, whole)
        if ended:
            tally.studies += 1
            return
        tally.fell[attempt.stage()] += 1
        hit = attempt


def kills_of(kind: str, wanted: int, draw: random.Random, place: Path) -> Tally:
    tally = Tally(kind)
    study = KINDS[kind](place)
    attempt, seconds = undisturbed(study, place / "undisturbed")
    expected = found(attempt.out)
    for turn in range(ROUNDS):
        if tally.kills >= wanted:
            break
        home, before = place / f"killed-{turn}", tally.kills
        killed(study, home, tally, wanted, seconds, draw)
        if tally.kills == before:  # it ended before its moment came: the machine has become faster
            seconds = min(seconds, duration(Attempt(home, home / "events-0.jsonl")))
        out = place / f"killed-{turn}" / "out"
        tally.differ += [f"{out}: {what}" for what in differing(expected, found(out))]
        if "</html>" not in (out / "report.html").read_text("utf-8"):
            tally.differ.append(f"{out}: no whole report.html")
    if tally.kills < wanted:
        tally.differ.append(f"only {tally.kills} of {wanted} kills in {ROUNDS} studies")
    return tally


def differing(expected: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The files that are not equal."""
    return sorted(name for name in expected.keys() | now.keys() if expected.get(name) != now.get(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "kills", nargs="?", type=int, default=50, help="in all, shared evenly among the kinds"
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS])
    options = parser.parse_args()
    watched_run.load_all()
    print(f"seed {options.seed}\n\n{HEAD}", flush=True)
    draw, tallies = random.Random(options.seed), list[Tally]()
    for number, kind in enumerate(options.kinds):
        left = options.kills - sum(tally.kills for tally in tallies)
        wanted = -(-left // (len(options.kinds) - number))
        place = Path(tempfile.mkdtemp(prefix=f"attnlab-kills-{kind}-"))
        tallies.append(kills_of(kind, wanted, draw, place))
        print(tallies[-1].row(), flush=True)
    print(f"\n{sum(tally.kills for tally in tallies)} kills", flush=True)
    if any(tally.differ for tally in tallies):
        raise SystemExit("not what it is when nothing happens")


if __name__ == "__main__":
    main()
