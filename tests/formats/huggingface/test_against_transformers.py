"""Every rotary type that transformers 5 can build: its own submodule against ``frequencies(read_config(...))``.

The models are tiny and random; their code runs. Compared are the inverse frequencies, the factor on cos and sin, under
every scaling, short and long; and the class defaults. ``test_running_attention.py`` looks at what is done with them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers import AutoConfig  # noqa: E402
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES  # noqa: E402

from formats.huggingface import tiny_models as tiny  # noqa: E402
from formats.huggingface.compared_types import (  # noqa: E402
    NO_SCALING,
    REMOTE,
    ROTARY_ONLY,
    ROUND_OFF,
    TABLES,
    TYPES,
    WITH_FREQUENCIES,
    read,
    rotaries,
)
from posenc.errors import SpecError  # noqa: E402
from posenc.formats.huggingface import read_config  # noqa: E402
from posenc.formulas.scalings import frequencies  # noqa: E402
from posenc.spec import Rotary  # noqa: E402


def assert_equal(encoding: Rotary, found: tuple[Any, float], length: int | None = None) -> None:
    ours = frequencies(encoding, length)
    theta, factor = found
    np.testing.assert_allclose(ours.fused, theta.double().numpy(), rtol=ROUND_OFF, atol=1e-12)
    assert ours.gain == pytest.approx(factor, rel=1e-6)


def chosen(encodings: dict[str, Rotary], layer_type: str | None) -> dict[str, Rotary]:
    return {name: e for name, e in encodings.items() if layer_type is None or name.split(",")[0] == layer_type}


def test_every_type_is_either_compared_or_not_in_transformers() -> None:
    assert set(CONFIG_MAPPING_NAMES) >= set(TYPES)
    assert not set(CONFIG_MAPPING_NAMES) & REMOTE
    assert len(TYPES) > 110


def rotary_submodules(model_type: str) -> tuple[Any, list[Any]]:
    if model_type in ROTARY_ONLY:
        config = tiny.config(model_type)
        return config, [tiny.rotary_class(config)(config)]
    built = tiny.model(model_type)
    return built.config, tiny.rotary_modules(built)


@pytest.mark.parametrize("model_type", WITH_FREQUENCIES)
def test_the_rotary_submodule_has_our_frequencies(model_type: str) -> None:
    config, modules = rotary_submodules(model_type)
    if model_type == "dbrx":
        # transformers 5.24 is wrong here: it does not look into attn_config, where DBRX has its base
        assert config.rope_parameters["rope_theta"] == 1e4
        assert next(iter(rotaries(read(config)).values())).schedule.base == 5e5
        config = tiny.config("dbrx", rope_parameters={"rope_theta": 5e5, "rope_type": "default"})
        modules = [type(modules[0])(config)]
    encodings = rotaries(read(config))
    bases = getattr(config, "layer_rope_theta", None)
    compared = set()
    for module in modules:
        for layer_type, found in tiny.frequencies(module).items():
            for name, encoding in chosen(encodings, layer_type).items():
                if bases is None or math.isclose(encoding.schedule.base, module.config.rope_parameters["rope_theta"]):
                    assert_equal(encoding, found)
                    compared.add(name)
    assert compared == set(encodings)


@pytest.mark.parametrize("model_type", TABLES)
def test_tables_of_sines_have_our_frequencies(model_type: str) -> None:
    built = tiny.model(model_type)
    (encoding,) = rotaries(read(built.config)).values()
    if model_type == "roformer":
        table = built.encoder.embed_positions.weight.detach()
    else:
        table = next(b for n, b in built.named_buffers() if n.endswith("embed_positions"))
    if table.ndim == 3:
        table = table[0]
    sine, cosine = table[1].double().chunk(2)
    np.testing.assert_allclose(frequencies(encoding).fused, torch.atan2(sine, cosine).numpy(), rtol=1e-5)


MISFITS = {
    "glm4_moe": "rotary_dim must be even; got 21",
    "glm4v_moe_text": "rotary_dim must be even; got 21",
    "glm4v_text": "the sections must add up to 64 pairs",
    "glm_image_text": "the sections must add up to 64 pairs",
    "qwen3_omni_moe_text": "rotary_dim must be even; got 73",
}
"""Class defaults that fit no published model: 4096 channels over 96 heads, sections of half a head."""

FLAT = {
    "linear": {"factor": 3.7},
    "dynamic": {"factor": 2.3},
    "yarn": {
        "factor": 5.5,
        "original_max_position_embeddings": 131,
        "beta_fast": 29.0,
        "beta_slow": 1.5,
        "mscale": 0.9,
        "mscale_all_dim": 0.4,
    },
    "yarn, exact": {"factor": 4.5, "original_max_position_embeddings": 131, "truncate": False},
    "yarn, factor from lengths": {"factor": None, "original_max_position_embeddings": 101},
    "llama3": {
        "factor": 7.0,
        "original_max_position_embeddings": 257,
        "low_freq_factor": 1.25,
        "high_freq_factor": 5.0,
    },
    "longrope": {"original_max_position_embeddings": 103},
}
LENGTHS = {"dynamic": 1531, "longrope": 104}


def widths(config: Any, encodings: dict[str, Rotary]) -> dict[str | None, int]:
    return {name.split(",")[0]: e.pairs for name, e in encodings.items()}


def scaled(model_type: str, variant: str, config: Any) -> dict[str, Any]:
    """The rope block of the type's default config with this scaling, in its own form (flat or nested)."""
    kind = variant.split(",")[0]
    pairs = widths(config, rotaries(read(config)))

    def block(old: dict[str, Any], layer_type: str | None) -> dict[str, Any]:
        kept = {k: old[k] for k in ("rope_theta", "partial_rotary_factor", "mrope_section") if k in old}
        made = {"rope_type": kind, **kept, **FLAT[variant]}
        if kind == "longrope":
            n = pairs[layer_type] if layer_type in pairs else next(iter(pairs.values()))
            made["short_factor"] = [1.0 + 0.01 * i for i in range(n)]
            made["long_factor"] = [1.5 + 0.13 * i for i in range(n)]
            made |= {"short_mscale": 1.3, "long_mscale": 1.3} if model_type == "phimoe" else {}
        return made

    current = config.rope_parameters
    if any(isinstance(v, dict) for v in current.values()):
        return {k: block(v, k) for k, v in current.items() if k in pairs}
    return block(current, None)


