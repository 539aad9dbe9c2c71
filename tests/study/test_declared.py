"""Declarations of studies: TOML, YAML and Python, settings, arms, `vary`, and everything wrong with them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from attnlab.attention import Additive, Attention, Causal
from attnlab.errors import DeclarationError, RequestError
from attnlab.spec import validate
from attnlab.study import Arm, LanguageModel, Study, built_in_studies, load_study, to_toml
from attnlab.study.study import slug

from .small import DECLARATION

PYTHON = """
from attnlab.corpus import Text
from attnlab.model import Decoder
from attnlab.study import Arm, LanguageModel, Study
from attnlab.study.kinds.language_model import Measure
from attnlab.tokens import Words
from attnlab.training import Training

study = Study(
    name="small",
    question="Does it matter how attention is computed?",
    seeds=2,
    setup=LanguageModel(
        corpus=Text(train="text.txt", block=4),
        tokens=Words(minimum=1),
        model=Decoder(layers=1, heads=2, width=16, context=16),
        training=Training(steps=12, batch=8, evaluations=2),
        measure=Measure(
            sentences=("the cat sees a dog", "nobody knows"),
            samples=2,
            train_tokens=100,
            curve_tokens=60,
            prefix_tokens=60,
        ),
    ),
    arms=(Arm(name="dot"), Arm(name="additive", score="additive")),
)
"""


def test_toml_yaml_and_python_are_one_study(folder: Path) -> None:
    (folder / "small.yaml").write_text(yaml.safe_dump(tomllib.loads(DECLARATION)))
    (folder / "small.py").write_text(PYTHON)
    toml, yml, python = (load_study(folder / f"small.{suffix}") for suffix in ("toml", "yaml", "py"))
    assert toml.plain() == yml.plain() == python.plain()
    assert toml.fingerprint == yml.fingerprint == python.fingerprint
    assert toml.base == yml.base == python.base == folder
    assert load_study(f"{folder}/small.py:study").plain() == toml.plain()


def test_what_is_written_out_is_the_same_study(folder: Path) -> None:
    study = load_study(folder / "small.toml")
    (folder / "again.toml").write_text(to_toml(study))
    again = load_study(folder / "again.toml")
    assert again.plain() == study.plain()
    assert again.fingerprint == study.fingerprint


@pytest.mark.parametrize("name", built_in_studies())
def test_built_in_studies_can_be_read_and_written_out(name: str, tmp_path: Path) -> None:
    study = load_study(name)
    assert study.name == name
    (tmp_path / "again.toml").write_text(to_toml(study))
    assert load_study(tmp_path / "again.toml").fingerprint == study.fingerprint


def test_an_arm_can_change_anything(folder: Path) -> None:
    arms = """
