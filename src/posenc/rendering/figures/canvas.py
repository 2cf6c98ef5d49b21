"""What every figure is made of: the Figure itself, axes, text and lines."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from posenc.records import Curve
from posenc.rendering.figures.palette import FIGURE_CSS, LIGHT, fixed
from posenc.rendering.plain import inert

WIDE, NARROW = 720, 344
"""Widths in pixels: for a screen or a sheet of paper, and for a phone."""
DIGIT = 6.6
"""Width of a character of 12 pixels, on average."""
UNITS = "", "k", "M", "G", "T", "P"


@dataclass(frozen=True)
class Figure:
    """A drawing with everything that is said in its place when it cannot be seen.

    Args:
        name: of its file.
        title: what is drawn.
        finding: one sentence with the finding and its number.
        width, height: in pixels.
        body: SVG elements, styled by the classes of :data:`~posenc.rendering.figures.palette.FIGURE_CSS`.
        header, rows: the same as a table.
    """

    name: str
    title: str
    finding: str
    width: int
    height: int
    body: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()

    def inline(self, key: str, css_class: str = "") -> str:
        """An ``<svg>`` for a page that brings the style; ``key`` is unique on the page."""
        return (
            f'<svg class="figure {css_class}" viewBox="0 0 {self.width} {self.height}" '
            f'style="max-width:{self.width}px" role="img" aria-labelledby="{key}-t {key}-d">'
            f'<title id="{key}-t">{escape(self.title)}</title><desc id="{key}-d">{escape(self.finding)}</desc>'
            f"{self.body}</svg>"
        )

    def svg(self) -> str:
        """A file of its own, on white paper, with its style inside."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img" aria-labelledby="t d">'
            f'<title id="t">{escape(self.title)}</title><desc id="d">{escape(self.finding)}</desc>'
            f'<style>{fixed(FIGURE_CSS)}</style><rect width="100%" height="100%" fill="{LIGHT["paper"]}"/>'
            f"{self.body}</svg>"
        )

    def png(self, scale: float = 2.0) -> bytes:
        """The same as a PNG, ``scale`` pixels for each unit.

        Raises:
            PosencError: vl-convert-python is not installed.
        """
        from posenc.rendering.figures.export import png

        return png(self.svg(), scale)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an ``.svg`` or a ``.png``.

        Raises:
            PosencError: another ending, or the file cannot be written.
        """
        from posenc.rendering.figures.export import save

        save(self, path)

    def _repr_svg_(self) -> str:
        return self.svg()


class Axis:
    """Pixels of values, on a linear or logarithmic axis from ``left`` to ``right``."""

    def __init__(self, low: float, high: float, left: float, right: float, *, log: bool) -> None:
        self.log, self.left, self.right = log, left, right
        self.low, self.high = (math.log10(low), math.log10(high)) if log else (low, high)
        if self.high - self.low < 1e-9:
            self.high = self.low + 1

    def __call__(self, value: float) -> float:
        at = math.log10(value) if self.log else value
        return self.left + (self.right - self.left) * (at - self.low) / (self.high - self.low)

    def ticks(self, most: int = 9) -> list[float]:
        """Powers of ten, or round steps; at most ``most``."""
        if self.log:
            found = range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)
            return [10.0**k for k in found[:: -(-len(found) // most) or 1]]
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / most))
        step *= next(s for s in (1, 2, 5, 10, 20) if (self.high - self.low) / (step * s) <= most)
        return [k * step for k in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)]

    def has(self, value: float) -> bool:
        """Whether a value lies on the axis."""
        return (value > 0 or not self.log) and self.left - 0.5 <= self(value) <= self.right + 0.5


def compact(value: float) -> str:
    """A tick as one reads it.

    >>> compact(0.5), compact(1000), compact(2.5e6), compact(0)
    ('0.5', '1k', '2.5M', '0')
    """
    k = 0 if abs(value) < 1000 else min(int(math.log10(abs(value)) + 1e-9) // 3, len(UNITS) - 1)
    return f"{value / 10 ** (3 * k):.6g}{UNITS[k]}"


def text(x: float, y: float, words: str, css: str = "", anchor: str = "start", extra: str = "") -> str:
    """One line of text."""
    style = f' class="{css}"' if css else ""
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}"{style}{at}{extra}>{escape(inert(words))}</text>'


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    """A straight line."""
    return f'<line class="{css}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def polyline(points: Iterable[tuple[float, float]], css: str) -> str:
    """A curve through points in pixels."""
    return f'<polyline class="curve {css}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def columns(curve: Curve, axis: Axis) -> Iterable[tuple[float, float]]:
    """The extremes of the curve in each half pixel of the axis: nothing that could be seen is lost."""
    column: list[tuple[float, float]] = []
    at = None
    for x, y in zip(curve.x, curve.y, strict=True):
        if not axis.has(x):
            continue
        here = int(2 * axis(x))
        if here != at and column:
            yield from sorted({min(column, key=lambda p: p[1]), max(column, key=lambda p: p[1])})
            column = []
        at = here
        column.append((x, y))
    if column:
        yield from sorted({min(column, key=lambda p: p[1]), max(column, key=lambda p: p[1])})


def legend(items: Sequence[tuple[str, str]], left: float, right: float, y: float) -> tuple[str, float]:
    """Signs with their names, wrapped to the width; and the y of the last row.

    Args:
        items: (classes of the sign, its name); a class ``fill-…`` is a dot, ``hollow`` a ring, ``diamond`` a diamond,
            anything else a line.
    """
    parts, x = [], left
    for css, name in items:
        width = 30 + DIGIT * len(name)
        if x > left and x + width > right:
            x, y = left, y + 18
        parts.append(_sign(css, x, y - 4) + text(x + 25, y, name))
        x += width + 14
    return "".join(parts), y


def _sign(css: str, x: float, y: float) -> str:
    if "diamond" in css:
        return f'<path class="{css}" d="M{x + 12:.1f} {y - 4.5:.1f}l4.5 4.5 -4.5 4.5 -4.5 -4.5z"/>'
    if "hollow" in css or "fill-" in css:
        return f'<circle class="{css}" cx="{x + 12:.1f}" cy="{y:.1f}" r="3.2"/>'
    return line(x, y, x + 20, y, f"curve {css}")


def placed(labels: Sequence[tuple[float, str]], left: float, right: float) -> list[tuple[float, int]]:
    """Right ends and rows of labels that stand to the left of their lines, so that no line crosses a label.

    Args:
        labels: x of the line and the words, from left to right.
        left, right: edges that no label passes.

    >>> placed([(100.0, "trained"), (110.0, "served"), (400.0, "far")], 0, 500)
    [(96.0, 0), (106.0, 1), (396.0, 0)]
    """
    ends: list[float] = []
    found = []
    for x, words in labels:
        width = DIGIT * len(words)
        end = min(max(x - 4, left + width), right)
        row = next((r for r, taken in enumerate(ends) if end - width > taken + 8), len(ends))
        ends = [max(taken, end) for taken in [*ends, *[end] * (row + 1 - len(ends))][: row + 1]] + ends[row + 1 :]
        found.append((end, row))
    return found
