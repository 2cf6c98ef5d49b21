"""Context parallelism: which tokens of a sequence each device holds, and how to put them back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor

from posenc.errors import ShapeError, SpecError
from posenc.nn.interfaces import Positions
from posenc.nn.positions import check_count

How = Literal["contiguous", "zigzag"]


def shard_indices(
    tokens: int, rank: int, world: int, how: How = "contiguous", *, cu_seqlens: Any = None, device: Any = None
) -> Tensor:
    """Indices of the tokens that device ``rank`` of ``world`` holds, in the order it holds them.

    Contiguous: one run for each device. Zig-zag: ``2 world`` chunks, of which a device holds the one at its rank and
    the one mirrored at the end, so that all have the same share of a causal mask. Packed rows are dealt document by
    document, so that each device holds its part of every one.

    Args:
        tokens: of the whole sequence.
        rank, world: the device, and how many there are.
        how: ``contiguous`` or ``zigzag``.
        cu_seqlens: ends of the documents of a packed row.
        device: of the indices.

    Returns:
        int64 ``(tokens / world,)``.

    Raises:
        ShapeError: the tokens (of a document) do not divide into equal parts.
        SpecError: shards of another kind.

    >>> shard_indices(8, 0, 2, "zigzag").tolist(), shard_indices(8, 1, 2, "zigzag").tolist()
    ([0, 1, 6, 7], [2, 3, 4, 5])
    """
    if how not in ("contiguous", "zigzag"):
        raise SpecError("shards are contiguous or zigzag", how)
    if not 0 <= rank < world:
        raise ShapeError(f"a rank is 0 to {world - 1}", rank)
    check_count(tokens, "tokens")
    ends = [0, tokens] if cu_seqlens is None else [int(n) for n in torch.as_tensor(cu_seqlens).tolist()]
    if ends[0] != 0 or ends[-1] != tokens or any(a > b for a, b in pairwise(ends)):
        raise ShapeError(f"cu_seqlens runs from 0 to the {tokens} tokens and never falls", ends)
    chunks = world if how == "contiguous" else 2 * world
    mine = (rank,) if how == "contiguous" else (rank, 2 * world - 1 - rank)
    parts = []
    for begin, end in pairwise(ends):
        size, rest = divmod(end - begin, chunks)
        if rest:
            raise ShapeError(
                f"the tokens of a {'document' if cu_seqlens is not None else 'sequence'} divide into {chunks} chunks",
                end - begin,
                f"Pad it to {(size + 1) * chunks}.",
            )
        parts += [torch.arange(begin + c * size, begin + (c + 1) * size, device=device) for c in mine]
    return torch.cat(parts)


def shard(at: Positions, rank: int, world: int, how: How = "contiguous", *, cu_seqlens: Any = None) -> Positions:
    """The positions of the tokens that one device holds; a declared length stays the whole row's.

    Ids ``(batch | 1, heads | 1, tokens)``, led by the axes if there are several, lose all tokens but the device's.

    >>> from posenc.nn.positions import sequence
    >>> shard(sequence(8), 1, 2, "zigzag").ids.flatten().tolist()
    [2, 3, 4, 5]
    """
    index = shard_indices(at.ids.shape[-1], rank, world, how, cu_seqlens=cu_seqlens, device=at.ids.device)
    pick = [t[..., index] if t is not None and t.ndim > 1 else t for t in (at.length, at.document)]
    return Positions(at.ids[..., index], *pick)


def unsharded(
    tokens: int, world: int, how: How = "contiguous", *, cu_seqlens: Any = None, device: Any = None
) -> Tensor:
    """``(tokens,)`` indices that put the shards, one behind the other in order of rank, back into sequence order.

    >>> torch.tensor([0, 1, 6, 7, 2, 3, 4, 5])[unsharded(8, 2, "zigzag")].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    held = [shard_indices(tokens, r, world, how, cu_seqlens=cu_seqlens, device=device) for r in range(world)]
    return torch.cat(held).argsort()
