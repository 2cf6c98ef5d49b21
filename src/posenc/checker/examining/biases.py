"""A box that is added to scores, beside ALiBi or T5's buckets; slopes and bucket functions alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posenc.checker.boxes import Bias
from posenc.checker.examining.buckets import examine_t5
from posenc.checker.examining.slopes import compare_slopes
from posenc.checker.gathering import Gathered, drawn
from posenc.checker.recovery.bias import BiasShape, bias_shape
from posenc.formulas.biases import alibi_slopes
from posenc.records.finding import Evidence, Recovered
from posenc.spec import Alibi, T5Bias

ASKED = (37, 41)
"""Queries and keys: prime, different, and so many that T5's buckets of small distances all appear."""


def examine_bias(notes: Gathered, box: Bias, encoding: Any) -> None:
    """Toeplitz, sides, slopes and heads of a bias, compared with ALiBi's or T5's."""
    n_q, n_k = ASKED
    shape = bias_shape(box.bias(n_q, n_k))
    notes.ran("bias matrix")
    describe(notes, shape)
    if isinstance(encoding, Alibi):
        _alibi(notes, shape, encoding)
        _grows(notes, box, shape)
    elif isinstance(encoding, T5Bias):
        examine_t5(notes, box, encoding)
    else:
        notes.skipped("bias", f"no examination of a bias is known for {encoding.kind}")


def describe(notes: Gathered, shape: BiasShape) -> None:
    """What a bias is like, whatever is wanted."""
    notes.measure("heads", shape.heads)
    notes.measure("Toeplitz defect", shape.toeplitz, "largest max - min along a diagonal over the largest entry")
    if shape.toeplitz > 1e-6 and shape.toeplitz_up_to_rows <= 1e-6:
        notes.note("the bias depends on the distance alone up to a constant for each row, which no softmax sees")
    if math.isfinite(shape.symmetric):
        notes.measure("asymmetry", shape.symmetric, "largest |b(D) - b(-D)| over the largest entry")
    if shape.masked is not None:
        notes.measure("masked from key minus query", shape.masked)


def _alibi(notes: Gathered, shape: BiasShape, encoding: Alibi) -> None:
    wanted = alibi_slopes(encoding.num_heads, encoding.max_bias)
    if shape.toeplitz > 1e-5 and shape.toeplitz_up_to_rows > 1e-5:
        notes.found(
            "defect",
            ("bias-function", "relative-index"),
            "the bias does not depend on the distance alone",
            evidence=[Evidence(name="Toeplitz defect", expected=0.0, seen=shape.toeplitz)],
            cause="queries and keys are indexed from different starts, or rows and columns are exchanged",
        )
        return
    if shape.toeplitz > 1e-5:
        notes.found(
            "harmless",
            ("bias-function",),
            "the bias is that of the key's position: a constant for each row is added",
            evidence=[Evidence(name="Toeplitz defect", expected=0.0, seen=shape.toeplitz)],
            cause="the softmax does not see what is added to a whole row",
            remedy="Nothing.",
        )
    if shape.past_residual > 1e-4:
        _not_linear(notes, shape, encoding)
        return
    slopes = shape.past
    compare_slopes(notes, slopes, encoding, wanted)
    if shape.masked is None and math.isfinite(float(shape.future[0])):
        _future(notes, shape, encoding)
    if (
        np.abs(shape.intercept).max() > 1e-5 * max(float(np.abs(shape.line[np.isfinite(shape.line)]).max()), 1e-300)
        and shape.toeplitz <= 1e-5
    ):
        steps = float(np.median(-shape.intercept / np.where(slopes == 0, 1, slopes)))
        notes.found(
            "harmless",
            ("bias-function",),
            f"distance 0 is counted as {steps:.4g}",
            evidence=[Evidence(name="bias at distance 0, head 0", expected=0.0, seen=float(shape.intercept[0]))],
            cause="the same number is added to every score, which the softmax does not see",
            remedy="Nothing.",
        )


