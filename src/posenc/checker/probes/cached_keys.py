"""Decoding by a method of its own: the last queries with all keys must score as in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.checker.boxes import Turning
from posenc.checker.calling.caller import Caller, parts
from posenc.checker.calling.layouts import as_layout, from_layout
from posenc.checker.calling.roles import signature_of
from posenc.checker.gathering import Gathered
from posenc.checker.probes.again import bound_of, fresh
from posenc.checker.probes.registry import Probed, probe
from posenc.errors import PosencError
from posenc.records.finding import Evidence, FirstWrong, Recovered

METHODS = ("rotate_queries_with_cached_keys", "apply_rotary_with_cached_keys", "rotate_with_cached_keys")
KEYS = 41
QUERIES = (1, 5)


@probe("queries with cached keys", Turning)
def cached_keys(notes: Gathered, p: Probed) -> str | None:
    """Scores of the last 1 and 5 queries with 41 keys, beside those of 41 queries."""
    bound = bound_of(p)
    name = next((m for m in METHODS if callable(getattr(p.value, m, None))), None)
    if bound is None or name is None:
        return "the subject has no method for queries with cached keys"
    try:
        owner = fresh(p)
    except PosencError:
        owner = p.value
    call = Caller(getattr(owner, name), bound.library)
    names = {each.role: each.name for each in signature_of(call.function).parameters if each.role in ("q", "k")}
    if set(names) != {"q", "k"}:
        return f"{name} takes no q and k"
    layout = p.box.calls["layout"]
    q, k = np.random.default_rng(31).normal(size=(2, 1, KEYS, bound.dim))

    def scores(queries: int) -> np.ndarray:
        shapes = (1, queries, bound.dim), (1, KEYS, bound.dim)
        given: dict[str, Any] = {
            names["q"]: bound.library.array(as_layout(layout, q[:, -queries:])),
            names["k"]: bound.library.array(as_layout(layout, k)),
        }
        turned = [from_layout(layout, v, s)[0] for v, s in zip(parts(call(given)), shapes, strict=False)]
        return np.asarray(turned[0] @ turned[1].T)

    whole = scores(KEYS)
    for queries in QUERIES:
        seen, right = scores(queries), whole[-queries:]
        gap = np.abs(seen - right) / np.abs(whole).max()
        if gap.max() > 8 * p.box.rounding + 1e-4:
            i, j = np.unravel_index(int(gap.argmax()), gap.shape)
            notes.found(
                "defect",
                ("offset-cache",),
                "the last queries with cached keys score otherwise than in one pass",
                evidence=[
                    Evidence(
                        name="score",
                        expected=float(right[i, j]),
                        seen=float(seen[i, j]),
                        where=f"query {KEYS - queries + int(i)}, key {int(j)}, {queries} of {KEYS} queries",
                    )
                ],
                first=FirstWrong(position=float(KEYS - queries + int(i))),
                cause="queries and keys are counted from different centres: the centre follows the number of queries"
                if getattr(p.encoding, "xpos_scale_base", None)
                else "the queries are not placed at the end of the keys",
                recovered=[Recovered(name="queries of the call", value=queries)],
                like="offset cache-key",
            )
            break
    return None
