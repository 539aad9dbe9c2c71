"""Checkpoints: bit for bit, and never anything but what was written."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from attnlab.errors import StoreError
from attnlab.training import Checkpoint

from .small import SPEC, VOCABULARY, same_bits, weights

TENSORS = {
    "model/a": torch.randn(3, 4),
    "model/none": torch.zeros(0, 4),
    "model/number": torch.tensor(7.5),
    "model/half": torch.randn(5).bfloat16(),
    "model/whole": torch.arange(6).reshape(2, 3),
    "model/turned": torch.randn(4, 3).T,
    "model/odd": torch.tensor([float("nan"), float("inf"), -0.0]),
}


def test_every_kind_of_tensor_comes_back_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    Checkpoint(TENSORS, {"seed": 3, "progress": {"step": 9, "mean_loss": 0.1}}).write(path)
    back = Checkpoint.read(path)
    assert back.facts == {"seed": 3, "progress": {"step": 9, "mean_loss": 0.1}}
    assert back.tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        other = back.tensors[name]
        assert (other.dtype, other.shape) == (tensor.dtype, tensor.shape)
        assert other.contiguous().flatten().view(torch.uint8).tolist() == (
            tensor.contiguous().flatten().view(torch.uint8).tolist()
        )


@pytest.mark.parametrize("tied", [False, True])
def test_a_model_and_its_optimiser_come_back(tmp_path: Path, tied: bool) -> None:
    spec = SPEC.model_copy(update={"tied": tied})
    model = spec.build(VOCABULARY, seed=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    model(torch.randint(VOCABULARY, (2, 8))).square().sum().backward()
    optimizer.step()
    path = tmp_path / "x.safetensors"
    Checkpoint.of(model, optimizer, {}).write(path)

    other = spec.build(VOCABULARY, seed=2)
    other_optimizer = torch.optim.AdamW(other.parameters(), lr=0.1, fused=True)
    Checkpoint.read(path).restore(other, other_optimizer)
    assert same_bits(weights(model), weights(other))
    assert (other.head.weight is other.embedding.weight) is tied
    one, two = optimizer.state_dict()["state"], other_optimizer.state_dict()["state"]
    assert one.keys() == two.keys()
    assert all(same_bits(one[index], two[index]) for index in one)


def test_tied_weights_are_written_once(tmp_path: Path) -> None:
    sizes = []
    for tied in (False, True):
        model = SPEC.model_copy(update={"tied": tied}).build(4000, seed=1)
        Checkpoint.of(model, None, {}).write(tmp_path / "x")
        sizes.append((tmp_path / "x").stat().st_size)
    assert sizes[0] - sizes[1] == pytest.approx(4000 * 16 * 4, rel=0.01)


def test_one_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    Checkpoint(TENSORS, {"seed": 3}).write(path)
    whole = path.read_bytes()
    for length in [0, 1, 7, 8, 9, 40, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(StoreError, match=r"x\.safetensors: .*remove it to begin that run anew"):
            Checkpoint.read(path)


def test_one_with_a_flipped_bit_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    Checkpoint({"model/a": torch.randn(3, 4)}, {"seed": 3, "progress": {"step": 12}}).write(path)
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    padding = len(whole[8:header]) - len(whole[8:header].rstrip(b" "))
    survived = []
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        try:
            back = Checkpoint.read(path)
        except StoreError:
            continue
        survived.append((at, back))
    # What is left may differ in nothing that is read.
    for at, back in survived:
        assert header - padding <= at < header, f"a flipped bit at byte {at} went unnoticed: {back}"


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"\0" * 100, b"\xff" * 5000])
def test_something_else_under_its_name_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not a readable checkpoint"):
        Checkpoint.read(path)


def test_somebody_elses_file_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(2)}, tmp_path / "x")
    with pytest.raises(StoreError, match="not a checkpoint of attnlab"):
        Checkpoint.read(tmp_path / "x")
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(StoreError, match="not a readable checkpoint"):
            Checkpoint.read(path)


def test_another_models_checkpoint_does_not_fit(tmp_path: Path) -> None:
    Checkpoint.of(nn.Linear(3, 4), None, {}).write(tmp_path / "x")
    with pytest.raises(RuntimeError, match="Missing key"):
        Checkpoint.read(tmp_path / "x").restore(SPEC.build(VOCABULARY))
