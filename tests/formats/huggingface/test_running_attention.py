"""What the attention of every rotary type does: which layers turn, which channels pair, what else depends on position.

Tiny random models of transformers 5 run on seven tokens; a slow loop over pairs turns their queries and keys again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from formats.huggingface import tiny_models as tiny  # noqa: E402
from formats.huggingface.compared_types import (  # noqa: E402
    NO_ROTARY,
    ROTARY_ONLY,
    TYPES,
    read,
    rotaries,
)
from posenc.formats.huggingface.registry import home  # noqa: E402
from posenc.formulas.scalings import frequencies  # noqa: E402
from posenc.spec import ModelPositions, QueryScale, Rotary  # noqa: E402


def turned(x: np.ndarray, encoding: Rotary, direction: int = 1) -> np.ndarray:
    """``(tokens, channels)`` turned by position, pair by pair; ``x`` may be the rotated channels only."""
    f, out = frequencies(encoding), x.copy()
    r = encoding.rotary_dim
    start = 0 if x.shape[-1] == r or encoding.where == "first" else encoding.head_dim - r
    for p in range(x.shape[0]):
        for i in range(r // 2):
            a, b = (2 * i, 2 * i + 1) if encoding.interleaved else (i, i + r // 2)
            angle = direction * p * f.fused[i]
            u, v = x[p, start + a], x[p, start + b]
            out[p, start + a] = f.gain * (u * math.cos(angle) - v * math.sin(angle))
            out[p, start + b] = f.gain * (u * math.sin(angle) + v * math.cos(angle))
    return out


@pytest.mark.parametrize("model_type", [t for t in TYPES if t not in ROTARY_ONLY])
def test_the_layers_that_turn_and_the_pairs_they_turn(model_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    built = tiny.model(model_type)
    positions = read(built.config)
    calls, queries = tiny.watched_forward(built, monkeypatch)
    kinds = [positions.kinds[i] for i in positions.layers]
    expected = {i for i, k in enumerate(kinds) if any(isinstance(e, Rotary) for e in k.encodings)}
    assert {c.layer for c in calls} == expected
    assert expected or model_type in NO_ROTARY
    direction = -1 if model_type == "nanochat" else 1  # as its note says
    seen, placed = set(), set()
    for number, call in enumerate(calls):
        kind = kinds[call.layer]
        (encoding,) = (e for e in kind.encodings if isinstance(e, Rotary))
        if model_type == "dbrx":  # transformers overlooks the base of attn_config, see above
            encoding = encoding.replace(base=1e4)
        if encoding in seen:
            continue
        seen.add(encoding)
        q, k = (x[0].numpy() for x in call.before)
        ours = turned(q, encoding, direction) @ turned(k, encoding, direction).T
        theirs = (call.after[0][0] @ call.after[1][0].T).numpy()
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=3e-6 * np.abs(ours).max())
        r = encoding.rotary_dim
        per_query = max(1, len(calls) // max(1, len(queries)))  # a sparse indexer turns queries of its own
        if r < encoding.head_dim and len(queries) * per_query == len(calls):  # where the turned channels stand
            where = slice(0, r) if encoding.where == "first" else slice(encoding.head_dim - r, None)
            after = call.after[0][..., :r]
            reached = queries[number // per_query]
            assert reached.shape[-1] == encoding.head_dim
            scaled_by = (reached[..., where] / after).nan_to_num(1.0)
            assert torch.allclose(reached[..., where], after * scaled_by[..., :1], atol=1e-6)
            placed.add(model_type)
    if encoding_is_partial(positions) and model_type not in OWN_ATTENTION:
        assert placed == {model_type}


OWN_ATTENTION = ("codegen", "gptj")
"""Their attention is not transformers' common function; the slice of ``rotary_dim`` is seen in the scores only."""


def encoding_is_partial(positions: ModelPositions) -> bool:
    return any(e.rotary_dim < e.head_dim for e in rotaries(positions).values())


YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 13.0, "original_max_position_embeddings": 131}
MSCALES = {**YARN, "mscale": 0.7, "mscale_all_dim": 0.6}
LATENT_TYPES = sorted(t for t in TYPES if home(t) == "rotary_latent")
KEEP_THE_SOFTMAX = ("ministral3", "llama", "qwen3")


@pytest.mark.parametrize("model_type", [*LATENT_TYPES, *KEEP_THE_SOFTMAX])
def test_mscale_all_dim_touches_the_softmax_only_where_the_code_multiplies(model_type: str) -> None:
    extra = {"partial_rotary_factor": 12 / 32, "llama_4_scaling_beta": 0.1} if model_type == "mistral4" else {}
    extra = {"llama_4_scaling_beta": 0.1} if model_type == "ministral3" else extra
    config = tiny.config(model_type, rope_parameters={**MSCALES, **extra}, num_hidden_layers=1)
    if model_type == "longcat_flash":
        config.num_layers = 1
    with torch.device("meta"):
        built = tiny.build(config)
    found = {
        m.scaling for m in built.modules() if isinstance(getattr(m, "scaling", None), float) and hasattr(m, "o_proj")
    }
    (encoding,) = set(rotaries(read(config)).values())
    f = frequencies(encoding)
    assert list(found) == pytest.approx([encoding.head_dim**-0.5 * f.logit_scale], rel=1e-12)
    assert (f.logit_scale > 1) == (model_type in LATENT_TYPES)


def query_ratio(model_type: str, plain: dict[str, Any], scaled: dict[str, Any], layer: int) -> Any:
    """How much larger the query that reaches the attention of one layer becomes, token by token."""
    found = []
    for settings in (plain, scaled):
        with pytest.MonkeyPatch.context() as patch:
            torch.manual_seed(7)
            found.append(tiny.watched_forward(tiny.build(tiny.config(model_type, **settings)), patch)[1][layer])
    return (found[1] / found[0]).numpy()


def assert_scaled(ratio: np.ndarray, scale: QueryScale) -> None:
    wanted = [1 + scale.beta * math.log(1 + (p + scale.offset) // scale.original) for p in range(tiny.TOKENS)]
    assert len(set(wanted)) > 2
    np.testing.assert_allclose(ratio, np.broadcast_to(np.array(wanted)[None, :, None], ratio.shape), rtol=2e-5)


def test_llama4_scales_the_queries_of_layers_without_rotary() -> None:
    settings = {"attn_scale": 0.3, "floor_scale": 3, "attn_temperature_tuning": True}
    positions = read(tiny.config("llama4_text", **settings))
    bare = [k for k in positions.kinds if not any(isinstance(e, Rotary) for e in k.encodings)]
    (scale,) = bare[0].encodings
    assert positions.layers[2] == positions.kinds.index(bare[0])
    assert_scaled(query_ratio("llama4_text", {**settings, "attn_temperature_tuning": False}, settings, 2), scale)


def test_ministral3_scales_all_queries() -> None:
    def settings(beta: float) -> dict[str, Any]:
        return {"rope_parameters": {**YARN, "original_max_position_embeddings": 3, "llama_4_scaling_beta": beta}}

    (kind,) = read(tiny.config("ministral3", **settings(0.3))).kinds
    assert_scaled(query_ratio("ministral3", settings(0.0), settings(0.3), 0), kind.encodings[1])


@pytest.mark.parametrize("model_type", [t for t in TYPES if t not in ROTARY_ONLY])
def test_layer_types_and_windows_are_those_of_the_config_object(model_type: str) -> None:
    config = tiny.model(model_type).config
    positions = read(config)
    types = getattr(config, "layer_types", None)
    if types is None:
        assert len(positions.layers) == tiny.LAYERS
        assert len(positions.kinds) == 1 or model_type in ("bamba", "granitemoehybrid", "mllama_text_model")
        return
    names = [positions.kinds[i].name.split(",")[0] for i in positions.layers]
    assert names == list(types)
    for kind in positions.kinds:
        if "sliding" in kind.name:
            assert kind.window == (getattr(config, "sliding_window", None) or config.attention_window_size)
