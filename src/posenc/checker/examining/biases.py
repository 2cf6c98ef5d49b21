"""A box that is added to scores, beside ALiBi or T5's buckets; slopes and bucket functions alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.checker.boxes import Array, Bias, Buckets, Vector
from posenc.checker.gathering import Gathered, drawn
from posenc.checker.recovery.bias import BiasShape, bias_shape
from posenc.formulas.biases import alibi_slopes, t5_buckets
from posenc.records.finding import Evidence, FirstWrong, Recovered
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
        _t5(notes, box, encoding)
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
        notes.found("defect", ("bias-function", "relative-index"), "the bias does not depend on the distance alone",
                    evidence=[Evidence(name="Toeplitz defect", expected=0.0, seen=shape.toeplitz)],
                    cause="queries and keys are indexed from different starts, or rows and columns are exchanged")  # fmt: skip
        return
    if shape.toeplitz > 1e-5:
        notes.found("harmless", ("bias-function",), "the bias is that of the key's position: a constant for each row is added",
                    evidence=[Evidence(name="Toeplitz defect", expected=0.0, seen=shape.toeplitz)],
                    cause="the softmax does not see what is added to a whole row", remedy="Nothing.")  # fmt: skip
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
        notes.found("harmless", ("bias-function",), f"distance 0 is counted as {steps:.4g}",
                    evidence=[Evidence(name="bias at distance 0, head 0", expected=0.0, seen=float(shape.intercept[0]))],
                    cause="the same number is added to every score, which the softmax does not see", remedy="Nothing.")  # fmt: skip


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
    notes.found("defect", ("bias-function", "relative-index"), title, cause=cause, recovered=recovered,
                evidence=[Evidence(name="bias per position, head 0, at distance 1", seen=float(ratio[1]) if len(ratio) > 1 else None),
                          Evidence(name="bias per position, head 0, at the largest distance", seen=float(ratio[-1]))],
                drawn=[drawn("bias of head 0 by distance", "distance", "bias", np.arange(values.shape[1]), values[0])])  # fmt: skip
    del encoding


def _future(notes: Gathered, shape: BiasShape, encoding: Alibi) -> None:
    past, future = float(shape.past[0]), float(shape.future[0])
    symmetric = shape.symmetric < 1e-5
    notes.ran("both signs of the distance")
    if encoding.symmetric and not symmetric:
        crooked = shape.future_residual > 1e-4
        kinds = ("relative-index", "bias-function") if crooked else ("bias-function",)
        notes.found("defect", kinds, "keys after the query are not biased like keys before it",
                    evidence=[Evidence(name="slope after the query, head 0", expected=-past, seen=future)],
                    like="relindex" if crooked else "alibi",
                    cause="entries above the diagonal are leftovers of another query's row: a shift by padding and reshaping is right below it alone" if crooked
                    else "the signed distance is used where |i - j| is wanted: later keys get a bonus" if future * past > 0 else "keys after the query get no bias")  # fmt: skip
    elif not encoding.symmetric and symmetric:
        notes.found("convention", ("bias-function",), "the bias is symmetric: -m |i - j|",
                    evidence=[Evidence(name="slope after the query, head 0", expected=past, seen=future)],
                    cause="the same under a causal mask; another encoding in attention that looks both ways", like="alibi")  # fmt: skip


def compare_slopes(notes: Gathered, slopes: Array, encoding: Alibi, wanted: Array | None = None) -> None:
    """Slopes of heads (bias per position back, as a penalty) with ALiBi's."""
    notes.ran("slopes")
    wanted = alibi_slopes(encoding.num_heads, encoding.max_bias) if wanted is None else wanted
    n = encoding.num_heads
    if len(slopes) != n:
        notes.found("defect", ("bias-function", "width"), f"there are {len(slopes)} slopes in place of {n}",
                    evidence=[Evidence(name="heads", expected=n, seen=len(slopes))])  # fmt: skip
        return
    gap = np.abs(slopes - wanted) / np.abs(wanted)
    notes.measure("largest relative deviation of a slope", float(gap.max()), f"{n} heads")
    wrong = np.flatnonzero(gap > 1e-4)
    if not len(wrong):
        return
    verdict, cause, recovered, kinds = _slope_words(slopes, wanted, encoding)
    i = int(wrong[0])
    notes.found(verdict, kinds, f"{len(wrong)} of {n} slopes are not ALiBi's",
                evidence=[Evidence(name=f"slope of head {i}", expected=float(wanted[i]), seen=float(slopes[i]))],
                first=FirstWrong(pair=i, of="head"), cause=cause, recovered=recovered, like="alibi",
                drawn=[drawn("slope by head", "head", "slope", np.arange(n), np.abs(slopes), wanted, log=True)])  # fmt: skip
    for each in recovered:
        notes.recover(each.name, each.value, each.expected)


