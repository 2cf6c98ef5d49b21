"""Multi-head latent attention: the last ``qk_rope_head_dim`` channels of a head turn, the first carry no position.

transformers ``modeling_deepseek_v2.py`` and its descendants: query and key are ``[nope | rope]``, and the softmax scale
``head_dim^-1/2`` is multiplied by ``(0.1 mscale_all_dim ln(factor) + 1)^2`` where the rope type is not ``default``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial as bind

from posenc.formats.huggingface.class_defaults import defaults_of
from posenc.formats.huggingface.decoder import CLASS, bounded, served_length
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.layers import FULL, layer_count, part, positive, stated
from posenc.formats.huggingface.registry import family
from posenc.formats.huggingface.rope import Head, rotary
from posenc.formats.huggingface.rotary_choices import llama4_scale
from posenc.records import Part


@dataclass(frozen=True)
class Latent:
    """Facts of one family.

    Args:
        nope, rope: class defaults of the two widths.
        interleaved: pairs of the rotated channels; None where ``rope_interleave`` decides (default true).
        layers, layer_count: spellings and class default of the number of layers.
        indexer: a sparse indexer with a rotary of its own chooses the keys.
        scaled: queries are scaled by position (``llama_4_scaling_beta``).
        block: class default of the rope block.
    """

    nope: int = 128
    rope: int = 64
    interleaved: bool | None = None
    layers: tuple[str, ...] = ("num_hidden_layers",)
    layer_count: int | None = None
    indexer: bool = False
    scaled: bool = False
    block: dict[str, object] | None = None


MISTRAL4 = {
    "rope_type": "yarn",
    "rope_theta": 1e4,
    "factor": 128.0,
    "original_max_position_embeddings": 8192,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.1,
}
LATENT = {
    "deepseek_v2": Latent(interleaved=True),
    "deepseek_v3": Latent(),
    "kimi_k2": Latent(),
    "deepseek_v32": Latent(interleaved=True, indexer=True),
    "glm_moe_dsa": Latent(nope=192, interleaved=True, indexer=True),
    "glm4_moe_lite": Latent(nope=192),
    "minicpm3": Latent(nope=64, rope=32, interleaved=False),
    "mistral4": Latent(nope=64, scaled=True, block=MISTRAL4),
    "longcat_flash": Latent(interleaved=True, layers=("num_layers", "num_hidden_layers"), layer_count=28),
    "youtu": Latent(),
    "axk1": Latent(),
}


def latent(keys: Keys, facts: Latent, *, model_type: str, name: str = "model") -> tuple[Part, ...]:
    """Read one stack of latent attention."""
    known = defaults_of(model_type)
    count = layer_count(keys, known.layers or facts.layer_count, *facts.layers)
    served = served_length(keys, known)
    free = keys.integer("qk_nope_head_dim", default=facts.nope, why=CLASS)
    turning = positive(keys, "qk_rope_head_dim", default=facts.rope) or 0
    for copied in ("head_dim", "qk_head_dim"):  # copies of the two widths above; their sum is what counts
        keys.raw(copied)
    interleaved = facts.interleaved
    if interleaved is None:
        interleaved = keys.flag("rope_interleave", default=True, why=CLASS)
    head = Head(
        dim=free + turning,
        rotary_dim=turning,
        base=known.base,
        where="last",
        interleaved=interleaved,
        softmax=True,
        block=facts.block,
    )
    rope = rotary(keys, head, positions=served)
    scale = llama4_scale(keys, facts.block or {}) if facts.scaled else None
    if facts.indexer:
        keys.notes.append("a sparse indexer with heads and a rotary of its own chooses the keys; it is not modelled")
    types = stated(keys, count) or ("indexed_attention" if facts.indexer else FULL,) * count
    kinds = {t: bounded(keys, known, t, rope, scale) for t in set(types)}
    return (part(name, [kinds[t] for t in types], served),)


for _name, _facts in LATENT.items():
    family(_name)(bind(latent, facts=_facts, model_type=_name))
