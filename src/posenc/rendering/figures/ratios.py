"""Before and after a scaling: the factor on every pair's wavelength."""

from __future__ import annotations

from posenc.records.inspection import EncodingInspection
from posenc.rendering.figures.canvas import WIDE, Axis, Figure, legend, line, text
from posenc.rendering.plain import spans
from posenc.rendering.sentences.numbers import real

LEFT, RIGHT, ROOM = 44, 14, 170
STYLES = ("green", "blue")


def scaling(e: EncodingInspection, finding: str, width: int = WIDE) -> Figure:
    """Draw the ratio after over before for every pair, one line of steps for each case of the length rule.

    Args:
        e: an encoding with a scaling.
        finding: the sentence that opens it.
        width: in pixels.
    """
    s = e.spectrum
    if s is None:
        raise ValueError("an encoding with frequencies is scaled")
    n = len(s.unscaled)
    styles = STYLES[-len(s.states) :]
    every = [r for state in s.states for r in state.ratio if r is not None] or [1.0]
    low, high = min([*every, 1.0]), max([*every, 2.0])
    names, y = legend(
        [(css, state.applies) for css, state in zip(styles, s.states, strict=False)], LEFT, width - RIGHT, 14
    )
    top = y + 34
    bottom = top + ROOM
    up, across = Axis(low, high, bottom, top, log=True), Axis(0, n, LEFT, width - RIGHT, log=False)
    parts = [names]
    ticks = [t for t in (0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256) if low / 1.01 <= t <= high * 1.01]
    for value in ticks:
        parts.append(line(LEFT, up(value), width - RIGHT, up(value), "zero" if value == 1 else "grid"))
        parts.append(text(LEFT - 6, up(value) + 4, f"×{value:g}", anchor="end"))
    for value in Axis(0, n - 1, LEFT, width - RIGHT, log=False).ticks(9 if width > 500 else 6):
        parts.append(text(across(value + 0.5), bottom + 18, f"{value:g}", anchor="middle"))
    parts.append(text(width - RIGHT, bottom + 36, "pair", anchor="end"))
    parts += _bands(e, across, top, bottom)
    for css, state in zip(styles, s.states, strict=False):
        path, pen = [], "M"
        for i, ratio in enumerate(state.ratio):
            if ratio is None:
                pen = "M"
                continue
            path.append(f"{pen}{across(i):.1f} {up(ratio):.1f}H{across(i + 1):.1f}")
            pen = "L"
        parts.append(f'<path class="curve {css}" d="{"".join(path)}"/>')
    rows = [
        [state.applies, spans((band.pairs,)), band.effect, "-" if band.ratio is None else _span(*band.ratio)]
        for state in s.states
        for band in state.bands
    ]
    title = "Wavelength after scaling over before, by pair"
    header = ("rows", "pairs", "effect", "wavelength")
    return Figure("scaling", title, finding, width, round(bottom + 44), "".join(parts), header, rows)


def _span(least: float, most: float) -> str:
    return f"× {real(least)}" if real(least) == real(most) else f"× {real(least)} … {real(most)}"


def _bands(e: EncodingInspection, across: Axis, top: float, bottom: float) -> list[str]:
    """Borders between bands, and a name where there is room."""
    found = e.spectrum.states[-1].bands if e.spectrum else ()
    if len(found) > 12:
        return []
    parts = []
    for band in found:
        left, right = across(band.pairs[0]), across(band.pairs[1] + 1)
        if band.pairs[0] > 0:
            parts.append(line(left, top - 4, left, bottom, "mark"))
        if right - left > 7.2 * len(band.effect):
            parts.append(text((left + right) / 2, top - 8, band.effect, "strong", "middle"))
    return parts
