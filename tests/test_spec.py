"""Declarations: every problem at once, parts however named, merging, comparing, fingerprints."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path

import pytest
from pydantic import ValidationError

from attnlab.attention import Additive, Attention, Causal, Dot, Score, Softmax, Weigh, Window
from attnlab.errors import DeclarationError, RequestError, unknown
from attnlab.model import Decoder
from attnlab.spec import Difference, differences, fingerprint, flatten, merge, validate
from attnlab.training import Optimizer, Training

OWN_SCORE = """\
from dataclasses import dataclass

from attnlab.attention import Score


@dataclass(frozen=True, kw_only=True)
class Gated(Score):
    slope: float = 1.0

    def __call__(self, q_BHTd, k_BHSd):
        return self.slope * (q_BHTd @ k_BHSd.transpose(-2, -1))


class NotADataclass(Score):
    pass


number = 3
"""


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(OWN_SCORE)
    return path


# ---- every problem at once ---------------------------------------------------------------------------------


def test_every_problem_is_listed_with_its_place_and_the_nearest_name() -> None:
    declared = {
        "layrs": 2,
        "heads": 0,
        "dropout": 1.5,
        "position": "lerned",
        "mixer": {"part": "attention", "scor": "dot", "mask": {"part": "causal", "where": "befor"}},
    }
    with pytest.raises(DeclarationError) as caught:
        validate(Decoder, declared, source="model.toml")
    text = str(caught.value)
    assert text.startswith("model.toml: 6 problems\n")
    by_place = {problem.place: problem.message for problem in caught.value.problems}
    assert "did you mean 'layers'?" in by_place[""]
    assert "greater than 0" in by_place["heads"]
    assert "got 0" in by_place["heads"]
    assert "less than 1" in by_place["dropout"]
    assert "did you mean 'learned'?" in by_place["position"]
    assert "did you mean 'score'?" in by_place["mixer"]
    assert "did you mean 'before'?" in by_place["mixer.mask.where"]
    assert "valid: after, before, renormalised" in by_place["mixer.mask.where"]


def test_a_spec_made_in_python_explains_itself_the_same_way() -> None:
    with pytest.raises(DeclarationError, match=r"(?s)Training: 2 problems.*batch.*did you mean 'batch'"):
        Training(batch=0, bath=3)  # type: ignore[call-arg]


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(DeclarationError, match="one unit, not in steps and epochs"):
        Training(steps=3, epochs=2)
    with pytest.raises(DeclarationError, match="width 48 is not a multiple of heads 5"):
        Decoder(heads=5)
    with pytest.raises(DeclarationError, match=r"kernel \"fused\" is not possible.*'additive'"):
        Decoder(mixer=Attention(score=Additive(), kernel="fused"))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.0, "fast"])
def test_numbers_that_are_none_are_refused(number: object) -> None:
    with pytest.raises(DeclarationError, match="learning_rate"):
        Optimizer.resolve({"part": "adam-w", "learning_rate": number})


def test_specs_and_parts_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Training().batch = 3
    with pytest.raises(FrozenInstanceError):
        Dot().anything = 3  # type: ignore[attr-defined]


# ---- parts, by every way of naming them --------------------------------------------------------------------


def test_a_part_by_name_by_table_and_as_itself() -> None:
    by_name = Decoder.model_validate({"mixer": "attention"})
    by_table = Decoder(mixer={"part": "attention", "score": {"part": "additive", "hidden": 7}})  # type: ignore[arg-type]
    itself = Decoder(mixer=Attention(score=Additive(hidden=7)))
    assert by_name == Decoder()
    assert by_table == itself
    assert by_table.plain()["mixer"]["score"]["part"] == "additive"
    assert validate(Decoder, itself.plain(), source="its plain form") == itself


def test_a_part_of_the_users_own(own_file: Path) -> None:
    by_path = Score.resolve(f"{own_file}:Gated")
    beside = Score.resolve({"part": "own.py:Gated", "slope": 2}, own_file.parent)
    assert type(by_path) is type(beside)
    assert beside.plain() == {"part": f"{own_file}:Gated", "slope": 2.0}
    assert Score.resolve(beside.plain()) == beside


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("dott", r"no score is called 'dott'; did you mean 'dot'\? \(valid: additive, bilinear"),
        (3, "3 is not a score: write its name"),
        ([], "is not a score"),
        ({"scale": 1}, "names it under 'part'"),
        ({"part": 3}, "chosen by its name, not by 3"),
        ({"part": "dot", "scale": 1}, "no field is called 'scale'"),
        (Softmax(), "a score is wanted here, not the weigh 'softmax'"),
        ("own.py:Gate", r"own.py: no object is called 'Gate'; did you mean 'Gated'\?"),
        ("own.py:number", "is not a score: it must be a dataclass derived from Score"),
        ("own.py:NotADataclass", "must be a dataclass"),
        ("owm.py:Gated", "there is no file"),
        ({"part": "own.py:Gated", "slop": 1}, r"did you mean 'slope'\?"),
        ("own.py:", "no score is called 'own.py:'"),
        ("", "no score is called ''"),
        ("x" * 5000 + ".py:Gated", "not a usable path"),
    ],
)
def test_what_is_no_part_is_explained(own_file: Path, value: object, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        Score.resolve(value, own_file.parent)


def test_a_class_without_the_decorator_is_explained_as_an_instance_too() -> None:
    class Forgot(Score):
        pass

    with pytest.raises(RequestError, match="'Forgot' is not a score: it must be a dataclass"):
        Score.resolve(Forgot())


def test_a_field_that_no_declaration_can_hold_is_explained() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Holds(Score):
        weights: tuple[threading.Thread, ...] = ()

    with pytest.raises(RequestError, match=r"the fields of .*Holds need types"):
        Score.resolve(Holds())


def test_a_part_that_no_other_process_could_find_is_not_written_down() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Local(Score):
        pass

    with pytest.raises(RequestError, match="put the class at the top level of a file"):
        Local().plain()


def test_a_part_from_an_interactive_session_is_not_written_down() -> None:
    script = (
        "from attnlab.attention import Score; from dataclasses import dataclass\n"
        "from attnlab.errors import RequestError\n"
        "@dataclass(frozen=True)\nclass Mine(Score):\n    pass\n"
        "try:\n    Mine().plain()\nexcept RequestError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, check=True)
    assert "'Mine' cannot be named in a declaration" in done.stdout


def test_families_know_their_members_by_kebab_case() -> None:
    assert {"dot", "additive", "bilinear"} <= set(Score.members)
    assert "straight-through-argmax" in Weigh.members
    assert "softmax" not in Score.members
    assert all(cls.part_name() == name for name, cls in Weigh.members.items())


# ---- merging -----------------------------------------------------------------------------------------------


def test_a_field_of_a_part_that_was_a_bare_name() -> None:
    assert merge({"mask": "causal"}, {"mask": {"where": "after"}}) == {
        "mask": {"part": "causal", "where": "after"}
    }


def test_a_table_without_a_part_changes_fields_and_one_with_a_part_replaces() -> None:
    base = {"mask": {"part": "window", "size": 4, "where": "before"}}
    assert merge(base, {"mask": {"size": 9}})["mask"] == {"part": "window", "size": 9, "where": "before"}
    assert merge(base, {"mask": {"part": "causal"}})["mask"] == {"part": "causal"}
    assert merge(base, {"mask": "causal"})["mask"] == "causal"
    assert merge(base, {"mask": Causal()})["mask"] == Causal()


def test_merging_into_parts_specs_and_nothing() -> None:
    assert merge(Window(size=4), {"size": 5}) == {"part": "window", "where": "before", "size": 5}
    assert merge(Training(steps=3), {"batch": 8})["steps"] == 3
    assert merge({}, {"a": {"b": 1}}) == {"a": {"b": 1}}
    assert merge({"a": 3}, {"a": {"b": 1}}) == {"a": {"b": 1}}


def test_merging_leaves_what_it_was_given_as_it_was() -> None:
    base = {"mask": {"part": "window", "size": 4}}
    merge(base, {"mask": {"size": 9}})
    assert base == {"mask": {"part": "window", "size": 4}}


# ---- comparing and fingerprints ----------------------------------------------------------------------------


def test_a_fingerprint_follows_the_content_not_the_order() -> None:
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint({"a": 1, "b": [2]}) != fingerprint({"a": 1, "b": [3]})
    assert re.fullmatch("[0-9a-f]{16}", fingerprint({}))


def test_a_fingerprint_changes_with_the_users_code(own_file: Path) -> None:
    plain = Decoder(mixer=Attention(score=Score.resolve(f"{own_file}:Gated"))).plain()
    before = fingerprint(plain)
    assert fingerprint(plain) == before
    own_file.write_text(OWN_SCORE.replace("self.slope *", "2 * self.slope *"))
    assert fingerprint(plain) != before


def test_a_fingerprint_of_a_file_that_is_gone_is_an_error_a_person_can_read(own_file: Path) -> None:
    plain = {"part": f"{own_file}:Gated"}
    own_file.unlink()
    with pytest.raises(RequestError, match=r"own\.py.*cannot be read"):
        fingerprint(plain)


def test_differences_in_reading_order() -> None:
    before = Decoder(layers=2, mixer=Attention(mask=Window(size=4))).plain()
    after = Decoder(layers=2, heads=6, mixer=Attention(mask=Causal())).plain()
    assert differences(before, after) == [
        Difference("heads", 3, 6),
        Difference("mixer.mask.part", "window", "causal"),
        Difference("mixer.mask.size", 4, None),
    ]
    assert differences(before, before) == []
    assert str(Difference("heads", 3, 6)) == "heads: 3 → 6"
    assert str(Difference("steps", 3, None)) == "steps: 3 → none"
    places = [d.place for d in differences({"a": {"b": 1}, "c": 2}, {"a": {"d": 1}, "c": 3})]
    assert places == ["a.b", "a.d", "c"]


def test_flat_places() -> None:
    plain = {"a": {"b": 1, "c": []}, "arms": [{"name": "x"}, {"name": "y"}], "seeds": [1, 2]}
    assert flatten(plain) == {
        "a.b": 1,
        "a.c": [],
        "arms[0].name": "x",
        "arms[1].name": "y",
        "seeds": [1, 2],
    }


def test_names_with_commas_are_told_apart_in_a_list() -> None:
    assert unknown("arm", "best", ["2,000", "2,000, the best"]).endswith(
        "(valid: '2,000', '2,000, the best')"
    )
    assert unknown("arm", "x", ["a b", "c"]).endswith("(valid: a b, c)")
