"""Whole passes of a model: one pass against token by token, alone against padded, shifted positions, history."""

from __future__ import annotations

import inspect as signatures
from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.checker.gathering import Gathered
from posenc.errors import shown
from posenc.records.finding import Evidence, FirstWrong

TOKENS = 11


def check_passes(notes: Gathered, model: Any, *, relative: bool) -> None:
    """Run the passes that a model takes; what it does not take is said.

    Args:
        notes: where findings go.
        model: a transformers model in evaluation mode.
        relative: all its encodings are relative, so that a shift of all positions changes nothing.
    """
    import torch

    main = (
        model.get_decoder()
        if getattr(model.config, "is_encoder_decoder", False) and hasattr(model, "get_decoder")
        else model
    )
    parameters = signatures.signature(main.forward).parameters
    if "input_ids" not in parameters:
        notes.skipped("passes", "the model takes no token ids")
        return
    pad_id = int(getattr(model.config.get_text_config(), "pad_token_id", None) or 0)
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    vocabulary = int(getattr(model.config.get_text_config(), "vocab_size", 97) or 97)
    ids = torch.from_numpy(np.random.default_rng(1).integers(6, max(vocabulary, 8) - 1, size=(1, TOKENS)))

    def hidden(tokens: Any, **more: Any) -> Any:
        with torch.no_grad():
            out = main(input_ids=tokens, **{k: v for k, v in more.items() if k in parameters or open_ended})
        return out

    try:
        whole = hidden(ids, use_cache=False)[0]
    except Exception as error:
        notes.skipped("passes", f"{type(error).__name__}: {shown(str(error), 120)}")
        return
    size = float(whole.abs().max())
    jobs: list[tuple[str, Callable[[], None]]] = [
        ("positions matter", lambda: _order(notes, hidden, ids, whole, size)),
        ("token by token", lambda: _decode(notes, hidden, ids, whole, size, parameters)),
        ("left padding", lambda: _padding(notes, hidden, ids, whole, size, parameters, pad_id)),
        ("shifted positions", lambda: _shift(notes, hidden, ids, whole, size, parameters, relative)),
        ("short, long, short", lambda: _history(notes, hidden, ids, whole, size, vocabulary)),
    ]
    for name, job in jobs:
        try:
            job()
        except Exception as error:
            notes.skipped(name, f"{type(error).__name__}: {shown(str(error), 120)}")
        else:
            notes.ran(name)


def _gap(a: Any, b: Any, size: float) -> float:
    return float((a - b).abs().max()) / max(size, 1e-6)


def _order(notes: Gathered, hidden: Any, ids: Any, whole: Any, size: float) -> None:
    swapped = ids.clone()
    swapped[0, 1], swapped[0, 2] = ids[0, 2], ids[0, 1]
    out = hidden(swapped, use_cache=False)[0]
    notes.measure(
        "effect of exchanging two early tokens on the last",
        _gap(out[:, -1], whole[:, -1], size),
        "of the largest activation",
    )


def _decode(notes: Gathered, hidden: Any, ids: Any, whole: Any, size: float, parameters: Any) -> None:
    name = next((n for n in ("past_key_values", "cache") if n in parameters), None)
    if name is None:
        raise ValueError("the model keeps no cache")
    cut = 5
    first = hidden(ids[:, :cut], use_cache=True)
    past, pieces = _cache(first), [first[0]]
    for i in range(cut, TOKENS):
        step = hidden(ids[:, i : i + 1], **{name: past}, use_cache=True)
        past = _cache(step)
        pieces.append(step[0])
    import torch

    joined = torch.cat(pieces, dim=1)
    gap = _gap(joined, whole, size)
    notes.measure("token by token against one pass", gap, "of the largest activation")
    if gap > 2e-3:
        wrong = int(((joined - whole).abs().amax(dim=(0, 2)) > 2e-3 * size).nonzero()[0])
        notes.found(
            "defect",
            ("offset-cache",),
            "token by token gives another result than one pass",
            evidence=[Evidence(name="largest difference over the largest activation", expected=0.0, seen=gap)],
            first=FirstWrong(position=float(wrong)),
            like="offset-query cache",
        )


