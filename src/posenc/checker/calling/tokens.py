"""Subjects that take token ids: the block before the first layer, or a table that reads a length off its tokens.

All tokens are alike, so that rows differ by position alone. In torch the rows of tokens and of segments count as
zeros, and a normalisation after the sum is left out: what remains is what is added for each position.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from posenc.checker.boxes import Array, Rows
from posenc.checker.calling.bound import TOKENS, Bound, farthest, result_dtype
from posenc.checker.calling.caller import Misshapen, WrongAxis, parts, why
from posenc.checker.calling.stated import stated_layout
from posenc.errors import PosencError, SubjectError

TOKEN = 5
"""The id of every token: no padding, start or end of the vocabularies in use."""
UNASKED = 41
"""Ids of a trial: another number than any that was asked for before."""
LAYER = ("Attention", "MultiheadAttention", "Block", "DecoderLayer", "EncoderLayer", "MLP", "GRU", "LSTM")
"""Ends of the names of classes that an embedding block does not call."""


FORMS: dict[str, Callable[[Array], Array]] = {
    "bt": lambda row: row[None],
    "t": lambda row: row,
    "tb": lambda row: row[:, None],
}
"""Shapes in which token ids may be taken, by the letters of their dimensions: b for the batch, t for the tokens."""


def tokens_box(bound: Bound) -> tuple[Rows, str]:
    """A box for a subject that takes token ids (or their mask), positions too if it has a parameter for them.

    Raises:
        SubjectError: rows do not follow positions, or the subject is more than an embedding block.
        WrongAxis: positions run along the batch, by what its documentation says of its dimensions.
    """
    told = bound.hints.layout
    failures: list[str] = []
    for form in FORMS if told is None else (told.replace("d", ""),):
        try:
            made = _tried(bound, form)
        except PosencError as error:
            failures.append(why(error))
            continue
        stated = stated_layout(bound.caller.function) or ""
        if form == "tb" and told is None and "bt" in stated:
            raise WrongAxis("btd", "b", stated=True)
        return made
    raise SubjectError("the subject runs", "; ".join(dict.fromkeys(failures[:2])))


def _tried(bound: Bound, form: str) -> tuple[Rows, str]:
    free = bound.has("positions")
    seen: dict[str, Any] = {}
    if form not in FORMS:
        raise SubjectError(f"token ids are laid out as one of {', '.join(FORMS)}", form)
    laid = FORMS[form]

    def rows(positions: Array, token: int = TOKEN) -> Array:
        at = np.asarray(positions, dtype=np.float64)
        if (at != np.rint(at)).any() or (at < 0).any():
            raise SubjectError("positions of tokens are whole", at[:4].tolist())
        asked = np.concatenate([at, [at[0] + (1 if at[0] == 0 else -1)]]) if free else np.arange(max(at.max() + 1, 2.0))
        whole = bound.library.whole
        given: dict[str, Any] = {"tokens": whole(laid(np.full(len(asked), token)))}
        given |= {"mask": whole(laid(np.ones(len(asked))))} if bound.has("mask") else {}
        given |= {"segments": whole(laid(np.zeros(len(asked))))} if bound.has("segments") else {}
        given |= {"positions": whole(laid(asked))} if free else {}
        with positions_alone(bound.library.name) as told:
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
        calls={"bound": bound, "tokens": form},
    )
    left = ", ".join(sorted(seen.get("left", ()))) or "nothing"
    shape = "" if form == "bt" else f" of shape ({', '.join(form)})"
    return box, bound.describe(f"rows of width {trial.shape[1]} for equal tokens{shape}; left out: {left}")


def are_tokens(bound: Bound) -> bool:
    """Whether what a subject is given as its positions are token ids: rows of equal ids differ by their place.

    The place tells positions apart from an id where a table's row of the id is left out (torch), or where another id
    moves all rows alike. The number of ids is one that nothing was asked for yet, so that no cache answers.
    """
    if bound.has("x") or list(bound.roles.values()).count("positions") != 1:
        return False
    (name,) = [n for n, role in bound.roles.items() if role == "positions"]
    again = replace(bound, roles={**bound.roles, name: "tokens"})
    for laid in FORMS.values():
        answers = []
        try:
            for token in (TOKEN, TOKEN + 2):
                with positions_alone(bound.library.name) as told:
                    answers.append(parts(again.call(tokens=bound.library.whole(laid(np.full(UNASKED, token)))))[0])
        except PosencError:
            continue
        one, other = (each.reshape([n for n in each.shape if n != 1] or [1]) for each in answers)
        if one.ndim != 2 or one.shape != other.shape or len(one) != UNASKED:
            continue
        scale = max(float(np.abs(one).max()), 1e-30)
        moved = other - one
        placed = np.ptp(one, axis=0).max() > 1e-6 * scale
        if placed and (told["tables"] or (np.ptp(moved, axis=0).max() < 1e-5 * scale < np.abs(moved).max())):
            return True
    return False


def _same_for(rows: Callable[..., Array], trial: Array) -> bool:
    """Whether another token has the same rows: ids are only looked at for padding."""
    try:
        return np.array_equal(rows(np.arange(float(TOKENS)), TOKEN + 2), trial)
    except PosencError:
        return False


@contextlib.contextmanager
def positions_alone(library: str) -> Iterator[dict[str, Any]]:
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
