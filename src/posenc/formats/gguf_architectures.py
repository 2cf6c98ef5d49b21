"""What llama.cpp does with each GGUF architecture, from ``gguf_architectures.toml``: dated facts with their source."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Mechanism = Literal["rotary", "alibi", "learned", "t5", "none", "unmodelled"]
Pairs = Literal["adjacent", "half"]


@dataclass(frozen=True)
class Architecture:
    """Facts about one architecture.

    Args:
        name: as in ``general.architecture``.
        mechanism: how positions enter.
        pairs: channels that form a pair; None where nothing is rotated or it is not known.
        sections: how ``rope.dimension_sections`` are dealt out: ``split``, ``interleave`` or not at all.
        known: False for an architecture that the table does not list.
        note: why it is not modelled.
    """

    name: str
    mechanism: Mechanism = "rotary"
    pairs: Pairs | None = None
    sections: Literal["split", "interleave"] | None = None
    sections_optional: bool = False
    rotated_last: bool = False
    alibi: dict[str, Any] = field(default_factory=dict)
    sliding: dict[str, Any] | None = None
    no_rope_every: int = 0
    attention_every: int = 0
    query_scale: dict[str, Any] | None = None
    log_multiplied: bool = False
    mscale_is_all_dim: bool = False
    beta_fast: float = 32.0
    known: bool = True
    note: str = ""


@cache
def table() -> dict[str, Any]:
    """The parsed file."""
    return tomllib.loads(files("posenc.formats").joinpath("gguf_architectures.toml").read_text("utf-8"))


def source() -> str:
    """Where the facts come from, and when they were checked."""
    return f"{table()['source']}, checked {table()['checked']}"


def names() -> tuple[str, ...]:
    """Every architecture that is listed."""
    t = table()
    listed = [n for group in t["pairs"].values() for n in group]
    listed += [*t["other"]["learned"], *t["other"]["t5"], *t["other"]["none"], *t["other"]["unmodelled"], *t["alibi"]]
    return tuple(dict.fromkeys(listed))


def architecture(name: str, layers: int | None = None) -> Architecture:
    """Facts about ``name``; ``known=False`` if it is not listed.

    >>> architecture("llama").pairs, architecture("qwen3").pairs, architecture("bloom").mechanism
    ('adjacent', 'half', 'alibi')
    """
    t = table()
    pairs, other, sliding = t["pairs"], t["other"], t["sliding"].get(name)
    common = {
        "rotated_last": name in t["rotated"]["last"],
        "sliding": sliding,
        "no_rope_every": t["no_rope_every"].get(name, 0),
        "attention_every": t["attention_every"].get(name, 0),
        "query_scale": t["query_scale"].get(name),
        "log_multiplied": name in t["yarn"]["multiplied"],
        "mscale_is_all_dim": name in t["yarn"]["mscale_is_all_dim"],
        "beta_fast": t["yarn"]["beta_fast"].get(name, 32.0),
    }
    alibi = t["alibi"].get(name)
    if alibi is not None and alibi.get("layers") in (None, layers):
        return Architecture(name, "alibi", alibi=alibi)
    if name in other["learned"]:
        return Architecture(name, "learned")
    if name in other["t5"]:
        return Architecture(name, "t5")
    if name in other["none"]:
        return Architecture(name, "none")
    if name in other["unmodelled"]:
        return Architecture(name, "unmodelled", note=other["unmodelled"][name])
    if name in pairs["adjacent"] or name in pairs["half"]:
        given = name in pairs["sections_if_given"]
        return Architecture(
            name,
            pairs="adjacent" if name in pairs["adjacent"] else "half",
            sections="split" if given else None,
            sections_optional=given,
            **common,
        )
    for key, dealt in (("sections", "split"), ("interleaved_sections", "interleave")):
        if name in pairs[key]:
            return Architecture(name, pairs="half", sections=dealt, **common)  # type: ignore[arg-type]
    return Architecture(name, known=False)
