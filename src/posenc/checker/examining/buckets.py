"""T5's buckets, by their numbers or by where a bias changes: sign, sides, counts, limits, precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.checker.boxes import Bias, Buckets
from posenc.checker.examining.bucket_slips import low_precision_buckets, slips
from posenc.checker.gathering import Gathered, drawn
from posenc.checker.recognising_buckets import same_buckets
from posenc.checker.recovery.bias import bias_shape
from posenc.formulas.biases import t5_buckets
from posenc.records.finding import Drawn, Evidence, Recovered
from posenc.spec import T5Bias

REMEDY = (
    "Compute buckets as the trained model does: the sign of key - query, half of num_buckets for each sign, and both "
    "limits; compare every distance up to max_distance."
)


def examine_t5(notes: Gathered, box: Bias, encoding: T5Bias) -> None:
    """Recover the buckets from where the bias changes, up to the limit of distances."""
    n = 2 * encoding.max_distance + 3
    if box.rows_read is not None:
        _rows(notes, box.rows_read(n, n), encoding)
        return
    values = box.bias(n, n)
    shape = bias_shape(values)
    notes.ran("buckets")
    if shape.toeplitz > 1e-5:
        notes.found(
            "defect",
            ("bias-function", "relative-index"),
            "the bias does not depend on the distance alone",
            evidence=[Evidence(name="Toeplitz defect", expected=0.0, seen=shape.toeplitz)],
        )
        return
    d = shape.distances
    known = np.isfinite(shape.line).all(0)
    _, label = np.unique(
        np.round(shape.line[:, known] / max(np.abs(shape.line[:, known]).max(), 1e-300), 6), axis=1, return_inverse=True
    )
    check_buckets(notes, d[known], np.asarray(label).ravel(), encoding, exact=False)


def _rows(notes: Gathered, read: NDArray[np.int64], encoding: T5Bias) -> None:
    """The rows of the trained table that each query and key read: ``(n, n)``."""
    notes.ran("buckets")
    n = len(read)
    relative = np.arange(1 - n, n)
    lines = [np.diagonal(read, k) for k in relative]
    if any(np.ptp(line) for line in lines):
        notes.found(
            "defect",
            ("bias-function", "relative-index"),
            "the bias does not depend on the distance alone",
            evidence=[Evidence(name="rows read along the diagonal", seen=str(sorted({int(v) for v in lines[n - 1]})))],
        )
        return
    seen = np.array([line[0] for line in lines])
    if seen.max() >= encoding.num_buckets or seen.min() < 0:
        notes.measure("rows read", f"{seen.min()} to {seen.max()}", f"of a table of {encoding.num_buckets}")
    check_buckets(notes, relative, seen, encoding, exact=True)


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
        return same_buckets(other, seen, exact)

    right = wanted(relative)
    if alike(right):
        notes.measure("buckets", len(np.unique(seen)), "boundaries as wanted")
        return
    first = _first_apart(relative, right, seen, exact)
    evidence = [
        Evidence(
            name="bucket" if exact else "first distance in another bucket than wanted",
            where=f"key - query = {first}",
            expected=int(right[relative == first][0]),
            seen=int(seen[relative == first][0]) if exact else None,
        )
    ]
    n = encoding.num_buckets
    tries: list[tuple[str, NDArray[np.int64], list[Recovered]]] = [
        (
            "the sign of the distance is exchanged: query minus key in place of key minus query",
            wanted(-relative),
            [Recovered(name="sign", value="query - key", expected="key - query")],
        ),
        (
            "buckets for both signs where only the past is wanted"
            if not encoding.bidirectional
            else "buckets for the past only where both signs are wanted",
            wanted(relative, bidirectional=not encoding.bidirectional),
            [
                Recovered(
                    name="bidirectional", value=str(not encoding.bidirectional), expected=str(encoding.bidirectional)
                )
            ],
        ),
    ]
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
    tries += slips(relative, encoding)
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
            rounded = recovered[0].name == "dtype of the logarithm"
            kinds = ("precision", "bias-function") if rounded else ("bias-function",)
            notes.found(
                "defect",
                kinds,
                f"buckets differ from T5's from key - query = {first} on",
                evidence=evidence,
                cause=cause,
                recovered=recovered,
                like="t5",
                remedy=REMEDY,
                drawn=_drawn(relative, right, seen, exact),
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
        remedy=REMEDY,
        drawn=_drawn(relative, right, seen, exact),
    )


def _drawn(relative: NDArray[np.int64], right: NDArray[np.int64], seen: NDArray[np.int64], exact: bool) -> list[Drawn]:
    """Both buckets by distance; labels of equal values have no scale to draw them on."""
    return [drawn("bucket by distance", "key - query", "bucket", relative, seen, right)] if exact else []


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


def examine_buckets(notes: Gathered, box: Buckets, encoding: T5Bias) -> None:
    """A bucket function: distances 0, 1, 7, 8, 127, 128, 400 and all between, of both signs."""
    reach = max(400, 3 * encoding.max_distance)
    relative = np.arange(-reach, reach + 1)
    notes.ran("buckets")
    check_buckets(notes, relative, np.asarray(box.buckets(relative)), encoding, exact=True)
