"""Cached keys moved to new positions by one rotation: ``R(to) R(from)^-1 = R(to - from)``.

Dropping tokens from the middle of a cache, or putting a cached text behind another prefix, changes the positions of
keys that were turned long ago. They need no recomputation, only one more turn.

Every turn rounds. Many small moves one after the other add up their roundings, and worse: the cosine and sine of a
small angle, rounded to float32, are not exactly a rotation, so each move also stretches the key by the same little
factor. :class:`MovableKeys` is free of both: it keeps the keys as they first were and adds up their shifts as integers,
which is exact; after any number of moves, the keys that attention sees were moved once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from posenc.errors import ShapeError, SpecError
from posenc.nn.interfaces import Positions, as_positions
from posenc.nn.rotary import RotaryEmbedding
from posenc.nn.rotations import Rotation
from posenc.nn.turns import cos_sin, exact_on


def move_keys(
    k: Tensor,
    encoding: RotaryEmbedding,
    by: Positions | Tensor | int | None = None,
    *,
    before: Positions | Tensor | None = None,
    after: Positions | Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Keys that were turned at ``p``, as they would be at ``p + by``; or from ``before`` to ``after``.

    ``by`` is right as long as the frequencies stay the same. Under a rule that depends on the length, give the length
    that the keys were turned with; ``before`` and ``after``, each with its own length, also go from one to another.

    Args:
        k: ``(batch, kv_heads, tokens, head_dim)``, turned.
        encoding: what turned them.
        by: how far, in positions: a number for all, ``(tokens,)`` or ``(batch, tokens)``, led by the axes if there are
            several.
        before, after: positions, instead of ``by``.
        out: where to write; ``k`` itself moves in place.

    Returns:
        Keys in their shape and dtype, one rounding away from exact.

    Raises:
        ShapeError: shapes do not fit.
        SpecError: neither a shift nor two positions.

    >>> rope = RotaryEmbedding(4)
    >>> here, there = (rope.rotate(torch.ones(1, 1, 1, 4), rope.prepare(torch.tensor([p]))) for p in (7, 3))
    >>> bool((move_keys(here, rope, by=-4) - there).abs().max() < 1e-6)
    True
    """
    return encoding.rotate(k, moving_turn(k, encoding, by, before, after), role="key", out=out)


def moving_turn(k: Tensor, encoding: RotaryEmbedding, by: Any, before: Any, after: Any) -> Rotation:
    """Cosines and sines of a move; the gain that keys carry already is left alone, xPos' shrinking goes along."""
    if (by is None) == (before is None) or (before is None) != (after is None):
        raise SpecError("keys move by a shift, or from positions before to positions after")
    if by is not None:
        if not isinstance(by, Positions | Tensor):
            lead = (encoding.axes,) if encoding.axes > 1 else ()
            by = torch.full((*lead, k.shape[-2]), by, device=k.device)
        at = as_positions(by, encoding.axes)
        phase, rest, _ = encoding.angles(at)
        ids = at.ids
        gain: Tensor | float = 1.0
    else:
        old, new = as_positions(before, encoding.axes), as_positions(after, encoding.axes)
        (old_phase, old_rest, old_gain), (phase, rest, new_gain) = encoding.angles(old), encoding.angles(new)
        phase, rest = minus(phase, old_phase), minus(rest, old_rest)
        ids, gain = new.ids - old.ids, new_gain / old_gain
    dtype = torch.promote_types(k.dtype, torch.float32)
    cos, sin = cos_sin(phase, rest, exact=exact_on(ids.device, dtype))
    if encoding.lengths.grows:
        growth = encoding.numbers(ids.device)["growth"]
        gain = gain * (-growth * ids.unsqueeze(-1).to(growth.dtype)).exp()
    return Rotation((cos * gain).to(dtype), (sin * gain).to(dtype))


def minus(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """``a - b`` where None is 0."""
    if b is None:
        return a
    return -b if a is None else a - b


@dataclass(frozen=True)
class MovableKeys:
    """Keys of a cache that move any number of times without drift: kept as first turned, with their shifts added up.

    Args:
        keys: ``(batch, kv_heads, tokens, head_dim)`` as they were turned when they were new.
        shift: int64 ``(batch | 1, 1, tokens)``, led by the axes if there are several: how far they have moved since.

    >>> rope = RotaryEmbedding(4)
    >>> cache = MovableKeys.of(rope.rotate(torch.ones(1, 1, 3, 4), rope.prepare(torch.arange(3))))
    >>> for _ in range(1000):
    ...     cache = cache.moved(-1)
    >>> there = rope.rotate(torch.ones(1, 1, 3, 4), rope.prepare(torch.arange(3) - 1000))
    >>> bool((cache.turned(rope) - there).abs().max() < 5e-7)
    True
    """

    keys: Tensor
    shift: Tensor

    @classmethod
    def of(cls, keys: Tensor, axes: int = 1) -> MovableKeys:
        """Keys that have not moved."""
        if keys.ndim != 4:
            raise ShapeError("keys are (batch, kv_heads, tokens, head_dim)", tuple(keys.shape))
        lead = (axes,) if axes > 1 else ()
        return cls(keys, torch.zeros((*lead, 1, 1, keys.shape[-2]), dtype=torch.int64, device=keys.device))

    def moved(self, by: Tensor | int) -> MovableKeys:
        """Moved by ``by`` more positions: a number, ``(tokens,)`` or ``(batch, tokens)``; no key is touched.

        Raises:
            ShapeError: shifts that are no integers, or for other tokens.
        """
        if isinstance(by, Tensor):
            if by.is_floating_point() or by.ndim not in (1, 2) or by.shape[-1] != self.shift.shape[-1]:
                raise ShapeError(
                    f"shifts are integers for {self.shift.shape[-1]} tokens", f"{tuple(by.shape)} in {by.dtype}"
                )
            by = by.unsqueeze(-2)
        return replace(self, shift=self.shift + by)

    def kept(self, index: Tensor) -> MovableKeys:
        """Only the tokens of ``index`` ``(kept,)``; their positions stay until they are moved."""
        return MovableKeys(self.keys[..., index, :], self.shift[..., index])

    def followed(self, keys: Tensor) -> MovableKeys:
        """With new keys at the end, turned where they stand."""
        new = self.shift.new_zeros((*self.shift.shape[:-1], keys.shape[-2]))
        return MovableKeys(torch.cat((self.keys, keys), -2), torch.cat((self.shift, new), -1))

    def turned(self, encoding: RotaryEmbedding, length: Tensor | None = None) -> Tensor:
        """The keys where they stand now, moved by one rotation, for attention.

        Args:
            encoding: what turned them.
            length: declared length, where the encoding needs one.
        """
        return move_keys(self.keys, encoding, Positions(self.shift, length))
