"""Figures as inline SVG: the wavelength ladder, and similarity against distance. Colours come from the page's CSS."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from posenc.records import Curve
from posenc.records.inspection import Lengths, Spectrum, State
from posenc.rendering.plain import figures

WIDTH = 640
LEFT, RIGHT, TOP, BOTTOM = 44, 14, 40, 40
MOST_RUNGS = 256
UP = "k", "M", "G", "T", "P"


def ladder(spectrum: Spectrum, lengths: Lengths) -> str:
    """Every pair's wavelength before and after scaling on a logarithmic axis, with the three lengths across."""
    pairs = len(spectrum.unscaled)
    step = -(-pairs // MOST_RUNGS)
    shown = sorted({*range(0, pairs, step), pairs - 1})
    height = TOP + BOTTOM + min(420, max(140, 5 * len(shown)))
    waves = [w for state in spectrum.states for w in (*spectrum.unscaled_wavelength, *state.wavelength) if w]
    axis = _Log(min(waves, default=1), max([*waves, *(n for _, n in lengths.named())], default=10))
    room = height - TOP - BOTTOM
    y_of = {i: TOP + room * (n + 0.5) / len(shown) for n, i in enumerate(shown)}
    parts = [*_frame(axis, height, "wavelength λ, positions per turn"), *_marks(axis, lengths, height)]
    for i in shown:
        parts.append(_rung(spectrum, i, y_of[i], axis))
    for i in (shown[0], shown[len(shown) // 2], shown[-1]):
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{y_of[i] + 4:.1f}" text-anchor="end">{i}</text>')
    parts.append(f'<text class="tick" x="{LEFT - 8}" y="{TOP - 8}" text-anchor="end">pair</text>')
    return _svg(height, f"Wavelengths of {pairs} pairs before and after scaling", parts)


def similarity(states: Sequence[State], lengths: Lengths) -> str:
    """Similarity of positions against their distance, on a logarithmic axis of distances."""
    curves = [(n, state.similarity) for n, state in enumerate(states) if state.similarity is not None]
    height = TOP + BOTTOM + 220
    axis = _Log(1, max(max(curve.x) for _, curve in curves))
    low = min(-0.1, *(min(curve.y) for _, curve in curves))
    room = height - TOP - BOTTOM
    parts = [*_frame(axis, height, "distance D, positions")]
    for tick in (1.0, 0.5, 0.0, -0.5, -1.0):
        if tick >= low:
            y = TOP + room * (1 - tick) / (1 - low)
            parts.append(f'<line class="{"zero" if tick == 0 else "grid"}" x1="{LEFT}" x2="{WIDTH - RIGHT}" {_ys(y)}/>')
            parts.append(f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    parts += _marks(axis, lengths, height)
    for n, curve in curves:
        points = " ".join(f"{axis(x):.1f},{TOP + room * (1 - y) / (1 - low):.1f}" for x, y in _columns(curve, axis))
        parts.append(f'<polyline class="curve s{n + 1}" points="{points}"/>')
    return _svg(height, "Similarity of positions against their distance", parts)


class _Log:
    """A logarithmic axis over the width of the figure, from just below ``low`` to just above ``high``."""

    def __init__(self, low: float, high: float) -> None:
        self.low = math.log10(low) - 0.02
        self.high = max(math.log10(high) + 0.05, self.low + 0.5)

    def __call__(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(value) - self.low) / (self.high - self.low)

    def decades(self) -> list[float]:
        """Powers of ten inside, every second one where there are many."""
        found = range(math.ceil(self.low), math.floor(self.high) + 1)
        return [10.0**k for k in (found if len(found) <= 10 else found[:: -(-len(found) // 8)])]


def _columns(curve: Curve, axis: _Log) -> Iterable[tuple[float, float]]:
    """The extremes of the curve in each half pixel: nothing that could be seen is lost."""
    column: list[tuple[float, float]] = []
    at = None
    for point in zip(curve.x, curve.y, strict=True):
        here = int(2 * axis(point[0]))
        if here != at and column:
            yield from sorted({min(column, key=lambda p: p[1]), max(column, key=lambda p: p[1])})
            column = []
        at = here
        column.append(point)
    yield from sorted({min(column, key=lambda p: p[1]), max(column, key=lambda p: p[1])})


def _frame(axis: _Log, height: int, title: str) -> Iterable[str]:
    bottom = height - BOTTOM
    for value in axis.decades():
        x = axis(value)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>'
        yield f'<text class="tick" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{_power(value)}</text>'
    yield f'<text class="axis" x="{WIDTH - RIGHT}" y="{height - 6}" text-anchor="end">{escape(title)}</text>'


def _power(value: float) -> str:
    """1, 10, 100, 1k … as one reads it."""
    k = round(math.log10(value))
    if k < 0:
        return f"{value:g}"
    unit = min(k // 3, len(UP))
    return f"{10 ** (k - 3 * unit)}{('', *UP)[unit]}" if k < 18 else f"1e{k}"


def _marks(axis: _Log, lengths: Lengths, height: int) -> Iterable[str]:
    """A line across for each of the three lengths; equal lengths share one, close labels take turns in height."""
    by_length: dict[int, list[str]] = {}
    for name, length in lengths.named():
        by_length.setdefault(length, []).append(name)
    taken = [-1e9, -1e9]
    for length, names in sorted(by_length.items()):
        x, label = axis(length), f"{', '.join(names)} {length}"
        if not LEFT <= x <= WIDTH - RIGHT + 1:
            continue
        half = 3.2 * len(label)
        centre = min(max(x, LEFT + half), WIDTH - RIGHT - half)
        row = 0 if centre - half > taken[0] + 6 else 1
        taken[row] = centre + half
        yield f'<line class="length" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{height - BOTTOM}"/>'
        y = TOP - 8 if row == 0 else TOP - 23
        yield f'<text class="label" x="{centre:.1f}" y="{y}" text-anchor="middle">{escape(label)}</text>'


def _rung(s: Spectrum, i: int, y: float, axis: _Log) -> str:
    """One pair: a hollow dot before scaling, filled ones after, joined; a pair that does not turn has none."""
    before = s.unscaled_wavelength[i]
    after = [(n, state.wavelength[i]) for n, state in enumerate(s.states)]
    xs = [axis(w) for w in (before, *(w for _, w in after)) if w]
    hint = f"pair {i}, channels {', '.join(map(str, s.channels[i]))}: λ = {figures(before)}"
    if any(w != before for _, w in after):
        hint += "".join(f" → {figures(w)}" for _, w in after)
    parts = [f"<title>{escape(hint)}</title>"]
    if xs and max(xs) - min(xs) > 1:
        parts.append(f'<line class="rung" x1="{min(xs):.1f}" x2="{max(xs):.1f}" {_ys(y)}/>')
    if before and before != s.states[0].wavelength[i]:
        parts.append(f'<circle class="before" cx="{axis(before):.1f}" cy="{y:.1f}" r="2"/>')
    parts += [f'<circle class="s{n + 1}" cx="{axis(w):.1f}" cy="{y:.1f}" r="2"/>' for n, w in reversed(after) if w]
    return f"<g>{''.join(parts)}</g>"


def _ys(y: float) -> str:
    return f'y1="{y:.1f}" y2="{y:.1f}"'


def _svg(height: int, title: str, parts: Iterable[str]) -> str:
    head = f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title, quote=True)}">'
    return f"{head}{''.join(parts)}</svg>"
