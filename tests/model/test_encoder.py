"""The encoder and classifier against torch's layers with the same weights, padded and masked as usual."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention import Layout
from attnlab.model import ClassifierModel, ClassToken, Encoder, EncoderModel, Head, MaskedModel, Mean, Pool

SPEC = Encoder(layers=2, heads=2, width=16, context=12, dropout=0.0)
LENGTHS = (3, 12, 1, 7)
POOLS = (Mean(), ClassToken())


def torch_layer(model: EncoderModel, index: int) -> nn.TransformerEncoderLayer:
    """torch's pre-norm layer, its every parameter set from one of our blocks."""
    block, width = model.blocks[index], model.spec.width
    layer = nn.TransformerEncoderLayer(
        width,
        model.spec.heads,
        4 * width,
        dropout=0.0,
        activation=lambda x: F.gelu(x, approximate="tanh"),
        batch_first=True,
        norm_first=True,
    ).double()
    left = dict(layer.named_parameters())
    project, mixer, mlp = block.mixer.project, block.mixer, block.mlp
    heads = (project.query, project.key, project.value)
    given = {
        "self_attn.in_proj_weight": torch.cat([part.weight for part in heads]),
        "self_attn.in_proj_bias": torch.cat([part.bias for part in heads]),
    }
    pairs = (("self_attn.out_proj", mixer.merge), ("linear1", mlp.up), ("linear2", mlp.down))
    for name, part in (*pairs, ("norm1", block.norm_mix), ("norm2", block.norm_mlp)):
        given |= {f"{name}.weight": part.weight, f"{name}.bias": part.bias}
    with torch.no_grad():
        for name, value in given.items():
            left.pop(name).copy_(value)
    assert not left
    return layer.eval()


def the_usual_way(model: ClassifierModel, sequences: list[Tensor], pool: Pool) -> Tensor:
    """Padded with tokens that mean something else, masked as keys, and left out of the mean."""
    encoder = model.encoder
    tokens_BT = nn.utils.rnn.pad_sequence(sequences, batch_first=True, padding_value=5)
    real_BT = torch.arange(tokens_BT.shape[1]) < torch.tensor([len(s) for s in sequences])[:, None]
    x_BTD = encoder.embedding(tokens_BT) + encoder.position.table.weight[: tokens_BT.shape[1]]
    for index in range(len(encoder.blocks)):
        x_BTD = torch_layer(encoder, index)(x_BTD, src_key_padding_mask=~real_BT)
    x_BTD = encoder.norm(x_BTD)
    kept_BT1 = real_BT[..., None]
    mean_BD = (x_BTD * kept_BT1).sum(1) / kept_BT1.sum(1)
    pooled = mean_BD if isinstance(pool, Mean) else x_BTD[:, 0]
    assert model.up is not None
    return model.down(torch.relu(model.up(pooled)))  # type: ignore[no-any-return]


def some_sequences(lengths: tuple[int, ...] = LENGTHS, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, 40, (n,), generator=generator) for n in lengths]


def awake(model: nn.Module) -> nn.Module:
    """Weights large enough that a mistake would show, biases and norms among them."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.double().eval()


def logits_of(model: ClassifierModel, sequences: list[Tensor]) -> Tensor:
    logits: Tensor = model(torch.cat(sequences), Layout([len(s) for s in sequences]))
    return logits


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: pool.name)
def test_a_ragged_batch_gives_what_torch_gives_padded_and_masked(pool: Pool) -> None:
    model = ClassifierModel(SPEC, Head(pool=pool, hidden=20), 40, 3)
    awake(model)
    with torch.no_grad():
        ours, theirs = logits_of(model, some_sequences()), the_usual_way(model, some_sequences(), pool)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: pool.name)
def test_neither_padding_nor_neighbours_change_a_sequence(pool: Pool) -> None:
    model = ClassifierModel(SPEC, Head(pool=pool), 40, 3)
    awake(model)
    sequences = some_sequences()
    others = some_sequences((12, 12, 5), seed=7)
    with torch.no_grad():
        alone = torch.cat([logits_of(model, [sequence]) for sequence in sequences])
        together = logits_of(model, sequences)
        among_others = logits_of(model, [*sequences, *others])[: len(sequences)]
    torch.testing.assert_close(together, alone, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(among_others, alone, rtol=1e-10, atol=1e-10)


def test_padding_gets_no_attention_and_gives_no_gradient() -> None:
    model = ClassifierModel(SPEC, Head(), 40, 3)
    awake(model)
    sequences = some_sequences()
    layout = Layout([len(s) for s in sequences])
    for weights_BHTS in model.encoder.attention_maps(torch.cat(sequences), layout):
        assert weights_BHTS is not None
        for row, length in enumerate(LENGTHS):
            assert (weights_BHTS[row, :, :length, length:] == 0).all()
            sums = weights_BHTS[row, :, :length].sum(-1)
            torch.testing.assert_close(sums, torch.ones_like(sums), rtol=1e-12, atol=1e-12)
    logits_of(model, sequences)[0].sum().backward()  # the first of a batch that is padded to 12
    table = model.encoder.position.table.weight.grad
    assert (table[:3] != 0).any(dim=1).all()
    assert (table[3:] == 0).all()


def test_every_token_sees_every_other() -> None:
    model = ClassifierModel(SPEC, Head(pool=ClassToken()), 40, 3)
    awake(model)
    (sequence,) = some_sequences((9,))
    with torch.no_grad():
        before = logits_of(model, [sequence])
        for place in range(1, 9):
            changed = sequence.clone()
            changed[place] = 3 if changed[place] != 3 else 4
            assert not torch.allclose(logits_of(model, [changed]), before, atol=1e-6)


def test_parts_of_one_name_start_alike() -> None:
    """The encoder of a classifier and the one that fills in masks: all but the row of the mask."""
    scratch, masked = ClassifierModel(SPEC, Head(), 40, 3, seed=4), MaskedModel(SPEC, 40, seed=4)
    theirs = dict(masked.encoder.named_parameters())
    assert theirs["embedding.weight"].shape == (41, 16)
    for name, value in scratch.encoder.named_parameters():
        if name != "embedding.weight":
            assert torch.equal(value, theirs[name]), name


def test_a_head_without_a_hidden_layer_is_linear() -> None:
    model = ClassifierModel(SPEC, Head(hidden=0), 40, 3)
    assert sum(p.numel() for n, p in model.named_parameters() if not n.startswith("encoder.")) == 16 * 3 + 3
    assert logits_of(model, some_sequences()).shape == (4, 3)
