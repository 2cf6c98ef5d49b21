"""Which stored tensors hold the rows of queries and keys, and how to reorder them for another layout of pairs.

Names are those of transformers' checkpoints and Meta's. Whatever looks like a query or key projection and is not
understood is refused: half converted weights are worse than none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from posenc.errors import FormatError
from posenc.formulas.rotation import Indices, adjacent_from_half, half_from_adjacent, projection_rows
from posenc.records import Reading
from posenc.spec import Rotary

Pairs = Literal["adjacent", "half"]

LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|block)\.(\d+)\.")
ELSEWHERE = re.compile(
    r"(^|\.)(visual|vision\w*|audio\w*|image\w*|speech\w*|mtp\w*|cross_?attn|crossattention|encoder_attn)\.",
    re.IGNORECASE,
)
SEPARATE = re.compile(r"\.(?:(q)|(k))(?:_proj)?\.|\.w(?:(q)|(k))\.|\.(?:(query)|(key))(?:_proj)?\.")
NORM = re.compile(r"\.(?:(q|query)|(k|key))_(?:norm|layernorm|ln)\.(?:norms\.\d+\.)?")
FUSED = re.compile(r"\.(qkv_proj|Wqkv|query_key_value|c_attn|in_proj|qkv|attn_qkv)\.")
LATENT = re.compile(r"\.(q_[ab]_proj|kv_[ab]_proj(_with_mqa)?)\.")
ROWS = re.compile(r"\.(weight|bias|lora_B\.(\w+\.)?weight)$")
UNTOUCHED = re.compile(r"\.lora_A\.(\w+\.)?weight$")
HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
KEY_HEADS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_head_kv")


@dataclass(frozen=True)
class Heads:
    """How many heads query and key projections have."""

    query: int
    key: int


def heads_of(config: dict[str, Any]) -> Heads:
    """Head counts from a config, of its text part if it has one.

    Raises:
        FormatError: no such count.
    """
    nested = config.get("text_config")
    fields = {**config, **(nested if isinstance(nested, dict) else {})}
    query = next((fields[k] for k in HEADS if type(fields.get(k)) is int), None)
    key = next((fields[k] for k in KEY_HEADS if type(fields.get(k)) is int), query)
    if query is None or key is None or query < 1 or key < 1 or query % key:
        raise FormatError("the config counts query heads and key/value heads", f"{query} and {key}")
    return Heads(query, key)


def rotaries_of(reading: Reading) -> dict[int | None, Rotary | None]:
    """The rotary of each layer of the main stack, None where a layer has none; key None where all are alike.

    Raises:
        FormatError: no layer is rotated, or one carries several rotaries.
    """
    positions = reading.positions
    others = [p.name for p in reading.parts[1:] if any(isinstance(e, Rotary) for e in p.positions.encodings)]
    if {"encoder", "decoder"} & set(others):
        raise FormatError("one stack of layers is converted", f"rotaries in {reading.parts[0].name} and {others[0]}")
    kinds = []
    for kind in positions.kinds:
        found = [e for e in kind.encodings if isinstance(e, Rotary)]
        unknown = [e for e in kind.encodings if e.kind == "unmodelled"]
        if len(found) > 1 or unknown:
            raise FormatError("the positions of each layer are one rotary, or none", kind.name)
        kinds.append(found[0] if found else None)
    if not any(kinds):
        raise FormatError("only rotary models have pairs", reading.name)
    if positions.layers:
        return {i: kinds[k] for i, k in enumerate(positions.layers)}
    if len(set(kinds)) > 1:
        raise FormatError("the config says which layers are of which kind", reading.name)
    return {None: kinds[0]}


def stored_layout(rotaries: dict[int | None, Rotary | None]) -> Pairs:
    """The layout that the config's architecture runs with.

    Raises:
        FormatError: layers disagree.
    """
    found = {r.interleaved for r in rotaries.values() if r is not None}
    if len(found) != 1:
        raise FormatError("all layers pair their channels alike", "both layouts")
    return "adjacent" if found.pop() else "half"


class Rows:
    """Finds the new order of rows for each stored tensor of a model.

    Args:
        config: the model's config.
        rotaries: the rotary of each layer (:func:`rotaries_of`).
        to: the layout to convert to.
    """

    def __init__(self, config: dict[str, Any], rotaries: dict[int | None, Rotary | None], to: Pairs) -> None:
        self.heads, self.rotaries, self.to = heads_of(config), rotaries, to
        self.model_type = str(config.get("model_type"))
        self.found: set[tuple[int, str]] = set()

    def order(self, name: str, shape: tuple[int, ...]) -> Indices | None:
        """The rows to take from a tensor, in order; None if it stays as it is.

        Rows are counted over all leading dimensions for norms, over the first one otherwise.

        Raises:
            FormatError: it is about queries or keys and not understood.
        """
        layer = LAYER.search(name)
        if layer is None or ELSEWHERE.search(name) or UNTOUCHED.search(name):
            return None
        number = int(layer[1])
        if None not in self.rotaries and number not in self.rotaries:
            raise FormatError(f"the config has {len(self.rotaries)} layers", name)
        rotary = self.rotaries.get(number, self.rotaries.get(None))
        if rotary is None:
            return None
        return self._rotated(name, shape, number, rotary)

    def _rotated(self, name: str, shape: tuple[int, ...], layer: int, rotary: Rotary) -> Indices | None:
        if LATENT.search(name):
            raise FormatError("latent attention projects rotated channels apart, which is not converted", name)
        fused, separate, norm = FUSED.search(name), SEPARATE.search(name), NORM.search(name)
        if not (fused or separate or norm):
            return None
        if not ROWS.search(name):
            raise FormatError("queries and keys are stored as weight and bias, not quantised", name)
        channels = self._channels(rotary)
        if fused:
            self.found |= {(layer, "q"), (layer, "k")}
            return self._fused(name, shape, channels, len(channels))
        groups = (separate or norm).groups()  # type: ignore[union-attr]
        role = "q" if any(g and g[0] == "q" for g in groups) else "k"
        heads = self.heads.query if role == "q" else self.heads.key
        if norm:
            return _norm_rows(name, shape, heads, channels)
        self.found.add((layer, role))
        if not shape or shape[0] != heads * len(channels):
            raise FormatError(f"this projection has {heads} heads of {len(channels)} rows", f"{name}: {list(shape)}")
        return projection_rows(heads, channels)

    def _channels(self, rotary: Rotary) -> Indices:
        order = half_from_adjacent if self.to == "half" else adjacent_from_half
        return order(rotary.head_dim, rotary.rotary_dim, rotary.where)

    def _fused(self, name: str, shape: tuple[int, ...], channels: Indices, width: int) -> Indices:
        query, key = self.heads.query, self.heads.key
        if "qkv_proj" in name and self.model_type.startswith("phi"):  # transformers phi3: queries, keys, values
            rows = (query + 2 * key) * width
            turned = [projection_rows(query, channels), query * width + projection_rows(key, channels)]
            order = np.concatenate([*turned, np.arange((query + key) * width, rows)])
        elif "query_key_value" in name and self.model_type == "gpt_neox":  # head by head: query, key, value
            rows = 3 * query * width
            head = np.concatenate([channels, width + channels, 2 * width + np.arange(width)])
            order = projection_rows(query, head)
        else:
            raise FormatError("which rows of a fused projection are queries is known for phi3 and gpt_neox", name)
        if not shape or shape[0] != rows:
            raise FormatError(f"this fused projection has {rows} rows", f"{name}: {list(shape)}")
        return order

    def check_complete(self) -> None:
        """After all tensors: every rotary layer had its queries and its keys.

        Raises:
            FormatError: one did not.
        """
        if not self.found:
            raise FormatError("query and key projections are found by their names", "none")
        layers = {layer for layer, _ in self.found}
        wanted = {n for n, r in self.rotaries.items() if n is not None and r is not None} or layers
        missing = sorted((n, role) for n in wanted for role in "qk" if (n, role) not in self.found)
        if missing:
            raise FormatError(f"layer {missing[0][0]} has a {missing[0][1]} projection", "none of a known name")


def _norm_rows(name: str, shape: tuple[int, ...], heads: int, channels: Indices) -> Indices:
    """A norm before the rotation: a number for each channel of a head, or of all heads."""
    count = int(np.prod(shape, dtype=np.int64))
    if count == len(channels):
        return channels
    if count == heads * len(channels):
        return projection_rows(heads, channels)
    raise FormatError(f"a norm of queries or keys has {len(channels)} channels a head", f"{name}: {list(shape)}")
