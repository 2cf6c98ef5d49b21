"""What an engine does with the rope keys of a config, as rewrites into the words that the one reader knows.

A row of ``engines/*.toml`` names one of these rewrites. Rewritten, the config says to the reader of
``posenc.formats.huggingface`` what the engine computes, so an engine's encoding is a spec value like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard

from posenc.formats.huggingface.rope import BASE_KEYS, BLOCK_KEYS
from posenc.formats.huggingface.rope_types import ALIASES
from posenc.formulas.scalings import mscale

ORIGINAL = "original_max_position_embeddings"
DEPTH = 4
PLAIN = ("rope_theta", "partial_rotary_factor", "mrope_section", "mrope_interleaved")
"""Keys of a block that hold without any scaling."""

Object = dict[str, Any]
Rewrite = Callable[[Object, Object, Mapping[str, Any]], None]


class Refused(Exception):  # noqa: N818 - an outcome, not an error of ours
    """The engine stops with an error instead of running."""


class NotCompared(Exception):  # noqa: N818
    """What the engine does here is not verified, so nothing is claimed."""


def stacks(config: Object, depth: int = 0) -> Iterator[Object]:
    """The object itself and the objects in it that describe a stack with rope keys."""
    if any(name in config for name in (*BLOCK_KEYS, *BASE_KEYS)):
        yield config
    for name, value in config.items():
        if isinstance(value, dict) and depth < DEPTH and name.endswith("config"):
            yield from stacks(value, depth + 1)


def block_of(stack: Mapping[str, Any]) -> tuple[str, Object] | None:
    """The rope block that speaks, with its key: ``rope_scaling`` or else ``rope_parameters``."""
    found = next(((name, stack[name]) for name in BLOCK_KEYS if stack.get(name)), None)
    return found if found is not None and isinstance(found[1], dict) else None


def blocks(stack: Mapping[str, Any]) -> dict[str, Object]:
    """The rope blocks of a stack by dotted key; several if they are nested by layer type."""
    found = block_of(stack)
    if found is None:
        return {}
    name, block = found
    inner = {f"{name}.{key}": value for key, value in block.items() if isinstance(value, dict)}
    return inner or {name: block}


def type_of(block: Mapping[str, Any]) -> str:
    """The canonical rope type of a block.

    >>> type_of({"type": "su"}), type_of({"rope_type": "yarn", "type": "linear"}), type_of({})
    ('longrope', 'yarn', 'default')
    """
    name = block.get("rope_type") or block.get("type") or "default"
    return ALIASES.get(str(name), str(name))


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a JSON value is a finite number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value and abs(value) < 1e300


def positions_of(stack: Mapping[str, Any]) -> float | None:
    """``max_position_embeddings`` where it is a positive number."""
    value = stack.get("max_position_embeddings")
    return value if is_number(value) and value > 0 else None


def original_of(stack: Mapping[str, Any], block: Mapping[str, Any]) -> float | None:
    """The stated original length: beside a flat block before inside it, as transformers has it."""
    found = block_of(stack)
    flat = found is not None and found[1] is block
    for value in (stack.get(ORIGINAL) if flat else None, block.get(ORIGINAL)):
        if is_number(value) and value > 0:
            return value
    return None


def drop(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """Keys of the block that the engine does not read."""
    for key in how["keys"]:
        block.pop(key, None)


def drop_nested(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """Keys that the engine does not see in blocks nested by layer type."""
    found = block_of(stack)
    if found is not None and found[1] is not block:
        drop(stack, block, how)


def drop_everywhere(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """Keys that the engine reads neither in a block nor beside it."""
    for holder in (stack, *blocks(stack).values()):
        drop(stack, holder, how)


def unread_block(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """A whole block the engine does not know; the base is then the one beside it, or the engine's own default."""
    for name in how["keys"]:
        if name in stack and not (name == "rope_parameters" and stack.get("rope_scaling")):
            del stack[name]
    default = how.get("bases", {}).get(str(stack.get("model_type")))
    if default is not None:
        stack.setdefault("rope_theta", default)