def _slope_words(slopes: Array, wanted: Array, e: Alibi) -> tuple[str, str | None, list[Recovered], tuple[str, ...]]:
    n, h = e.num_heads, np.arange(e.num_heads)
    kinds: tuple[str, ...] = ("bias-function",)

    def close(other: Array) -> bool:
        return bool(
            np.abs(slopes - other).max() <= 1e-3 * np.abs(other).max() and np.allclose(slopes, other, rtol=1e-3)
        )

    plain = np.exp2(-e.max_bias * (h + 1) / n)
    if close(-wanted):
        return (
            "defect",
            "the sign is exchanged: far keys get a bonus",
            [Recovered(name="sign", value=-1, expected=1)],
            kinds,
        )
    if close(np.exp2(-e.max_bias * h / n)):
        return (
            "defect",
            "the index of heads starts at 0 in the exponent: the first slope is 1",
            [Recovered(name="first head", value=0, expected=1)],
            kinds,
        )
    if n & (n - 1) and close(plain):
        return (
            "convention",
            "one geometric sequence over all heads, as the paper's text has it; the authors' code interpolates",
            [Recovered(name="slopes", value="paper", expected="code")],
            kinds,
        )
    if n & (n - 1) and close(np.sort(wanted)[::-1]):
        return (
            "convention",
            "the authors' slopes in descending order of heads",
            [Recovered(name="order", value="sorted")],
            kinds,
        )
    if close(wanted[::-1]):
        return "convention", "the slopes in reversed order of heads", [Recovered(name="order", value="reversed")], kinds
    if n & (n - 1):
        m = 1 << n.bit_length()
        for name, count in (("above", m), ("below", m // 2)):
            cut = alibi_slopes(count, e.max_bias)
            if count >= n and close(cut[:n]):
                return (
                    "defect",
                    f"the slopes of {count} heads, the power of two {name}, cut off",
                    [Recovered(name="heads of the slopes", value=count, expected=n)],
                    kinds,
                )
        above = np.exp2(-e.max_bias * (np.arange(2 * (m // 2)) + 1) / m)
        if close(np.concatenate([alibi_slopes(m // 2, e.max_bias), above[: n - m // 2]])):
            return (
                "defect",
                "the extra heads take consecutive slopes of the power of two above, not every other one",
                [],
                kinds,
            )
    ratio = slopes / wanted
    if np.ptp(ratio) < 1e-3 * abs(ratio.mean()):
        c = float(ratio.mean())
        words = f"every slope is {c:.6g} times the wanted one"
        if math.isclose(c, 2 ** (e.max_bias / n), rel_tol=1e-3):
            words = "the index of heads starts at 0 in the exponent"
        return "defect", words, [Recovered(name="factor on every slope", value=c, expected=1.0)], kinds
    if (slopes > 0).all() and not n & (n - 1):
        logs = -np.log2(slopes) * n / (h + 1)
        if np.ptp(logs) < 1e-3 * logs.mean():
            c = float(logs.mean())
            return (
                "defect",
                f"max_bias is {c:.6g} in place of {e.max_bias:g}",
                [Recovered(name="max_bias", value=c, expected=e.max_bias)],
                kinds,
            )
    return "defect", None, [], kinds


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
        notes.found("defect", ("offset-cache", "bias-function"), "a single query after a cache gets another bias than as the last of many",
                    evidence=[Evidence(name="bias of key 0, head 0", expected=float(wanted[0, 0]), seen=float(seen[0, 0]))],
                    cause="the query's offset is left out", like="offset-query")  # fmt: skip


def _t5(notes: Gathered, box: Bias, encoding: T5Bias) -> None:
    """Recover the buckets from where the bias changes, up to the limit of distances."""
    n = 2 * encoding.max_distance + 3
    values = box.bias(n, n)
    shape = bias_shape(values)
    notes.ran("buckets")
    if shape.toeplitz > 1e-5:
        notes.found("defect", ("bias-function", "relative-index"), "the bias does not depend on the distance alone",
                    evidence=[Evidence(name="Toeplitz defect", expected=0.0, seen=shape.toeplitz)])  # fmt: skip
        return
    d = shape.distances
    known = np.isfinite(shape.line).all(0)
    _, label = np.unique(
        np.round(shape.line[:, known] / max(np.abs(shape.line[:, known]).max(), 1e-300), 6), axis=1, return_inverse=True
    )
    check_buckets(notes, d[known], np.asarray(label).ravel(), encoding, exact=False)


def check_buckets(
    notes: Gathered, relative: NDArray[np.int64], seen: NDArray[np.int64], encoding: T5Bias, *, exact: bool
) -> None:
    """Buckets (or labels of equal values) by relative position ``key - query``.

    Args:
        notes: where findings go.
        relative: ascending integers.
        seen: the bucket of each, or any label that is equal exactly where buckets are.
        encoding: the wanted one.
        exact: the numbers themselves count.
    """

    def wanted(rel: NDArray[np.int64], **changes: Any) -> NDArray[np.int64]:
        with_ = {
            "num_buckets": encoding.num_buckets,
            "max_distance": encoding.max_distance,
            "bidirectional": encoding.bidirectional,
            **changes,
        }
        return t5_buckets(rel, with_["num_buckets"], with_["max_distance"], bidirectional=with_["bidirectional"])

    def alike(other: NDArray[np.int64]) -> bool:
        if exact:
            return bool(np.array_equal(other, seen))
        pairs = set(zip(other.tolist(), seen.tolist(), strict=True))
        return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})

    right = wanted(relative)
    if alike(right):
        notes.measure("buckets", len(np.unique(seen)), "boundaries as wanted")
        return
    first = _first_apart(relative, right, seen, exact)
    evidence = [Evidence(name="bucket" if exact else "first distance in another bucket than wanted", where=f"key - query = {first}",
                         expected=int(right[relative == first][0]), seen=int(seen[relative == first][0]) if exact else None)]  # fmt: skip
    n = encoding.num_buckets
    tries: list[tuple[str, NDArray[np.int64], list[Recovered]]] = [
        ("the sign of the distance is exchanged: query minus key in place of key minus query", wanted(-relative), [Recovered(name="sign", value="query - key", expected="key - query")]),
        ("buckets for both signs where only the past is wanted" if not encoding.bidirectional else "buckets for the past only where both signs are wanted",
         wanted(relative, bidirectional=not encoding.bidirectional), [Recovered(name="bidirectional", value=str(not encoding.bidirectional), expected=str(encoding.bidirectional))]),
    ]  # fmt: skip
    for buckets in (8, 16, 24, 32, 48, 64, 128, 256, 320):
        if buckets != n and not buckets % 4:
            tries.append(
                (
                    f"num_buckets is {buckets} in place of {n}",
                    _quiet(wanted, relative, num_buckets=buckets),
                    [Recovered(name="num_buckets", value=buckets, expected=n)],
                )
            )
    for distance in (16, 20, 32, 64, 96, 128, 256, 512, 800, 1024, 2048):
        if distance != encoding.max_distance:
            tries.append(
                (
                    f"max_distance is {distance} in place of {encoding.max_distance}",
                    _quiet(wanted, relative, max_distance=distance),
                    [Recovered(name="max_distance", value=distance, expected=encoding.max_distance)],
                )
            )
    if encoding.bidirectional:
        n_half = n // 2
        swapped = np.where(relative > 0, right - n_half, np.where(relative < 0, right + n_half, right))
        tries.append(
            (
                "keys before the query take the upper half of the buckets",
                swapped,
                [Recovered(name="sign", value="exchanged")],
            )
        )
        tries.append(
            (
                "distances keep no sign: both sides share the buckets",
                wanted(-np.abs(relative)),
                [Recovered(name="sign", value="none", expected="kept")],
            )
        )
    for dtype in ("bfloat16", "float16"):
        tries.append(
            (
                f"the logarithm is taken in {dtype}",
                low_precision_buckets(relative, encoding, dtype),
                [Recovered(name="dtype of the logarithm", value=dtype, expected="float32")],
            )
        )
    for cause, other, recovered in tries:
        if len(other) and alike(other):
            kinds = ("precision", "bias-function") if "logarithm" in cause else ("bias-function",)
            notes.found(
                "defect",
                kinds,
                f"buckets differ from T5's from key - query = {first} on",
                evidence=evidence,
                cause=cause,
                recovered=recovered,
                like="t5",
            )
            for each in recovered:
                notes.recover(each.name, each.value, each.expected)
            return
    notes.found(
        "defect",
        ("bias-function",),
        f"buckets differ from T5's, first at key - query = {first}",
        evidence=evidence,
        like="t5",
    )


def _quiet(function: Any, relative: NDArray[np.int64], **changes: Any) -> NDArray[np.int64]:
    try:
        return np.asarray(function(relative, **changes))
    except ValueError:
        return np.zeros(0, dtype=np.int64)


def _first_apart(relative: NDArray[np.int64], right: NDArray[np.int64], seen: NDArray[np.int64], exact: bool) -> int:
    """The smallest distance whose bucket differs; for labels, whose neighbours are joined or split otherwise."""
    order = np.lexsort((relative, np.abs(relative)))
    if exact:
        return next((int(relative[k]) for k in order if right[k] != seen[k]), 0)
    place = {int(r): k for k, r in enumerate(relative)}
    for k in order:
        r = int(relative[k])
        for near in (r - 1, r + 1, -r):
            if near in place and (right[k] == right[place[near]]) != (seen[k] == seen[place[near]]):
                return r
    return int(relative[order[0]])


def low_precision_buckets(relative: NDArray[np.int64], encoding: T5Bias, dtype: str) -> NDArray[np.int64]:
    """The buckets when every step of the logarithm is rounded to a half-precision type."""
    from posenc.checker.matching.unscaled import rounded

    n = encoding.num_buckets // 2 if encoding.bidirectional else encoding.num_buckets
    distance = np.abs(relative) if encoding.bidirectional else np.maximum(-relative, 0)
    first = np.where(relative > 0, n, 0) if encoding.bidirectional else 0
    exact = n // 2
    far = np.maximum(distance, 1).astype(np.float64)
    ratio = rounded(rounded(far, dtype) / exact, dtype)
    with np.errstate(divide="ignore"):
        log = rounded(np.log(np.maximum(ratio, 1e-6)), dtype)
    log = rounded(log / math.log(encoding.max_distance / exact), dtype)
    large = np.minimum(exact + rounded(log * (n - exact), dtype).astype(np.int64), n - 1)
    return np.asarray(first + np.where(distance < exact, distance, large))


def examine_buckets(notes: Gathered, box: Buckets, encoding: T5Bias) -> None:
    """A bucket function: distances 0, 1, 7, 8, 127, 128, 400 and all between, of both signs."""
    reach = max(400, 3 * encoding.max_distance)
    relative = np.arange(-reach, reach + 1)
    notes.ran("buckets")
    check_buckets(notes, relative, np.asarray(box.buckets(relative)), encoding, exact=True)


def examine_slopes(notes: Gathered, box: Vector, encoding: Alibi) -> None:
    """Slopes alone; their sign is a matter of how they are used."""
    slopes = np.asarray(box.values, dtype=np.float64).ravel()
    if (slopes < 0).all():
        notes.note("slopes are stored negative")
        slopes = -slopes
    compare_slopes(notes, slopes, encoding)
