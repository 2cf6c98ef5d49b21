"""T5's buckets recognised: how many, how far, for one sign or both."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.errors import PosencError
from posenc.formulas.biases import t5_buckets

COUNTS = (8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 256, 320)
DISTANCES = (16, 20, 24, 32, 40, 50, 64, 80, 96, 100, 128, 160, 200, 256, 400, 500, 512, 800, 1000, 1024, 2048)
"""Numbers of buckets and largest distances in use."""


def same_buckets(a: NDArray[np.int64], b: NDArray[np.int64], exact: bool) -> bool:
    """Whether two lists are equal, or are labels for the same partition."""
    if exact:
        return bool(np.array_equal(a, b))
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len({x for x, _ in pairs}) == len({y for _, y in pairs})


def recognised(relative: NDArray[np.int64], seen: NDArray[np.int64], *, exact: bool) -> dict[str, Any] | None:
    """``num_buckets``, ``max_distance`` and ``bidirectional`` of T5's rule that gives these buckets; None if none does.

    Args:
        relative: ``key - query``, ascending.
        seen: the bucket of each, or labels that are equal where buckets are.
        exact: the numbers themselves count.
    """
    key = tuple(int(r) for r in relative)
    for bidirectional in (True, False):
        for count in COUNTS:
            for distance in DISTANCES:
                made = _made(key, count, distance, bidirectional)
                if made is not None and same_buckets(made, seen, exact):
                    return {"num_buckets": count, "max_distance": distance, "bidirectional": bidirectional}
    return None


@functools.lru_cache(maxsize=2048)
def _made(relative: tuple[int, ...], count: int, distance: int, bidirectional: bool) -> NDArray[np.int64] | None:
    try:
        return t5_buckets(np.array(relative), count, distance, bidirectional=bidirectional)
    except PosencError:
        return None
