"""Rotary decoders whose layers differ: windows, bases and scalings by layer type, layers without rotary, hybrids."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial as bind

from posenc.errors import FormatError
from posenc.formats.huggingface.decoder import ByType, Decoder, stack
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.layers import FULL, LINEAR, SLIDING, Pattern, every, full, listed, stated, window
from posenc.formats.huggingface.registry import family
from posenc.formats.huggingface.rotary_decoders import CLASS
from posenc.records import Part


def all_windowed(default: int | None) -> Pattern:
    """Every layer has the window, if there is one."""
    return lambda keys, layers: (SLIDING if window(keys, default) else FULL,) * layers


def exaone(keys: Keys, layers: int) -> tuple[str, ...]:
    """Exaone 4: without a window every layer is full."""
    if window(keys, 4096) is None:
        keys.raw("sliding_window_pattern")
        return stated(keys, layers) or (FULL,) * layers
    written = keys.raw("sliding_window_pattern")
    if isinstance(written, str):  # the hub's own spelling: one letter for each layer of a period, "LLLG"
        if not written or set(written) - set("LG"):
            raise FormatError("sliding_window_pattern is a number or letters L and G", written)
        default: Pattern = lambda keys, layers: tuple(  # noqa: E731
            FULL if written[i % len(written)] == "G" else SLIDING for i in range(layers)
        )
    else:
        default = every(4, "sliding_window_pattern")
    return stated(keys, layers) or default(keys, layers)


def mimo(keys: Keys, layers: int) -> tuple[str, ...]:
    """MiMo-V2-Flash: the first layer and every sixth are full."""
    return tuple(FULL if i == 0 or (i + 1) % 6 == 0 else SLIDING for i in range(layers))


def dots(keys: Keys, layers: int) -> tuple[str, ...]:
    """dots.llm1: a window from layer ``max_window_layers`` on."""
    width = window(keys, 4096)
    first = keys.integer("max_window_layers", default=62, why=CLASS)
    return tuple(SLIDING if width and i >= first else FULL for i in range(layers))


def convolutional(keys: Keys, layers: int) -> tuple[str, ...]:
    """LFM2: ``full_attn_idxs`` attend, the others convolve; without the list every layer attends."""
    chosen = keys.numbers("full_attn_idxs", default=None, integer=True)
    return tuple(FULL if chosen is None or i in chosen else "conv" for i in range(layers))


def indexed(keys: Keys, layers: int) -> tuple[str, ...]:
    """Bamba: ``attn_layer_indices`` attend, the others are Mamba."""
    chosen = keys.numbers("attn_layer_indices", default=(), why=CLASS, integer=True)
    return tuple(FULL if i in chosen else LINEAR for i in range(layers))


def last_at_least(keys: Keys, layers: int) -> tuple[str, ...]:
    """OLMo hybrid: every fourth layer attends, and if that is none, the last."""
    types = every(4, rest=LINEAR)(keys, layers)
    return types if FULL in types else (*types[:-1], FULL)


def recurrent(keys: Keys, layers: int) -> tuple[str, ...]:
    """RecurrentGemma: ``block_types`` repeated; its attention is always local."""
    period = keys.texts("block_types", default=("recurrent", "recurrent", "attention"), why=CLASS)
    if not period:
        raise FormatError("block_types names at least one block")
    return tuple(SLIDING if period[i % len(period)] == "attention" else LINEAR for i in range(layers))


def hybrid(keys: Keys, layers: int) -> tuple[str, ...]:
    """Falcon-H1: attention and Mamba side by side in every layer."""
    return ("hybrid",) * layers


def bases(full_base: float, sliding_base: float, full_key: str, sliding_key: str) -> dict[str, ByType]:
    """One base for full, one for sliding layers; a block that is not nested speaks of the full ones only."""
    return {FULL: ByType(full_base, (full_key,)), SLIDING: ByType(sliding_base, (sliding_key,), flat=False)}


GEMMA3 = bases(1e6, 1e4, "rope_theta", "rope_local_base_freq")
YARN_OSS = {
    "rope_type": "yarn",
    "factor": 32.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": False,
    "original_max_position_embeddings": 4096,
}
CWM = {
    "rope_type": "llama3",
    "rope_theta": 1e6,
    "factor": 16.0,
    "original_max_position_embeddings": 8192,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
}
NO_ROPE_FULL = frozenset((FULL,))
QWEN3_5 = Decoder(
    pattern=listed(every(4, "full_attention_interval", rest=LINEAR)), mrope="interleave", sections=(11, 11, 10)
)

LAYERED: Sequence[tuple[Decoder, str]] = (
    (Decoder(pattern=listed(every(2))), "gemma2 vaultgemma t5_gemma_module"),
    (
        Decoder(pattern=listed(every(6, "sliding_window_pattern", "_sliding_window_pattern")), types=GEMMA3),
        "gemma3_text t5gemma2_text t5gemma2_decoder",
    ),
    (Decoder(pattern=listed(every(5)), types=GEMMA3), "gemma3n_text"),
    (Decoder(pattern=listed(every(5)), nope=NO_ROPE_FULL), "kolibri1"),
    (
        Decoder(pattern=listed(every(4)), types=bases(5e5, 5e5, "rope_theta", "rope_theta")),
        "olmo3",
    ),
    (Decoder(pattern=listed(every(4, "global_attn_every_n_layers")), nope=NO_ROPE_FULL), "afmoe"),
    (
        Decoder(
            pattern=listed(every(4, "sliding_window_pattern", "layer_switch")), interleaved=True, nope=NO_ROPE_FULL
        ),
        "cohere2",
    ),
    (Decoder(pattern=listed(every(4, first=True)), block=CWM), "cwm"),
    (Decoder(pattern=listed(every(2)), block=YARN_OSS), "gpt_oss"),
    (Decoder(pattern=listed(all_windowed(4096))), "ministral"),
    (Decoder(pattern=listed(dots)), "dots1"),
    (Decoder(pattern=listed(every(2, last=LINEAR, rest=FULL))), "minimax"),
    (Decoder(pattern=listed(every(4, "full_attention_interval", rest=LINEAR))), "qwen3_next"),
    (QWEN3_5, "qwen3_5_text qwen3_5_moe_text"),
    (Decoder(pattern=listed(last_at_least)), "olmo_hybrid"),
    (Decoder(pattern=listed(convolutional)), "lfm2"),
    (Decoder(pattern=listed(full)), "lfm2_moe"),
    (Decoder(pattern=indexed), "bamba"),
    (Decoder(pattern=hybrid), "falcon_h1"),
    (
        Decoder(
            pattern=listed(mimo),
            types={
                FULL: ByType(5e6, partial=0.334),
                SLIDING: ByType(1e4, partial=0.334),
            },
        ),
        "mimo_v2_flash",
    ),
    (
        Decoder(pattern=listed(full), types={FULL: ByType(5e5, partial=0.5), SLIDING: ByType(1e4, partial=1.0)}),
        "laguna",
    ),
    (Decoder(pattern=listed(full), types={FULL: ByType(5e5), SLIDING: ByType(1e4)}), "mellum"),
    (Decoder(pattern=recurrent, window_keys=("attention_window_size",)), "recurrent_gemma"),
    (Decoder(rotary_dim_keys=("rotary_dim",)), "minimax_m2"),
)
"""Facts and the model types they hold for."""

for _facts, _names in LAYERED:
    for _name in _names.split():
        family(_name)(bind(stack, family=_facts))


@family("exaone4", "exaone_moe")
def exaone4(keys: Keys) -> tuple[Part, ...]:
    """Rotary on windowed layers only, or on all layers where there is no window."""
    nope = NO_ROPE_FULL if window(keys, 4096) else frozenset()
    return stack(keys, Decoder(pattern=exaone, nope=nope))
