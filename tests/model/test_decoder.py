"""The decoder against transformers' GPT-2 with the same weights, and against itself laid out otherwise."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from attnlab.attention import Additive, Attention, Causal, Layout, Rotary, Window
from attnlab.model import Decoder, DecoderModel

transformers = pytest.importorskip("transformers", reason="GPT-2 to compare with is in transformers")

VOCABULARY = 101
SMALL = Decoder(layers=3, heads=3, width=24, context=32, dropout=0.0)


def gpt2_with_the_weights_of(model: DecoderModel) -> nn.Module:
    """transformers' GPT-2, its every parameter set from ours."""
    spec = model.spec
    config = transformers.GPT2Config(
        vocab_size=model.embedding.num_embeddings,
        n_positions=spec.context,
        n_embd=spec.width,
        n_layer=spec.layers,
        n_head=spec.heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        tie_word_embeddings=spec.tied,
    )
    gpt2: nn.Module = transformers.GPT2LMHeadModel(config).to(model.head.weight.dtype).eval()
    left = dict(gpt2.named_parameters())

    def put(name: str, *sources: Tensor, turned: bool = False) -> None:
        value = torch.cat(sources)
        with torch.no_grad():
            left.pop(name).copy_(value.T if turned else value)  # GPT-2 keeps its matrices turned

    put("transformer.wte.weight", model.embedding.weight)
    put("transformer.wpe.weight", model.position.table.weight)
    for index, block in enumerate(model.blocks):
        at = f"transformer.h.{index}"
        project, mixer = block.mixer.project, block.mixer
        heads = (project.query, project.key, project.value)
        put(f"{at}.attn.c_attn.weight", *(layer.weight for layer in heads), turned=True)
        put(f"{at}.attn.c_attn.bias", *(layer.bias for layer in heads))
        linear = (("attn.c_proj", mixer.merge), ("mlp.c_fc", block.mlp.up), ("mlp.c_proj", block.mlp.down))
        for name, layer in linear:
            put(f"{at}.{name}.weight", layer.weight, turned=True)
            put(f"{at}.{name}.bias", layer.bias)
        for name, norm in (("ln_1", block.norm_mix), ("ln_2", block.norm_mlp)):
            put(f"{at}.{name}.weight", norm.weight)
            put(f"{at}.{name}.bias", norm.bias)
    put("transformer.ln_f.weight", model.norm.weight)
    put("transformer.ln_f.bias", model.norm.bias)
    if not spec.tied:
        put("lm_head.weight", model.head.weight)
    assert not left  # nothing of GPT-2 was left as it came
    return gpt2


