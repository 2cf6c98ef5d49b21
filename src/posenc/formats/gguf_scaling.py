"""The scaling of a GGUF file, as llama.cpp executes it.

``theta_i / factors[i]``, divided by ``rope.scaling.factor`` (the default type is ``linear``); ``yarn`` blends the two
and multiplies cos and sin by a gain (src/llama-context.cpp, and rope_yarn in ggml).
"""

from __future__ import annotations

import math
from typing import Any

from posenc.errors import FormatError
from posenc.formats.gguf_architectures import Architecture
from posenc.formats.gguf_header import Header
from posenc.formats.huggingface.keys import Keys
from posenc.formulas.scalings import frequencies, mscale
from posenc.spec import Factors, Llama3, LongRope, Rotary, executable

TYPES = ("none", "linear", "yarn", "longrope")


def scalings(header: Header, keys: Keys, facts: Architecture, factors: Any, pairs: int) -> tuple[Any, ...]:
    """The chain of scalings: factors by pair, then ``linear`` or ``yarn``.

    Args:
        factors: the numbers of ``rope_freqs.weight`` that are not all 1; None without.
        pairs: rotated pairs.

    Raises:
        FormatError: an unknown type, or factors that are missing or not one for each pair.
    """
    kind = keys.text("rope.scaling.type", default="linear") if "rope.scaling.type" in keys else "linear"
    if kind not in TYPES:
        raise FormatError(f"{keys.at('rope.scaling.type')} is one of {', '.join(TYPES)}", kind)
    factor = keys.number("rope.scaling.factor", "rope.scale_linear", default=None) or 1.0
    gain = keys.number("rope.scaling.attn_factor", default=None) or 1.0
    long, short = (header.numbers(f"rope_factors_{which}.weight") for which in ("long", "short"))
    chain: list[Any] = []
    if long is not None or short is not None:
        chain.append(_longrope(keys, long, short, pairs, gain))
        gain = 1.0
    elif kind == "longrope":
        raise FormatError(
            "longrope has the tensors rope_factors_long.weight and rope_factors_short.weight", "neither is stored"
        )
    if factors is not None:
        chain.append(_llama3(keys, factors) or Factors(values=factors))
    if kind == "yarn":
        chain.append(_yarn(keys, facts, factor, gain))
    else:
        if kind != "none" and factor != 1.0:
            chain.append(executable("linear", factor=factor))
        if gain != 1.0:
            chain.append(Factors(values=(1.0,) * pairs, attention_factor=gain))
    return tuple(chain)


def _longrope(keys: Keys, long: Any, short: Any, pairs: int, gain: float) -> LongRope:
    if long is None or short is None:
        raise FormatError("rope_factors_long.weight and rope_factors_short.weight are stored together", "one of them")
    if len(long) < pairs or len(short) < pairs:
        raise FormatError(
            f"rope_factors_*.weight have a number for each of the {pairs} pairs", f"{len(long)}, {len(short)}"
        )
    original, served = keys.integer("rope.scaling.original_context_length"), keys.integer("context_length")
    if original < 2 or served < 1:
        raise FormatError(f"{keys.at('rope.scaling.original_context_length')} is at least 2", original)
    keys.notes.append("llama.cpp chooses the long factors by the context it allocates, for every row alike")
    factor = max(served / original, 1.0)
    formula = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))
    return LongRope(
        factor=factor,
        original=original,
        short_factor=short[:pairs],
        long_factor=long[:pairs],
        attention_factor=None if same_float32(gain, formula) else gain,
    )


def _yarn(keys: Keys, facts: Architecture, factor: float, gain: float) -> Any:
    """Gain of src/llama-context.cpp: ``m(mscale) / m(all)`` with ``all`` from the log multiplier, else ``m(1)``."""
    original = keys.integer("rope.scaling.original_context_length", default=None)
    if original is None:
        original = keys.integer("context_length")
        keys.assume("rope.scaling.original_context_length", original, "context_length (llama.cpp)")
    extrapolated = keys.number("rope.scaling.yarn_ext_factor", default=None)
    if extrapolated not in (None, 1.0) and extrapolated >= 0:
        raise FormatError("posenc reads YaRN with rope.scaling.yarn_ext_factor 1", extrapolated)
    fields: dict[str, Any] = {"factor": factor, "original": original}
    fields["beta_fast"] = keys.number("rope.scaling.yarn_beta_fast", default=None) or facts.beta_fast
    fields["beta_slow"] = keys.number("rope.scaling.yarn_beta_slow", default=None) or 1.0
    every = keys.number("rope.scaling.yarn_log_multiplier", default=None)
    if every and facts.log_multiplied:
        every = float(f"{every / 0.1:.7g}")  # the converter wrote 0.1 * mscale_all_dim
    computed = mscale(factor)
    if every:
        fields["mscale_all_dim"] = every
        fields["mscale"] = every if facts.mscale_is_all_dim else 1.0
        computed = mscale(factor, fields["mscale"]) / mscale(factor, every)
    if facts.log_multiplied:
        fields["softmax_mscale"] = every or 1.0
    if gain != 1.0:
        fields["attention_factor"] = computed * gain
    keys.notes.append("llama.cpp rounds the ends of YaRN's ramp to whole pairs, whatever a config's truncate says")
    return executable("yarn", **fields)


def _llama3(keys: Keys, values: tuple[float, ...]) -> Llama3 | None:
    """The published Llama 3 rule with the largest factor, where it gives these float32 factors; None otherwise."""
    base = keys.number("rope.freq_base", default=10000.0, why="llama.cpp")
    largest = max(values)
    if largest <= 1:
        return None
    for high in (4.0, 1.0):
        rule = Llama3(largest, original=8192, low_freq_factor=1.0, high_freq_factor=high)
        unscaled = Rotary(2 * len(values), base=base)
        expected = frequencies(unscaled).fused / frequencies(unscaled >> rule).fused
        if all(same_float32(a, b, 4) for a, b in zip(values, expected.tolist(), strict=True)):
            keys.notes.append(f"rope_freqs.weight equals {rule} to float32")
            return rule
    return None


def same_float32(a: float, b: float, ulps: int = 1) -> bool:
    """Whether two numbers are within ``ulps`` float32 steps of each other."""
    return abs(a - b) <= ulps * 2.0**-23 * max(abs(a), abs(b))
