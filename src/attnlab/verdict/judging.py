"""Judge arms against their baseline: the procedure from arrays to verdicts, in one place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from attnlab.errors import RequestError, unknown
from attnlab.verdict import wording
from attnlab.verdict.decision import EQUIVALENT, LOWER, UNDECIDED, Decision, decide
from attnlab.verdict.looks import Plan
from attnlab.verdict.needed import Needed, Noise, Question
from attnlab.verdict.pairs import Pairs, pair
from attnlab.verdict.result import LOSS, Metric, Verdict, Word

PLAN = Plan()


def judge(
    baseline: ArrayLike,
    arm: ArrayLike,
    *,
    margin: float,
    weights: ArrayLike | None = None,
    look: int | None = None,
    metric: Metric = LOSS,
    plan: Plan = PLAN,
    diverged: ArrayLike | None = None,
    finding: str | None = None,
    name: str = "the arm",
    baseline_name: str = "the baseline",
) -> Verdict:
    """One arm against its baseline, on `(seeds, documents)` arrays with the same seeds and documents.

    margin: a difference smaller than this, in the metric's units, does not matter.
    weights: how much each document counts; its number of tokens, for a loss. All alike by default.
    look: the number of seeds this look was planned at; by default the rows, diverged runs included.
    diverged: True for each seed whose pair is to be left out; rows that are not finite are found anyway.
    finding: what a failed audit found; the arm is then invalid, whatever its numbers.
    """
    return judge_many(
        baseline,
        {name: arm},
        margin=margin,
        weights=weights,
        look=look,
        metric=metric,
        plan=plan,
        diverged=None if diverged is None else {name: diverged},
        findings=None if finding is None else {name: finding},
        baseline_name=baseline_name,
    )[name]


def judge_many(
    baseline: ArrayLike,
    arms: Mapping[str, ArrayLike],
    *,
    margin: float,
    weights: ArrayLike | None = None,
    look: int | None = None,
    metric: Metric = LOSS,
    plan: Plan = PLAN,
    diverged: Mapping[str, ArrayLike] | None = None,
    findings: Mapping[str, str] | None = None,
    baseline_name: str = "the baseline",
) -> dict[str, Verdict]:
    """Several arms against one baseline: as `judge`, with the error shared out over the arms (Holm)."""
    diverged, findings = diverged or {}, findings or {}
    for named in (*diverged, *findings):
        if named not in arms:
            raise RequestError(unknown("arm", named, arms))
    _check(margin, look, metric, plan)
    paired = {
        name: pair(baseline, arm, weights=weights, diverged=diverged.get(name), name=name)
        for name, arm in arms.items()
    }
    rows = next(iter(paired.values())).planned if paired else 0
    if look is not None and look < rows:
        raise RequestError(f"look is {look}, but there are {rows} rows: a look takes in all seeds there are")
    case = {
        name: _Case(name, baseline_name, pairs, metric, float(margin), plan, look or pairs.planned)
        for name, pairs in paired.items()
    }
    outright = {name: case[name].without_statistics(findings.get(name)) for name in arms}
    tested = [name for name in arms if outright[name] is None]
    judged = _judge_together([case[name] for name in tested])
    return {name: outright[name] or judged[name] for name in arms}


def _check(margin: float, look: int | None, metric: Metric, plan: Plan) -> None:
    for what, value, kind in (("metric", metric, Metric), ("plan", plan, Plan)):
        if not isinstance(value, kind):
            raise RequestError(f"{what} must be a {kind.__name__}, such as {kind()!r}, not {value!r}")
    if not isinstance(margin, (int, float, np.number)) or not math.isfinite(margin) or margin < 0:
        raise RequestError(f"the margin must be a number, 0 or above, not {margin!r}")
    if look is not None and (not isinstance(look, (int, np.integer)) or look < 1):
        raise RequestError(f"look must be a number of seeds, 1 or above, not {look!r}")


def _judge_together(cases: list[_Case]) -> dict[str, Verdict]:
    if not cases:
        return {}
    crossed = [case.pairs.crossed() for case in cases]
    first = cases[0]
    decision = decide(
        np.array([float(c.effect) for c in crossed]),
        np.array([math.sqrt(float(c.variance)) for c in crossed]),
        np.array([float(c.dof) for c in crossed]),
        margin=first.margin,
        look=first.look,
        plan=first.plan,
    )
    return {case.name: case.by_statistics(decision, place, len(cases)) for place, case in enumerate(cases)}


@dataclass(frozen=True)
class _Case:
    """One arm before its judge."""

    name: str
    baseline: str
    pairs: Pairs
    metric: Metric
    margin: float
    plan: Plan
    look: int

    def without_statistics(self, finding: str | None) -> Verdict | None:
        """The verdicts that need no test: a failed audit, no run that finished, a single seed."""
        pairs = self.pairs
        if finding is not None:
            return self._verdict("invalid", f"{finding}; its numbers do not mean what the others' mean")
        if pairs.seeds == 0:
            return self._verdict("invalid", f"no pair of runs finished: {wording.diverged(pairs)}")
        if pairs.identical and pairs.seeds > 1 and not pairs.right_or_wrong:
            reason = wording.identical(pairs)
            return self._verdict("equivalent", reason, effect=0.0, ci=(0.0, 0.0), p_equivalent=0.0)
        if pairs.seeds == 1 or (pairs.seeds_do_nothing and not pairs.identical):
            return self._verdict(
                "undecided",
                wording.one_seed(pairs, self.metric),
                effect=pairs.effect,
                ci=(-math.inf, math.inf),
                needed=Needed(self.plan.looks[0], None),
            )
        return None

    def by_statistics(self, decision: Decision, place: int, arms: int) -> Verdict:
        code = int(decision.code[place])
        effect = self.pairs.effect
        ci = (float(decision.low[place]), float(decision.high[place]))
        needed = Needed(None, None)
        if code == UNDECIDED:
            needed = self._needed(arms)
            word: Word = "undecided"
            reason = wording.undecided(effect, ci, self.metric, self.pairs, needed, self.margin)
        elif code == EQUIVALENT:
            word = "equivalent"
            reason = wording.equivalent(effect, self.margin, self.metric, self.pairs)
        else:
            word = "better" if (code == LOWER) == (self.metric.better == "lower") else "worse"
            reason = wording.differs(effect, ci, self.margin, self.metric, self.pairs)
        return self._verdict(
            word,
            reason + wording.few_documents(self.pairs),
            effect=effect,
            ci=ci,
            p=float(decision.p[place]),
            p_equivalent=float(decision.p_equivalent[place]),
            needed=needed,
        )

    def _needed(self, arms: int) -> Needed:
        pairs = self.pairs
        effective = pairs.effective_documents
        noise = Noise.seen(pairs.crossed(), pairs.seeds, effective)
        question = Question(noise, self.margin, self.plan, self.plan.alpha / arms)
        needed = question.needed(self.look, effective)
        if needed.documents is None:
            return needed
        # Documents as unequal as these: in their number, not in equally weighted ones.
        documents = math.ceil(needed.documents * pairs.documents / effective)
        return Needed(needed.seeds, documents, needed.together)

    def _verdict(
        self,
        word: Word,
        reason: str,
        *,
        effect: float = math.nan,
        ci: tuple[float, float] = (math.nan, math.nan),
        p: float = 1.0,
        p_equivalent: float = 1.0,
        needed: Needed | None = None,
    ) -> Verdict:
        pairs = self.pairs
        preliminary = word != "invalid" and self.look < self.plan.looks[0]
        first = self.plan.looks[0]
        if word != "invalid":
            reason += wording.left_out(pairs)
            reason += wording.preliminary(self.look, first) if preliminary and pairs.seeds > 1 else ""
        return Verdict(
            verdict=word,
            effect=effect,
            ci=ci,
            p=p,
            seeds=pairs.seeds,
            seeds_needed=needed.seeds if needed else None,
            documents_needed=needed.documents if needed else None,
            reason=reason,
            preliminary=preliminary,
            documents=pairs.documents,
            diverged=pairs.lost,
            margin=self.margin,
            p_equivalent=p_equivalent,
            arm=self.name,
            baseline=self.baseline,
            metric=self.metric.name,
        )
