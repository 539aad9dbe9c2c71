"""The future must not matter: by replacing it, in every way and at every length, and by gradient."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch

from attnlab.audit.operators import plan
from attnlab.audit.operators.gradient import gradient_from_later
from attnlab.audit.operators.probe import Moved, Probe, moved_alone, run
from attnlab.audit.operators.subject import Operator
from attnlab.audit.rule import Seen, fine, found, fragile, rule, skipped

# A target that loops over positions in Python can take minutes at 2,000 of them. What is not reached is told.
# Seconds of the processor, not of the clock: how far an audit reaches must not follow from what else runs.
SECONDS = 20.0
PATIENCE = 0.3  # for one probe of a length that nothing points to


@dataclass
class _Survey:
    """What the probes saw so far."""

    operator: Operator
    deadline: float
    lengths: set[int] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)
    unreached: set[int] = field(default_factory=set)
    faded: Moved | None = None
    noisy: Moved | None = None  # what moved, and moves as much when nothing is replaced
    leak: Moved | None = None
    ran: int = 0
    pace: float = 0.0  # seconds for one row of one cut, by the square of the length

    def _too_long(self, probe: Probe) -> bool:
        """Whether to pass over a probe; a length that the target mentions is worth waiting for."""
        late = time.thread_time() > self.deadline
        T = probe.sizes.T
        if T <= 130 or T - 2 in self.operator.mentioned or T in self.operator.mentioned:
            return late
        return late or self.pace * len(probe.cuts) * T**2 > PATIENCE

    def all_of(self, probes: Iterator[Probe], operator: Operator | None = None) -> bool:
        """Runs probe after probe; true as soon as one of them shows a leak."""
        for probe in probes:
            if self._too_long(probe):
                self.unreached.add(probe.sizes.T)
                continue
            start = time.thread_time()
            try:
                moved = run(operator or self.operator, probe)
            except Exception as error:  # a refusal of one size or precision; that it runs at home is known
                self.refused.setdefault(probe.sizes.T, str(error).strip().split("\n")[0][:120])
                continue
            self.ran += 1
            self.pace = (time.thread_time() - start) / (len(probe.cuts) * probe.sizes.T**2)
            self.lengths.add(probe.sizes.T)
            if moved is not None and moved.kind == "leak":
                self.leak = moved
                self.operator = operator or self.operator
                return True
            if moved is not None and moved.kind == "noise":
                self.noisy = self.noisy or moved
            else:
                self.faded = self.faded or moved
        return False


@rule(
    "causality",
    tests="outputs stay what they were when inputs after them are replaced, and have no gradient from them",
    claims="at the lengths probed no output depends on a later position, in training or evaluation mode",
    threshold="1e-9 of the largest output in fp64, 1e-4 in fp32, 5e-2 in 16 bits, times the size of the "
    "replacement: a thousand rounding errors of a sum, far under any leak",
)
def causality(operator: Operator) -> Seen:
    if operator.home.T < 2:
        return skipped("it runs at length 1 only: there is no future to replace")
    if not operator.claims_causal:
        return skipped("it is declared to see the future")
    survey = _Survey(operator, time.thread_time() + SECONDS)
    for probes in plan.everything(operator):
        if survey.all_of(probes):
            return _told(survey)
    gradient = gradient_from_later(operator)
    if gradient is not None:
        return gradient
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        if dtype is not operator.dtype and operator.dtype is torch.float64:
            coarse = operator.at(dtype)
            if survey.all_of(plan.coarse(coarse), coarse):
                return _told(survey)
    unreached = sorted(survey.unreached - survey.lengths)
    detail = {
        "probes": survey.ran,
        "lengths": len(survey.lengths),
        "longest": max(survey.lengths, default=0),
        "precision": str(operator.precision).removeprefix("torch."),
        "refused": sorted(survey.refused),
        "unreached": unreached,
    }
    if not survey.lengths:
        return skipped(f"no probe could be run: {next(iter(survey.refused.values()), 'nothing to change')}")
    noisy = survey.noisy
    if noisy is not None and (operator.module is None or not noisy.probe.training):
        return skipped(
            f"the output at position {noisy.position} moves by about {noisy.by:.2g} between two calls on "
            "the same inputs: a leak cannot be told from that"
        )
    reach = f"{detail['lengths']} lengths up to {detail['longest']}"
    if unreached:
        reach += f" (too slow for {len(unreached)} longer ones)"
    if noisy is not None:
        reach += f" (in training mode no more than by {noisy.by:.2g}, as between calls on the same inputs)"
    return fine(f"no output moved when its future changed, at {reach}, in {detail['precision']}", **detail)


@rule(
    "large-inputs",
    tests="the same with later keys thirty times larger: outputs that fade or overflow, with nothing of the "
    "future in them",
    claims="later inputs thirty times larger leave earlier outputs finite and unfaded",
    threshold="as for causality",
)
def large_inputs(operator: Operator) -> Seen:
    if not operator.claims_causal:
        return skipped("it is declared to see the future")
    survey = _Survey(operator, time.thread_time() + SECONDS)
    survey.all_of(plan.exhaustive(operator))
    survey.all_of(plan.beaten_masks(operator))
    if survey.faded is None:
        return fine("earlier outputs stand when later keys are thirty times larger")
    moved = survey.faded
    return fragile(
        f"the output at position {moved.position} went from {moved.before:.3g} to {moved.after:.3g} when "
        f"what follows position {moved.cut} became {moved.probe.change.name}: a normaliser gave way",
        position=moved.position,
        cut=moved.cut,
    )


def _told(survey: _Survey) -> Seen:
    """The evidence: which position moved, by how much, when which one changed."""
    moved, operator = survey.leak, survey.operator
    assert moved is not None
    T = moved.probe.sizes.T
    later = range(moved.cut + 1, T) if T - moved.cut <= 40 else [moved.cut + 1, *range(T - 16, T)]
    through = [name for name in operator.inputs if _leaks_through(operator, moved, name)]
    token = moved_alone(operator, moved, moved.probe.names, list(later))
    cause = f"token {token}" if token is not None else f"everything after position {moved.cut}"
    return found(
        f"the output at position {moved.position} moved by {moved.by:.2g} (from {moved.before:.3g} to "
        f"{moved.after:.3g}) when {cause} changed [length {T}, through {_or_all(through, operator)}, "
        f"{moved.probe.change.name}, {_mode(operator, moved.probe.training)}, "
        f"{str(operator.precision).removeprefix('torch.')}]",
        position=moved.position,
        token=token,
        by=moved.by if moved.by < float("inf") else None,
        length=T,
        through=through,
        batch_row=moved.place[0],
        head=moved.place[1] if len(moved.place) > 2 else None,
        mode="training" if moved.probe.training else "evaluation",
        change=moved.probe.change.name,
    )


def _leaks_through(operator: Operator, moved: Moved, name: str) -> bool:
    probe = replace(moved.probe, names=(name,), cuts=(moved.cut,), grouped=False)
    alone = run(operator, probe)
    return alone is not None and alone.kind == "leak"


def _or_all(through: list[str], operator: Operator) -> str:
    return " and ".join(through or operator.inputs)


def _mode(operator: Operator, training: bool) -> str:
    if operator.module is None:
        return "as a function"
    return "in training mode" if training else "in evaluation mode"
