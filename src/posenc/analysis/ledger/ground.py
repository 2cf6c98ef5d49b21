"""What the claims stand on: frequencies, and the formulas that turn them into tables and rotations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from posenc.formulas.scalings import frequencies
from posenc.formulas.spectrum import Frequencies
from posenc.spec import Sinusoidal

TABLE = Callable[[Any, np.ndarray], np.ndarray]


def paired_table(positions: Any, theta: np.ndarray) -> np.ndarray:
    """``(n, 2 pairs)``: sin, cos, sin, cos… of every pair (Vaswani et al. 2017, section 3.5)."""
    angles = np.asarray(positions, dtype=np.float64)[:, None] * theta
    return np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(len(angles), -1)


def turned(x: np.ndarray, positions: Any, theta: np.ndarray) -> np.ndarray:
    """``(n, 2 pairs)`` with adjacent pairs turned by ``position * theta`` (Su et al. 2021, equation 15)."""
    angles = np.asarray(positions, dtype=np.float64)[:, None] * theta
    c, s = np.cos(angles), np.sin(angles)
    first, second = x[..., ::2], x[..., 1::2]
    return np.stack([first * c - second * s, first * s + second * c], axis=-1).reshape(len(angles), -1)


@dataclass(frozen=True)
class Ground:
    """The encoding under discussion and the formulas the claims test.

    Args:
        name: what the frequencies belong to.
        frequencies: the encoding's.
        table: rows of sines and cosines.
        rotate: turns query and key channels.
        base: of the schedule, if it is geometric.
        trained: positions of its training, if known.
    """

    name: str = "sinusoidal(512)"
    frequencies: Frequencies = frequencies(Sinusoidal(512))  # noqa: RUF009 - frozen and read-only
    table: TABLE = paired_table
    rotate: Callable[[np.ndarray, Any, np.ndarray], np.ndarray] = turned
    trained: int | None = 512

    @property
    def theta(self) -> np.ndarray:
        return self.frequencies.fused

    @property
    def dim(self) -> int:
        return 2 * self.frequencies.pairs
