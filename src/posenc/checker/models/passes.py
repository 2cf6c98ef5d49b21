"""Whole passes of a model: one pass against token by token, alone against padded, shifted positions, history."""

from __future__ import annotations

import inspect as signatures
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from posenc.checker.gathering import Gathered
from posenc.checker.models.tiny import FIRST_ID
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

    main = _decoder(model)
    parameters = signatures.signature(main.forward).parameters
    if "input_ids" not in parameters:
        notes.skipped("passes", "the model takes no token ids")
        return
    settings = getattr(main, "config", model.config)
    with suppress(ValueError):  # several texts
        settings = settings.get_text_config()
    pad_id = int(getattr(settings, "pad_token_id", None) or 0)
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    vocabulary = int(getattr(settings, "vocab_size", 97) or 97)
    ids = torch.from_numpy(np.random.default_rng(1).integers(FIRST_ID, max(vocabulary, 8) - 1, size=(1, TOKENS)))

    def hidden(tokens: Any, **more: Any) -> Any:
        torch.manual_seed(0)  # some models draw numbers in a pass
        with torch.no_grad():
            out = main(input_ids=tokens, **{k: v for k, v in more.items() if k in parameters or open_ended})
        return out

    try:
        whole = hidden(ids, use_cache=False)[0]
    except Exception as error:
        notes.skipped("passes", f"{type(error).__name__}: {shown(str(error), 120)}")
        return
    size = float(whole.abs().max())
    said: list[str] = []
    jobs: list[tuple[str, Callable[[], None]]] = [
        ("positions matter", lambda: _order(notes, hidden, ids, whole, size)),
        ("token by token", lambda: _decode(notes, hidden, ids, whole, size, parameters)),
        ("left padding", lambda: _padding(notes, hidden, ids, whole, size, parameters, pad_id)),
        ("shifted positions", lambda: _shift(notes, hidden, ids, whole, size, parameters, relative, said)),
        ("short, long, short", lambda: _history(notes, hidden, ids, whole, size, vocabulary)),
    ]
    with _warnings_about("position_ids", said):
        for name, job in jobs:
            try:
                job()
            except Exception as error:
                notes.skipped(name, f"{type(error).__name__}: {shown(str(error), 120)}")
            else:
                notes.ran(name)


def _decoder(model: Any) -> Any:
    """The part that takes tokens one by one: the innermost decoder of an encoder and a decoder."""
    inner = model
    while getattr(getattr(inner, "config", None), "is_encoder_decoder", False) and hasattr(inner, "get_decoder"):
        found = inner.get_decoder()
        if found is inner or found is None:
            break
        inner = found
    return inner


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
        counted = (mask.cumsum(-1) - 1).clamp(min=0) + _first_position(hidden, ids, whole, size)
        ways["positions counted over real tokens"] = {"position_ids": counted}
    gaps = {}
    for told, more in ways.items():
        out = hidden(padded, attention_mask=mask, use_cache=False, **more)[0][:, pad:]
        gaps[told] = _gap(out, whole, size)
    told, gap = min(gaps.items(), key=lambda g: g[1])
    notes.measure("behind padding against alone", gap, f"of the largest activation; {told}")
    if gap > 2e-3:
        before = torch.cat([ids, torch.full((1, pad), pad_id)], dim=1)  # positions are the same: a control
        leak = _gap(hidden(before, attention_mask=mask.flip(-1), use_cache=False)[0][:, :TOKENS], whole, size)
        notes.measure("before padding against alone", leak, "of the largest activation")
        other = torch.cat([torch.full((1, pad), pad_id + FIRST_ID), ids], dim=1)
        content = _gap(
            hidden(other, attention_mask=mask, use_cache=False)[0][:, pad:],
            hidden(padded, attention_mask=mask, use_cache=False)[0][:, pad:],
            size,
        )
        told_apart = len(set(gaps.values())) == 2  # positions can be given, and are not ignored
        verdict = "defect" if told_apart and leak <= 2e-3 else "convention"
        notes.found(
            verdict,
            ("mask-padding",),
            "a row behind padding on the left gives another result than alone",
            evidence=[
                Evidence(name="largest difference over the largest activation", expected=0.0, seen=g, where=way)
                for way, g in gaps.items()
            ]
            + [Evidence(name="difference where only what is masked is another token", expected=0.0, seen=content)],
            shape="only the shorter rows of a batch",
            cause="tokens mix with padding, on the right too: no matter of positions"
            if leak > 2e-3
            else "what is masked takes part in the result all the same"
            if content > 2e-3
            else "padding is counted as positions",
            like="padding",
        )


def _first_position(hidden: Any, ids: Any, whole: Any, size: float) -> int:
    """The position that the model itself gives the first token; some tables reserve rows before it."""
    import torch

    for first in (0, 1, 2):
        if _gap(hidden(ids, position_ids=torch.arange(TOKENS)[None] + first, use_cache=False)[0], whole, size) < 1e-4:
            return first
    return 0


def _shift(
    notes: Gathered,
    hidden: Any,
    ids: Any,
    whole: Any,
    size: float,
    parameters: Any,
    relative: bool,
    said: list[str],
) -> None:
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
            "convention" if said else "defect",
            ("offset-cache", "integration"),
            "position_ids change nothing: the argument is ignored" + (", as the model says itself" if said else ""),
            evidence=[Evidence(name="difference with positions times 3", expected="some", seen=0.0)],
        )


@contextmanager
def _warnings_about(word: str, said: list[str]) -> Iterator[None]:
    """Add what transformers logs about a word meanwhile."""
    from transformers.utils import logging as theirs

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if word in record.getMessage():
                said.append(record.getMessage())

    theirs.warning_once.cache_clear()  # another model may have said it before
    logger, listening = theirs.get_logger("transformers"), Listening()
    level = logger.level
    logger.addHandler(listening)
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(listening)


def _history(notes: Gathered, hidden: Any, ids: Any, whole: Any, size: float, vocabulary: int) -> None:
    import torch

    long = torch.from_numpy(np.random.default_rng(2).integers(FIRST_ID, max(vocabulary, 8) - 1, size=(1, 300)))
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