def admitted(model_type: str, variant: str) -> bool:
    """What the config class accepts: Phi knows LongRoPE only; nested LongRoPE fails on Gemma 4's two head widths."""
    if model_type in ("phi3", "phi4_multimodal", "phimoe"):
        return variant == "longrope"
    return model_type not in NO_SCALING and not (variant == "longrope" and model_type.startswith("gemma4"))


PAIRS = [(t, v) for t in WITH_FREQUENCIES for v in FLAT if admitted(t, v)]


@pytest.mark.parametrize(("model_type", "variant"), PAIRS, ids=map("-".join, PAIRS))
def test_every_scaling_of_every_type(model_type: str, variant: str) -> None:
    config, modules = rotary_submodules(model_type)
    one_base = {"layer_rope_theta": None} if "_swa" in model_type else {}
    config = tiny.config(model_type, rope_parameters=scaled(model_type, variant, config), **one_base)
    module = type(modules[0])(config)
    encodings = rotaries(read(config))
    compared = 0
    for layer_type, found in tiny.frequencies(module).items():
        for encoding in chosen(encodings, layer_type).values():
            if variant == "yarn, exact" and layer_type is not None:
                exact_is_ignored_in_nested_blocks(encoding, found)
            else:
                assert_equal(encoding, (found[0], 1.3 if model_type == "phimoe" else found[1]))
            kind = variant.split(",")[0]
            if kind in LENGTHS and layer_type is None:
                long = ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), seq_len=LENGTHS[kind])
                assert_equal(encoding, (long[0], 1.3 if model_type == "phimoe" else long[1]), LENGTHS[kind])
                assert not np.allclose(frequencies(encoding, LENGTHS[kind]).fused, frequencies(encoding).fused)
            compared += 1
    assert compared


def exact_is_ignored_in_nested_blocks(encoding: Rotary, found: tuple[Any, float]) -> None:
    """transformers 5.24 is wrong here: it reads ``truncate`` beside the layer types, where it never stands.

    We read what the config says; what transformers runs is the same encoding rounded to whole pairs.
    """
    (yarn,) = encoding.scaling
    assert yarn.truncate is False
    assert_equal(encoding.replace(scaling=(yarn.replace(truncate=True),)), found)
    assert not np.allclose(frequencies(encoding).fused, found[0].numpy(), rtol=1e-3)


@pytest.mark.parametrize("model_type", TYPES)
def test_the_class_defaults_are_those_we_fill_in(model_type: str) -> None:
    default = AutoConfig.for_model(model_type).to_dict()
    if model_type in MISFITS:  # their own classes cannot build a model from their defaults
        for config in (default, {"model_type": model_type}):
            with pytest.raises(SpecError, match=MISFITS[model_type]):
                read_config(config, name="misfit", source="test")
        return
    ours = read_config({"model_type": model_type}, name="bare", source="test")
    assert ours.parts == read_config(default, name="full", source="test").parts
    assert ours.assumed
