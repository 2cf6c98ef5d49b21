"""What rotary layers share in a forward pass: cosines and sines, how to undo them, and what they fit."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from posenc.errors import ShapeError


class Rotation(NamedTuple):
    """What the layers share: cosines and sines ``(batch | 1, heads | 1, tokens, pairs)``, gain included."""

    cos: Tensor
    sin: Tensor


class XposRotation(NamedTuple):
    """The same for xPos, where keys shrink by what queries grow."""

    cos: Tensor
    sin: Tensor
    key_cos: Tensor
    key_sin: Tensor


def opposite(cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines that undo a turn with its gain: both over ``gain^2 = cos^2 + sin^2``, the sine negative."""
    wide = cos.dtype if cos.device.type == "mps" else torch.float64
    c, s = cos.to(wide), sin.to(wide)
    square = c * c + s * s
    return (c / square).to(cos.dtype), (-s / square).to(sin.dtype)


def check_fits(x: Tensor, ready: Any, head_dim: int) -> None:
    """Refuse queries or keys that were not prepared for; static, values are not looked at."""
    cos = ready[0]
    if x.ndim != 4 or x.shape[-1] != head_dim:
        raise ShapeError(f"q and k are (batch, heads, tokens, {head_dim})", tuple(x.shape))
    if cos.shape[-2] != x.shape[-2]:
        raise ShapeError(
            f"q and k have the {cos.shape[-2]} tokens that prepare was given positions for",
            f"{x.shape[-2]} tokens in {tuple(x.shape)}",
            "Prepare the positions of these tokens; cached keys were turned when they were new.",
        )
    for name, axis in (("rows", 0), ("heads", 1)):
        if cos.shape[axis] != 1 and cos.shape[axis] != x.shape[axis]:
            raise ShapeError(
                f"q and k have the {cos.shape[axis]} {name} that prepare was given, or positions are shared",
                f"{x.shape[axis]} {name} in {tuple(x.shape)}",
            )
