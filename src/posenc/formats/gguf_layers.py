"""The layers of a rotary GGUF model: which slide, which rotate, which have no attention."""

from __future__ import annotations

from typing import Any

from posenc.errors import FormatError
from posenc.formats.gguf_architectures import Architecture
from posenc.formats.gguf_header import Header
from posenc.formats.gguf_rotary import rotary
from posenc.formats.huggingface.keys import Keys
from posenc.spec import LayerKind, ModelPositions, QueryScale

MAX_LAYERS = 4096
"""llama.cpp itself has room for 512."""


def count(keys: Keys, name: str, limit: int = MAX_LAYERS) -> int | None:
    """A number of layers or positions; None if it is not there.

    Raises:
        FormatError: not between 1 and ``limit``.
    """
    found: int | None = keys.integer(name, default=None)
    if found is not None and not 0 < found <= limit:
        raise FormatError(f"{keys.at(name)} is between 1 and {limit}", found)
    return found


def rotary_layers(header: Header, keys: Keys, facts: Architecture, served: int | None) -> ModelPositions:
    """Layers grouped by whether they slide, rotate or recur."""
    layers = count(keys, "block_count") or 0
    slides, window, chunk = _sliding(keys, facts, layers)
    only_sliding = bool((facts.sliding or {}).get("rope_in") == "sliding" and any(slides))
    full = rotary(header, keys, facts, sliding=False)
    slid = rotary(header, keys, facts, sliding=True) if any(slides) else full
    recurrent = _recurrent(keys, facts, layers)

    def make(slide: bool, rotates: bool) -> LayerKind:
        encodings: tuple[Any, ...] = ((slid if slide else full),) if rotates else ()
        encodings += _query_scale(keys, facts, rotates)
        if not slide:
            unrotated = not rotates and (chunk or facts.no_rope_every)
            return LayerKind(name="full_attention, no rotary" if unrotated else "full_attention", encodings=encodings)
        name = "chunked_attention" if chunk else "sliding_attention"
        return LayerKind(name=name, encodings=encodings, window=None if chunk else window, chunk=chunk)

    kinds: dict[tuple[bool, bool] | None, LayerKind] = {}  # None: no attention
    labels: list[tuple[bool, bool] | None] = []
    for i in range(layers or 1):
        slide = bool(slides) and slides[i]
        skipped = facts.no_rope_every and (i + 1) % facts.no_rope_every == 0
        label = None if i in recurrent else (slide, not (only_sliding and not slide) and not skipped)
        if label not in kinds:
            kinds[label] = LayerKind(name="linear_attention") if label is None else make(*label)
        labels.append(label)
    names = {label: n for n, label in enumerate(kinds)}
    index = tuple(names[label] for label in labels) if layers else ()
    return ModelPositions(kinds=tuple(kinds.values()), layers=index, served=served)


def _query_scale(keys: Keys, facts: Architecture, rotates: bool) -> tuple[QueryScale, ...]:
    known = facts.query_scale
    if known is not None:
        applies = (known["layers"] == "full") == (not rotates)
        return (QueryScale(known["beta"], original=known["length"], offset=known["offset"]),) if applies else ()
    beta = keys.number("attention.temperature_scale", default=None)
    if not beta:
        return ()
    length = keys.integer("attention.temperature_length", "rope.scaling.original_context_length", "context_length")
    return (QueryScale(beta, original=length),)


def _sliding(keys: Keys, facts: Architecture, layers: int) -> tuple[list[bool], int | None, int | None]:
    """Which layers slide, over how many positions, and the chunk where attention is chunked."""
    known = facts.sliding
    stored = "attention.sliding_window" in keys
    window = keys.integer("attention.sliding_window", default=None)
    pattern = keys.data.get("attention.sliding_window_pattern")
    if known is None or known.get("ignored") or (window == 0 and stored):
        if window:
            stored_window = f"attention.sliding_window = {window} is stored"
            keys.notes.append(
                f"{stored_window}; llama.cpp gives every layer of {facts.name} full attention"
                if facts.known and (known is not None or window == 0)
                else f"{stored_window}; which layers of {facts.name} slide is not known: all are read as full"
            )
        return [], None, None
    if known.get("only_if_given") and not stored:
        return [], None, None
    window = window or known.get("window")
    if window and known.get("symmetric"):
        window = max(window // 2, 1)
        keys.notes.append(f"windows reach {window} positions to each side")
    if pattern is not None:
        slides = _pattern(keys, layers, known.get("dense_first", False))
    elif "period" in known:
        slides = _periodic(known["period"], layers, known.get("dense_first", False))
    else:
        raise FormatError(f"{keys.at('attention.sliding_window_pattern')} says which layers slide", "no such key")
    if window is None and "chunk" not in known:
        raise FormatError(
            f"{keys.at('attention.sliding_window')} is missing", remedy="Nothing is assumed in its place."
        )
    return slides, window, known.get("chunk")


def _periodic(period: int, layers: int, dense_first: bool) -> list[bool]:
    """llama.cpp's set_swa_pattern: period 0 is all sliding, 1 none."""
    if period <= 0:
        return [True] * layers
    return [(i % period != 0) if dense_first else (i % period < period - 1) for i in range(layers)]


def _pattern(keys: Keys, layers: int, dense_first: bool) -> list[bool]:
    value = keys.raw("attention.sliding_window_pattern")
    if isinstance(value, tuple):
        if len(value) != layers or not all(v in (0, 1) for v in value):
            raise FormatError(
                f"{keys.at('attention.sliding_window_pattern')} has a flag for each of {layers} layers", value
            )
        return [bool(v) for v in value]
    return _periodic(keys.integer("attention.sliding_window_pattern"), layers, dense_first)


def _recurrent(keys: Keys, facts: Architecture, layers: int) -> set[int]:
    """Layers without attention: no key/value heads, or every one but each n-th."""
    heads = keys.data.get("attention.head_count_kv")
    if isinstance(heads, tuple) and len(heads) == layers and facts.name != "deci":
        found = {i for i, n in enumerate(heads) if n == 0}
        if found:
            return found
    if facts.attention_every:
        every = keys.integer("full_attention_interval", default=facts.attention_every, why="llama.cpp")
        if every < 1:
            raise FormatError(f"{keys.at('full_attention_interval')} is at least 1", every)
        keys.notes.append("layers without attention carry no position encoding of their own")
        return {i for i in range(layers) if (i + 1) % every}
    return set()
