"""Models of transformers: tiny classes, checkpoints without pickle and without their own code, the census."""

from __future__ import annotations

import _thread
import json
import re
from pathlib import Path

import pytest

import attnlab.audit as audit
from attnlab.audit import hub
from attnlab.audit.census import take_census
from attnlab.audit.target import audits_of_census

pytest.importorskip("transformers")
ROOT = Path(__file__).resolve().parents[2]


def saved_checkpoint(folder: Path) -> Path:
    hub.tiny_model("GPT2LMHeadModel").module.save_pretrained(folder)
    return folder


def reason_not_loaded(target: str) -> str:
    (result,) = audit.run_audit(target)
    assert [check.name for check in result.checks] == ["load"]
    assert audit.exit_code([result]) == 2
    return result.checks[0].evidence


def test_a_checkpoint_from_a_directory(tmp_path):
    (result,) = audit.run_audit(f"hf:{saved_checkpoint(tmp_path)}")
    assert result.passed, audit.as_text([result])


def test_a_pickle_is_not_loaded(tmp_path):
    saved_checkpoint(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    assert "pickles" in reason_not_loaded(f"hf:{tmp_path}")


def test_code_of_a_checkpoint_is_run_only_when_trusted(tmp_path):
    saved_checkpoint(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {
        "model_type": "stranger",
        "auto_map": {"AutoConfig": "code.C", "AutoModelForCausalLM": "code.M"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass C: ...\nclass M: ...\n")
    assert "trust_remote_code" in reason_not_loaded(f"hf:{tmp_path}")
    assert not (tmp_path / "ran").exists()


def test_what_is_not_there(tmp_path):
    assert "no config.json" in reason_not_loaded(f"hf:{tmp_path}")
    assert "did you mean 'LlamaForCausalLM'" in reason_not_loaded("transformers:LamaForCausalLM")


def test_a_model_that_looks_both_ways_by_design_is_told_apart():
    (result,) = audit.run_audit("transformers:XLMWithLMHeadModel")
    causality = {check.name: check for check in result.checks}["causality"]
    assert causality.status == "skip"
    assert "causal=False" in causality.evidence


def test_a_census_has_a_row_for_each_class_whatever_happens_to_it():
    census = take_census(["GPT2LMHeadModel", "NoSuchModel", "XLNetLMHeadModel"], workers=1)
    outcomes = {row["class"]: row["outcome"] for row in census.rows}
    assert outcomes == {
        "GPT2LMHeadModel": "pass",
        "NoSuchModel": "not built",
        "XLNetLMHeadModel": "by design bidirectional",
    }
    audits = audits_of_census(census)
    assert audit.exit_code(audits) == 0
    assert [a.checks[0].status for a in audits] == ["pass", "skip", "skip"]


def test_a_worker_that_dies_is_one_row(monkeypatch):
    census = take_census(["GPT2LMHeadModel"], workers=1, environment={"PYTHONHOME": "/nowhere"})
    assert [row["outcome"] for row in census.rows] == ["not built"]


def test_an_interrupted_census_keeps_what_it_has():
    names = [name for name in hub.causal_classes() if name.startswith("G")]
    came: list[str] = []

    def interrupt_after_the_first(row):
        came.append(row["class"])
        if len(came) == 1:
            _thread.interrupt_main()

    census = take_census(names, workers=1, on_row=interrupt_after_the_first)
    assert 1 <= len(census.rows) < len(names)
    assert {row["class"] for row in census.rows} | set(census.missing) == set(names)


def table(version: str) -> dict[str, str]:
    path = ROOT / "docs" / "census" / f"{version}.md"
    rows = re.findall(r"^\| (\w+) \| ([\w ]+) \|", path.read_text(), re.MULTILINE)
    return {name: outcome for name, outcome in rows if name != "class"}


def test_the_census_kept_under_docs_names_what_the_tracker_names():
    """https://github.com/huggingface/transformers/issues/48745 and 48748"""
    before, after = table("5.17.0"), table("5.23.0")
    for name in ("RoFormer", "BigBird", "RemBert", "MegatronBert", "Doge"):
        assert before[f"{name}ForCausalLM"] == "leak"
        assert after[f"{name}ForCausalLM"] == "pass"
    for rows in (before, after):
        assert sum(outcome != "not built" for outcome in rows.values()) >= 0.9 * len(rows)


def test_no_class_is_named_in_the_code_that_judges():
    room = ROOT / "src" / "attnlab" / "audit"
    for path in room.rglob("*.py"):
        assert not re.search(r"RoFormer|BigBird|RemBert|MegatronBert|Doge", path.read_text()), path
