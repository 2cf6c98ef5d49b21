"""Angles as whole numbers: one turn is 2^64, so adding and multiplying wraps exactly like an angle does.

``phase = position * round(theta / 2 pi * 2^64)`` in int64, whose overflow is the turn that an angle may lose.
So ``phase(m) - phase(n) == phase(m - n)`` holds to the last bit, and at position 1e9 the angle is right to 2e-10,
where a float32 product is off by tens of radians.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from posenc.errors import ShapeError

TURN = 2**64
TWO_PI = Fraction(628318530717958647692528676655900576839433879875021164194988918, 10**62)
RADIANS = 2 * math.pi / TURN
HALF = (torch.float16, torch.bfloat16)


def turns_of(theta: Any, remainder: Any = None) -> NDArray[np.int64]:
    """``theta / 2 pi`` of a turn, rounded once to 2^-64 of a turn; the shape of ``theta``.

    Args:
        theta: radians per position, float64.
        remainder: what rounding to float64 took from ``theta``.

    >>> turns_of([0.0, 2 * math.pi * 0.25]).tolist()[1] / 2**62
    1.0
    """
    rates = np.asarray(theta, dtype=np.float64)
    rests = np.zeros_like(rates) if remainder is None else np.broadcast_to(remainder, rates.shape)
    whole = [
        round((Fraction(float(t)) + Fraction(float(r))) * TURN / TWO_PI) % TURN
        for t, r in zip(rates.ravel(), rests.ravel(), strict=True)
    ]
    return np.array(whole, dtype=np.uint64).view(np.int64).reshape(rates.shape)


def turns_at(theta: Tensor) -> Tensor:
    """The same for float64 frequencies that exist as a tensor only, right to float64's 16 digits."""
    share = theta / (2 * math.pi)
    share = share - share.round()  # within half a turn, so that 2^63 of it fits into int64
    return (share * 2.0**63).round().long() * 2


def phases(ids: Tensor, turns: Tensor, theta: Tensor) -> tuple[Tensor, Tensor | None]:
    """Phases in 2^-64 turns, and the radians that the fractions of real positions add.

    Args:
        ids: ``(axes, batch | 1, heads | 1, tokens)``.
        turns, theta: ``(axes, batch | 1, heads | 1, tokens | 1, pairs)``; theta in radians per position.

    Returns:
        int64 ``(batch | 1, heads | 1, tokens, pairs)``, and of that shape the rest in radians, None for integers.
    """
    if not ids.is_floating_point():
        return over_axes(ids.long(), turns), None
    whole = ids.detach().floor()
    part = (ids - whole).to(theta.dtype)  # exact: both are multiples of the same power of two
    return over_axes(whole.long(), turns), over_axes(part, theta)


def over_axes(ids: Tensor, rates: Tensor) -> Tensor:
    """``sum over axes of id * rate``."""
    if ids.shape[0] == 1:
        return ids[0].unsqueeze(-1) * rates[0]
    return (ids.unsqueeze(-1) * rates).sum(0)


def cos_sin(phase: Tensor | None, rest: Tensor | None = None, *, exact: bool) -> tuple[Tensor, Tensor]:
    """Cosine and sine of phases in 2^-64 turns plus ``rest`` radians.

    Args:
        phase: int64, or None where the rest is the whole angle.
        rest: radians to add.
        exact: in float64. Otherwise in float32 from the nearest quarter turn, where an angle of at most pi / 4 rounds
            to 3e-8: devices without float64, or slow at it, lose nothing a float32 result could show.

    Returns:
        Two tensors of the shape of ``phase``, float64 or float32.
    """
    if phase is None:
        angle = torch.zeros(()) if rest is None else rest
        return angle.cos(), angle.sin()
    if exact:
        angle = phase.double() * RADIANS
        if rest is not None:
            angle = angle + rest
        return angle.cos(), angle.sin()
    quarter = (phase + 2**61) >> 62
    angle = (phase - (quarter << 62)).float() * RADIANS
    if rest is not None:
        angle = angle + rest.float()
    cos, sin = angle.cos(), angle.sin()
    odd = (quarter & 1).bool()
    cos, sin = torch.where(odd, sin, cos), torch.where(odd, cos, sin)
    return torch.where(((quarter + 1) & 2).bool(), -cos, cos), torch.where((quarter & 2).bool(), -sin, sin)


def exact_on(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether cosines are computed in float64: always on the CPU, elsewhere when float64 is asked for."""
    return device.type == "cpu" or dtype == torch.float64


def check_ids(ids: Tensor, may_look: Callable[[Tensor], bool]) -> None:
    """Refuse positions whose number format cannot hold them.

    Raises:
        ShapeError: float16 or bfloat16; or, where the values can be looked at, beyond 2^53 or not finite.
    """
    if ids.dtype in HALF:
        raise ShapeError(
            "positions are integers, float32 or float64",
            ids.dtype,
            "bfloat16 cannot tell 256 from 257, float16 not 2048 from 2049.",
        )
    if ids.is_floating_point() and may_look(ids) and ids.numel() and not bool((ids.abs() <= 2.0**53).all()):
        raise ShapeError("positions are finite and at most 2^53", "one that is not")
