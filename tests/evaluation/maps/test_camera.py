"""Taking maps: what is kept is what the model does, and what must hold is checked, with broken twins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from attnlab.attention import (
    AftSimple,
    Attention,
    Differential,
    Everything,
    Fastformer,
    Layout,
    Learned,
    Mixer,
    Relu,
    Softmax,
    Weigh,
)
from attnlab.evaluation.maps.camera import Camera, steps_of
from attnlab.evaluation.maps.probes import LONGEST_PASSAGE, Probe, probes_of, probes_read, repeats
from attnlab.evaluation.maps.said_twice import said_twice
from attnlab.evaluation.maps.shot import Shot, shots_in
from attnlab.model import Decoder, DecoderModel
from attnlab.record import Check
from attnlab.tokens import Reading, Words

VOCABULARY = Words(minimum=1).fit(["a man sees the dog and the bird hears a cat near his old house"])


def model_of(mixer: Mixer, seed: int = 0) -> DecoderModel:
    spec = Decoder(layers=2, heads=2, width=16, context=20, mixer=mixer, position=Learned())
    model = spec.build(VOCABULARY.size, seed)
    with torch.no_grad():  # away from the start, where every row is nearly flat
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter, generator=None))
    return model


def looked_at(model: DecoderModel, folder: Path) -> tuple[Camera, dict[str, Any], dict[str, Check]]:
    texts = probes_of(["the dog sees a man", "a cat"], VOCABULARY, 20)
    camera = Camera(model, (*texts, *repeats(3, VOCABULARY, 20)), folder, said_twice)
    camera.take(0)
    summary, checks = camera.seen()
    return camera, summary, {check.name: check for check in checks}


def test_what_is_kept_is_what_the_model_does_alone_with_each_text(tmp_path: Path) -> None:
    model = model_of(Attention())
    camera, summary, checks = looked_at(model, tmp_path)
    shot = Shot.read(shots_in(tmp_path)[0])
    assert [probe["text"] for probe in shot.probes] == summary["probes"]
    assert [len(probe["tokens"]) for probe in shot.probes] == [6, 3, 19]
    model.eval()
    for place, probe in enumerate(camera.probes[:3]):
        alone = model.attention_maps(torch.tensor(probe.ids), Layout([len(probe.ids)]))
        for layer, weights_1HTT in enumerate(alone):
            kept = shot.stacks[place, layer]
            assert np.abs(kept.weights_HTT - weights_1HTT[0].numpy()).max() <= kept.error + 1e-6
    assert summary["error"] <= (1 + 1e-6) / 510
    assert {name: check.status for name, check in checks.items()} == {"row-sums": "pass", "padding": "pass"}
    # Two layers and two heads, over texts of 6, 3 and 1 tokens in rows of 19.
    assert checks["padding"].detail["places"] == 4 * (6 * 13 + 3 * 16 + 1 * 18)


def test_it_leaves_the_model_as_it_found_it(tmp_path: Path) -> None:
    model = model_of(Attention()).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    looked_at(model, tmp_path)
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    model = model_of(Attention())
    for name in ("one", "two"):
        looked_at(model, tmp_path / name)
    one, two = (shots_in(tmp_path / name)[0].read_bytes() for name in ("one", "two"))
    assert one == two


def test_losses_on_what_is_said_twice_are_the_models_own(tmp_path: Path) -> None:
    model = model_of(Attention())
    camera, summary, _ = looked_at(model, tmp_path)
    model.eval()
    wanted: dict[str, list[float]] = {"first": [], "again": []}
    for probe in camera.probes[2:]:
        ids = torch.tensor([probe.ids])
        losses = torch.nn.functional.cross_entropy(model(ids)[0, :-1], ids[0, 1:], reduction="none")
        wanted["first"] += losses[: probe.passage].tolist()
        wanted["again"] += losses[probe.passage + 1 :].tolist()
    assert summary["losses"] == [pytest.approx({k: np.mean(v) for k, v in wanted.items()}, rel=1e-4)]


def test_channels_of_an_aft_and_signed_weights_are_maps_too(tmp_path: Path) -> None:
    _, summary, checks = looked_at(model_of(AftSimple()), tmp_path / "aft")
    assert summary["layers"] == [{"heads": 16, "per": "channel", "without": ""}] * 2
    assert checks["row-sums"].status == "pass"
    _, summary, checks = looked_at(model_of(Differential()), tmp_path / "differential")
    assert checks["row-sums"].status == "skip"  # it claims nothing
    assert checks["padding"].status == "pass"


def test_a_mixer_without_weights_says_so(tmp_path: Path) -> None:
    _, summary, checks = looked_at(model_of(Fastformer()), tmp_path)
    assert all("stands for the whole sequence" in layer["without"] for layer in summary["layers"])
    assert summary["heads"] == [[{}, {}]]
    assert checks == {}


def test_weights_that_are_no_numbers_are_said_to_be(tmp_path: Path) -> None:
    model = model_of(Attention())
    with torch.no_grad():
        model.embedding.weight.fill_(float("nan"))
    _, summary, _ = looked_at(model, tmp_path)
    assert summary["layers"][0]["without"] == "its weights are not all numbers"


# ---- broken twins ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Leaky(Softmax):
    """Claims to sum to one, and loses a hundredth."""

    def __call__(self, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        return super().__call__(scores_BHTS, visible) * 0.99


@dataclass(frozen=True, kw_only=True)
class Empty(Softmax):
    """Claims to sum to one, and gives nothing."""

    def __call__(self, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        return super().__call__(scores_BHTS, visible) * 0.0


@dataclass(frozen=True, kw_only=True)
class Honest(Leaky):
    """The same weights, with nothing claimed."""

    sums_to_one: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class Careless(Weigh):
    """A softmax over everything there is, padding as well."""

    def __call__(self, scores_BHTS: Tensor, visible: Tensor) -> Tensor:
        return scores_BHTS.softmax(-1)


@pytest.mark.parametrize(
    ("weigh", "row_sums", "padding"),
    [
        (Softmax(), "pass", "pass"),
        (Leaky(), "fail", "pass"),
        (Empty(), "fail", "pass"),
        (Honest(), "skip", "pass"),
        (Relu(), "skip", "pass"),
        (Careless(), "skip", "fail"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.part_name(),
)
def test_what_must_hold_is_checked(tmp_path: Path, weigh: Weigh, row_sums: str, padding: str) -> None:
    mixer = Attention(weigh=weigh, mask=Everything(), kernel="stages")
    _, _, checks = looked_at(model_of(mixer), tmp_path)
    assert (checks["row-sums"].status, checks["padding"].status) == (row_sums, padding)
    if row_sums == "fail":
        assert "claimed to sum to 1" in checks["row-sums"].evidence
    if padding == "fail":
        assert "on padding after step 0" in checks["padding"].evidence


# ---- probes and steps --------------------------------------------------------------------------------------


def test_probes_are_read_as_the_model_reads_text() -> None:
    (probe,) = probes_of(["the dog sees a zebra"], VOCABULARY, 5)
    assert probe.ids[0] == VOCABULARY.start
    assert probe.tokens == ("<START>", "the", "dog", "sees", "a")  # cut at the context
    assert probes_of(["a zebra"], VOCABULARY, 5)[0].tokens[-1] == "<UNK>"


@pytest.mark.parametrize(
    ("reading", "text", "tokens"),
    [
        (Reading(), "the dog sees", "<START> the dog sees <STOP>"),
        (Reading(start=False, stop=False), "the dog sees", "the dog sees"),
        (Reading(), ("the dog", "a zebra"), "<START> the dog <STOP> a <UNK> <STOP>"),
        (Reading(), "the dog sees a man the dog sees a man", "<START> the dog sees a man the <STOP>"),  # cut
    ],
)
def test_probes_of_a_classifier_are_read_as_it_reads_its_texts(
    reading: Reading, text: str | tuple[str, str], tokens: str
) -> None:
    (probe,) = probes_read([text], VOCABULARY, reading, 8)
    assert " ".join(probe.tokens) == tokens
    assert len(probe.ids) == len(probe.tokens)


def test_repeats_are_always_the_same_and_hold_no_token_twice() -> None:
    found = repeats(4, VOCABULARY, 20)
    assert found == repeats(4, VOCABULARY, 20)
    assert len({probe.ids for probe in found}) == 4
    for probe in found:
        once, again = probe.ids[1 : probe.passage + 1], probe.ids[probe.passage + 1 :]
        assert once == again
        assert len(set(once)) == probe.passage == 9 <= LONGEST_PASSAGE
        assert not {VOCABULARY.start, VOCABULARY.stop, VOCABULARY.unknown} & set(once)
    assert repeats(4, VOCABULARY, 4) == ()  # no room
    assert repeats(0, VOCABULARY, 20) == ()


@pytest.mark.parametrize(
    ("evenly", "further", "wanted"),
    [
        (2, (), (0, 90)),
        (4, (), (0, 30, 60, 90)),
        (1, (), (90,)),
        (0, (), ()),
        (0, (5, 91), (5,)),
        (2, (0, 45), (0, 45, 90)),
    ],
)
def test_steps(evenly: int, further: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    assert steps_of(90, evenly, further) == wanted


def test_without_probes_nothing_is_asked_of_the_training(tmp_path: Path) -> None:
    camera = Camera(model_of(Attention()), (), tmp_path)
    assert camera.at((0, 10)) == ()
    assert camera.seen() == ({}, ())
    assert Camera(model_of(Attention()), [Probe("a", (0,), ("a",))], tmp_path).at((0, 10)) == (0, 10)
