"""Cosines and sines handed to functions that only apply them."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.checker.boxes import CosSin
from posenc.checker.calling.bound import Bound
from posenc.errors import SubjectError
from posenc.formulas.scalings import frequencies
from posenc.spec import Rotary


def given_waves(bound: Bound, form: str, positions: np.ndarray, batch: int) -> dict[str, Any]:
    """Cosines and sines of the wanted encoding, or those another piece makes, for a function that only applies them."""
    columns, shape = form.split(" ")
    waves = bound.hints.waves
    if waves is None:
        gain, angle = _wanted(bound, columns, positions)
        cos, sin = gain * np.cos(angle), gain * np.sin(angle)
    else:
        cos, sin = _made(waves, positions)
        angle = np.arctan2(sin, cos)
    n, c = cos.shape
    to = {
        "tc": (n, c),
        "1tc": (1, n, c),
        "btc": (batch, n, c),
        "11tc": (1, 1, n, c),
        "t1c": (n, 1, c),
        "1t1c": (1, n, 1, c),
    }[shape]

    def made(values: np.ndarray, dtype: str | None = None) -> Any:
        return bound.library.array(
            np.broadcast_to(
                values.reshape((1,) * (len(to) - 2) + (n, c)) if shape not in ("t1c", "1t1c") else values.reshape(to),
                to,
            ),
            dtype,
        )

    given: dict[str, Any] = {}
    if bound.has("cos"):
        given |= {"cos": made(cos), "sin": made(sin)}
    if bound.has("angles"):
        full = "float64" if bound.library.dtype == "float64" else "float32"
        given["angles"] = made(angle, full)  # in fewer bits the caller would be at fault, not the subject
    if bound.has("complex"):
        z = cos + 1j * sin
        lead = to if shape in ("t1c", "1t1c") else (1,) * (len(to) - 2) + (n, c)
        given["complex"] = _complex(bound, np.broadcast_to(z.reshape(lead), to))
    return given


def in_words(form: str) -> str:
    """A form as it is printed.

    >>> in_words("half 1tc")
    'a column for each pair, (1, tokens, columns)'
    """
    columns, shape = form.split(" ")
    names = {"t": "tokens", "b": "batch", "c": "columns", "1": "1"}
    of = {
        "made": "as the other piece makes them",
        "full": "a column for each channel",
        "half": "a column for each pair",
        "other": "a column for each channel, laid out for the other pairing",
    }
    return f"{of[columns]}, ({', '.join(names[letter] for letter in shape)})"


def _wanted(bound: Bound, columns: str, positions: np.ndarray) -> tuple[float, np.ndarray]:
    """Gain and angles of the wanted encoding, not wrapped: a column for each pair, or two in one of two orders."""
    e = bound.hints.encoding
    if not isinstance(e, Rotary):
        e = Rotary(bound.dim)
    f = frequencies(e)
    angle = np.asarray(positions, dtype=np.float64)[:, None] * f.fused
    if columns != "half" and not bound.has("complex"):
        repeat = e.interleaved == (columns == "full")
        angle = np.repeat(angle, 2, axis=1) if repeat else np.concatenate([angle, angle], axis=1)
    return float(f.gain), angle


def _made(waves: CosSin, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the other piece makes.

    Raises:
        SubjectError: it makes rows for whole positions only, from 0.
    """
    at = np.asarray(positions, dtype=np.float64)
    if not waves.free and ((at != np.rint(at)).any() or (at < 0).any()):
        raise SubjectError("rows are made for whole positions from 0", at[:4].tolist())
    return waves.cos_sin(at)


def _complex(bound: Bound, z: np.ndarray) -> Any:
    if bound.library.name == "torch":
        import torch

        return torch.from_numpy(z.astype(np.complex64))
    return z.astype(np.complex64)
