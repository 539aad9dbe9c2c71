"""Our operators in tiny transformers models: own output, generation, maps, padding, saving."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

transformers = pytest.importorskip("transformers", reason="transformers is not here")

from attnlab.adapt.registry import check, put, register, register_built_ins, reload  # noqa: E402
from attnlab.attention import (  # noqa: E402
    Additive,
    AftSimple,
    Attention,
    Bilinear,
    Causal,
    Differential,
    Everything,
    SoftmaxPlusOne,
    Sparsemax,
    TalkingHeads,
    Window,
)
from attnlab.errors import RequestError, TargetError  # noqa: E402

SMALL = {"vocab_size": 37, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
SMALL |= {"intermediate_size": 24, "max_position_embeddings": 40}
ENDS = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
PLAIN = Attention(mask=Everything())


def bert() -> Any:
    return transformers.BertForMaskedLM(transformers.BertConfig(**SMALL))


def roberta() -> Any:
    return transformers.RobertaForMaskedLM(transformers.RobertaConfig(**SMALL, **ENDS))


def gpt2() -> Any:
    sizes = {"vocab_size": 37, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 40}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **ENDS))


def llama() -> Any:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, **ENDS, num_key_value_heads=2))


DECODERS = [gpt2, llama]
EVERY = [bert, roberta, *DECODERS]


def made(make: Any) -> Any:
    torch.manual_seed(0)
    model = make().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(8)  # at a deviation of 0.02 every attention map would be flat
    return model


def batch(left: bool = False) -> dict[str, torch.Tensor]:
    ids = torch.randint(3, 37, (3, 9), generator=torch.Generator().manual_seed(1))
    real = torch.ones_like(ids)
    for row, missing in enumerate((0, 4, 2)):
        if missing:
            real[row, slice(0, missing) if left else slice(9 - missing, None)] = 0
    return {"input_ids": ids.masked_fill(real == 0, 2), "attention_mask": real}


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("kernel", ["auto", "fused"])
def test_dot_gives_the_models_own_output(make: Any, kernel: str) -> None:
    model, inputs = made(make), batch()
    real = inputs["attention_mask"].bool()
    model.set_attn_implementation("eager")
    own = model(**inputs, output_attentions=True)
    put(model, Attention(mask=Everything(), kernel=kernel))
    ours = model(**inputs, output_attentions=True)
    torch.testing.assert_close(ours.logits[real], own.logits[real], rtol=1e-4, atol=1e-5)
    if kernel == "auto":
        for mine, theirs in zip(ours.attentions, own.attentions, strict=True):
            torch.testing.assert_close(mine[0], theirs[0], rtol=1e-4, atol=1e-6)
            assert (mine[1, :, :5, 5:] == 0).all()  # padding gets no attention


@pytest.mark.parametrize("make", EVERY)
def test_gradients_are_the_models_own(make: Any) -> None:
    model, inputs = made(make), batch()
    real = inputs["attention_mask"].bool()
    found = []
    for change in (lambda: model.set_attn_implementation("eager"), lambda: put(model, PLAIN)):
        change()
        model.zero_grad()
        model(**inputs).logits[real].square().mean().backward()
        found.append({n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys()
    for name, theirs in found[0].items():
        torch.testing.assert_close(
            found[1][name], theirs, rtol=1e-3, atol=1e-5 * float(theirs.abs().max()) + 1e-7
        )


@pytest.mark.parametrize("make", DECODERS)
@pytest.mark.parametrize("left", [False, True], ids=["whole", "padded on the left"])
def test_greedy_cached_generation(make: Any, left: bool) -> None:
    model = made(make)
    inputs = (
        batch(left=True)
        if left
        else {"input_ids": batch()["input_ids"][:1], "attention_mask": torch.ones(1, 9)}
    )
    options = {"max_new_tokens": 12, "do_sample": False, "eos_token_id": None, "pad_token_id": 2}
    model.set_attn_implementation("eager")
    own = model.generate(**inputs, **options)
    put(model, PLAIN)
    assert torch.equal(model.generate(**inputs, **options), own)
    for other in (Attention(weigh=Sparsemax(), mask=Everything()), Differential(mask=Everything())):
        put(model, other)
        cached = model.generate(**inputs, **options)
        assert torch.equal(cached, model.generate(**inputs, **options, use_cache=False))


@pytest.mark.parametrize("make", DECODERS)
def test_causality_and_a_window_on_top_of_it(make: Any) -> None:
    model = made(make)
    ids = batch()["input_ids"][:1]
    put(model, Attention(weigh=SoftmaxPlusOne(), mask=Window(size=3)))
    maps = model(ids, output_attentions=True).attentions
    seen = torch.ones(9, 9).tril().triu(-2).bool()
    for weights in maps:
        assert (weights[..., ~seen] == 0).all()
        assert (weights[..., seen] > 0).all()


def test_built_ins_by_name() -> None:
    names = register_built_ins()
    assert {"attnlab:dot", "attnlab:sparsemax", "attnlab:additive"} <= set(names)
    model = made(llama)
    for name in names:
        model = made(llama)
        model.set_attn_implementation(name)
        assert model(batch()["input_ids"]).logits.isfinite().all(), name


@pytest.mark.parametrize("make", EVERY)
def test_talking_heads_start_as_the_models_own_output(make: Any) -> None:
    model, inputs = made(make), batch()
    real = inputs["attention_mask"].bool()
    own = model(**inputs).logits[real]
    put(model, TalkingHeads(mask=Everything()))
    torch.testing.assert_close(model(**inputs).logits[real], own, rtol=1e-4, atol=1e-5)
    for module in model.modules():
        if hasattr(module, "attnlab_core"):
            torch.nn.init.normal_(module.attnlab_core.weigh.of_scores)
    assert not torch.allclose(model(**inputs).logits[real], own, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("make", EVERY)
def test_differential_maps_are_its_formula(make: Any) -> None:
    """For what a model hands to its first layer: its queries, keys, values and mask."""
    model, inputs = made(make), batch()
    name = put(model, Differential(mask=Everything()))
    operator, handed = transformers.AttentionInterface()[name], []

    def listening(module: Any, *given: Any, **options: Any) -> Any:
        handed.append((module.attnlab_core, *given, operator(module, *given, **options)))
        return handed[-1][-1]

    transformers.AttentionInterface.register(name, listening)
    model(**inputs)
    core, q, k, v, mask, (mixed, maps) = handed[0]
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
    each = []
    for half in (slice(None, 2), slice(2, None)):  # of heads of width 4
        scores = q[..., half] @ k[..., half].mT / 2**0.5
        each.append(scores.masked_fill(~mask, float("-inf")).softmax(-1))
    difference = each[0] - core.factor() * each[1]
    y = difference @ v
    normed = y / (y.square().mean(-1, keepdim=True) + 1e-5).sqrt() * (1 - 0.8)
    seen = mask.any(-1, keepdim=True).expand(*y.shape[:3], 1)  # some masks leave rows of padding with nothing
    torch.testing.assert_close(
        mixed.transpose(1, 2) * seen, (normed * seen).nan_to_num(), rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(maps * seen, (difference * seen).nan_to_num(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", [bert, gpt2, llama])
@pytest.mark.parametrize(
    "operator",
    [
        Attention(score=Additive(hidden=5), weigh=Sparsemax(), mask=Everything()),
        Attention(score=Bilinear(), mask=Everything()),
        TalkingHeads(mask=Everything()),
        Differential(mask=Everything()),
    ],
    ids=lambda o: f"{o.score.name} {o.name}",
)
def test_saving_and_reloading_keeps_operator_and_weights(make: Any, operator: Any, tmp_path: Path) -> None:
    model, inputs = made(make), batch()
    put(model, operator, "mine")
    weights = [name for name, _ in model.named_parameters() if "attnlab_core" in name]
    assert weights
    with torch.no_grad():
        for name in weights:
            model.get_parameter(name).normal_()
    model.save_pretrained(tmp_path)
    again = reload(type(model), tmp_path).eval()
    check(again)
    assert again.config._attn_implementation == "attnlab:mine"
    torch.testing.assert_close(again(**inputs).logits, model(**inputs).logits, rtol=0, atol=0)


def test_a_plain_reload_is_noticed(tmp_path: Path) -> None:
    model = made(gpt2)
    put(model, Attention(weigh=Sparsemax(), mask=Everything()))
    model.save_pretrained(tmp_path)
    plain = transformers.GPT2LMHeadModel.from_pretrained(tmp_path)
    with pytest.raises(
        TargetError, match="saved with 'attnlab:dot-everything-sparsemax' and runs with 'sdpa'"
    ):
        check(plain)
    made(gpt2).save_pretrained(tmp_path / "other")
    with pytest.raises(TargetError, match="names no attnlab operator"):
        reload(transformers.GPT2LMHeadModel, tmp_path / "other")


def test_what_cannot_be_put_in_is_refused() -> None:
    with pytest.raises(RequestError, match="own mask needs scores to hide, and 'aft-simple' has none"):
        register(AftSimple())
    with pytest.raises(RequestError, match="halves every head, and 5 places"):
        put(transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=15, n_head=3)), Differential())
    with pytest.raises(RequestError, match="not possible: the weighing 'sparsemax' is no softmax"):
        register(Attention(weigh=Sparsemax(), kernel="fused"))
    assert register(Attention(mask=Causal())) == "attnlab:dot-causal-softmax"
