"""T5's rule with one step left out or done otherwise, and in half precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.formulas.biases import t5_buckets
from posenc.records.finding import Recovered
from posenc.spec import T5Bias


def slips(relative: NDArray[np.int64], e: T5Bias) -> list[tuple[str, NDArray[np.int64], list[Recovered]]]:
    """T5's rule with one step left out or done otherwise."""
    found: list[tuple[str, NDArray[np.int64], list[Recovered]]] = []

    def add(cause: str, name: str, value: Any, wanted: Any, **changes: Any) -> None:
        found.append((cause, _rule(relative, e, **changes), [Recovered(name=name, value=value, expected=wanted)]))

    if e.bidirectional:
        add(
            "num_buckets is not halved for the two signs: far keys read rows of the other sign, or beyond the table",
            "buckets for each sign",
            e.num_buckets,
            e.num_buckets // 2,
            halved=False,
        )
        add("distance 0 counts as after the query", "sign of distance 0", ">= 0", "> 0", zero_after=True)
    add("a distance that still has a bucket of its own is one too few", "exact distances", "<=", "<", more_exact=1)
    add("a distance that still has a bucket of its own is one too many", "exact distances", "< -1", "<", more_exact=-1)
    add("the last bucket is not the limit", "limit", "none", "num_buckets - 1", limited=False)
    add("the logarithm is rounded in place of cut off", "rounding", "nearest", "down", rounding=np.rint)
    add("the logarithm is rounded up", "rounding", "up", "down", rounding=np.ceil)
    for name, log in (("2", np.log2), ("10", np.log10)):
        add(
            f"one of the two logarithms has base {name}",
            "logarithm of the distance",
            f"base {name}",
            "base e",
            log=log,
        )
    right = t5_buckets(relative, e.num_buckets, e.max_distance, bidirectional=e.bidirectional)
    for step in (1, -1):
        found.append(
            (
                f"every bucket is {'one more' if step > 0 else 'one less'} than wanted",
                right + step,
                [Recovered(name="first bucket", value=step, expected=0)],
            )
        )
        for where, shifted in (("after", np.where(relative > 0, right + step, right)),):
            found.append(
                (
                    f"buckets of keys {where} the query are {'one more' if step > 0 else 'one less'} than wanted",
                    shifted,
                    [Recovered(name=f"buckets {where} the query", value=step, expected=0)],
                )
            )
    return found


def _rule(
    relative: NDArray[np.int64],
    e: T5Bias,
    *,
    halved: bool = True,
    zero_after: bool = False,
    more_exact: int = 0,
    limited: bool = True,
    rounding: Any = np.floor,
    log: Any = np.log,
) -> NDArray[np.int64]:
    """T5's rule in float64, with the steps that go wrong as options."""
    n = e.num_buckets // 2 if e.bidirectional and halved else e.num_buckets
    distance = np.abs(relative) if e.bidirectional else np.maximum(-relative, 0)
    after = relative >= 0 if zero_after else relative > 0
    first = np.where(after, e.num_buckets // 2, 0) if e.bidirectional else 0
    exact = n // 2
    if not 0 < exact < e.max_distance:
        return np.zeros(0, dtype=np.int64)
    far = np.maximum(distance, 1).astype(np.float64)
    steps = log(far / exact) / math.log(e.max_distance / exact) * (n - exact)
    near_whole = np.abs(steps - np.rint(steps)) < 1e-9
    large = exact + np.where(near_whole, np.rint(steps), rounding(steps)).astype(np.int64)
    large = np.minimum(large, n - 1) if limited else large
    return np.asarray(first + np.where(distance < exact + more_exact, distance, large))


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
