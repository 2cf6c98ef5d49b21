"""Whole checkpoints from one layout of pairs to the other: logits stay when the code changes with the rows."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from posenc.cli import main
from posenc.errors import FormatError
from posenc.formats import converting
from posenc.formats.converting import convert_weights

COMMON = {
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "vocab_size": 97,
    "intermediate_size": 40,
    "initializer_range": 0.2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MODELS = {
    "llama": ("LlamaForCausalLM", {"num_key_value_heads": 2, "attention_bias": True}, 8),
    "qwen3": ("Qwen3ForCausalLM", {"num_key_value_heads": 2, "head_dim": 10}, 8),
    "phi3": ("Phi3ForCausalLM", {"num_key_value_heads": 2}, 2),
    "gpt_neox": ("GPTNeoXForCausalLM", {"rotary_pct": 0.5}, 4),
    "stablelm": (
        "StableLmForCausalLM",
        {"num_key_value_heads": 3, "partial_rotary_factor": 0.5, "qk_layernorm": True},
        2 * (2 + 6 + 3),
    ),
    "smollm3": ("SmolLM3ForCausalLM", {"num_key_value_heads": 2, "no_rope_layers": [1, 0]}, 2),
}


def made(model_type):
    transformers = importlib.import_module("transformers")
    name, extra, _ = MODELS[model_type]
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(model_type, **COMMON, **extra)
    model = getattr(transformers, name)(config).eval()
    for key, parameter in model.named_parameters():
        if "norm" in key or "bias" in key:  # at their defaults they would hide rows that did not move
            torch.nn.init.normal_(parameter)
    return model


def adjacent(q, k, cos, sin, unsqueeze_dim=1):
    """What code for adjacent pairs does, as complex numbers; a partial head is split by the caller."""
    angle = torch.complex(cos, sin).chunk(2, -1)[0].unsqueeze(unsqueeze_dim).to(torch.complex64)
    return tuple(
        torch.view_as_real(torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous()) * angle).flatten(-2)
        for x in (q, k)
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    kept = {}

    def of(model_type):
        if model_type not in kept:
            folder = tmp_path_factory.mktemp(model_type)
            model = made(model_type)
            model.save_pretrained(folder / "half", max_shard_size="20KB" if model_type == "llama" else "50GB")
            kept[model_type] = folder, model
        return kept[model_type]

    return of


def partial(width):
    """gpt_neox and phi3 hand whole heads over and split them inside."""

    def apply(q, k, cos, sin, unsqueeze_dim=1):
        n = cos.shape[-1]
        turned = adjacent(q[..., :n], k[..., :n], cos, sin, unsqueeze_dim)
        return tuple(torch.cat((t, x[..., n:]), -1) for t, x in zip(turned, (q, k), strict=True))

    return apply


@pytest.mark.parametrize("model_type", MODELS)
def test_logits_stay_when_code_and_rows_change_together(model_type, saved, tmp_path, monkeypatch):
    folder, model = saved(model_type)
    done = convert_weights(folder / "half", tmp_path / "adjacent", "adjacent")
    assert (done.before, done.after, done.converted) == ("half", "adjacent", MODELS[model_type][2])
    tokens = torch.randint(97, (2, 11))
    with torch.no_grad():
        before = model(tokens).logits
        other = type(model).from_pretrained(tmp_path / "adjacent").eval()
        assert (other(tokens).logits - before).abs().max() > 0.3  # rows alone: another model
        module = importlib.import_module(type(model).__module__)
        monkeypatch.setattr(module, "apply_rotary_pos_emb", partial(48 // 6))
        assert (other(tokens).logits - before).abs().max() < 2e-5


@pytest.mark.parametrize("model_type", ["llama", "phi3"])
def test_there_and_back_is_bit_exact(model_type, saved, tmp_path):
    folder, _ = saved(model_type)
    half = folder / "half"
    there = convert_weights(half, tmp_path / "there", "adjacent")
    convert_weights(tmp_path / "there", tmp_path / "back", "half")
    files = sorted(p.name for p in half.glob("*.safetensors"))
    assert list(there.files) == files
    assert (len(files) > 5) == (model_type == "llama")  # sharded, and not
    for name in files:
        a, b = load_file(half / name), load_file(tmp_path / "back" / name)
        assert a.keys() == b.keys()
        assert all(torch.equal(a[k], b[k]) for k in a)
        with safe_open(tmp_path / "there" / name, "pt") as file:
            assert file.metadata()["posenc.rotary_layout"] == "adjacent"
            assert file.metadata()["format"] == "pt"
    beside = {p.name for p in half.iterdir()}
    assert {p.name for p in (tmp_path / "there").iterdir()} == beside
    assert (tmp_path / "there" / "config.json").read_bytes() == (half / "config.json").read_bytes()


LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 12,
    "num_hidden_layers": 1,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
    "vocab_size": 7,
    "rope_theta": 10000.0,
}
Q, K = "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight"


def small(folder, tensors=None, config=LLAMA, **more):
    folder.mkdir()
    plain = {Q: torch.arange(12.0).unsqueeze(1).repeat(1, 5), K: torch.arange(4.0).unsqueeze(1).repeat(1, 5)}
    save_file({**plain, **more} if tensors is None else tensors, folder / "model.safetensors")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_one_file_with_any_type_of_number(tmp_path):
    for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.float8_e4m3fn):
        name = str(dtype).split(".")[1]
        q, k = torch.arange(12.0).unsqueeze(1).repeat(1, 5).to(dtype), torch.arange(4.0).unsqueeze(1).to(dtype)
        folder = small(tmp_path / name, {Q: q, K: k, "lm_head.weight": torch.arange(35.0)})
        done = convert_weights(folder / "model.safetensors", tmp_path / f"{name}.safetensors", "adjacent")
        assert (done.tensors, done.converted) == (3, 2)
        found = load_file(tmp_path / f"{name}.safetensors")
        assert found[Q][:, 0].double().tolist() == [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11]
        assert found[K].flatten().double().tolist() == [0, 2, 1, 3]
        assert found["lm_head.weight"].tolist() == list(range(35))


def test_adapters_move_with_their_rows(tmp_path):
    a, b = "base.model.layers.0.self_attn.q_proj.lora_A.weight", "base.model.layers.0.self_attn.q_proj.lora_B.weight"
    folder = small(tmp_path / "a", **{a: torch.randn(2, 12), b: torch.arange(12.0).unsqueeze(1).repeat(1, 2)})
    convert_weights(folder, tmp_path / "b", "adjacent")
    found, before = (load_file(f / "model.safetensors") for f in (tmp_path / "b", folder))
    assert torch.equal(found[a], before[a])
    assert found[b][:4, 0].tolist() == [0, 2, 1, 3]


MOE = {**LLAMA, "model_type": "deepseek_v3", "q_lora_rank": 4, "kv_lora_rank": 4, "qk_rope_head_dim": 4}


@pytest.mark.parametrize(
    ("tensors", "more", "config", "words"),
    [
        (None, {}, None, "config.json"),
        ({Q: torch.zeros(12, 5)}, {}, LLAMA, "layer 0 has a k projection"),
        ({"embed.weight": torch.zeros(7, 12)}, {}, LLAMA, "found by their names"),
        ({Q: torch.zeros(10, 5), K: torch.zeros(4, 5)}, {}, LLAMA, "3 heads of 4 rows; got .*q_proj.*10, 5"),
        (None, {Q.replace("weight", "qweight"): torch.zeros(3)}, LLAMA, "weight and bias, not quantised"),
        (None, {Q.replace("weight", "weight_scale"): torch.zeros(3)}, LLAMA, "not quantised"),
        (None, {Q.replace("q_proj", "q_norm"): torch.zeros(5)}, LLAMA, "4 channels a head"),
        ({Q.replace("q_proj", "c_attn"): torch.zeros(36, 5)}, {}, LLAMA, "known for phi3 and gpt_neox"),
        (None, {Q.replace(".0.", ".1."): torch.zeros(12, 5)}, LLAMA, "the config has 1 layers"),
        (None, {}, {**LLAMA, "model_type": "bert"}, "only rotary models have pairs"),
        (None, {Q.replace("q_proj", "q_b_proj"): torch.zeros(3)}, LLAMA, "latent attention"),
    ],
)
def test_what_is_unclear_is_refused_before_anything_is_written(tensors, more, config, words, tmp_path):
    folder = small(tmp_path / "in", tensors, config, **more)
    with pytest.raises(FormatError, match=words):
        convert_weights(folder, tmp_path / "out", "adjacent")
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


def test_the_stored_layout_is_known(tmp_path):
    folder = small(tmp_path / "in")
    with pytest.raises(FormatError, match="half pairs already"):
        convert_weights(folder, tmp_path / "out", "half")
    convert_weights(folder, tmp_path / "there", "adjacent")
    with pytest.raises(FormatError, match="adjacent pairs already"):
        convert_weights(tmp_path / "there", tmp_path / "out", "adjacent")
    save_file({Q: torch.zeros(12, 5)}, tmp_path / "there" / "second.safetensors")
    with pytest.raises(FormatError, match="all files say"):
        convert_weights(tmp_path / "there", tmp_path / "out", "half")
    with pytest.raises(FormatError, match="does not exist yet"):
        convert_weights(folder, folder, "adjacent")
    gptj = {"n_head": 3, "n_embd": 12, "n_layer": 1, "rotary_dim": 4, "n_positions": 64, "vocab_size": 7}
    names = {n.replace("model.layers.0.self_attn", "transformer.h.0.attn"): torch.zeros(12, 5) for n in (Q, K)}
    other = small(tmp_path / "gptj", names, {"model_type": "gptj", **gptj})
    assert convert_weights(other, tmp_path / "out", "half").before == "adjacent"


def test_a_failure_on_the_way_leaves_nothing(tmp_path, monkeypatch):
    folder = small(tmp_path / "in")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(converting, "_reordered", full)
    with pytest.raises(FormatError, match=r"can be written; got .*No space left"):
        convert_weights(folder, tmp_path / "out", "adjacent")
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


def test_damaged_files_are_named(tmp_path):
    folder = small(tmp_path / "in")
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(FormatError, match="lies inside the file"):
        convert_weights(folder, tmp_path / "out", "adjacent")


def test_progress_reaches_the_end(tmp_path):
    seen = []
    convert_weights(small(tmp_path / "in"), tmp_path / "out", "adjacent", progress=lambda *n: seen.append(n))
    assert seen[-1] == (16 * 5 * 4, 16 * 5 * 4)
    assert [a for a, _ in seen] == sorted({a for a, _ in seen})


def test_the_verb(tmp_path, capsys):
    folder = small(tmp_path / "in")
    assert main(["convert-weights", str(folder), str(tmp_path / "out"), "--layout", "adjacent"]) == 0
    said = capsys.readouterr().out
    assert "2 of 2 tensors in 1 file reordered from half to adjacent pairs" in said
    assert main(["convert-weights", str(folder), str(tmp_path / "out"), "--layout", "adjacent"]) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith("posenc: the target does not exist yet")
    assert complaint.count("\n") == 1
    assert main(["convert-weights", str(folder), str(tmp_path / "new"), "--layout", "neox"]) == 2
    alone = Path(tmp_path / "alone.safetensors")
    alone.write_bytes((folder / "model.safetensors").read_bytes())
    config = ["--config", str(folder / "config.json")]
    assert main(["convert-weights", str(alone), str(tmp_path / "b.safetensors"), "--layout", "adjacent", *config]) == 0
