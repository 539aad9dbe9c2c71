"""The command line: exit codes, and a sentence instead of a traceback for whatever it is given."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab.cli import main

STUDY = """\
name = "tiny"
question = "Is it the same?"
seeds = 1
corpus = {part = "text", train = "text.txt", block = 4}
tokens = {part = "words", minimum = 1}
model = {layers = 1, heads = 2, width = 16, context = 16}
training = {steps = 6, batch = 8, evaluations = 2}
measure = {samples = 1, sentences = [], train_tokens = 100, curve_tokens = 60, prefix_tokens = 60}

[[arms]]
name = "dot"

[[arms]]
name = "unscaled"
score = "unscaled"
"""

Told = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a study in it; and a cache that is not the user's."""
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.chdir(tmp_path)
    words = re.findall(r"\w+", "the cat saw a dog and the dog saw a bird near the old house by the sea")
    lines = [" ".join(words[i % 7 : i % 7 + 3 + i % 9]) for i in range(160)]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    (tmp_path / "tiny.toml").write_text(STUDY)
    return tmp_path


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Told:
    """Runs a command line; gives back its exit code, output and errors."""

    def told(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return code, captured.out, captured.err

    return told


def outside(*arguments: str, **options: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "attnlab", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **options},
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done


# ---- what works --------------------------------------------------------------------------------------------


def test_from_a_study_to_its_report_and_back(tell: Told, folder: Path) -> None:
    code, out, err = tell("run", "tiny.toml")
    assert code == 0, err
    assert "unscaled" in out
    assert "report: attnlab-runs/tiny/report.html" in out
    assert "<html" in (folder / "attnlab-runs" / "tiny" / "report.html").read_text("utf-8").lower()
    assert "2 runs to do, 0 done already" in err

    code, again, err = tell("run", "tiny.toml")
    assert (code, again) == (0, out)
    assert "0 runs to do, 2 done already" in err

    for form in ("terminal", "markdown", "latex"):
        code, table, _ = tell("report", "attnlab-runs/tiny", "--format", form)
        assert code == 0
        assert "unscaled" in table
    assert tell("report", "attnlab-runs/tiny", "--out", "page.html") == (0, "page.html\n", "")

    code, out, _ = tell("diff", "tiny.toml", "attnlab-runs/tiny")
    assert code == 0
    assert len({line.split(": ")[1] for line in out.splitlines()}) == 1  # one fingerprint
    code, out, _ = tell("diff", "tiny.toml", "masking")
    assert code == 1
    assert "training.steps: 6 → 200" in out


def test_an_arm_that_fails_is_exit_code_1_and_the_others_are_done(tell: Told, folder: Path) -> None:
    (folder / "own.py").write_text(
        "from dataclasses import dataclass\nfrom attnlab.attention import Score\n"
        "@dataclass(frozen=True, kw_only=True)\nclass Broken(Score):\n"
        "    def __call__(self, q, k):\n        raise ValueError('not like this')\n"
    )
    (folder / "tiny.toml").write_text(
        STUDY.replace('"unscaled"\nscore = "unscaled"', '"b"\nscore = "own.py:Broken"')
    )
    code, out, _ = tell("run", "tiny.toml", "--out", "out")
    assert code == 1
    assert "✗ b, seed 0: ValueError: not like this" in out
    statuses = {
        arm["name"]: arm["status"] for arm in json.loads(Path("out/results.json").read_text())["arms"]
    }
    assert statuses == {"dot": "ok", "b": "failed"}


def test_studies_help_and_version(tell: Told) -> None:
    code, out, _ = tell("studies")
    assert code == 0
    assert "masking  about two minutes on two cores\n    Does a causal mask" in out
    for arguments in (["--help"], ["run", "--help"], ["audit", "--help"], ["--version"], []):
        code, out, _ = tell(*arguments)
        assert code == 0
        assert out.strip()


def test_judging_a_table(tell: Told, folder: Path) -> None:
    rows = [
        f"{a},{s},{i},{3 + 0.001 * s + (0.5 if a == 'b' else 0)}"
        for a in "ab"
        for s in range(5)
        for i in "xyz"
    ]
    (folder / "t.csv").write_text("\n".join(["arm,seed,item,value", *rows]))
    code, out, err = tell("judge", "t.csv", "--margin", "0.01")
    assert code == 0, err
    assert "b" in out


# ---- what does not -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["rnu"], "rnu"),
        (["run"], "STUDY"),
        (["run", "maskin"], "did you mean 'masking'"),
        (["run", "tiny.tml"], "no study is called"),
        (["run", "tin.toml"], "did you mean 'tiny.toml'"),
        (["run", "."], "is a directory"),
        (["run", "text.txt"], "no kind of study file is called '.txt'"),
        (["run", "tiny.toml", "--sed", "3"], "--sed"),
        (["run", "tiny.toml", "--seeds", "0"], "seeds: should be greater than 0 (got 0)"),
        (["run", "tiny.toml", "--seeds", "-2"], "seeds"),
        (["run", "tiny.toml", "--seeds", "many"], "many"),
        (["run", "tiny.toml", "--workers", "0"], "--workers takes a number from 1 up"),
        (["run", "tiny.toml", "--on", "moon"], "moon"),
        (["run", "tiny.toml", "--set", "nonsense"], "takes place=value, not 'nonsense'"),
        (["run", "tiny.toml", "--set", "scor=dot"], "did you mean 'score'"),
        (["run", "tiny.toml", "--set", "score=dto"], "did you mean 'dot'"),
        (["run", "tiny.toml", "--set", "training.step=3"], "did you mean 'steps'"),
        (["run", "tiny.toml", "--set", "training.epochs=3"], "not in steps and epochs"),
        (["run", "tiny.toml", "--set", "heads=3"], "width 16 is not a multiple of heads 3"),
        (["run", "tiny.toml", "--set", "score=additive", "--set", "kernel=fused"], "is not possible"),
        (["run", "tiny.toml", "--set", "metric=accuracy"], "no metric is called 'accuracy'"),
        (["run", "tiny.toml", "--set", "metric=tset_loss"], "did you mean 'test_loss'"),
        (["run", "tiny.toml", "--set", "corpus.train=txt.txt"], "did you mean 'text.txt'"),
        (["run", "tiny.toml", "--set", "corpus.train=."], "is a directory"),
        (["run", "tiny.toml", "--set", "model.context=100000"], "longer than the whole training split"),
        (["run", "tiny.toml", "--set", "tokens.minimum=9999"], "the vocabulary would be empty"),
        (["run", "tiny.toml", "--out", "text.txt"], "text.txt is a file: name a directory with --out"),
        (["run", "tiny.toml", "--out", "text.txt/below"], "cannot be used"),
        (["run", "tiny.toml", "--out", "/proc/attnlab"], "cannot be used"),
        (["run", "tiny.toml", "--out", "x" * 300], "cannot be used"),
        (["run", "tiny.toml", "--out", "."], "is not empty and holds no study"),
        (["report", "absent"], "absent"),
        (["report", "."], "no study"),
        (["report", "text.txt"], "text.txt"),
        (["diff", "tiny.toml"], "AFTER"),
        (["diff", "tiny.toml", "absent"], "no study is called 'absent'"),
        (["diff", "tiny.toml", "."], "holds no study"),
        (["judge", "absent.csv", "--margin", "0.1"], "absent.csv"),
        (["judge", "text.txt", "--margin", "0.1"], "text.txt"),
        (["judge", "text.txt"], "margin"),
        (["audit", "absent.py:f"], "absent.py"),
        (["audit", "no-such-thing"], "no-such-thing"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_wrong_request_is_exit_code_2_and_a_sentence(tell: Told, arguments: list[str], says: str) -> None:
    code, out, err = tell(*arguments)
    assert code == 2, err
    assert says in (out if arguments[0] == "audit" else err)  # what an audit sees is its output


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"one line\n", "too few"),
        (bytes(range(256)) * 20, "not text"),
        (b"\x89PNG\r\n\x1a\n" + b"\xfa\xfb" * 99, "not UTF-8"),
    ],
    ids=["empty", "one line", "binary", "a picture"],
)
def test_a_corpus_that_is_none_is_exit_code_2(tell: Told, folder: Path, content: bytes, says: str) -> None:
    (folder / "text.txt").write_bytes(content)
    code, _, err = tell("run", "tiny.toml")
    assert (code, says in err) == (2, True), err


