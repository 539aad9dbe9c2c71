"""Running text into sentences, by rules for English prose."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# After these a full stop never ends a sentence: something always follows.
_TITLES = _words(
    """
    Mr Mrs Ms Messrs Dr Prof Rev Hon Gen Maj Col Capt Lieut Lt Sgt Adm Cmdr Commdr Gov Sen Sens Rep Reps Pres
    Amb Supt St Mt Ft Fr Bros vs viz cf e.g i.e al Esq Sec Secs Art Arts Vol Vols Chap Fig pp
    """
)
# After these it does unless a number follows: "No. 5", "Sept. 3", "p. 12".
_BEFORE_NUMBERS = _words(
    "No Nos no nos p sec art vol chap ch Jan Feb Mar Apr Jun Jul Aug Sept Sep Oct Nov Dec R.S Stat"
)
# After these it may, and the next word decides.
_OPEN = _words("Jr Sr Co Corp Inc Ltd Cos etc a.m p.m A.M P.M B.C A.D D.C U.S U.S.A U.N U.K")
_STARTERS = _words(
    """
    A An The This That These Those It Its He She They We I You My Our His Her Their Your There Here And But Or
    So Yet For If When While As At By In On Of To With From After Before Under Since Although Though Because
    Such Some Many Most All No Not Nor Now Then Thus What Which Who How Why Let It's We're I'm Also However
    """
)
_END = re.compile(
    r"""
    (?<![.!?])(?P<marks>[.!?]++)       # what may end a sentence (tried once per run of marks),
    (?P<close>["'”’)\]]*+)             # what closes with it,
    \s++                               # a gap,
    (?=["'“‘(\[—-]*                    # and what may open the next one
       (?P<next>[A-Z0-9$£][\w'’-]*))
    """,
    re.VERBOSE,
)
_LAST_WORD = re.compile(r"[\w.&-]+\Z")
_LONGEST = 40  # characters looked at for the word before a mark


def paragraphs(text: str) -> list[str]:
    """The text between blank lines, with line breaks inside it as spaces."""
    return [joined for part in re.split(r"\n\s*\n", text) if (joined := " ".join(part.split()))]


def sentences(text: str) -> list[str]:
    """The sentences of one paragraph. A line break in it is a space."""
    text = " ".join(text.split())
    found, start = [], 0
    for match in _END.finditer(text):
        before = text[max(start, match.start() - _LONGEST) : match.start()]
        if _ends(before, match["marks"], match["next"]):
            found.append(text[start : match.end("close")])
            start = match.end()
    if text[start:]:
        found.append(text[start:])
    return found


def _ends(before: str, marks: str, following: str) -> bool:
    if marks != ".":
        return True
    last = _LAST_WORD.search(before)
    word = last.group().lstrip(".-") if last else ""
    if word in _TITLES:
        return False
    if word in _BEFORE_NUMBERS:
        return not following[0].isdigit()
    initial = re.fullmatch(r"(?:[A-Z]\.)*[A-Z]", word) is not None and word != "I"
    # A numeral or letter alone opens an entry of a list ("2. Revenue …"); the entry goes on.
    lone_number = word == before.strip(" (") and re.fullmatch(r"\d{1,3}|[A-Za-z]|[IVXL]+", word) is not None
    if lone_number:
        return False
    if word in _OPEN or initial:
        return following in _STARTERS
    return True