def _cache(out: Any) -> Any:
    for name in ("past_key_values", "cache"):
        found = getattr(out, name, None)
        if found is not None:
            return found
    raise ValueError("the model returns no cache")


def _padding(notes: Gathered, hidden: Any, ids: Any, whole: Any, size: float, parameters: Any, pad_id: int) -> None:
    """Padding on the left: with positions counted over real tokens, and as the model counts them itself."""
    import torch

    if "attention_mask" not in parameters:
        raise ValueError("the model takes no mask")
    pad = 4
    padded = torch.cat([torch.full((1, pad), pad_id), ids], dim=1)
    mask = torch.cat([torch.zeros(1, pad, dtype=torch.long), torch.ones_like(ids)], dim=1)
    ways: dict[str, dict[str, Any]] = {"the model counts positions itself": {}}
    if "position_ids" in parameters:
        ways["positions counted over real tokens"] = {"position_ids": (mask.cumsum(-1) - 1).clamp(min=0)}
    gaps = {}
    for told, more in ways.items():
        out = hidden(padded, attention_mask=mask, use_cache=False, **more)[0][:, pad:]
        gaps[told] = _gap(out, whole, size)
    told, gap = min(gaps.items(), key=lambda g: g[1])
    notes.measure("behind padding against alone", gap, f"of the largest activation; {told}")
    if gap > 2e-3:
        verdict = "defect" if len(ways) == 2 else "convention"
        notes.found(
            verdict,
            ("mask-padding",),
            "a row behind padding on the left gives another result than alone",
            evidence=[
                Evidence(name="largest difference over the largest activation", expected=0.0, seen=g, where=way)
                for way, g in gaps.items()
            ],
            shape="only the shorter rows of a batch",
            cause="padding is attended to, or counted as positions",
            like="padding",
        )


def _shift(notes: Gathered, hidden: Any, ids: Any, whole: Any, size: float, parameters: Any, relative: bool) -> None:
    import torch

    if "position_ids" not in parameters:
        raise ValueError("the model takes no positions")
    out = hidden(ids, position_ids=torch.arange(TOKENS)[None] + 7, use_cache=False)[0]
    gap = _gap(out, whole, size)
    notes.measure("all positions shifted by 7", gap, "of the largest activation")
    if relative and gap > 5e-3:
        notes.found(
            "defect",
            ("offset-cache", "layout"),
            "a shift of all positions changes the result although every encoding is relative",
            evidence=[Evidence(name="largest difference over the largest activation", expected=0.0, seen=gap)],
        )
    stretched = hidden(ids, position_ids=torch.arange(TOKENS)[None] * 3, use_cache=False)[0]
    if _gap(stretched, whole, size) < 1e-6 and relative:
        notes.found(
            "defect",
            ("offset-cache", "integration"),
            "position_ids change nothing: the argument is ignored",
            evidence=[Evidence(name="difference with positions times 3", expected="some", seen=0.0)],
        )


def _history(notes: Gathered, hidden: Any, ids: Any, whole: Any, size: float, vocabulary: int) -> None:
    import torch

    long = torch.from_numpy(np.random.default_rng(2).integers(6, max(vocabulary, 8) - 1, size=(1, 300)))
    hidden(long, use_cache=False)
    gap = _gap(hidden(ids, use_cache=False)[0], whole, size)
    if gap > 1e-4:
        notes.found(
            "defect",
            ("state-leak",),
            "a short row gives another result after a long one",
            evidence=[
                Evidence(
                    name="largest difference over the largest activation",
                    expected=0.0,
                    seen=gap,
                    where="11 tokens after 300",
                )
            ],
            like="leak",
        )
