"""Every ``rope_type`` of a config as a scaling of the spec.

Names and defaults are those of transformers 5.24 ``modeling_rope_utils.py``. What an engine runs although its
mathematics is wrong (factor 0.5, exchanged betas) comes out as ``AsExecuted`` with its faults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from posenc.errors import FormatError
from posenc.formats.huggingface.keys import Keys
from posenc.spec import Scaling, executable

ALIASES: dict[str, str] = {"su": "longrope", "mrope": "default", "": "default"}
"""Older names: Phi-3's first release wrote ``su``, Qwen2-VL wrote ``mrope``."""


@dataclass(frozen=True)
class Context:
    """What a rope block refers to outside itself.

    Args:
        keys: the object that holds the block.
        positions: ``max_position_embeddings``; None if the config has none.
        nested: the block is one of several, by layer type.
        original: the class attribute ``original_max_position_embeddings`` of this architecture, if it has one.
        softmax: the attention code multiplies the softmax scale by ``(0.1 mscale_all_dim ln(factor) + 1)^2``.
        mscales: ``short_mscale`` and ``long_mscale`` replace the gain of LongRoPE (PhiMoE).
        alpha: a ``dynamic`` block with ``alpha`` is static NTK by that factor (HunYuan).
    """

    keys: Keys
    positions: int | None
    nested: bool = False
    original: int | None = None
    softmax: bool = False
    alpha: bool = False
    mscales: bool = False


def rope_type(block: Keys) -> str:
    """The canonical ``rope_type`` of a block; ``type`` is its older spelling and yields to it.

    Raises:
        FormatError: the name is unknown; the known ones are listed.
    """
    new: str | None = block.text("rope_type", default=None)
    old: str | None = block.text("type", default=None)
    name = old if new is None else new
    if name is None:
        return "default"
    canonical = ALIASES.get(name, name)
    if canonical not in RULES:
        known = sorted({*RULES, *ALIASES} - {""})
        raise FormatError(f"{block.at('rope_type')} is a known one", name, f"Known: {', '.join(known)}.")
    if None not in (new, old) and canonical != ALIASES.get(str(old), old):
        block.notes.append(f"{block.at('rope_type')} is {new!r} and type is {old!r}; transformers uses {new!r}")
    return canonical


def scalings(block: Keys, kind: str, context: Context) -> tuple[Scaling, ...]:
    """The chain that a block of this canonical type stands for; empty for ``default``."""
    scaling = RULES[kind](block, context)
    return () if scaling is None else (scaling,)


def _none(block: Keys, context: Context) -> None:
    return None


def _linear(block: Keys, context: Context) -> Any:
    return executable("linear", factor=block.number("factor"))


def _ntk(block: Keys, context: Context) -> Any:
    return executable("ntk", factor=block.number("factor", "alpha"))


def _dynamic(block: Keys, context: Context) -> Any:
    """The length that dynamic NTK starts at is ``max_position_embeddings``, whatever else the block says."""
    alpha = block.number("alpha", default=None) if context.alpha else None
    if alpha:
        return executable("ntk", factor=alpha)
    return executable("dynamic", factor=block.number("factor"), original=_positions(context, "dynamic"))


def _yarn(block: Keys, context: Context) -> Any:
    original = _original(block, context)
    truncate = block.flag("truncate", default=True, why="transformers YaRN default")
    if context.nested and not truncate:
        block.notes.append(
            f"{block.at('truncate')} is false; transformers 5.24 looks for truncate outside the layer types and so "
            "rounds the ramp all the same"
        )
    mscale_all_dim = block.number("mscale_all_dim", default=None)
    return executable(
        "yarn",
        factor=_factor(block, context, original),
        original=original,
        beta_fast=_beta(block, "beta_fast", 32.0),
        beta_slow=_beta(block, "beta_slow", 1.0),
        truncate=truncate,
        attention_factor=block.number("attention_factor", default=None),
        mscale=block.number("mscale", default=None),
        mscale_all_dim=mscale_all_dim,
        softmax_mscale=(mscale_all_dim or None) if context.softmax else None,
    )


def _longrope(block: Keys, context: Context) -> Any:
    original = _original(block, context)
    return executable(
        "longrope",
        factor=_factor(block, context, original),
        original=original,
        short_factor=block.numbers("short_factor"),
        long_factor=block.numbers("long_factor"),
        attention_factor=_longrope_gain(block, context),
    )


def _longrope_gain(block: Keys, context: Context) -> float | None:
    gain = block.number("attention_factor", default=None)
    if not context.mscales:
        return gain  # type: ignore[no-any-return]
    short, long = block.number("short_mscale"), block.number("long_mscale")
    if short != long:
        block.notes.append(
            f"the gain is {short:g} up to the original length and {long:g} beyond; only the first is modelled"
        )
    return float(short)


def _llama3(block: Keys, context: Context) -> Any:
    return executable(
        "llama3",
        factor=block.number("factor"),
        original=_original(block, context),
        low_freq_factor=block.number("low_freq_factor"),
        high_freq_factor=block.number("high_freq_factor"),
    )


def _proportional(block: Keys, context: Context) -> Any:
    """The fraction that turns is a matter of the schedule (``keep``); an optional factor divides all frequencies."""
    factor = block.number("factor", default=None)
    return None if factor in (None, 1.0) else executable("linear", factor=factor)


RULES: dict[str, Callable[[Keys, Context], Any]] = {
    "default": _none,
    "linear": _linear,
    "ntk": _ntk,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "longrope": _longrope,
    "llama3": _llama3,
    "proportional": _proportional,
}


def _beta(block: Keys, name: str, default: float) -> float:
    """Null and 0 both mean the default, as in transformers (``x or default``)."""
    value = block.number(name, default=default, why="transformers YaRN default")
    if value == 0:
        block.notes.append(f"{block.at(name)} is 0, which transformers takes for {default:g}")
    return float(value or default)


def _factor(block: Keys, context: Context, original: int) -> float:
    """The stated factor; without one the quotient of served and original length."""
    factor = block.number("factor", default=None)
    if factor is None:
        factor = _positions(context, "a factor that is not stated") / original
        block.assume("factor", factor, "max_position_embeddings / original_max_position_embeddings")
    return float(factor)


def _original(block: Keys, context: Context) -> int:
    """``original_max_position_embeddings``: in the flat form one beside the block beats the one inside it.

    transformers 5.24 ``standardize_rope_params``: an attribute of the config wins (Phi-3 has one by class default);
    nested blocks only know their own. Without any, ``max_position_embeddings`` stands in.
    """
    name = "original_max_position_embeddings"
    inside = block.integer(name, default=None)
    beside = None
    if not context.nested and context.keys is not block:
        beside = context.keys.integer(name, default=context.original, why="transformers class default")
    if None not in (inside, beside) and inside != beside:
        block.notes.append(
            f"{block.at(name)} is {inside} and {context.keys.at(name)} is {beside}; transformers uses {beside}"
        )
    found = inside if beside is None else beside
    if found is None:
        found = _positions(context, name)
        block.assume(name, found, "max_position_embeddings, as transformers does")
    if found < 1:
        raise FormatError(f"{block.at(name)} is at least 1", found)
    return int(found)


def _positions(context: Context, wanted_by: str) -> int:
    if context.positions is None:
        raise FormatError(f"{context.keys.at('max_position_embeddings')} is missing", f"{wanted_by} needs it")
    return context.positions
