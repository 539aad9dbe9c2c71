"""The page: one file that asks nobody for anything, says what the directory says, and trusts no name."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from attnlab import report
from attnlab.errors import RequestError, StoreError

from .synthetic_study import BARE, CASES, HOSTILE, HUGE, INVALID, NORMAL, MadeUpStudy

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """The page's elements, its text, and whether every element that opens also closes."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.data: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        (self.data if inside in ("script", "style") else self.text).append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def page(study: MadeUpStudy, tmp_path: Path) -> Page:
    written = report.write(study.write(tmp_path / "study"))
    return Page(written.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", params=list(CASES))
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = CASES[request.param].write(tmp_path_factory.mktemp("studies") / "study")
    return report.write(directory).read_text(encoding="utf-8")


def test_every_case_is_a_whole_page(written: str) -> None:
    found = Page(written)
    assert found.open == []
    assert found.elements[0][0] == "html"
    assert len(found.all("h1")) == len(found.all("main")) == 1


def test_ids_are_one_of_a_kind_and_links_lead_somewhere(written: str) -> None:
    found = Page(written)
    ids = Counter(attributes["id"] for _, attributes in found.elements if "id" in attributes)
    assert [name for name, times in ids.items() if times > 1] == []
    targets = [a["href"][1:] for a in found.all("a")]
    labels = [a["aria-labelledby"] for _, a in found.elements if "aria-labelledby" in a]
    hatchings = re.findall(r"url\(#([^)]+)\)", written)
    assert set(targets) | set(labels) | set(hatchings) <= set(ids)


def test_nothing_is_fetched(written: str) -> None:
    found = Page(written)
    for tag, attributes in found.elements:
        for name, value in attributes.items():
            if name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
                assert value.startswith(("#", "data:")), (tag, name, value)
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", written))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "@import" not in written
    policy = next(m["content"] for m in found.all("meta") if m.get("http-equiv"))
    assert "default-src 'none'" in policy


def test_headings_go_down_step_by_step(written: str) -> None:
    levels = [int(tag[1]) for tag, _ in Page(written).elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_tables_say_what_their_heads_are_for(written: str) -> None:
    found = Page(written)
    assert all(head.get("scope") in ("col", "row", "rowgroup") for head in found.all("th"))
    assert len(found.all("caption")) == len(found.all("table"))


def test_pictures_have_words_and_buttons_names(written: str) -> None:
    found = Page(written)
    drawn = [a for a in found.all("div") if a.get("class", "").startswith("drawn")]
    assert all(a["aria-label"] for a in drawn)
    assert len(drawn) == 2 * len(found.all("figure"))


def test_what_can_be_taken_along_is_there(written: str) -> None:
    held = [
        json.loads(text)
        for text in re.findall(r'<script type="application/json">(.*?)</script>', written, re.DOTALL)
    ]
    for one in held:
        assert set(one) in ({"csv", "pdf"}, {"markdown", "latex"})
        if "pdf" in one:
            assert one["pdf"].startswith("JVBERi0")  # %PDF-
            assert one["csv"].count("\n") > 1


def test_hostile_names_stay_words(tmp_path: Path) -> None:
    directory = HOSTILE.write(tmp_path / "study")
    html = report.write(directory).read_text(encoding="utf-8")
    found = Page(html)
    assert found.all("img") == []
    assert len(found.all("title")) == 1
    assert len(found.all("script")) == len(found.all("table")) + len(found.all("figure")) + 1
    for arm in HOSTILE.arms:
        assert arm.name in found.words
    assert HOSTILE.question in found.words
    assert "49" not in re.findall(r"“([^”]*)”", found.words)
    assert "<b>all</b>" in found.words  # a sample is text too


def test_invalid_arm_is_not_ranked_and_shows_both_perplexities(tmp_path: Path) -> None:
    found = page(INVALID, tmp_path)
    rows = [a for a in found.all("tr") if a.get("class") == "invalid"]
    assert len(rows) >= 2
    assert "“after, naive” is invalid and cannot be ranked" in found.words
    assert "fed only the prefix" in found.words
    assert "a change of the token at 17 moved the output at 4 by 0.31" in found.words


def test_verdicts_are_those_of_the_judge(tmp_path: Path) -> None:
    directory = NORMAL.write(tmp_path / "study")
    judged = json.loads((directory / "results.json").read_text())["verdicts"]
    words = Page(report.write(directory).read_text(encoding="utf-8")).words
    for verdict in judged:
        assert verdict["reason"].replace("test_loss", "test loss") in words


def test_what_is_missing_is_left_out(tmp_path: Path) -> None:
    found = page(BARE, tmp_path)
    for absent in ("Corpus", "Given sentences", "Samples", "floors", "None", "nan"):
        assert absent not in found.words


def test_half_done_says_so(tmp_path: Path) -> None:
    found = page(CASES["half done"], tmp_path)
    assert "Not judged yet: 4 of 9 runs are done." in found.words
    assert "1 of 3" in found.words
    words = {a.get("class") for a in found.all("span")}
    assert {"badge half-done", "badge waiting"} <= words
    assert {"better", "worse"}.isdisjoint(re.findall(r"additive is (\w+)", found.words))


def test_two_studies_share_a_page(tmp_path: Path) -> None:
    places = [study.write(tmp_path / study.name) for study in (NORMAL, INVALID)]
    html = report.write(places, tmp_path / "both.html").read_text(encoding="utf-8")
    found = Page(html)
    assert NORMAL.question in found.words
    assert INVALID.question in found.words
    assert len(found.all("article")) == 2
    assert len(found.all("h1")) == 1


def test_the_page_of_several_lies_beside_the_first(tmp_path: Path) -> None:
    places = [study.write(tmp_path / study.name) for study in (NORMAL, INVALID)]
    assert report.write(places) == tmp_path / "report.html"
    assert not (places[0] / "report.html").exists()


def test_loss_against_length_is_shown_where_it_was_measured(tmp_path: Path) -> None:
    assert "Loss against length" in page(CASES["lengths"], tmp_path / "with").words
    assert "Loss against length" not in page(NORMAL, tmp_path / "without").words


def test_one_row_is_one(tmp_path: Path) -> None:
    words = page(MadeUpStudy(arms=NORMAL.arms[:1], seeds=1), tmp_path).words
    assert "Everything that was measured 1 row" in words
    assert "1 rows" not in words


def test_ten_runs_weigh_under_three_megabytes(tmp_path: Path) -> None:
    study = MadeUpStudy(arms=NORMAL.arms[:2], seeds=5, steps=20_000)
    assert report.write(study.write(tmp_path / "study")).stat().st_size < 3_000_000


def test_sixty_runs_are_drawn_in_seconds(tmp_path: Path) -> None:
    """Of the processor's time, as others may be using it too; a few seconds are usual."""
    directory = HUGE.write(tmp_path / "study")
    assert len(HUGE.arms) * HUGE.seeds == 60
    began = time.process_time()
    assert report.write(directory).stat().st_size < 3_000_000
    assert time.process_time() - began < 20


def test_the_page_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    directory = NORMAL.write(tmp_path / "study")
    first = report.write(directory)
    assert first == directory / "report.html"
    assert [p.name for p in directory.iterdir() if "report" in p.name] == ["report.html"]
    with pytest.raises(StoreError, match="no directory"):
        report.write(directory, tmp_path / "nowhere" / "report.html")


def test_mistakes_are_explained(tmp_path: Path) -> None:
    directory = NORMAL.write(tmp_path / "score")
    with pytest.raises(StoreError, match="did you mean"):
        report.write(tmp_path / "scor")
    with pytest.raises(StoreError, match="score"):
        report.write(tmp_path)
    with pytest.raises(RequestError, match="at least one"):
        report.write([])
    (directory / "results.json").write_text('{"schema": 1, "arms"')
    with pytest.raises(StoreError, match="not JSON"):
        report.write(directory)
    (directory / "results.json").write_text('{"schema": 99}')
    with pytest.raises(StoreError, match="schema 99"):
        report.write(directory)
    (directory / "results.json").write_text("[]")
    with pytest.raises(StoreError, match="table is wanted"):
        report.write(directory)
