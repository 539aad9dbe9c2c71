"""The verdict in a sentence, and what else the top of a report says in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from attnlab.report import numbers
from attnlab.report.studied import Arm, Studied


@dataclass(frozen=True)
class Said:
    """What one arm's verdict says: its word, and the whole sentence behind it."""

    arm: str
    word: str
    sentence: str
    preliminary: bool = False


_PHRASES = {
    "better": ("is better", "are better"),
    "worse": ("is worse", "are worse"),
    "equivalent": ("is equivalent", "are equivalent"),
    "undecided": ("is undecided", "are undecided"),
    "invalid": ("is invalid and cannot be ranked", "are invalid and cannot be ranked"),
    "diverged": ("diverged", "diverged"),
    "failed": ("failed", "failed"),
}


def headline(study: Studied) -> str:
    """All verdicts in one sentence, by their words; or how far the study is."""
    groups = {word: [_quoted(a.name) for a in study.arms if a.word == word] for word in _PHRASES}
    parts = [
        f"{numbers.listed(names)} {_PHRASES[word][len(names) > 1]}" for word, names in groups.items() if names
    ]
    parts += _not_judged(study)
    if not parts:
        return (
            "There is one arm, so nothing is compared." if len(study.arms) == 1 else "Nothing is judged yet."
        )
    if study.judged and len(study.arms) > 1:
        return f"Against {_quoted(study.baseline)}, {'; '.join(parts)}."
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text.startswith(("not ", "nothing ")) else f"{text}."


def _not_judged(study: Studied) -> list[str]:
    total = len(study.runs)
    if study.done < total:
        return [f"not judged yet: {study.done} of {numbers.times(total, 'run')} {_are(study.done)} done"]
    waiting = [arm for arm in study.arms if not arm.word and arm.name != study.baseline]
    return ["not judged yet: every run is done, and no verdict is written"] if waiting else []


def _quoted(name: str) -> str:
    """In a sentence, a name of several words needs its ends shown."""
    return name if name.replace("-", "").replace("_", "").isalnum() else f"“{name}”"


def _are(amount: int) -> str:
    return "is" if amount == 1 else "are"


def sentences(study: Studied) -> list[Said]:
    """Every verdict in full, and every arm that ended badly without one."""
    return [said for said in (_said(study, arm) for arm in study.arms) if said]


def _said(study: Studied, arm: Arm) -> Said | None:
    if arm.verdict:
        reason = str(arm.verdict.get("reason") or "")
        whole = (
            str(arm.verdict.get("sentence") or "") or f"{_head(study, arm)}{': ' if reason else ''}{reason}"
        )
        return Said(
            arm.name,
            arm.word,
            _ended(whole.replace(study.metric.name, study.metric.title)),
            bool(arm.verdict.get("preliminary")),
        )
    if arm.status in ("invalid", "diverged", "failed"):
        reasons = [arm.reason, *(run.reason for run in arm.runs)]
        reason = next((text for text in reasons if text), "")
        whole = f"{arm.name} {_PHRASES[arm.status][0]}{': ' if reason else ''}{reason}"
        return Said(arm.name, arm.word, _ended(whole))
    return None


def _head(study: Studied, arm: Arm) -> str:
    return {
        "better": f"{arm.name} is better than {study.baseline}",
        "worse": f"{arm.name} is worse than {study.baseline}",
        "equivalent": f"{arm.name} and {study.baseline} are equivalent",
        "undecided": f"{arm.name} against {study.baseline} is undecided",
    }.get(arm.word, f"{arm.name} {_PHRASES.get(arm.word, (arm.word,))[0]}")


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def margin_in_words(study: Studied) -> str:
    """`0.01 (about 1 % of the perplexity)`: nats say little to most people."""
    if not study.margin:
        return "none given"
    said = f"{study.margin:g}"
    if study.metric.in_nats:
        said += f" nats, about {numbers.share(math.expm1(study.margin))} of the perplexity"
    return said


def facts(study: Studied) -> list[tuple[str, str]]:
    """The line of facts under the verdict."""
    runs, total = study.done, len(study.runs)
    seeds = len({run.seed for run in study.runs})
    seconds = sum(run.seconds or 0.0 for run in study.runs)
    corpus = study.declaration.get("corpus")
    name = corpus.get("part") if isinstance(corpus, dict) else corpus
    known = [
        ("arms", numbers.count(len(study.arms))),
        ("seeds", numbers.count(seeds) if seeds else ""),
        ("runs done", f"{runs}" if runs == total else f"{runs} of {total}"),
        (
            "metric",
            f"{study.metric.title}, {'lower' if study.metric.lower_is_better else 'higher'} is better",
        ),
        ("margin", margin_in_words(study)),
        ("corpus", str(name or "")),
        ("training time", numbers.duration(seconds) if seconds else ""),
    ]
    return [(what, value) for what, value in known if value]
