"""Tensors out of safetensors and GGUF files: the same layer by both ways, and files that lie."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import load_file, save_file

from posenc.analysis.decomposition import decompose
from posenc.errors import FormatError, PosencError
from posenc.formats.weights import SafetensorsFiles, first_layer, tokenized

IDS = [5, 17, 3, 40, 5]
HEADS, KEY_HEADS, HEAD_DIM, WIDTH, VOCABULARY = 6, 2, 8, 32, 41
LLAMA = {
    "model_type": "llama", "hidden_size": WIDTH, "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS,
    "head_dim": HEAD_DIM, "num_hidden_layers": 1, "rope_theta": 700.0, "rms_norm_eps": 1e-5,
    "max_position_embeddings": 64,
}  # fmt: skip


def llama_tensors(seed=1):
    rng = np.random.default_rng(seed)
    return {
        "model.embed_tokens.weight": rng.standard_normal((VOCABULARY, WIDTH)).astype(np.float32),
        "model.layers.0.input_layernorm.weight": rng.standard_normal(WIDTH).astype(np.float32),
        "model.layers.0.self_attn.q_proj.weight": rng.standard_normal((HEADS * HEAD_DIM, WIDTH)).astype(np.float32),
        "model.layers.0.self_attn.k_proj.weight": rng.standard_normal((KEY_HEADS * HEAD_DIM, WIDTH)).astype(np.float32),
    }


def folder(path, tensors=None, config=None):
    path.mkdir(exist_ok=True)
    save_file(llama_tensors() if tensors is None else tensors, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(LLAMA | (config or {})))
    return path


def permuted(matrix, heads):
    """Rows i and i + 4 of each head of 8 to 2i and 2i + 1, as llama.cpp stores them."""
    made = np.empty_like(matrix)
    for h in range(heads):
        for i in range(4):
            made[8 * h + 2 * i], made[8 * h + 2 * i + 1] = matrix[8 * h + i], matrix[8 * h + i + 4]
    return made


def gguf_of(path, tensors, arch="llama", quantised=False):
    import gguf

    writer = gguf.GGUFWriter(path, arch)
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_key_length(HEAD_DIM)
    writer.add_rope_freq_base(700.0)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_layer_norm_rms_eps(1e-5)
    q, k = (tensors[f"model.layers.0.self_attn.{n}_proj.weight"] for n in "qk")
    if arch == "llama":
        q, k = permuted(q, HEADS), permuted(k, KEY_HEADS)
    for name, value in (
        ("token_embd.weight", tensors["model.embed_tokens.weight"]),
        ("blk.0.attn_norm.weight", tensors["model.layers.0.input_layernorm.weight"]),
        ("blk.0.attn_q.weight", q),
        ("blk.0.attn_k.weight", k),
    ):
        if quantised and value.ndim == 2:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(name, gguf.quants.quantize(value, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("arch", ["llama", "qwen2"])
def test_the_same_model_as_gguf_and_as_safetensors(arch, tmp_path):
    tensors = llama_tensors()
    a = decompose(folder(tmp_path / "hf", tensors), IDS)
    b = decompose(gguf_of(tmp_path / "model.gguf", tensors, arch), IDS)
    for x, y in zip(a.heads, b.heads, strict=True):
        assert x.deviation == pytest.approx(y.deviation, rel=1e-12)
        assert x.pair_shares == pytest.approx(y.pair_shares, abs=1e-12)
    rows = [tuple(round(s, 6) for s in head.pair_shares) for head in a.heads]
    assert len(set(rows)) == HEADS


def test_quantised_rows_are_read_one_by_one(tmp_path):
    tensors = llama_tensors()
    a = decompose(folder(tmp_path / "hf", tensors), IDS)
    b = decompose(gguf_of(tmp_path / "model.gguf", tensors, quantised=True), IDS)
    assert a.heads[3].deviation == pytest.approx(b.heads[3].deviation, rel=0.05)
    assert a.heads[3].deviation != b.heads[3].deviation


def test_bfloat16_and_shards_and_a_file_instead_of_its_folder(tmp_path):
    whole = llama_tensors()
    rounded = {name: torch.from_numpy(value).to(torch.bfloat16) for name, value in whole.items()}
    from safetensors.torch import save_file as save_torch

    place = tmp_path / "shards"
    place.mkdir()
    files = {}
    for i, (name, value) in enumerate(rounded.items()):
        files[name] = f"model-{i}.safetensors"
        save_torch({name: value}, place / files[name])
    (place / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    (place / "config.json").write_text(json.dumps(LLAMA))
    layer = first_layer(place, IDS).layer
    want = rounded["model.embed_tokens.weight"][IDS].to(torch.float64).numpy()
    assert layer.words.dtype == np.float64
    assert np.array_equal(layer.words, want)
    one = folder(tmp_path / "one")
    assert np.array_equal(
        first_layer(one / "model.safetensors", IDS).layer.words, whole["model.embed_tokens.weight"][IDS]
    )


def test_a_bert_in_gguf(tmp_path):
    import gguf

    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=37, hidden_size=30, num_attention_heads=5, num_hidden_layers=1, intermediate_size=13,
        max_position_embeddings=19, layer_norm_eps=1e-3, initializer_range=0.3,
    )  # fmt: skip
    model = transformers.BertModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(tmp_path / "hf")
    t = load_file(tmp_path / "hf" / "model.safetensors")
    writer = gguf.GGUFWriter(tmp_path / "bert.gguf", "bert")
    writer.add_block_count(1)
    writer.add_context_length(19)
    writer.add_embedding_length(30)
    writer.add_head_count(5)
    writer.add_layer_norm_eps(1e-3)
    at = "encoder.layer.0.attention.self"
    for name, value in {
        "token_embd.weight": t["embeddings.word_embeddings.weight"],
        "position_embd.weight": t["embeddings.position_embeddings.weight"],
        "token_types.weight": t["embeddings.token_type_embeddings.weight"],
        "token_embd_norm.weight": t["embeddings.LayerNorm.weight"],
        "token_embd_norm.bias": t["embeddings.LayerNorm.bias"],
        **{f"blk.0.attn_{n[0]}.{w}": t[f"{at}.{n}.{w}"] for n in ("query", "key") for w in ("weight", "bias")},
    }.items():
        writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    a, b = decompose(tmp_path / "hf", [1, 36, 7]), decompose(tmp_path / "bert.gguf", [1, 36, 7])
    for x, y in zip(a.heads, b.heads, strict=True):
        assert [p.share for p in x.parts] == pytest.approx([p.share for p in y.parts], abs=1e-9)
    assert len({x.deviation for x in a.heads}) == 5


def broken(path, change):
    tensors, config = llama_tensors(), {}
    change(tensors, config)
    return folder(path, tensors, config)


def drop(name):
    return lambda tensors, config: tensors.pop(name)


def put(name, value):
    return lambda tensors, config: tensors.__setitem__(name, value)


def say(**keys):
    return lambda tensors, config: config.update(keys)


Q, WORDS = "model.layers.0.self_attn.q_proj.weight", "model.embed_tokens.weight"


@pytest.mark.parametrize(
    "change",
    [
        drop(Q),
        drop(WORDS),
        put(Q, np.ones((HEADS * HEAD_DIM, WIDTH + 1), np.float32)),
        put(Q, np.ones((HEADS * HEAD_DIM, WIDTH), np.int8)),
        put(Q, np.full((HEADS * HEAD_DIM, WIDTH), np.nan, np.float32)),
        put(Q, np.full((HEADS * HEAD_DIM, WIDTH), 3e38, np.float32)),
        put(WORDS, np.ones(7, np.float32)),
        put(WORDS, np.ones((4, WIDTH), np.float32)),
        say(num_attention_heads=0),
        say(num_attention_heads=10**9),
        say(num_key_value_heads=4),
        say(rms_norm_eps=0),
        say(rms_norm_eps="1e-5"),
        say(head_dim=7),
        say(model_type="gemma3_text"),
        say(model_type=3),
    ],
)
def test_models_that_lie_are_refused_with_one_line(change, tmp_path):
    with pytest.raises(PosencError) as seen:
        first_layer(broken(tmp_path / "m", change), IDS)
    assert "\n" not in str(seen.value)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00" * 40,
        struct.pack("<Q", 2**60) + b"{}",
        struct.pack("<Q", 2) + b"{]",
        struct.pack("<Q", 70)
        + json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 4]}}).encode().ljust(70),
    ],
)
def test_bytes_that_are_no_safetensors(raw, tmp_path):
    file = folder(tmp_path / "m") / "model.safetensors"
    file.write_bytes(raw)
    with pytest.raises(FormatError, match="safetensors"):
        SafetensorsFiles(file)


@pytest.mark.parametrize("names", [["../x.safetensors"], ["/etc/x.safetensors"], ["x.bin"], 7, None])
def test_an_index_that_points_elsewhere(names, tmp_path):
    weights = names if names is None or isinstance(names, int) else {str(i): n for i, n in enumerate(names)}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    with pytest.raises(FormatError):
        SafetensorsFiles(tmp_path)


def test_pickles_are_named_and_not_opened(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(FormatError, match="Pickled weights are not opened"):
        SafetensorsFiles(tmp_path)


@pytest.mark.parametrize("cut", [30, 200, 1000, 4000])
def test_a_truncated_gguf(cut, tmp_path):
    path = gguf_of(tmp_path / "m.gguf", llama_tensors())
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(PosencError) as seen:
        first_layer(path, IDS)
    assert "\n" not in str(seen.value)


def test_every_flipped_byte_of_a_gguf_header_gives_an_answer_or_one_line(tmp_path):
    path = gguf_of(tmp_path / "m.gguf", llama_tensors())
    whole, answers, refusals = path.read_bytes(), 0, 0
    for at in range(0, 900, 3):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        try:
            decompose(path, IDS)
            answers += 1
        except PosencError:
            refusals += 1
    assert answers > 5
    assert refusals > 50


@pytest.mark.parametrize("ids", [[], [VOCABULARY], [-1], [True], [1.5], ["a"], [2**70], [1] * 600])
def test_token_ids_are_checked(ids, tmp_path):
    with pytest.raises(PosencError):
        first_layer(folder(tmp_path / "m"), ids)


@pytest.mark.parametrize("raw", [b"", b"{}", b"[" * 5000, b'{"version": "1.0", "model": {"type": "Evil"}}'])
def test_a_tokenizer_that_is_none(raw, tmp_path):
    (folder(tmp_path / "m") / "tokenizer.json").write_bytes(raw)
    with pytest.raises(FormatError, match="is a tokenizer"):
        tokenized(tmp_path / "m", "words")


def test_no_tokenizer_asks_for_ids(tmp_path):
    with pytest.raises(FormatError, match="token ids"):
        tokenized(folder(tmp_path / "m"), "words")
    with pytest.raises(FormatError, match="token ids"):
        tokenized(gguf_of(tmp_path / "m.gguf", llama_tensors()), "words")


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    with pytest.raises(PosencError, match=r"posenc\[attention\]"):
        tokenized(folder(tmp_path / "m"), "words")


def vocabulary(path, pre, *, start=False, model="gpt2", merges=("1 2", "Ġ a")):
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(["1", "2", "12", "Ġ", "a", "Ġa", "<s>"])
    writer.add_token_types([1, 1, 1, 1, 1, 1, 3])
    writer.add_token_merges(list(merges))
    writer.add_bos_token_id(6)
    writer.add_add_bos_token(start)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_the_vocabulary_inside_a_gguf(tmp_path):
    assert tokenized(vocabulary(tmp_path / "a.gguf", "gpt-2"), "12 a<s>").ids == (2, 5, 6)
    assert tokenized(vocabulary(tmp_path / "b.gguf", "smollm"), "12 a").ids == (0, 1, 5)
    assert tokenized(vocabulary(tmp_path / "c.gguf", "gpt-2", start=True), "a").ids == (6, 4)
    assert tokenized(vocabulary(tmp_path / "d.gguf", "gpt-2", start=True), "<s>a").texts == ("<s>", "a")


@pytest.mark.parametrize("fault", [{"pre": "unheard-of"}, {"model": "llama"}, {"merges": ["12"]}, {"merges": ["x y"]}])
def test_a_vocabulary_that_cannot_split(fault, tmp_path):
    with pytest.raises(FormatError) as seen:
        tokenized(vocabulary(tmp_path / "m.gguf", **({"pre": "gpt-2"} | fault)), "a")
    assert "\n" not in str(seen.value)
