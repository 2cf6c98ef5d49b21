"""Rules about keys that nobody reads, or that one reader reads and another does not; numbers written as text."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from posenc.checker.apart import apart_configs
from posenc.checker.lint.register import Settings, rule
from posenc.checker.lint.wording import factor_of, finding, path, shown
from posenc.formats.engine_rewrites import ORIGINAL, gain, is_number
from posenc.formats.huggingface.keys import POSITION_WORDS
from posenc.formats.huggingface.rope import BASE_KEYS, BLOCK_KEYS, PARTIAL_KEYS
from posenc.formats.huggingface.rope_types import ALIASES, RULES
from posenc.records.finding import Evidence, Finding

NUMBERS = (
    "factor",
    ORIGINAL,
    "attention_factor",
    "beta_fast",
    "beta_slow",
    "mscale",
    "mscale_all_dim",
    "low_freq_factor",
    "high_freq_factor",
    "rope_theta",
    "partial_rotary_factor",
)
IN_BLOCK = (*NUMBERS, "rope_type", "type", "truncate", "short_factor", "long_factor", "mrope_section", "alpha")
BESIDE = (*BASE_KEYS, *BLOCK_KEYS, *PARTIAL_KEYS, ORIGINAL, "max_position_embeddings", "head_dim", "sliding_window")
NEAR = 0.87


@rule(
    "attn-factor",
    "defect",
    "harmless",
    says="attn_factor, which multiplies the gain where it is read, stands for or beside attention_factor, which "
    "replaces it",
    cases=("factor-laguna-squared", "factor-explicit-unread"),
)
def attn_factor(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        extra, factor = block.data.get("attn_factor"), factor_of(block)
        if not is_number(extra):
            continue
        at.explained.add(path(block, "attn_factor"))
        stated = block.data.get("attention_factor")
        own = gain(block.data) if factor and block.type == "yarn" else 1.0
        used = float(stated) if is_number(stated) else own
        evidence = (
            Evidence(name="gain on cos and sin", expected=used, seen=own * extra, where="not read / multiplied"),
            Evidence(name="factor on scores", expected=used**2, seen=(own * extra) ** 2),
        )
        yield finding(
            "harmless" if own * extra == used else "defect",
            ("attention-factor", "config-parsing"),
            f"attn_factor is {shown(extra)}: transformers does not read it, vLLM up to 0.25 and SGLang multiply by it",
            where=path(block, "attn_factor"),
            evidence=evidence,
            cause="attn_factor multiplies the computed gain; attention_factor replaces it",
            remedy="Delete attn_factor and state the whole gain as attention_factor.",
            cases=("factor-laguna-squared", "factor-explicit-unread"),
        )


@rule("number-as-text", "defect", says="a number of the rope keys is written as text or as true/false")
def number_as_text(at: Settings) -> Iterator[Finding]:
    for where, holder, names in _holders(at):
        for key in names:
            value = holder.get(key)
            if isinstance(value, bool) or (isinstance(value, str) and _float(value) is not None):
                key_path = f"{where}.{key}" if where else key
                at.explained.add(key_path)
                yield finding(
                    "defect",
                    ("config-parsing",),
                    f"{key_path} is {shown(value)}, which is no number",
                    where=key_path,
                    evidence=(Evidence(name=key, expected=_float(str(value)), seen=shown(value)),),
                    cause="some readers convert it, some fail, some fall back to their default",
                    remedy="Write the number without quotes." if isinstance(value, str) else "Write a number.",
                )


@rule("unknown-type", "defect", says="the rope type of a block is none that transformers knows")
def unknown_type(at: Settings) -> Iterator[Finding]:
    known = sorted({*RULES, *ALIASES} - {""})
    for block in at.blocks:
        if block.type in RULES:
            continue
        at.explained.add(block.key)
        near = difflib.get_close_matches(block.type, known, n=2)
        yield finding(
            "defect",
            ("config-parsing", "scaling-parameters"),
            f"rope type {shown(block.type)} is not known",
            where=path(block, "rope_type" if block.data.get("rope_type") else "type"),
            evidence=(Evidence(name="rope type", expected=" or ".join(near or known), seen=block.type),),
            remedy=f"Known types: {', '.join(known)}.",
        )


@rule(
    "misspelt-key",
    "defect",
    says="a key that nothing reads is one letter or two away from one that would be read and is missing",
    cases=("config-v5-block-ignored",),
)
def misspelt_key(at: Settings) -> Iterator[Finding]:
    unread = None if at.reading is None else {u.key for u in at.reading.unread}
    for where, holder, names in _holders(at, every=True):
        for key in [k for k in holder if k not in names and isinstance(k, str)]:
            full = f"{where}.{key}" if where else key
            if (unread is not None and not any(u == full or u.endswith(f".{full}") for u in unread)) or (
                not where and not POSITION_WORDS.search(key)
            ):
                continue
            near = difflib.get_close_matches(key, [n for n in names if n not in holder], n=1, cutoff=NEAR)
            if not near or key in IN_BLOCK or key in BESIDE:
                continue
            at.explained.add(full)
            yield finding(
                "defect",
                ("config-parsing",),
                f"{full} is not read; {near[0]} is missing",
                where=full,
                both=apart_configs(at.config or {}, _renamed(at.config or {}, holder, key, near[0])),
                names=("as it is read", f"with the key called {near[0]}"),
                evidence=(Evidence(name="key", expected=near[0], seen=key),),
                remedy=f"Rename it to {near[0]}.",
            )


@rule("finetuned", "harmless", says="finetuned, which older YaRN configs carry, is read by no code")
def finetuned(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        if "finetuned" in block.data:
            at.explained.add(path(block, "finetuned"))
            yield finding(
                "harmless",
                ("config-parsing",),
                f"finetuned is {shown(block.data['finetuned'])} and no code reads it",
                where=path(block, "finetuned"),
                remedy="Leave it or delete it.",
            )


@rule(
    "unread-key",
    "defect",
    "harmless",
    says="a rope block, or a key inside one, that nothing reads; keys beside a block are notes",
    cases=("config-v5-block-ignored", "scaling-parsed-unused"),
)
def unread_key(at: Settings) -> Iterator[Finding]:
    for unread in at.reading.unread if at.reading else ():
        holder, _, key = unread.key.rpartition(".")
        whole = key in BLOCK_KEYS
        if unread.key in at.explained or not (whole or holder.rpartition(".")[2] in _block_names(at)):
            continue
        scaled = whole and any(b.key == key and b.type != "default" for b in at.blocks)
        yield finding(
            "defect" if scaled else "harmless",
            ("config-parsing",),
            f"{unread.key} is not read by this model type",
            where=unread.key,
            evidence=(Evidence(name=unread.key, seen=unread.value),),
            remedy="Delete it, or choose a model type that scales." if scaled else "Leave it or delete it.",
            cases=("scaling-parsed-unused",) if scaled else (),
        )


def _block_names(at: Settings) -> set[str]:
    """The last part of the keys of all rope blocks."""
    return {*BLOCK_KEYS, *(b.key.rpartition(".")[2] for b in at.blocks)}


def _holders(at: Settings, every: bool = False) -> Iterator[tuple[str, dict[str, Any], tuple[str, ...]]]:
    """Each object with rope keys, its path and the keys that belong there."""
    for stack in at.stacks:
        yield "", stack, BESIDE if every else (*BASE_KEYS, *PARTIAL_KEYS, ORIGINAL, "max_position_embeddings")
        for block in at.of(stack):
            yield block.key, block.data, IN_BLOCK if every else NUMBERS


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _renamed(config: dict[str, Any], holder: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """A copy of the config in which one key of ``holder`` has another name."""

    def copied(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {new if value is holder and k == old else k: copied(v) for k, v in value.items()}

    renamed: dict[str, Any] = copied(config)
    return renamed
