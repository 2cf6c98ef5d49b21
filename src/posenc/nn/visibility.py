"""Which keys a query sees: the past, its document, a window, a chunk; and positions behind a cache."""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.errors import ShapeError
from posenc.nn.interfaces import Positions, as_positions
from posenc.nn.positions import padded, sequence

PADDING = -1
"""Document of padded tokens: no other token sees them, and they see each other, so that no row is empty."""


def placed(
    tokens: int, at: Positions | Tensor | None, mask: Tensor | None, before: Positions | None, device: torch.device
) -> Positions:
    """Positions of new tokens in full shape, padding marked by its document.

    Args:
        tokens: how many are new.
        at: their positions; by default they go on from the last ones, or count each row's own tokens from 0.
        mask: ``(batch, tokens)``, 0 for padding.
        before: positions of cached tokens.

    Raises:
        ShapeError: positions or mask are not of these tokens, or documents appear only after a cache began.
    """
    if mask is not None and (mask.ndim != 2 or mask.shape[1] != tokens or mask.is_floating_point()):
        raise ShapeError(f"a mask is (batch, {tokens}), integers or booleans, of the new tokens", tuple(mask.shape))
    if at is None:
        at = _next(tokens, mask, before, device)
    elif not isinstance(at, Positions) or at.ids.ndim < 3:
        at = as_positions(at)
    if at.ids.shape[-1] != tokens:
        raise ShapeError(f"there are positions for each of the {tokens} tokens", tuple(at.ids.shape))
    document = at.document
    if document is None and before is not None and before.document is not None:
        document = before.document[:, -1:].expand(-1, tokens)
    if mask is not None:
        own = torch.zeros_like(mask, dtype=torch.long) if document is None else document
        document = torch.where(mask != 0, own, PADDING)
    if document is not None and before is not None and before.document is None:
        raise ShapeError(
            "documents and padding are given from the first call on",
            "a cache without",
            "Give them with the first tokens.",
        )
    return at._replace(document=document)


def _next(tokens: int, mask: Tensor | None, before: Positions | None, device: torch.device) -> Positions:
    if before is not None:
        step = torch.arange(1, tokens + 1, device=device)
        return Positions(before.ids[..., -1:] + step, before.length)
    return padded(mask) if mask is not None else sequence(tokens, device=device)


def joined(before: Positions | None, new: Positions) -> Positions:
    """Positions of cached and new tokens one behind the other."""
    if before is None:
        return new
    ids = _cat(before.ids, new.ids)
    if before.document is None or new.document is None:
        return Positions(ids, new.length)
    return Positions(ids, new.length, _cat(before.document, new.document))


def _cat(a: Tensor, b: Tensor) -> Tensor:
    shape = torch.broadcast_shapes(a.shape[:-1], b.shape[:-1])  # type: ignore[no-untyped-call]
    return torch.cat((a.expand(*shape, -1), b.expand(*shape, -1)), -1)


def visible(
    q_at: Positions,
    k_at: Positions,
    *,
    causal: bool,
    window: int | None = None,
    chunk: int | None = None,
) -> Tensor | None:
    """``(batch | 1, 1, queries, keys)``, true where a query sees a key; None where it sees all.

    Order and windows go by where tokens are stored, so that any positions will do; chunks go by positions.

    Args:
        q_at: of the queries, the last of the keys.
        k_at: of all keys.
        causal: whether later keys are hidden.
        window: keys at most this many tokens back, the token itself counted; on either side if not causal.
        chunk: keys in the same chunk of this many positions.
    """
    queries, keys = q_at.ids.shape[-1], k_at.ids.shape[-1]
    conditions = []
    if causal or window is not None:
        device = k_at.ids.device
        back = torch.arange(keys - queries, keys, device=device)[:, None] - torch.arange(keys, device=device)
        if causal and queries > 1:
            conditions.append((back >= 0)[None, None])
        if window is not None:
            conditions.append((back.abs() < window)[None, None])
    if k_at.document is not None and q_at.document is not None:
        conditions.append((q_at.document.unsqueeze(-1) == k_at.document.unsqueeze(-2)).unsqueeze(1))
    if chunk is not None:
        if q_at.ids.ndim != 3 or q_at.ids.is_floating_point():
            raise ShapeError("chunks go by whole positions over one axis", tuple(q_at.ids.shape))
        q_chunk, k_chunk = (at.ids.div(chunk, rounding_mode="floor") for at in (q_at, k_at))
        conditions.append(q_chunk.unsqueeze(-1) == k_chunk.unsqueeze(-2))
    found = None
    for condition in conditions:
        found = condition if found is None else found & condition
    return found
