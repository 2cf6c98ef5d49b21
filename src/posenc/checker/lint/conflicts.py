"""Rules about two spellings that disagree: of the base, the type, the fraction, the block, the original length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from posenc.checker.apart import apart_configs
from posenc.checker.lint.register import Settings, rule
from posenc.checker.lint.wording import finding, path, shown
from posenc.formats.engine_rewrites import ORIGINAL, is_number
from posenc.formats.huggingface.rope import BASE_KEYS, BLOCK_KEYS, PARTIAL_KEYS
from posenc.formats.huggingface.rope_types import ALIASES
from posenc.records.finding import Evidence, Finding
from posenc.spec import Rotary


@rule(
    "conflicting-bases",
    "defect",
    says="two keys state different bases (rope_theta beside the rope block, in it, or under an older name)",
    cases=("config-v5-block-ignored", "rope-theta-overwritten"),
)
def conflicting_bases(at: Settings) -> Iterator[Finding]:
    for stack in at.stacks:
        beside = {key: stack[key] for key in BASE_KEYS if is_number(stack.get(key))}
        inner = {b: b.data["rope_theta"] for b in at.of(stack) if is_number(b.data.get("rope_theta"))}
        if len(set(beside.values())) > 1:
            first, *rest = beside
            yield _conflict(at, stack, "base", first, beside[first], rest[0], beside[rest[0]])
        elif beside and inner and next(iter(beside.values())) not in inner.values():
            (key, value), (block, used) = next(iter(beside.items())), next(iter(inner.items()))

            def inner_removed(stack: dict[str, Any], data: dict[str, Any]) -> None:
                data.pop("rope_theta", None)

            both = apart_configs(at.config or {}, at.changed(inner_removed, block))
            if both is None:
                continue
            yield finding(
                "defect",
                ("config-parsing",),
                f"{path(block, 'rope_theta')} is {shown(used)} and {key} is {shown(value)}",
                where=path(block, "rope_theta"),
                both=both,
                names=(f"{path(block, 'rope_theta')} (transformers 5)", f"{key} (readers of the older keys)"),
                cause="one of the two was changed and the other was not",
                remedy="Keep one, or make them equal: which wins differs between libraries and their versions.",
                cases=("config-v5-block-ignored", "rope-theta-overwritten"),
            )


@rule("conflicting-types", "defect", says="type and rope_type of a block name different rules")
def conflicting_types(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        new, old = block.data.get("rope_type"), block.data.get("type")
        if not (new and old) or ALIASES.get(str(new), new) == ALIASES.get(str(old), old):
            continue

        def old_wins(stack: dict[str, Any], data: dict[str, Any]) -> None:
            data["rope_type"] = data["type"]

        yield finding(
            "defect",
            ("config-parsing",),
            f"rope_type is {shown(new)} and type is {shown(old)}",
            where=path(block, "rope_type"),
            both=apart_configs(at.config or {}, at.changed(old_wins, block)),
            names=("rope_type (transformers)", "type (mlx-lm); vLLM refuses"),
            evidence=(Evidence(name="rope type", expected=str(new), seen=str(old)),),
            remedy="Delete type, or give both the same name.",
        )


@rule(
    "conflicting-fractions",
    "defect",
    says="two keys state different rotated fractions (partial_rotary_factor, rotary_pct, rotary_dim…)",
    cases=("partial-default-half", "rotary-dim-unread"),
)
def conflicting_fractions(at: Settings) -> Iterator[Finding]:
    for stack in at.stacks:
        stated = {key: stack[key] for key in PARTIAL_KEYS if is_number(stack.get(key))}
        inner = {
            path(b, "partial_rotary_factor"): b.data["partial_rotary_factor"]
            for b in at.of(stack)
            if is_number(b.data.get("partial_rotary_factor"))
        }
        every = {**inner, **stated}
        if stated and len(set(every.values())) > 1 and not (inner and set(stated.values()) <= set(inner.values())):
            first, used = next(iter(every.items()))
            second, other = next((k, v) for k, v in every.items() if v != used)
            yield _conflict(at, stack, "rotated fraction", first, used, second, other)
        width = stack.get("rotary_dim")
        rotated = {e.rotary_dim for e in (at.reading.encodings() if at.reading else ()) if isinstance(e, Rotary)}
        if is_number(width) and rotated and width not in rotated:
            yield finding(
                "defect",
                ("partial-rotary", "config-parsing"),
                f"rotary_dim is {shown(width)} and {shown(max(rotated))} channels are rotated",
                where="rotary_dim",
                evidence=(Evidence(name="rotated channels", expected=width, seen=max(rotated)),),
                cause="this model type reads a fraction, and rotary_dim is not read",
                remedy="State partial_rotary_factor = rotary_dim / head_dim.",
                cases=("rotary-dim-unread",),
            )


@rule("conflicting-blocks", "defect", says="rope_scaling and rope_parameters are both there and compute differently")
def conflicting_blocks(at: Settings) -> Iterator[Finding]:
    for stack in at.stacks:
        if not all(isinstance(stack.get(name), dict) and stack[name] for name in BLOCK_KEYS):
            continue

        def swapped(stack: dict[str, Any]) -> None:
            del stack["rope_scaling"]

        both = apart_configs(at.config or {}, at.changed_stack(swapped, stack))
        if both is not None:
            yield finding(
                "defect",
                ("config-parsing",),
                "rope_scaling and rope_parameters compute different encodings",
                where="rope_scaling",
                both=both,
                names=("rope_scaling (transformers)", "rope_parameters (llama.cpp's converter)"),
                remedy="Keep rope_parameters alone.",
            )


@rule(
    "conflicting-originals",
    "defect",
    says="original_max_position_embeddings stands in the block and beside it with different values",
    cases=("lengths-two-meanings",),
)
def conflicting_originals(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        inside, beside = block.data.get(ORIGINAL), block.stack.get(ORIGINAL)
        if block.nested or not (is_number(inside) and is_number(beside)) or inside == beside:
            continue

        def inner_wins(stack: dict[str, Any], data: dict[str, Any]) -> None:
            del stack[ORIGINAL]

        both = apart_configs(at.config or {}, at.changed(inner_wins, block))
        if both is not None:
            yield finding(
                "defect",
                ("config-parsing", "scaling-parameters"),
                f"{path(block, ORIGINAL)} is {shown(inside)} and {ORIGINAL} is {shown(beside)}",
                where=path(block, ORIGINAL),
                both=both,
                names=("the one beside the block (transformers)", "the one inside (mlx-lm)"),
                remedy="Make them equal.",
                cases=("lengths-two-meanings",),
            )


def _conflict(at: Settings, stack: dict[str, Any], what: str, a: str, x: Any, b: str, y: Any) -> Finding:
    """Two keys of one stack that state one quantity differently."""

    def other(changed: dict[str, Any]) -> None:
        holder = changed
        for part in a.split(".")[:-1]:
            holder = holder[part]
        holder[a.rpartition(".")[2]] = y

    return finding(
        "defect",
        ("config-parsing", "partial-rotary") if "fraction" in what else ("config-parsing",),
        f"{a} is {shown(x)} and {b} is {shown(y)}: two values of the {what}",
        where=a,
        both=apart_configs(at.config or {}, at.changed_stack(other, stack)),
        names=(f"{a} = {shown(x)}", f"{b} = {shown(y)}"),
        evidence=(Evidence(name=what, expected=x, seen=y, where=f"{a} / {b}"),),
        remedy="Keep one of the two keys.",
        cases=("config-v5-block-ignored",) if what == "base" else ("partial-default-half",),
    )