def _not_linear(notes: Gathered, shape: BiasShape, encoding: Alibi) -> None:
    """Not a line: zero beyond a limit, clipped, in steps."""
    back = shape.line[:, shape.distances <= 0][:, ::-1]
    live = np.isfinite(back).all(0)
    values = back[:, live]
    beyond = np.flatnonzero((values != 0).any(0))
    limit = int(beyond.max()) if len(beyond) else 0
    flat = np.flatnonzero(np.abs(np.diff(values, axis=1)).max(0) == 0)
    cause, title = None, "the bias is not linear in the distance"
    recovered = []
    if limit < values.shape[1] - 1 and limit > 0:
        title, cause = (
            f"the bias is zero beyond distance {limit}",
            "distances beyond the limit are dropped in place of clipped",
        )
        recovered = [Recovered(name="limit", value=limit)]
    elif len(flat) and (np.diff(flat) == 1).all() and flat[-1] == values.shape[1] - 2:
        title, cause = f"the bias stays at its value of distance {int(flat[0])}", "distances are clipped at a limit"
        recovered = [Recovered(name="limit", value=int(flat[0]))]
    ratio = values[0] / np.where(np.arange(values.shape[1]) == 0, 1, np.arange(values.shape[1]))
    notes.found(
        "defect",
        ("bias-function", "relative-index"),
        title,
        cause=cause,
        recovered=recovered,
        evidence=[
            Evidence(name="bias per position, head 0, at distance 1", seen=float(ratio[1]) if len(ratio) > 1 else None),
            Evidence(name="bias per position, head 0, at the largest distance", seen=float(ratio[-1])),
        ],
        drawn=[drawn("bias of head 0 by distance", "distance", "bias", np.arange(values.shape[1]), values[0])],
    )
    del encoding


def _future(notes: Gathered, shape: BiasShape, encoding: Alibi) -> None:
    past, future = float(shape.past[0]), float(shape.future[0])
    symmetric = shape.symmetric < 1e-5
    notes.ran("both signs of the distance")
    if encoding.symmetric and not symmetric:
        crooked = shape.future_residual > 1e-4
        kinds = ("relative-index", "bias-function") if crooked else ("bias-function",)
        notes.found(
            "defect",
            kinds,
            "keys after the query are not biased like keys before it",
            evidence=[Evidence(name="slope after the query, head 0", expected=-past, seen=future)],
            like="relindex" if crooked else "alibi",
            cause=(
                "entries above the diagonal are leftovers of another query's row: "
                "a shift by padding and reshaping is right below it alone"
            )
            if crooked
            else "the signed distance is used where |i - j| is wanted: later keys get a bonus"
            if future * past > 0
            else "keys after the query get no bias",
        )
    elif not encoding.symmetric and symmetric:
        notes.found(
            "convention",
            ("bias-function",),
            "the bias is symmetric: -m |i - j|",
            evidence=[Evidence(name="slope after the query, head 0", expected=past, seen=future)],
            cause="the same under a causal mask; another encoding in attention that looks both ways",
            like="alibi",
        )


def _grows(notes: Gathered, box: Bias, shape: BiasShape) -> None:
    """One query after a cache: the offset of the query."""
    notes.ran("one query after a cache")
    try:
        one = box.bias(1, ASKED[1])
    except Exception:  # not every bias takes one query
        notes.skipped("one query after a cache", "the subject does not take fewer queries than keys")
        return
    last = shape.line[:, shape.distances <= 0]
    seen = one[:, 0, :]
    wanted = last[:, -ASKED[1] :]
    if seen.shape != wanted.shape or not np.isfinite(seen).all():
        return
    gap = (seen - seen[:, -1:]) - (wanted - wanted[:, -1:])
    if np.abs(gap).max() > 1e-4 * max(np.abs(wanted).max(), 1e-300):
        notes.found(
            "defect",
            ("offset-cache", "bias-function"),
            "a single query after a cache gets another bias than as the last of many",
            evidence=[Evidence(name="bias of key 0, head 0", expected=float(wanted[0, 0]), seen=float(seen[0, 0]))],
            cause="the query's offset is left out",
            like="offset-query",
        )
