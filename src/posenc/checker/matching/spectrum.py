"""Frequencies of an encoding with something changed that a strict value would not allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from posenc.checker.boxes import Array
from posenc.formulas.scalings import RULES
from posenc.formulas.spectrum import Frequencies, scheduled, unscaled
from posenc.spec import Geometric, Mixed, Rotary, Split

Chain = tuple[tuple[str, dict[str, Any]], ...]


@dataclass(frozen=True)
class Wanted:
    """The wanted frequencies, open to changes.

    Args:
        encoding: a rotary or sinusoidal encoding.
        length: the declared length at which the subject was measured; None is within the original context.
    """

    encoding: Any
    length: int | None = None

    @property
    def pairs(self) -> int:
        return int(self.encoding.pairs)

    @property
    def dim(self) -> int:
        return int(self.encoding.rotary_dim if isinstance(self.encoding, Rotary) else self.encoding.dim)

    @property
    def geometric(self) -> Geometric | None:
        schedule = self.encoding.schedule
        whole = not isinstance(self.encoding.axes, Mixed) and not (
            isinstance(self.encoding.axes, Split) and self.encoding.axes.own_schedule
        )
        return schedule if isinstance(schedule, Geometric) and whole else None

    @property
    def chain(self) -> Chain:
        """The scalings as names and settings."""
        found = []
        for scaling in getattr(self.encoding, "scaling", ()):
            if scaling.kind == "as_executed":
                found.append((scaling.rule, scaling.fields()))
            else:
                found.append(
                    (scaling.kind, {n: getattr(scaling, n) for n in type(scaling).model_fields if n != "kind"})
                )
        return tuple(found)

    def frequencies(self, **changes: Any) -> Frequencies:
        """The frequencies with ``base``, ``dim`` (of the exponent), ``shift``, ``first`` or ``chain`` replaced.

        Raises:
            ArithmeticError, ValueError: the changed numbers cannot be computed with.
        """
        start = self.start(**{k: v for k, v in changes.items() if k != "chain"})
        return run(start, changes.get("chain", self.chain), self.length)

    def start(self, base: Any = None, dim: Any = None, shift: Any = None, first: Any = None) -> Frequencies:
        """Before any scaling."""
        geometric = self.geometric
        if geometric is None or (base is None and dim is None and shift is None and first is None):
            return unscaled(self.encoding)
        # lenient on purpose: a base below 1 or a first of 0 is what a fault may give
        schedule = Geometric.model_construct(
            kind="geometric",
            base=float(geometric.base if base is None else base),
            keep=geometric.keep,
            shift=float(geometric.shift if shift is None else shift),
            first=float(geometric.first if first is None else first),
        )
        old = unscaled(self.encoding)
        width = dim if dim is not None else (old.dim or self.dim)
        theta = scheduled(schedule, self.pairs, width)
        return old.replace(
            theta=theta * (old.theta != 0) if old.axes > 1 else theta[None], base=schedule.base, dim=width
        )

    def theta(self, **changes: Any) -> Array:
        """``(pairs,)`` radians per step when all axes advance together."""
        return self.frequencies(**changes).fused

    def gain(self, **changes: Any) -> float:
        return float(self.frequencies(**changes).gain)


def run(start: Frequencies, chain: Iterable[tuple[str, dict[str, Any]]], length: int | None = None) -> Frequencies:
    """Apply scalings by name with settings that no value would hold."""
    f = start
    for kind, settings in chain:
        result = RULES[kind](f, SimpleNamespace(**settings))
        f = result if isinstance(result, Frequencies) else result.at(length)
    return f


def minimum(left: Callable[[float], float], low: float, high: float, grid: int = 160) -> tuple[float, float]:
    """Where a function of a positive number is smallest: a logarithmic grid, then golden sections around its best.

    >>> x, _ = minimum(lambda v: abs(v - 3.0), 0.1, 100.0)
    >>> round(x, 6)
    3.0
    """
    points = np.geomspace(low, high, grid)
    values = [left(float(p)) for p in points]
    best = int(np.argmin(values))
    a, b = np.log(points[max(best - 1, 0)]), np.log(points[min(best + 1, grid - 1)])
    ratio = (np.sqrt(5) - 1) / 2
    c, d = b - ratio * (b - a), a + ratio * (b - a)
    fc, fd = left(float(np.exp(c))), left(float(np.exp(d)))
    for _ in range(60):
        if fc < fd:
            b, d, fd = d, c, fc
            c = b - ratio * (b - a)
            fc = left(float(np.exp(c)))
        else:
            a, c, fc = c, d, fd
            d = a + ratio * (b - a)
            fd = left(float(np.exp(d)))
    x = float(np.exp((a + b) / 2))
    return x, left(x)
