"""Whole attention, V the identity: logits up to a constant for each row, for scale, positions, bias."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Attention
from posenc.checker.gathering import Gathered
from posenc.errors import PosencError
from posenc.formulas.biases import alibi_bias
from posenc.formulas.rotation import rotate
from posenc.formulas.scalings import frequencies, mscale
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Alibi, Rotary

TOKENS = 11


def logits(box: Attention, q: Array, k: Array, positions: Array, **more: Any) -> Array:
    """``(heads, tokens, tokens)`` logarithms of the weights, each row centred; nan where a query does not look.

    V is the identity where the head is wide enough, otherwise blocks of it in several calls.
    """
    heads, tokens, d = q.shape
    weights = np.zeros((heads, tokens, tokens))
    for start in range(0, tokens, d):
        v = np.zeros((heads, tokens, d))
        n = min(d, tokens - start)
        v[:, np.arange(start, start + n), np.arange(n)] = 1.0
        weights[:, :, start : start + n] = box.attend(q, k, v, positions, **more)[:, :, :n]
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(weights > 1e-30, np.log(np.maximum(weights, 1e-300)), np.nan)
    return np.asarray(log - np.nanmean(log, axis=2, keepdims=True))


def examine_attention(notes: Gathered, box: Attention, encoding: Any) -> None:
    """Softmax scale, positions and bias of whole attention against the wanted encoding."""
    rng = np.random.default_rng(11)
    size = (box.heads, TOKENS, box.head_dim)
    q, k = rng.normal(size=size), rng.normal(size=size)
    at = np.arange(float(TOKENS)) * 3 + 1
    if "positions" not in getattr(box.calls.get("bound"), "roles", {"positions": "positions"}).values():
        at = np.arange(float(TOKENS))
    seen = logits(box, q, k, at)
    notes.ran("attention logits")
    notes.measure("keys seen by query 3", int(np.isfinite(seen[0, 3]).sum()), "causal" if box.causal else "not causal")
    rotary = encoding if isinstance(encoding, Rotary) else None
    bias = alibi_bias(encoding, TOKENS, TOKENS) if isinstance(encoding, Alibi) else None
    right_scale = (frequencies(rotary).logit_scale if rotary else 1.0) / math.sqrt(box.head_dim)
    turned_q, turned_k = (rotate(q, at, rotary, role="query"), rotate(k, at, rotary, role="key")) if rotary else (q, k)
    if bias is not None and at[1] - at[0] != 1:
        bias = bias * (at[1] - at[0])
    slope, rest, offset = _fit(seen, turned_q, turned_k, bias)
    if rest < 0.02:
        _scale(notes, slope, right_scale, box, rotary)
        if bias is not None and abs(offset - 1) > 0.01:
            notes.found(
                "defect",
                ("bias-function",),
                f"the bias is {offset:.4g} times ALiBi's",
                evidence=[Evidence(name="factor on the bias", expected=1.0, seen=offset)],
                cause=_bias_words(offset, box.head_dim),
                recovered=[Recovered(name="factor on the bias", value=offset, expected=1.0)],
            )
    else:
        _explain(notes, seen, q, k, at, encoding, right_scale, rest, box)
    _padding(notes, box, q, k, at)
    _packing(notes, box, q, k)


def _fit(seen: Array, q: Array, k: Array, bias: Array | None) -> tuple[float, float, float]:
    """Scale, share not explained, and factor of the bias: least squares on centred rows."""
    plain = q @ k.transpose(0, 2, 1)
    ok = np.isfinite(seen)
    columns = [plain] + ([bias] if bias is not None else [])
    centred = []
    for each in columns:
        values = np.where(ok, each, np.nan)
        with np.errstate(invalid="ignore"):
            centred.append((values - np.nanmean(values, axis=2, keepdims=True))[ok])
    y = seen[ok]
    a = np.stack(centred, axis=1)
    found, *_ = np.linalg.lstsq(a, y, rcond=None)
    left = float(np.sqrt(((y - a @ found) ** 2).sum() / max((y**2).sum(), 1e-300)))
    return float(found[0]), left, float(found[1]) if bias is not None else 1.0


def _scale(notes: Gathered, slope: float, right: float, box: Attention, rotary: Rotary | None) -> None:
    ratio = slope / right
    notes.measure("softmax scale", slope, f"wanted {right:.6g}")
    if abs(ratio - 1) < 2e-3:
        return
    cause: str | None = None
    kinds: tuple[str, ...] = ("attention-factor",)
    d = box.head_dim
    if rotary is not None:
        f = frequencies(rotary)
        for s in rotary.scaling:
            fields = s.fields() if s.kind == "as_executed" else dict(s)
            factor = float(fields.get("factor") or 1)
            m = mscale(factor)
            tries = [
                (1 / f.logit_scale, "the factor on the softmax scale is missing"),
                (f.logit_scale, "the factor on the softmax scale is applied twice"),
                (1 / math.sqrt(f.logit_scale), "the factor on the softmax scale is not squared"),
                (m * m, "YaRN's factor is applied to the softmax scale too"),
                (1 / f.gain**2, "the attention factor on cos and sin is missing"),
                (f.gain**2, "the attention factor on cos and sin is applied twice"),
            ]
            cause = cause or next(
                (words for value, words in tries if abs(value - 1) > 1e-3 and abs(ratio / value - 1) < 2e-3), None
            )
    for value, words in (
        (math.sqrt(d), "scores are not divided by sqrt(d)"),
        (1 / math.sqrt(d), "scores are divided by d (or twice by sqrt(d))"),
    ):
        if cause is None and abs(ratio / value - 1) < 2e-3:
            cause, kinds = words, ("attention-factor", "integration")
    notes.found(
        "defect",
        kinds,
        f"scores are {ratio:.5g} times the wanted ones",
        evidence=[Evidence(name="softmax scale", expected=right, seen=slope)],
        cause=cause,
        like="softmax",
        shape="a constant factor at every position; a single key hides it",
        recovered=[Recovered(name="softmax scale", value=slope, expected=right)],
    )
    notes.recover("softmax scale", slope, right)


def _bias_words(offset: float, d: int) -> str | None:
    if abs(offset + 1) < 0.01:
        return "the sign is exchanged: far keys get a bonus"
    if abs(offset * math.sqrt(d) - 1) < 0.02:
        return "the bias is divided by sqrt(d) with the scores"
    return "the bias is missing" if abs(offset) < 0.01 else None


def _explain(
    notes: Gathered,
    seen: Array,
    q: Array,
    k: Array,
    at: Array,
    encoding: Any,
    scale: float,
    rest: float,
    box: Attention,
) -> None:
    """The wanted scores do not explain the logits: others are tried."""
    tries: list[tuple[str, tuple[str, ...], str, Array, Array]] = []
    if isinstance(encoding, Rotary):

        def turned(e: Rotary, a: Any = at, b: Any = at) -> tuple[Array, Array]:
            return rotate(q, a, e, role="query"), rotate(k, b, e, role="key")

        tries.append(("no position reaches the scores", ("integration", "scaling-parameters"), "not rotated", q, k))
        twice = (
            rotate(rotate(q, at, encoding, role="query"), at, encoding, role="query"),
            rotate(rotate(k, at, encoding, role="key"), at, encoding, role="key"),
        )
        tries.append(("queries and keys are rotated twice", ("double-application",), "rotated twice", *twice))
        keys = turned(encoding)[0], twice[1]
        tries.append(("keys are rotated twice and queries once", ("double-application",), "keys rotated twice", *keys))
        tries.append(
            ("keys are not rotated", ("integration", "double-application"), "keys not rotated", turned(encoding)[0], k)
        )
        tries.append(
            (
                "queries are not rotated",
                ("integration", "double-application"),
                "queries not rotated",
                q,
                turned(encoding)[1],
            )
        )
        other = encoding.replace(interleaved=not encoding.interleaved)
        tries.append(("the other pairing of channels is turned", ("layout",), "other pairing", *turned(other)))
        tries.append(
            (
                "positions are ignored: tokens count from 0",
                ("offset-cache",),
                "own positions",
                *turned(encoding, np.arange(len(at)), np.arange(len(at))),
            )
        )
        if encoding.scaling:
            tries.append(
                (
                    "the scaling is not applied",
                    ("scaling-parameters",),
                    "unscaled",
                    *turned(encoding.replace(scaling=())),
                )
            )
    if isinstance(encoding, Alibi):
        tries.append(("the bias is missing", ("bias-function", "integration"), "no bias", q, k))
    for words, kinds, key, a, b in tries:
        slope, left, _ = _fit(seen, a, b, None)
        if left < 0.02:
            verdict = "convention" if kinds == ("layout",) else "defect"
            notes.found(
                verdict,
                kinds,
                f"the scores are not the wanted ones: {words}",
                cause=words,
                recovered=[Recovered(name="scores", value=key)],
                evidence=[
                    Evidence(name="share of the logits not explained by the wanted scores", expected=0.0, seen=rest),
                    Evidence(name="share not explained by this", expected=0.0, seen=left),
                ],
            )
            if verdict == "defect" or abs(slope / scale - 1) > 2e-3:
                _scale(notes, slope, scale, box, encoding if isinstance(encoding, Rotary) else None)
            return
    notes.found(
        "defect",
        ("integration",),
        "the scores are not those of the wanted encoding",
        evidence=[Evidence(name="share of the logits not explained", expected=0.0, seen=rest)],
        remedy="Check the rotation and the bias by themselves.",
    )


def _padding(notes: Gathered, box: Attention, q: Array, k: Array, at: Array) -> None:
    """A row alone against the same row behind padding on the left."""
    if "mask" not in box.takes:
        notes.skipped("left padding", "the subject takes no mask")
        return
    pad = 4
    wide = np.concatenate([q[:, :pad] * 0.5, q], axis=1), np.concatenate([k[:, :pad] * 0.5, k], axis=1)
    mask = np.concatenate([np.zeros(pad), np.ones(q.shape[1])]).astype(int)
    v = np.random.default_rng(5).normal(size=q.shape)
    v_wide = np.concatenate([v[:, :pad], v], axis=1)
    try:
        alone = box.attend(q, k, v, np.arange(q.shape[1]))
        padded = box.attend(*wide, v_wide, np.arange(q.shape[1] + pad), mask=mask)[:, pad:]
    except PosencError as error:
        notes.skipped("left padding", str(error))
        return
    notes.ran("left padding")
    gap = float(np.abs(alone - padded).max())
    if gap > 1e-3:
        notes.found(
            "defect",
            ("mask-padding",),
            "a row behind padding on the left gives another result than alone",
            evidence=[Evidence(name="largest difference of the output", expected=0.0, seen=gap)],
            shape="only the shorter rows of a batch",
            cause="padding is attended to, or counted as positions",
            first=FirstWrong(position=float(pad)),
            like="padding",
        )
    del at


def _packing(notes: Gathered, box: Attention, q: Array, k: Array) -> None:
    """A document alone against the same document packed behind another."""
    if "document" not in box.takes:
        notes.skipped("packing", "the subject takes no document numbers")
        return
    first = 4
    document = np.concatenate([np.zeros(first), np.ones(q.shape[1] - first)]).astype(int)
    v = np.random.default_rng(5).normal(size=q.shape)
    try:
        positions = np.concatenate([np.arange(first), np.arange(q.shape[1] - first)])
        alone = box.attend(q[:, first:], k[:, first:], v[:, first:], np.arange(q.shape[1] - first))
        packed = box.attend(q, k, v, positions, document=document)[:, first:]
    except PosencError as error:
        notes.skipped("packing", str(error))
        return
    notes.ran("packing")
    gap = float(np.abs(alone - packed).max())
    if gap > 1e-3:
        notes.found(
            "defect",
            ("packing",),
            "a packed document gives another result than alone",
            evidence=[Evidence(name="largest difference of the output", expected=0.0, seen=gap)],
            shape="from the second document on",
            cause="documents see each other, or positions run on",
            first=FirstWrong(position=float(first)),
            like="packing",
        )
