"""Cosines and sines handed to functions that only apply them."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.checker.calling.bound import Bound
from posenc.formulas.scalings import frequencies
from posenc.spec import Rotary


def given_waves(bound: Bound, form: str, positions: np.ndarray, batch: int) -> dict[str, Any]:
    """Cosines and sines of the wanted encoding, for a function that only applies them."""
    e = bound.hints.encoding
    if not isinstance(e, Rotary):
        e = Rotary(bound.dim)
    columns, shape = form.split(" ")
    f = frequencies(e)
    angle = np.asarray(positions, dtype=np.float64)[:, None] * f.fused
    if columns != "half" and not bound.has("complex"):
        repeat = e.interleaved == (columns == "full")
        angle = np.repeat(angle, 2, axis=1) if repeat else np.concatenate([angle, angle], axis=1)
    n, c = angle.shape
    to = {
        "tc": (n, c),
        "1tc": (1, n, c),
        "btc": (batch, n, c),
        "11tc": (1, 1, n, c),
        "t1c": (n, 1, c),
        "1t1c": (1, n, 1, c),
    }[shape]

    def made(values: np.ndarray) -> Any:
        return bound.library.array(
            np.broadcast_to(
                values.reshape((1,) * (len(to) - 2) + (n, c)) if shape not in ("t1c", "1t1c") else values.reshape(to),
                to,
            )
        )

    given: dict[str, Any] = {}
    if bound.has("cos"):
        given |= {"cos": made(f.gain * np.cos(angle)), "sin": made(f.gain * np.sin(angle))}
    if bound.has("angles"):
        given["angles"] = made(angle)
    if bound.has("complex"):
        z = f.gain * np.exp(1j * angle)
        lead = to if shape in ("t1c", "1t1c") else (1,) * (len(to) - 2) + (n, c)
        given["complex"] = _complex(bound, np.broadcast_to(z.reshape(lead), to))
    return given


def _complex(bound: Bound, z: np.ndarray) -> Any:
    if bound.library.name == "torch":
        import torch

        return torch.from_numpy(z.astype(np.complex64))
    return z.astype(np.complex64)