@pytest.mark.parametrize(
    "content",
    [b"\x00\xff", b"[" * 50_000, b".".join([b"a"] * 4000) + b"=1"],
    ids=["binary", "nested", "deep"],
)
def test_a_study_file_that_is_none_is_exit_code_2(tell: Told, folder: Path, content: bytes) -> None:
    for suffix in ("toml", "yaml"):
        (folder / f"bad.{suffix}").write_bytes(content)
        code, _, err = tell("run", f"bad.{suffix}")
        assert code == 2
        assert f"bad.{suffix}" in err
        assert len(err) < 2000


def test_a_directory_with_another_study_is_refused(tell: Told) -> None:
    assert tell("run", "tiny.toml", "--out", "out")[0] == 0
    code, _, err = tell("run", "tiny.toml", "--out", "out", "--set", "training.steps=7")
    assert code == 2
    assert "training.steps: 6 → 7" in err


def test_a_full_disk_is_told_and_nothing_half_written_looks_whole(folder: Path) -> None:
    """On a file system of its own with no room for a checkpoint, then with more."""
    disk = folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root can mount a small disk")
    try:
        full = outside("run", "tiny.toml", "--out", "disk/out")
        assert full.returncode in (1, 2), full.stderr
        assert "No space left on device" in full.stdout + full.stderr
        for path in disk.rglob("*.json"):
            json.loads(path.read_text("utf-8"))  # whole, or not there
        for path in disk.rglob("result.json"):
            assert json.loads(path.read_text("utf-8"))["status"] in ("ok", "failed")
        subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
        done = outside("run", "tiny.toml", "--out", "disk/out")
        assert done.returncode == 0, done.stderr
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_without_utf8_there_is_still_no_traceback() -> None:
    done = outside("run", "tiny.toml", "--out", "out", PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert done.returncode == 0, done.stderr


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"{sys.executable} -m attnlab studies | head -c 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