def stirred(model: DecoderModel) -> DecoderModel:
    """The model in fp64 with every parameter away from its initial value: biases at zero and norms at one
    would prove little."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.double().parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    return model.eval()


def some_tokens(*shape: int) -> Tensor:
    return torch.randint(VOCABULARY, shape, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kernel", ["fused", "stages"])
def test_logits_are_gpt2s(tied: bool, kernel: str) -> None:
    spec = SMALL.model_copy(update={"tied": tied, "mixer": Attention(kernel=kernel)})  # type: ignore[arg-type]
    model = stirred(spec.build(VOCABULARY, seed=1))
    tokens_BT = some_tokens(4, 32)
    theirs = gpt2_with_the_weights_of(model)(tokens_BT).logits
    torch.testing.assert_close(model(tokens_BT), theirs, rtol=1e-10, atol=1e-10)


def test_gradients_are_gpt2s() -> None:
    model = stirred(SMALL.build(VOCABULARY, seed=1))
    gpt2 = gpt2_with_the_weights_of(model)
    tokens_BT = some_tokens(4, 32)
    for each in (lambda x: model(x), lambda x: gpt2(x).logits):
        logits_BTV = each(tokens_BT[:, :-1])
        nn.functional.cross_entropy(logits_BTV.flatten(0, 1), tokens_BT[:, 1:].flatten()).backward()
    pairs = [
        (model.embedding.weight.grad, gpt2.transformer.wte.weight.grad),
        (model.blocks[0].mixer.merge.weight.grad.T, gpt2.transformer.h[0].attn.c_proj.weight.grad),
        (model.blocks[2].mlp.up.weight.grad.T, gpt2.transformer.h[2].mlp.c_fc.weight.grad),
        (model.position.table.weight.grad, gpt2.transformer.wpe.weight.grad),
    ]
    for ours, others in pairs:
        assert ours.abs().max() > 1e-4
        torch.testing.assert_close(ours, others, rtol=1e-8, atol=1e-10)


def test_a_ragged_batch_is_gpt2s_with_padding_masked() -> None:
    model = stirred(SMALL.build(VOCABULARY, seed=1))
    lengths = [5, 1, 32, 17]
    tokens_BT = some_tokens(4, 32)
    real_BT = torch.arange(32) < torch.tensor(lengths)[:, None]
    flat = model.head(model.hidden(tokens_BT[real_BT], Layout(lengths)))
    theirs = gpt2_with_the_weights_of(model)(tokens_BT, attention_mask=real_BT.long()).logits[real_BT]
    torch.testing.assert_close(flat, theirs, rtol=1e-10, atol=1e-10)


VARIANTS = {
    "fused": Attention(),
    "stages": Attention(kernel="stages"),
    "additive": Attention(score=Additive()),
    "window": Attention(mask=Window(size=3)),
    "renormalised": Attention(mask=Causal(where="renormalised")),
}


@pytest.fixture(params=VARIANTS.items(), ids=lambda item: item[0])
def varied(request: pytest.FixtureRequest) -> DecoderModel:
    return stirred(SMALL.model_copy(update={"mixer": request.param[1]}).build(VOCABULARY, seed=1))


def test_no_sequence_of_a_batch_sees_another(varied: DecoderModel) -> None:
    lengths = [7, 2, 32, 1, 19]
    tokens_N = some_tokens(sum(lengths))
    together = varied.hidden(tokens_N, Layout(lengths))
    alone = [varied.hidden(part, Layout([len(part)])) for part in tokens_N.split(lengths)]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-10, atol=1e-10)


def test_stretches_of_similar_length_change_nothing(varied: DecoderModel) -> None:
    lengths = [*[1, 2, 3, 4] * 15, *range(5, 32), *[32] * 30]
    tokens_N = some_tokens(sum(lengths))
    whole, cut = Layout(lengths), Layout(lengths)
    whole.__dict__["buckets"] = (whole,)  # a cached property: as if it had found nothing to cut
    assert len(cut.buckets) > 1
    other = copy.deepcopy(varied)
    one, two = varied.hidden(tokens_N, whole), other.hidden(tokens_N, cut)
    torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)
    one.square().sum().backward()
    two.square().sum().backward()
    for mine, theirs in zip(varied.parameters(), other.parameters(), strict=True):
        if mine.grad is not None:
            torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-8, atol=1e-8)


def test_going_on_from_a_state_is_the_whole_text_again() -> None:
    for position in (SMALL.position, Rotary()):
        model = stirred(SMALL.model_copy(update={"position": position}).build(VOCABULARY, seed=1))
        tokens_BT = some_tokens(3, 20)
        states = model.begin()
        pieces, seen = [], 0
        for size in (6, 1, 1, 12):
            part = tokens_BT[:, seen : seen + size]
            hidden = model.hidden(part.flatten(), Layout([size] * 3, offset=seen), states)
            pieces.append(hidden.unflatten(0, (3, size)))
            seen += size
        whole = model.hidden(tokens_BT.flatten(), Layout([20] * 3)).unflatten(0, (3, 20))
        torch.testing.assert_close(torch.cat(pieces, 1), whole, rtol=1e-10, atol=1e-10)


def test_attention_maps_are_the_weights_of_every_layer() -> None:
    model = stirred(SMALL.build(VOCABULARY, seed=1))
    maps = model.attention_maps(some_tokens(9), Layout([9]))
    assert len(maps) == SMALL.layers
    for weights_BHTS in maps:
        assert weights_BHTS is not None
        assert weights_BHTS.shape == (1, 3, 9, 9)
        torch.testing.assert_close(weights_BHTS.sum(-1), torch.ones(1, 3, 9, dtype=torch.float64))
        assert weights_BHTS.triu(1).abs().max() == 0


def test_dropout_acts_in_training_only() -> None:
    model = Decoder(layers=1, heads=2, width=16, context=16, dropout=0.5).build(VOCABULARY)
    tokens_BT = some_tokens(2, 16)
    model.train()
    assert not torch.equal(model(tokens_BT), model(tokens_BT))
    model.eval()
    assert torch.equal(model(tokens_BT), model(tokens_BT))


def test_without_an_mlp_a_block_is_attention_alone() -> None:
    with_one = stirred(SMALL.build(VOCABULARY, seed=1))
    without = SMALL.model_copy(update={"mlp_ratio": 0}).build(VOCABULARY, seed=1).double().eval()
    assert not [name for name in without.state_dict() if "mlp" in name]
    shared = {name: value for name, value in with_one.state_dict().items() if "mlp" not in name}
    without.load_state_dict(shared)
    gpt2 = gpt2_with_the_weights_of(with_one)
    with torch.no_grad():
        for block in gpt2.transformer.h:  # an MLP that ends in zeros adds nothing
            block.mlp.c_proj.weight.zero_()
            block.mlp.c_proj.bias.zero_()
    tokens_BT = some_tokens(2, 16)
    torch.testing.assert_close(without(tokens_BT), gpt2(tokens_BT).logits, rtol=1e-10, atol=1e-10)