[[arms]]
name = "everything"
mask.where = "after"
learning_rate = 0.01
layers = 2
training = {batch = 4}
model.mixer = {score = {part = "additive", hidden = 5}}
"""
    (folder / "small.toml").write_text(DECLARATION + arms)
    setup = load_study(folder / "small.toml").setup_of("everything")
    assert isinstance(setup, LanguageModel)
    assert setup.model.mixer == Attention(mask=Causal(where="after"), score=Additive(hidden=5))
    assert (setup.model.layers, setup.training.batch, setup.training.steps) == (2, 4, 12)
    assert setup.training.optimizer.learning_rate == 0.01


def test_vary(folder: Path) -> None:
    text = DECLARATION[: DECLARATION.index("[[arms]]")]

    def arms(vary: str) -> list[str]:
        (folder / "vary.toml").write_text(f"{text}\n[vary]\n{vary}\n")
        return [arm.name for arm in load_study(folder / "vary.toml").arms]

    assert arms('score = ["dot", "additive"]') == ["dot", "additive"]
    assert arms("model.layers = [1, 2, 3]") == ["layers=1", "layers=2", "layers=3"]
    assert arms("learning_rate = [0.1, 0.2]") == ["learning_rate=0.1", "learning_rate=0.2"]
    assert arms('mask = [{where = "before"}, {where = "after"}]') == ["where=before", "where=after"]
    assert arms('score = ["dot", {part = "additive", hidden = 3}]') == ["dot", "additive hidden=3"]


def test_vary_takes_a_part_of_the_users_own(folder: Path) -> None:
    (folder / "own.py").write_text(
        "from dataclasses import dataclass\nfrom attnlab.attention import Dot\n"
        "@dataclass(frozen=True, kw_only=True)\nclass Mine(Dot):\n    slope: float = 1.0\n"
    )
    text = DECLARATION[: DECLARATION.index("[[arms]]")]
    (folder / "vary.toml").write_text(
        text + '\n[vary]\nscore = ["dot", "own.py:Mine", {part = "own.py:Mine", slope = 2.0}]\n'
    )
    study = load_study(folder / "vary.toml")
    assert [arm.name for arm in study.arms] == ["dot", "Mine", "Mine slope=2.0"]
    before = study.fingerprint
    (folder / "own.py").write_text((folder / "own.py").read_text() + "\n# another version\n")
    assert study.fingerprint != before


def test_settings_are_laid_over(folder: Path) -> None:
    study = load_study(
        folder / "small.toml",
        ["training.steps=99", "score=additive", "seeds=7", "name=other", "mask.where=renormalised",
         'tokens={part = "characters"}', "learning_rate = 1e-2"],
    )  # fmt: skip
    setup = study.setup
    assert isinstance(setup, LanguageModel)
    assert (study.seeds, study.name, setup.training.steps) == (7, "other", 99)
    assert setup.model.mixer == Attention(score=Additive(), mask=Causal(where="renormalised"))
    assert setup.tokens.name == "characters"
    assert setup.training.optimizer.learning_rate == 0.01


def test_settings_reach_parts_that_no_file_names() -> None:
    """As the help says: `--set score=additive`, also where the file leaves the mixer to its default."""
    for name in built_in_studies():
        if not isinstance(load_study(name).setup, LanguageModel):
            continue
        settings = ["mask.where=renormalised", "learning_rate=0.25"]
        if not isinstance(load_study(name).setup, LanguageModel):
            continue
        setup = load_study(name, settings).setup
        if isinstance(setup, LanguageModel) and isinstance(setup.model.mixer, Attention):
            assert setup.model.mixer.mask == Causal(where="renormalised")
            assert setup.training.optimizer.learning_rate == 0.25


def test_a_budget_in_another_unit(folder: Path) -> None:
    setup = load_study(folder / "small.toml", ["training.steps=none", "training.epochs=2"]).setup
    assert isinstance(setup, LanguageModel)
    assert (setup.training.steps, setup.training.epochs, setup.training.batch) == (None, 2.0, 8)


def test_settings_reach_a_python_study(folder: Path) -> None:
    (folder / "small.py").write_text(PYTHON)
    study = load_study(folder / "small.py", ["training.steps=99"])
    assert study.plain() == load_study(folder / "small.toml", ["training.steps=99"]).plain()


def test_a_fingerprint_is_of_what_decides_a_result(folder: Path) -> None:
    def fingerprint(*settings: str) -> str:
        return load_study(folder / "small.toml", settings).fingerprint

    same = fingerprint()
    for setting in ("seeds=9", "question=why", "margin=0.5", "metric=dev_loss", "name=other"):
        assert fingerprint(setting) == same
    for setting in ("training.steps=13", "learning_rate=0.1", "score=unscaled", "measure.samples=3"):
        assert fingerprint(setting) != same


def test_arms_that_would_share_a_folder_are_refused(folder: Path) -> None:
    (folder / "small.toml").write_text(DECLARATION + '[[arms]]\nname = "DOT "\n')
    with pytest.raises(DeclarationError, match="the arms 'dot' and 'DOT ' would share the folder 'dot'"):
        load_study(folder / "small.toml")


@pytest.mark.parametrize("name", ["../../up", "a/b", "..", ".", "-", "~", "ü ñ", "a:b*c?", "CON", "x" * 80])
def test_no_name_leaves_the_folder_of_runs(name: str) -> None:
    made = slug(name)
    assert made not in ("", ".", "..")
    assert "/" not in made
    assert "\\" not in made


def test_every_problem_of_a_study_at_once(folder: Path) -> None:
    text = (
        DECLARATION.replace("steps = 12", "steps = 12\nepochs = 1")
        .replace("samples = 2", "samples = -2")
        .replace("heads = 2", "heds = 2")
        .replace("seeds = 2", 'seeds = 0\nmetric = "test_los"\ncolour = "red"')
        .replace('score = "additive"', 'score = "aditive"')
    )
    (folder / "small.toml").write_text(text)
    with pytest.raises(DeclarationError) as caught:
        load_study(folder / "small.toml", ["measure.sentenses=3", "nonsense"])
    places = {problem.place: problem.message for problem in caught.value.problems}
    assert "takes place=value, not 'nonsense'" in places["--set"]
    assert "no field is called 'colour'" in places[""]
    assert "did you mean 'heads'" in places["model"]
    assert "seeds" in places
    shown = str(caught.value)
    for part in (
        "not in steps and epochs",
        "measure.samples",
        "did you mean 'sentences'",
        "did you mean 'additive'",
    ):
        assert part in shown


def test_arms_are_checked_beside_a_head_and_a_set_up_that_are_wrong(folder: Path) -> None:
    (folder / "small.toml").write_text(
        DECLARATION.replace("layers = 1", "layers = 0")
        .replace('"Does it matter how attention is computed?"', '""')
        .replace('name = "additive"\nscore = "additive"', 'name = "dot"\nscor = "additive"')
        + '\n[[arms]]\nname = "third"\nscore = "dott"\ntokens.minimum = 0\n'
    )
    with pytest.raises(DeclarationError) as caught:
        load_study(folder / "small.toml")
    places = {problem.place: problem.message for problem in caught.value.problems}
    assert places["question"] == "must not be empty"
    assert "greater than 0" in places["model.layers"]
    assert "would share the folder 'dot'" in places["arms"]
    assert "did you mean 'score'" in places["arms[1] (dot)"]
    assert "arms[2] (third).tokens.minimum" in places
    assert "did you mean 'dot'" in places["arms[2] (third).model.mixer.score"]


def test_arms_are_held_against_those_sections_that_are_right(folder: Path) -> None:
    """A wrong corpus must not make the heads of an arm look wrong too."""
    text = DECLARATION.replace('part = "text"', 'part = "txt"').replace("width = 16", "width = 20")
    (folder / "small.toml").write_text(text.replace('score = "additive"', "heads = 5"))
    with pytest.raises(DeclarationError) as caught:
        load_study(folder / "small.toml")
    assert [problem.place for problem in caught.value.problems] == ["corpus"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["nonsense"], "takes place=value, not 'nonsense'"),
        (["=3"], "takes place=value"),
        ([""], "takes place=value"),
        (["scor=dot"], "no section or shorthand is called 'scor'; did you mean 'score'"),
        (["training.stps=3"], "did you mean 'steps'"),
        (["training.steps=many"], "training.steps: should be a valid integer"),
        (["training=3"], "training"),
        (["score.hidden=3"], "no field is called 'hidden'"),
        (["kernel=fast"], "no choice is called 'fast'"),
        (["mask.where=behind"], "no choice is called 'behind'"),
        (["metric=accuracy"], "no metric is called 'accuracy'"),
        (["metric=train_loss"], "no metric is called 'train_loss'"),
        (["margin=-1"], "margin"),
        (["seeds=0"], "seeds"),
        (["name=../up"], "name"),
        (["score." + "a." * 5000 + "b=1"], "levels below it"),
        (["position=rotary", 'mixer={part = "aft-full"}'], "rotary"),
        (["heads=5"], "width 16 is not a multiple of heads 5"),
        (["training.epochs=1"], "one unit, not in steps and epochs"),
        (["corpus=corpus.toml"], "no corpus is called"),
        (["tokens=text.txt"], "no tokenizer is called"),
    ],
)
def test_settings_that_make_no_sense(folder: Path, settings: list[str], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        load_study(folder / "small.toml", settings)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.toml", b"\xff\xfe\x00", "not a text file"),
        ("x.toml", bytes(range(1, 128)), "not readable as TOML"),
        ("x.toml", b"a = [" + b"[" * 100_000, "not readable as TOML"),
        ("x.yaml", b"[" * 100_000, "not readable as YAML"),
        ("x.toml", b".".join([b"a"] * 3000) + b" = 1", "tables within tables, more than 20 deep"),
        ("x.yaml", b"model: &a\n  mixer: *a\n", "tables within tables"),
        ("x.yaml", b"- 1\n- 2\n", "a table of names and values, not list"),
        ("x.yaml", b"", "a table of names and values, not NoneType"),
        ("x.yaml", b"1: 2\n", "a table of names and values"),
        ("x.yaml", b"a: !!python/object:os.system x\n", "not readable as YAML"),
        ("x.yaml", b"arms:\n- ? null\n- name: a\n  ~: 1\n", r"arms\[1\].None: Keys should be strings"),
        ("x.toml", b"", "(?s)name: is missing.*question: is missing"),
        ("x.toml", b"kind = 3", "no kind of study is called 3"),
        ("x.toml", b'kind = "language-modl"', "did you mean 'language-model'"),
        ("x.toml", b'name = "x"\nquestion = "?"\narms = 3\n[vary]\nscore = ["dot"]', "arms: .*valid"),
        ("x.toml", b'name = "x"\nquestion = "?"\narms = [3]', r"arms\[0\]"),
        ("x.toml", b'name = "x"\nquestion = "?"\narms = []', "arms: "),
        ("x.toml", b'name = "x"\nquestion = "?"\n[vary]\n', "takes one part and a list"),
        ("x.toml", b'name = "x"\nquestion = "?"\n[vary]\nscore = "dot"', "vary.score: takes a list"),
        ("x.toml", b'name = "x"\nquestion = "?"\n[vary]\nscore = []', "vary.score: takes a list"),
        ("x.toml", b'name = "x"\nquestion = "?"\n[vary]\na = [1]\nb = [2]', "takes one part"),
        ("x.toml", b'name = "x"\nquestion = "?"\n[[arms]]\nname = "a"\nscore = 3', r"arms\[0\] \(a\)"),
        ("x.toml", b'name = "x"\nquestion = "?"\n[[arms]]\nscore = "dot"', r"arms\[0\].name: is missing"),
        ("x.ini", b"", "no kind of study file is called '.ini'"),
        ("x.py", b"study = 3", "is a int, not an attnlab.Study"),
        ("x.py", b"", "no object is called 'study'"),
    ],
)
def test_files_that_are_no_study(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(RequestError, match=says):
        load_study(path)


def test_names_that_are_no_study(folder: Path) -> None:
    for target, says in {
        "maskin": "no study is called 'maskin'; did you mean 'masking'",
        "": "no study is called ''",
        f"{folder}/smal.toml": "did you mean 'small.toml'",
        str(folder): "is a directory",
        "x" * 5000: "no study is called",
        "~nobody-of-that-name/x.toml": "no file is called 'x.toml'",
    }.items():
        with pytest.raises(RequestError, match=says):
            load_study(target)


def test_a_study_in_python_explains_itself() -> None:
    with pytest.raises(DeclarationError, match="no metric is called 'test_los'; did you mean 'test_loss'"):
        Study(name="x", question="?", arms=(Arm(name="a"),), metric="test_los")
    with pytest.raises(DeclarationError, match="did you mean 'additive'"):
        Study(name="x", question="?", arms=(Arm(name="a", score="aditive"),))  # type: ignore[call-arg]


def test_the_number_of_seeds_is_checked_too() -> None:
    study = Study(name="x", question="?", arms=(Arm(name="a"),))
    assert study.with_seeds(9).seeds == 9
    for wrong in (0, -1, 1.5):
        with pytest.raises(DeclarationError, match="seeds"):
            study.with_seeds(wrong)  # type: ignore[arg-type]


def test_a_set_up_that_holds_itself_is_not_walked_for_ever(tmp_path: Path) -> None:
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump({"name": "x", "model": loop}))
    with pytest.raises(RequestError, match="tables within tables"):
        load_study(path)
    assert validate(LanguageModel, {}, source="nothing given") == LanguageModel()
