"""The verdict in a sentence, and what else the top of a report says in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from attnlab.report import many, numbers
from attnlab.report.names import label, quoted
from attnlab.report.studied import Arm, Studied
from attnlab.verdict.wording import number


@dataclass(frozen=True)
class Said:
    """What one arm's verdict says: its word, who against whom, and why."""

    arm: str
    word: str
    head: str
    reason: str = ""
    preliminary: bool = False

    @property
    def sentence(self) -> str:
        return _ended(f"{self.head}: {self.reason}" if self.reason else self.head)


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
    groups = {word: [quoted(a.name) for a in study.arms if a.word == word] for word in _PHRASES}
    parts = [f"{_arms(names)} {_PHRASES[word][len(names) > 1]}" for word, names in groups.items() if names]
    parts += _not_judged(study)
    if not parts:
        return (
            "There is one arm, so nothing is compared." if len(study.arms) == 1 else "Nothing is judged yet."
        )
    if study.judged and len(study.arms) > 1:
        return f"Against {quoted(study.baseline)}: {'; '.join(parts)}."
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text.startswith(("not ", "nothing ")) else f"{text}."


def _arms(names: list[str]) -> str:
    """By name, unless they are too many for a sentence."""
    return numbers.listed(names) if len(names) <= many.LISTED else numbers.times(len(names), "arm")


def noise(study: Studied) -> str:
    """What the seed alone does to the baseline: before any difference is looked at, the least that means
    something."""
    floor = study.noise_floor
    if not floor:
        return ""
    name, found = quoted(study.baseline), {int(look): gap for look, gap in floor["detectable"].items()}
    first = min(found)
    said = (
        f"Noise floor: two runs of {name} that differ in nothing but the seed are "
        f"{number(floor['typical_gap'])} apart in {study.metric.title} on average (seen in "
        f"{numbers.times(floor['seeds'], 'seed')}); {first} seeds find a difference of "
        f"{number(found[first])} four times in five, or a smaller one "
        "where an arm's seeds move with the baseline's."
    )
    against = floor.get("against_itself")
    if not against:
        return said
    word = against["verdict"]
    if word in ("better", "worse"):
        word += ", a false alarm, as nothing was changed; one study in twenty has one"
    return f"{said} Half of its seeds against the other half: {word}."


def _not_judged(study: Studied) -> list[str]:
    total = len(study.runs)
    if study.done < total and study.judged:
        return [f"so far, with {study.done} of {numbers.times(total, 'run')} done"]
    if study.done < total:
        return [f"not judged yet: {study.done} of {numbers.times(total, 'run')} {_are(study.done)} done"]
    waiting = [arm for arm in study.arms if not arm.word and arm.name != study.baseline]
    return ["not judged yet: every run is done, and no verdict is written"] if waiting else []


def _are(amount: int) -> str:
    return "is" if amount == 1 else "are"


def sentences(study: Studied) -> list[Said]:
    """Every verdict in full, and every arm that ended badly without one."""
    return [said for said in (_said(study, arm) for arm in study.arms) if said]


def _said(study: Studied, arm: Arm) -> Said | None:
    if arm.verdict:
        reason, sentence = (str(arm.verdict.get(key) or "") for key in ("reason", "sentence"))
        head, reason = (_head(study, arm), reason) if reason or not sentence else (sentence, "")
        head, reason = (text.replace(study.metric.name, study.metric.title) for text in (head, reason))
        return Said(arm.name, arm.word, head, reason, bool(arm.verdict.get("preliminary")))
    if arm.status in ("invalid", "diverged", "failed"):
        reason = next((text for text in (arm.reason, *(run.reason for run in arm.runs)) if text), "")
        return Said(arm.name, arm.word, _head(study, arm), reason)
    return None


def _head(study: Studied, arm: Arm) -> str:
    name, base = quoted(arm.name), quoted(study.baseline)
    return {
        "better": f"{name} is better than {base}",
        "worse": f"{name} is worse than {base}",
        "equivalent": f"{name} and {base} are equivalent",
        "undecided": f"{name} against {base} is undecided",
    }.get(arm.word, f"{name} {_PHRASES.get(arm.word, (arm.word,))[0]}")


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def margin_in_words(study: Studied) -> str:
    """`0.01 (about 1 % of the perplexity)`: nats say little to most people."""
    if not study.margin:
        return "none given"
    said = f"{study.margin:g}"
    if study.metric.in_nats:
        unit = "nat" if study.margin == 1 else "nats"
        said += f" {unit}, about {numbers.share(math.expm1(study.margin))} of the perplexity"
    return said


def warning(study: Studied) -> str:
    """What puts every verdict in another light: that a simple method does as well as the best arm."""
    floored = study.floored
    if floored is None:
        return ""
    lower = floored.lower_is_better
    reached = [found.mean for arm in study.arms if arm.ranked and (found := arm.values(floored.key))]
    if not reached:
        return ""
    best = min(reached) if lower else max(reached)
    unbeaten = {name: v for name, v in floored.values.items() if (v <= best if lower else v >= best)}
    if not unbeaten:
        return ""
    told = [f"the {name} has {numbers.plain(value)}" for name, value in unbeaten.items()]
    return (
        f"The best arm's {label(floored.key)} is {numbers.plain(best)}; {numbers.listed(told)}, "
        "without any attention. What holds among arms that learned so little may not hold among others."
    )


_MUCH = 0.05  # of the held-out texts


def overlap(study: Studied) -> str:
    """What puts every figure in another light: that many of the held-out texts were trained on."""
    split = study.metric.key.partition("_")[0]
    told = study.corpus.get("overlap")
    shares = told.get(split) if isinstance(told, dict) else None
    if not shares or shares["exact"] < _MUCH:
        return ""
    unseen = study.metric.key.replace(split, f"{split}-unseen", 1)
    reached = [
        f"{quoted(arm.name)} {numbers.plain(v.mean)}" for arm in study.arms if (v := arm.values(unseen))
    ]
    said = (
        f"{numbers.share(shares['exact'])} of the {split} texts stand in train word for word, and can be "
        "answered from memory."
    )
    if not reached:
        return said
    reached += [
        f"{name} {numbers.plain(known[unseen])}" for name, known in study.floors.items() if unseen in known
    ]
    return f"{said} On the others alone ({label(unseen)}): {numbers.listed(reached)}."


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
