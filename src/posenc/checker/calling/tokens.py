"""Subjects that take token ids: the block before the first layer, or a table that reads a length off its tokens.

All tokens are alike, so that rows differ by position alone. In torch the rows of tokens and of segments count as
zeros, and a normalisation after the sum is left out: what remains is what is added for each position.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Rows
from posenc.checker.calling.bound import TOKENS, Bound, farthest, result_dtype
from posenc.checker.calling.caller import Misshapen, parts
from posenc.errors import PosencError, SubjectError

TOKEN = 5
"""The id of every token: no padding, start or end of the vocabularies in use."""
LAYER = ("Attention", "MultiheadAttention", "Block", "DecoderLayer", "EncoderLayer", "MLP", "GRU", "LSTM")
"""Ends of the names of classes that an embedding block does not call."""


def tokens_box(bound: Bound) -> tuple[Rows, str]:
    """A box for a subject that takes token ids (or their mask), positions too if it has a parameter for them.

    Raises:
        SubjectError: rows do not follow positions, or the subject is more than an embedding block.
    """
    free = bound.has("positions")
    seen: dict[str, Any] = {}

    def rows(positions: Array, token: int = TOKEN) -> Array:
        at = np.asarray(positions, dtype=np.float64)
        if (at != np.rint(at)).any() or (at < 0).any():
            raise SubjectError("positions of tokens are whole", at[:4].tolist())
        asked = np.concatenate([at, [at[0] + (1 if at[0] == 0 else -1)]]) if free else np.arange(max(at.max() + 1, 2.0))
        whole = bound.library.whole
        given: dict[str, Any] = {"tokens": whole(np.full((1, len(asked)), token))}
        given |= {"mask": whole(np.ones((1, len(asked))))} if bound.has("mask") else {}
        given |= {"positions": whole(asked[None])} if free else {}
        with _positions_alone(bound.library.name) as told:
            result = bound.call(**given)
        found = parts(result)[0]
        if found.ndim == 3 and found.shape[0] == 1:
            found = found[0]
        elif found.ndim == 3 and found.shape[1] == 1:
            found = found[:, 0]
        if found.ndim != 2 or len(found) != len(asked) or found.dtype.kind != "f":
            raise Misshapen(f"the result has {len(asked)} rows for {len(asked)} tokens", found.shape)
        seen.update(told, dtype=result_dtype(result))
        return np.asarray(found[: len(at)] if free else found[at.astype(int)])

    trial = rows(np.arange(float(TOKENS)))
    if np.ptp(trial, axis=0).max() < 1e-9 * max(float(np.abs(trial).max()), 1e-30):
        raise SubjectError("rows of equal tokens differ by position", "they are all alike")
    unknown = bound.has("tokens") and not seen["tables"] and not _same_for(rows, trial)
    if bound.hints.wants in ("sinusoidal", "seasonal") and unknown:
        raise SubjectError("what tokens contribute can be told from what positions do", "no nn.Embedding was called")

    def works(last: int) -> bool:
        try:
            rows(np.array([float(last)]))
        except PosencError:
            return False
        return True

    box = Rows(
        width=trial.shape[1],
        rows=rows,
        free=free,
        dtype=str(seen["dtype"]),
        largest=farthest(bound, works, 32768 if free else 4098),
        calls={"bound": bound},
    )
    left = ", ".join(sorted(seen.get("left", ()))) or "nothing"
    return box, bound.describe(f"rows of width {trial.shape[1]} for equal tokens; left out: {left}")


def _same_for(rows: Callable[..., Array], trial: Array) -> bool:
    """Whether another token has the same rows: ids are only looked at for padding."""
    try:
        return np.array_equal(rows(np.arange(float(TOKENS)), TOKEN + 2), trial)
    except PosencError:
        return False


@contextlib.contextmanager
def _positions_alone(library: str) -> Iterator[dict[str, Any]]:
    """While it lasts, torch's tables give zeros for tokens that are all alike, and normalisations give their input.

    Yields:
        ``tables`` how many such tables were called, ``left`` what was left out.
    """
    told: dict[str, Any] = {"left": set(), "tables": 0}
    if library != "torch":
        yield told
        return
    import torch

    def hook(module: Any, given: tuple[Any, ...], result: Any) -> Any:
        name = type(module).__name__
        if name.endswith(LAYER):
            raise SubjectError("an embedding block without layers is examined", name)
        if name.endswith("Norm") and given and isinstance(result, torch.Tensor) and result.shape == given[0].shape:
            told["left"].add(name)
            return given[0]
        ids = given[0] if given else None
        if type(module) is torch.nn.Embedding and isinstance(ids, torch.Tensor) and ids.numel() > 1:
            flat = ids.reshape(-1)
            if bool((flat == flat[0]).all()):
                told["tables"] += 1
                told["left"].add("rows of tokens")
                return torch.zeros_like(result)
        return None

    register: Callable[..., Any] = torch.nn.modules.module.register_module_forward_hook
    handle = register(hook)
    try:
        yield told
    finally:
        handle.remove()
