"""The page: one HTML file that holds everything, and asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from attnlab.errors import RequestError, StoreError
from attnlab.report import many, words
from attnlab.report.exhibits import Exhibit, exhibits
from attnlab.report.marks import MARKS
from attnlab.report.pictures.cost import cost_picture
from attnlab.report.pictures.curves import curve_pictures
from attnlab.report.pictures.effects import effects_picture
from attnlab.report.pictures.floors import floors_picture
from attnlab.report.pictures.lengths import lengths_picture
from attnlab.report.pictures.palette import DARK
from attnlab.report.pictures.picture import Picture
from attnlab.report.reading import read
from attnlab.report.studied import Studied
from attnlab.report.tables import arms, equal, facts, findings, texts
from attnlab.report.tables.table import Table
from attnlab.report.toml import as_toml
from attnlab.report.viewer import SCRIPT, STYLE
from attnlab.wholefile import write_whole


def write(directory: Path | Sequence[Path], out: Path | None = None) -> Path:
    """The report of the study in a directory, or of several on one page, as `report.html`.

    One study's page goes into its directory, that of several beside the first; `out` names another file.
    """
    directories = [Path(directory)] if isinstance(directory, str | Path) else [Path(d) for d in directory]
    if not directories:
        raise RequestError("a report needs the directory of at least one study")
    studies = [read(one) for one in directories]
    home = directories[0] if len(directories) == 1 else directories[0].absolute().parent
    place = Path(out) if out else home / "report.html"
    if place.is_dir():
        place = place / "report.html"
    if not place.parent.is_dir():
        raise StoreError(f"there is no directory {str(place.parent)!r} to write the report to")
    write_whole(place, render(studies))
    return place


def render(studies: Sequence[Studied], brief: bool = False) -> str:
    """The page as text; in brief, no more than the verdicts, their picture and the arms."""
    script = _asset("page.js") + SCRIPT
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=studies[0].name if len(studies) == 1 else f"{len(studies)} studies",
            sections=[_section(study, f"s{place}-") for place, study in enumerate(studies, 1)],
            brief=brief,
            style=Markup(_asset("page.css") + STYLE + _dark_pictures()),
            script=Markup(script),
            script_hash=allowed,
        )
    )


@dataclass(frozen=True)
class Section:
    """Everything the template shows of one study; `prefix` keeps its ids apart from another study's."""

    prefix: str
    study: Studied
    headline: str
    noise: str
    warning: str
    overlap: str
    many: str
    said: Sequence[words.Said]
    facts: Sequence[tuple[str, str]]
    effects: Picture | None
    curves: Sequence[Picture]
    lengths: Picture | None
    cost: Picture | None
    floors: Picture | None
    tables: dict[str, Table | None]
    parameters: Sequence[Table]
    failed: Sequence[findings.Finding]
    samples: Sequence[texts.Samples]
    exhibits: Sequence[Exhibit]
    corpus_facts: Sequence[tuple[str, str]]
    environment: Sequence[tuple[str, str]]
    toml: str


def _section(study: Studied, prefix: str) -> Section:
    found = findings.findings(study)
    few = many.pictured(study)
    tables = {
        "arms": arms.arms_table(study),
        "measures": arms.measures_table(study),
        "lengths": arms.lengths_table(study),
        "runs": arms.runs_table(study),
        "future": arms.future_table(study),
        "checks": findings.matrix(few, found),
        "evidence": findings.evidence_table(found),
        "sentences": texts.sentences_table(few),
        "changes": equal.changes_table(study),
        "equal": equal.equal_table(study),
        "splits": facts.splits_table(study),
        "floors": facts.floors_table(study),
        "against": facts.against_table(study),
    }
    return Section(
        prefix=prefix,
        study=study,
        headline=words.headline(study),
        noise=words.noise(study),
        warning=words.warning(study),
        overlap=words.overlap(study),
        many=many.note(study),
        said=words.sentences(study),
        facts=words.facts(study),
        effects=effects_picture(few),
        curves=curve_pictures(few),
        lengths=lengths_picture(few),
        cost=cost_picture(few),
        floors=floors_picture(few),
        tables=tables,
        parameters=facts.parameter_tables(few),
        failed=findings.failed(found),
        samples=texts.samples(few),
        exhibits=exhibits(few),
        corpus_facts=facts.corpus_facts(study),
        environment=facts.environment_facts(study),
        toml=as_toml(study.declaration) if study.declaration else "",
    )


def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("attnlab.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["svg"] = Markup  # made by us from escaped data
    made.filters["data"] = _data
    made.globals["marks"] = MARKS
    made.globals["most_rows"] = many.ROWS
    return made


def _data(value: Any) -> Markup:
    """JSON for a script element, in which no character can end the element."""
    text = json.dumps(value, ensure_ascii=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _asset(name: str) -> str:
    return resources.files("attnlab.report").joinpath("templates", name).read_text(encoding="utf-8")


def _dark_pictures() -> str:
    """Each light colour of a picture exchanged for its dark counterpart, on a dark screen only."""
    rules = "".join(
        f'.drawn [{what}="{light}"]{{{what}:{dark}}}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
    )
    return f"@media screen and (prefers-color-scheme: dark){{{rules}.drawn>rect{{fill:transparent}}}}"
