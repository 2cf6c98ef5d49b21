"""P3, the wavelength ladder: every pair's wavelength against the original, trained and served length."""

from __future__ import annotations

from posenc.records.inspection import EncodingInspection, Lengths, Spectrum
from posenc.rendering.figures.canvas import WIDE, Axis, Figure, compact, legend, line, placed, text
from posenc.rendering.sentences.numbers import real, whole

LEFT, RIGHT = 44, 14
MOST_RUNGS = 256


def ladder(e: EncodingInspection, lengths: Lengths, finding: str, width: int = WIDE) -> Figure:
    """Draw the ladder of an encoding with a spectrum.

    Args:
        e: the encoding; its last state is drawn filled, what it was before scaling hollow and grey.
        lengths: drawn across; the first one known of trained, served, original decides which turns are complete.
        finding: the sentence that opens it.
        width: in pixels.
    """
    s = e.spectrum
    if s is None:
        raise ValueError("an encoding with frequencies has a ladder")
    n, scaled = len(s.unscaled), bool(e.scaling)
    shown = sorted({*range(0, n, -(-n // MOST_RUNGS)), n - 1})
    waves = [w for row in (s.unscaled_wavelength, *(state.wavelength for state in s.states)) for w in row if w]
    marks = _marks(lengths)
    axis = Axis(
        min([*waves, 1e9]) / 1.12, max([*waves, *(x for x, _ in marks), 10]) * 1.12, LEFT, width - RIGHT, log=True
    )
    reference = lengths.trained or lengths.served or lengths.original
    names, y = legend(_names(s, scaled, reference), LEFT, width - RIGHT, 14)
    spots = placed([(axis(x), words) for x, words in marks], LEFT, width - RIGHT)
    top = y + 16 + 16 * (1 + max((row for _, row in spots), default=0))
    room = min(420, max(150, 5 * len(shown)))
    bottom = top + room
    parts = [names]
    if reference and axis(reference) < width - RIGHT:
        parts.append(
            f'<rect class="beyond" x="{axis(reference):.1f}" y="{top}" width="{width - RIGHT - axis(reference):.1f}" '
            f'height="{room}"/>'
        )
    for value in axis.ticks(9 if width > 500 else 6):
        parts.append(line(axis(value), top, axis(value), bottom, "grid"))
        parts.append(text(axis(value), bottom + 16, compact(value), anchor="middle"))
    parts.append(text(width - RIGHT, bottom + 34, "wavelength λ, positions for one turn", anchor="end"))
    for (x, words), (end, row) in zip(marks, spots, strict=True):
        at = top - 6 - 16 * row
        parts.append(line(axis(x), at + 4, axis(x), bottom, "mark") + text(end, at, words, "mark-label", "end"))
    ys = {i: top + room * (k + 0.5) / len(shown) for k, i in enumerate(shown)}
    parts += [_rung(s, i, ys[i], axis, reference) for i in shown]
    parts += [text(LEFT - 8, ys[i] + 4, str(i), anchor="end") for i in {shown[0], shown[len(shown) // 2], shown[-1]}]
    parts.append(text(LEFT - 8, top - 6, "pair", anchor="end"))
    header = ("pair", "λ", *(f"λ, {state.applies}" for state in s.states if scaled))
    picked = sorted({*range(0, n, -(-n // 12)), n - 1})
    rows = [
        [str(i), real(s.unscaled_wavelength[i]), *(real(state.wavelength[i]) for state in s.states if scaled)]
        for i in picked
    ]
    return Figure("ladder", "Wavelength ladder", finding, width, round(bottom + 42), "".join(parts), header, rows)


def _marks(lengths: Lengths) -> list[tuple[int, str]]:
    grouped: dict[int, list[str]] = {}
    for name, length in lengths.named():
        grouped.setdefault(length, []).append(name)
    return [(length, f"{', '.join(names)} {whole(length)}") for length, names in sorted(grouped.items())]


def _names(s: Spectrum, scaled: bool, reference: int | None) -> list[tuple[str, str]]:
    found = [("hollow grey", "before scaling")] if scaled else []
    if len(s.states) > 1:
        found.append(("fill-green", s.states[0].applies))
    found.append(("fill-blue", s.states[-1].applies if len(s.states) > 1 else "as it runs" if scaled else "wavelength"))
    if reference:
        found.append(("diamond fill-orange", f"no full turn within {whole(reference)}"))
    return found


def _rung(s: Spectrum, i: int, y: float, axis: Axis, reference: int | None) -> str:
    """One pair; a pair that does not turn has an arrow at the right edge."""
    before, after = s.unscaled_wavelength[i], s.states[-1].wavelength[i]
    others = [state.wavelength[i] for state in s.states[:-1]]
    channels = ", ".join(map(str, s.channels[i]))
    change = "" if after == before else f" → {real(after)}"
    parts = [f"<title>pair {i}, channels {channels}: λ = {real(before)}{change}</title>"]
    xs = [axis(w) for w in (before, after, *others) if w]
    if xs and max(xs) - min(xs) > 1:
        parts.append(line(min(xs), y, max(xs), y, "grid"))
    if before and before != after:
        parts.append(f'<circle class="hollow grey" cx="{axis(before):.1f}" cy="{y:.1f}" r="2"/>')
    parts += [f'<circle class="fill-green" cx="{axis(w):.1f}" cy="{y:.1f}" r="2"/>' for w in others if w]
    if after is None:
        parts.append(text(axis.right, y + 4, "∞", "strong", "end"))
    elif reference and after > reference:
        parts.append(
            f'<path class="fill-orange" data-pair="{i}" '
            f'd="M{axis(after):.1f} {y - 3.4:.1f}l3.4 3.4 -3.4 3.4 -3.4 -3.4z"/>'
        )
    else:
        parts.append(f'<circle class="fill-blue" data-pair="{i}" cx="{axis(after):.1f}" cy="{y:.1f}" r="2.4"/>')
    return f"<g>{''.join(parts)}</g>"