def new_block_first(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """``rope_parameters`` beats ``rope_scaling``."""
    if stack.get("rope_parameters"):
        stack.pop("rope_scaling", None)


def old_type_first(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """``type`` beats ``rope_type``."""
    if block.get("type"):
        block["rope_type"] = block["type"]


def refuse_conflicting_types(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """Two names of different types stop the engine."""
    new, old = block.get("rope_type"), block.get("type")
    if new and old and ALIASES.get(str(new), new) != ALIASES.get(str(old), old):
        raise Refused(f"rope_type {new!r} and type {old!r} disagree")


def refuse_untyped(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """A block without a type stops the engine."""
    if not (block.get("rope_type") or block.get("type")):
        raise Refused("the rope block names no type")


def attn_factor_multiplies(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """``attn_factor`` multiplies the gain that the engine computes itself."""
    extra, own = block.pop("attn_factor", None), block.get("attention_factor")
    if is_number(extra) and is_number(block.get("factor")):
        block["attention_factor"] = (own if is_number(own) else gain(block)) * extra


def gain(block: Mapping[str, Any]) -> float:
    """YaRN's gain of a block: the quotient of both ``mscale`` where both count, else ``0.1 ln(factor) + 1``."""
    m, every, factor = block.get("mscale"), block.get("mscale_all_dim"), float(block["factor"])
    return quotient(factor, m, every) if m and every and is_number(m) and is_number(every) else mscale(factor)


def quotient(factor: float, m: float, every: float) -> float:
    """``(0.1 m ln(factor) + 1) / (0.1 every ln(factor) + 1)``, as written; infinite where the divisor vanishes."""
    below = mscale(factor, float(every))
    return mscale(factor, float(m)) / below if below else float("inf")


def mscale_by_default(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """Each ``mscale`` has a default of its own, and 0 is a number: the quotient is always taken."""
    m, every = (block.get(key, how[key]) for key in ("mscale", "mscale_all_dim"))
    if is_number(block.get("factor")) and is_number(m) and is_number(every):
        block["attention_factor"] = quotient(float(block["factor"]), m, every)


def mscale_zero_counts(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """Both ``mscale`` count as soon as both are there, 0 included."""
    m, every, factor = (block.get(key) for key in ("mscale", "mscale_all_dim", "factor"))
    if is_number(m) and is_number(every) and is_number(factor):
        block["attention_factor"] = quotient(float(factor), m, every)


def original_by_default(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """The original length is the one inside the block, or the engine's own number."""
    stack.pop(ORIGINAL, None)
    block.setdefault(ORIGINAL, how["value"])


def factor_from_lengths(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """The quotient of the lengths replaces the stated factor."""
    served, original = positions_of(stack), original_of(stack, block)
    if served and original:
        block["factor"] = served / original


def gain_from_lengths(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """LongRoPE's gain comes from the lengths; a stated factor or gain is not read."""
    block.pop("attention_factor", None)
    factor_from_lengths(stack, block, how)


def long_only(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """The long factors at every length; with ``served`` only where more than the original length is admitted."""
    served, original = positions_of(stack), original_of(stack, block)
    beyond = served is not None and original is not None and served > original
    if "long_factor" in block and (beyond or not how.get("served", False)):
        block["short_factor"] = block["long_factor"]


def dynamic_square(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """Dynamic NTK at a length of factor times the trained one, for every row: NTK by ``f^2 - f + 1``."""
    factor = block.get("factor")
    if is_number(factor) and "alpha" not in block:
        block.update(rope_type="ntk", type="ntk", factor=float(factor) ** 2 - float(factor) + 1)


def unscaled(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    """The scaling is dropped; base and sections stay."""
    kept = {key: block[key] for key in PLAIN if key in block}
    block.clear()
    block.update(kept, rope_type="default")


def not_compared(stack: Object, block: Object, how: Mapping[str, Any]) -> None:
    raise NotCompared(str(how["reason"]))


REWRITES: dict[str, Rewrite] = {
    f.__name__: f
    for f in (
        drop,
        drop_nested,
        drop_everywhere,
        unread_block,
        new_block_first,
        old_type_first,
        refuse_conflicting_types,
        refuse_untyped,
        attn_factor_multiplies,
        mscale_by_default,
        mscale_zero_counts,
        original_by_default,
        factor_from_lengths,
        gain_from_lengths,
        long_only,
        dynamic_square,
        unscaled,
        not_compared,
    )
}
ON_STACKS = frozenset(("unread_block", "new_block_first", "drop_everywhere"))
"""Rewrites of the object beside the block; they run once for each stack, with or without a block."""
