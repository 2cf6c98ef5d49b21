"""Rules about widths: rotated channels, sections, lists of factors, and layers without a base of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from posenc.checker.lint.register import Settings, rule
from posenc.checker.lint.wording import finding, path, shown
from posenc.formats.engine_rewrites import blocks, is_number
from posenc.formats.huggingface.decoder import HEADS, HIDDEN
from posenc.formats.huggingface.rope import PARTIAL_KEYS
from posenc.records.finding import Evidence, Finding
from posenc.spec import Rotary


def _head(stack: dict[str, Any]) -> int | None:
    """Channels of a head, as far as the config states them."""
    if is_number(stack.get("head_dim")) and stack["head_dim"] > 0:
        return int(stack["head_dim"])
    hidden, heads = (next((stack[k] for k in names if is_number(stack.get(k))), None) for names in (HIDDEN, HEADS))
    return int(hidden // heads) if hidden and heads else None


def _fraction(stack: dict[str, Any], data: dict[str, Any]) -> tuple[str, float] | None:
    """The rotated fraction and its key."""
    if is_number(data.get("partial_rotary_factor")):
        return "partial_rotary_factor", float(data["partial_rotary_factor"])
    return next(((k, float(stack[k])) for k in PARTIAL_KEYS if is_number(stack.get(k))), None)


@rule("odd-width", "defect", says="the rotated fraction of a head is an odd number of channels")
def odd_width(at: Settings) -> Iterator[Finding]:
    for stack in at.stacks if at.reading is None else ():
        for data in blocks(stack).values() or ({},):
            head, fraction = _head(stack), _fraction(stack, data)
            if head is None:
                continue
            key, value = fraction or ("head_dim", 1.0)
            width = int(head * value)
            if not width % 2 or not 0 < value <= 1:
                continue
            at.explained.add("width")
            even = width - 1 if width == head else width + 1
            yield finding(
                "defect",
                ("odd-dimension", "partial-rotary"),
                f"{key} {shown(value if fraction else head)} of a head of {head} channels is {width}, which is odd",
                where=key,
                evidence=(Evidence(name="rotated channels", expected=f"{width - 1} or {width + 1}", seen=width),),
                cause="channels are rotated in pairs; transformers rounds some odd widths up and refuses others",
                remedy=f"State a fraction that gives an even number, {even / head:.10g} for {even} channels.",
            )


@rule(
    "sections",
    "defect",
    says="mrope_section does not add up to the pairs of a head",
    cases=("sections-split-or-interleaved",),
)
def sections(at: Settings) -> Iterator[Finding]:
    for block in at.blocks if at.reading is None else ():
        stated, head = block.data.get("mrope_section"), _head(block.stack)
        if not isinstance(stated, list) or head is None or not all(is_number(s) for s in stated):
            continue
        fraction = _fraction(block.stack, block.data)
        pairs = int(head * (fraction[1] if fraction else 1.0)) // 2
        if sum(stated) == pairs:
            continue
        at.explained.add(block.key)
        doubled = " (the sections count pairs, not channels)" if sum(stated) == 2 * pairs else ""
        yield finding(
            "defect",
            ("multimodal-positions", "config-parsing"),
            f"mrope_section adds up to {shown(sum(stated))} and the head has {pairs} pairs{doubled}",
            where=path(block, "mrope_section"),
            evidence=(Evidence(name="sum of the sections", expected=pairs, seen=sum(stated), unit="pairs"),),
            remedy=f"Sections that add up to {pairs}.",
        )


@rule("longrope-lists", "defect", says="LongRoPE's lists do not have one number for each pair")
def longrope_lists(at: Settings) -> Iterator[Finding]:
    for block in at.blocks if at.reading is None else ():
        head = _head(block.stack)
        fraction = _fraction(block.stack, block.data)
        for key in ("short_factor", "long_factor") if block.type == "longrope" and head else ():
            value = block.data.get(key)
            pairs = int((head or 0) * (fraction[1] if fraction else 1.0)) // 2
            count = len(value) if isinstance(value, list) else None
            if count != pairs:
                at.explained.add(block.key)
                yield finding(
                    "defect",
                    ("scaling-parameters", "width"),
                    f"{key} has {'no list' if count is None else f'{count} numbers'} and {pairs} pairs are rotated",
                    where=path(block, key),
                    evidence=(Evidence(name=f"numbers in {key}", expected=pairs, seen=count),),
                    remedy=f"A list of {pairs} numbers; check partial_rotary_factor if the list is right.",
                )


@rule(
    "layer-without-base",
    "defect",
    says="blocks nested by layer type leave out a type that the layers have, so its base is a default",
    cases=("perlayer-modernbert-legacy",),
)
def layer_without_base(at: Settings) -> Iterator[Finding]:
    if at.reading is None:
        return
    keys = {b.key.rpartition(".")[0] for b in at.blocks if b.nested}
    for assumed in at.reading.assumed:
        holder, _, layer_type = assumed.key.rpartition(".")
        if assumed.value != "default" or not any(holder.endswith(key) for key in keys):
            continue
        turning = [
            (k.name, e.schedule.base)
            for part in at.reading.parts
            for k in part.positions.kinds
            for e in k.encodings
            if isinstance(e, Rotary) and hasattr(e.schedule, "base")
        ]
        here = next((base for name, base in turning if name == layer_type), None)
        there = next((base for name, base in turning if name != layer_type), None)
        if here is None:
            continue
        yield finding(
            "defect",
            ("per-layer-base", "config-parsing"),
            f"{assumed.key} is missing: layers of type {layer_type} turn with base {shown(here)}, the class default",
            where=assumed.key,
            evidence=(
                Evidence(name="base", seen=here, where=layer_type),
                Evidence(name="base", seen=there, where="others"),
            ),
            remedy="State a block for every type of layer; null for one that turns nothing.",
            cases=("perlayer-modernbert-legacy",),
        )
