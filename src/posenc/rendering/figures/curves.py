"""P2, similarity against distance: finite sum, before a scaling, limit, envelope, first negative, aliases."""

from __future__ import annotations

from collections.abc import Sequence

from posenc.records import Curve
from posenc.records.account import EncodingAccount
from posenc.records.analysis import TableFacts
from posenc.rendering.figures.canvas import (
    WIDE,
    Axis,
    Figure,
    columns,
    compact,
    legend,
    line,
    placed,
    polyline,
    text,
)
from posenc.rendering.sentences import pairs, tables
from posenc.rendering.sentences.numbers import level, real, whole

LEFT, RIGHT, ROOM = 38, 14, 230
STYLES = ("blue", "orange dashed", "green", "violet dotted", "black dashed", "grey")
Series = tuple[str, str, Curve]
"""Classes, name, points."""
Mark = tuple[float, str]


def similarity(e: EncodingAccount, width: int = WIDE, *, log: bool = True) -> Figure:
    """Draw one encoding's similarity over everything it serves."""
    series: list[Series] = []
    if e.before is not None:
        series.append(("grey", "before scaling", e.before))
    if e.decay.limit is not None:
        series.append(("green dashed", "continuous limit", e.decay.limit))
    series.append(("violet dotted", "envelope sup|κ|", e.decay.envelope))
    series.append(("blue", "κ, as it runs" if e.before is not None else "κ, finite sum", e.decay.curve))
    points = [(alias.distance, alias.similarity) for alias in e.decay.aliases]
    negative = e.decay.first_negative.value
    kept = dict(zip(e.decay.curve.x, e.decay.curve.y, strict=True))
    at = [x for x in kept if _power_of_two(x)]
    rows = [[whole(x), level(kept[x])] for x in at]
    rows += [[whole(x), f"{level(y)} (return)"] for x, y in points]
    if negative is not None:
        rows.append([whole(negative), "first below 0"])
    return Figure(
        "similarity" if log else "similarity-linear",
        "Similarity of two positions against their distance",
        pairs.similarity(e),
        width,
        *_drawn(series, width, log, marks=_lengths(e), points=points, negative=negative, reach=e.decay.reach),
        ("distance D", "similarity κ(D)"),
        rows,
    )


def overlaid(named: Sequence[tuple[str, EncodingAccount]], width: int = WIDE) -> Figure:
    """Draw the similarity of several encodings on the same axes; six at most are told apart.

    A band holds everything from the smallest to the largest value nearby, the line is its middle.
    """
    shown = named[: len(STYLES)]
    series = [(css, name, e.decay.curve) for (name, e), css in zip(shown, STYLES, strict=False)]
    reach = max(e.decay.reach for _, e in shown)
    rows = [[name, whole(e.decay.reach), real(e.decay.first_negative.value)] for name, e in named]
    return Figure(
        "compared",
        "Similarity against distance, several encodings",
        " ".join(f"{name}: {pairs.similarity(e)}" for name, e in shown),
        width,
        *_drawn(series, width, True, reach=reach, banded=True),
        ("encoding", "distances", "first negative"),
        rows,
    )


def kernel(t: TableFacts, width: int = WIDE) -> Figure:
    """Draw the mean of K along each diagonal of a table, over the mean of the main one."""
    kept = [(x, y) for x, y in zip(t.kernel.x, t.kernel.y, strict=True) if x in (0, 1) or _power_of_two(x)]
    return Figure(
        "kernel",
        "Mean of K(m, n) along each diagonal, over that of the main one",
        tables.diagonals(t),
        width,
        *_drawn([("blue", "mean of K at distance D", t.kernel)], width, False, reach=max(t.kernel.x)),
        ("distance D", "mean of K over K(m, m)"),
        [[whole(x), level(y)] for x, y in kept],
    )


def bands(curve: Curve, axis: Axis, pixels: float = 8.0) -> list[tuple[float, float, float]]:
    """(x in pixels, smallest, largest value) of a curve in stretches of ``pixels``; single points stay points."""
    found: list[tuple[float, float, float]] = []
    stretch: list[tuple[float, float]] = []
    for x, y in [*((axis(x), y) for x, y in zip(curve.x, curve.y, strict=True) if axis.has(x)), (float("inf"), 0.0)]:
        if stretch and x - stretch[0][0] > pixels:
            values = [v for _, v in stretch]
            found.append(((stretch[0][0] + stretch[-1][0]) / 2, min(values), max(values)))
            stretch = []
        stretch.append((x, y))
    return found


def _power_of_two(x: float) -> bool:
    return x >= 1 and x.is_integer() and int(x) & (int(x) - 1) == 0


def _lengths(e: EncodingAccount) -> list[Mark]:
    grouped: dict[int, list[str]] = {}
    for within in e.waves.within:
        grouped.setdefault(within.length, []).append(within.name)
    return [(length, f"{', '.join(names)} {whole(length)}") for length, names in sorted(grouped.items())]


def _drawn(
    series: Sequence[Series],
    width: int,
    log: bool,
    *,
    reach: float,
    marks: Sequence[Mark] = (),
    points: Sequence[tuple[float, float]] = (),
    negative: float | None = None,
    banded: bool = False,
) -> tuple[int, str]:
    """Height and SVG."""
    axis = Axis(1 if log else 0, max(reach, 2), LEFT, width - RIGHT, log=log)
    first = [(negative, f"first below 0: {whole(negative)}")] if negative is not None else []
    inside = [(x, words) for x, words in sorted([*marks, *first]) if axis.has(x)]
    names, y = legend([(css, name) for css, name, _ in series], LEFT, width - RIGHT, 14)
    spots = placed([(axis(x), words) for x, words in inside], LEFT, width - RIGHT)
    top = y + 14 + 16 * (1 + max((row for _, row in spots), default=-1))
    low = min([-0.1, *(min(curve.y) for _, _, curve in series)])
    high = max([1.0, *(max(curve.y) for _, _, curve in series)])
    bottom = top + ROOM

    def at(value: float) -> float:
        return top + ROOM * (high - value) / (high - low)

    parts = [names]
    for value in Axis(low, high, 0, 1, log=False).ticks(6):
        parts.append(line(LEFT, at(value), width - RIGHT, at(value), "zero" if abs(value) < 1e-12 else "grid"))
        parts.append(text(LEFT - 6, at(value) + 4, f"{value:.2g}".replace("-", "−"), anchor="end"))
    for value in axis.ticks(9 if width > 500 else 6):
        parts.append(line(axis(value), bottom, axis(value), bottom + 4, "axis"))
        parts.append(text(axis(value), bottom + 18, compact(value), anchor="middle"))
    parts.append(text(width - RIGHT, bottom + 36, "distance D, positions", anchor="end"))
    for css, _, curve in series:
        if banded:
            spans = [(x, at(least), at(most)) for x, least, most in bands(curve, axis)]
            edge = [f"{x:.1f},{y:.1f}" for x, y, _ in spans] + [f"{x:.1f},{y:.1f}" for x, _, y in reversed(spans)]
            parts.append(f'<polygon class="band fill-{css.split()[0]}" points="{" ".join(edge)}"/>')
            parts.append(polyline(((x, (a + b) / 2) for x, a, b in spans), f"{css} thick"))
        else:
            parts.append(polyline(((axis(x), at(v)) for x, v in columns(curve, axis)), css))
    for (x, words), (end, row) in zip(inside, spots, strict=True):
        y, low_one = top - 6 - 16 * row, x == negative and (x, words) in first
        parts.append(line(axis(x), y + 4, axis(x), bottom, "curve orange dotted" if low_one else "mark"))
        parts.append(text(end, y, words, "warn-label" if low_one else "mark-label", "end"))
        if low_one:
            parts.append(f'<path class="fill-orange" d="M{axis(x):.1f} {at(0):.1f}l-6 -10h12z"/>')
    parts += [_return(axis(x), at(v)) for x, v in points if axis.has(x)]
    box = f'data-left="{LEFT}" data-right="{width - RIGHT}" data-reach="{max(reach, 2):.0f}" data-log="{int(log)}"'
    ends = f'data-top="{top:.1f}" data-bottom="{bottom:.1f}" data-low="{low:.6g}" data-high="{high:.6g}"'
    return round(bottom + 44), f'<g data-similarity="" {box} {ends}>{"".join(parts)}</g>'


def _return(x: float, y: float) -> str:
    return f'<circle class="hollow blue" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'


def sparkline(e: EncodingAccount, width: int = 250, height: int = 92) -> Figure:
    """The curve alone, with its zero line, for a corner."""
    axis = Axis(1, e.decay.reach, 2, width - 2, log=True)
    low, high = min(-0.1, *e.decay.curve.y), 1.0
    room = height - 4

    def at(value: float) -> float:
        return 2 + room * (high - value) / (high - low)

    body = line(2, at(0), width - 2, at(0), "zero")
    body += polyline(((axis(x), at(v)) for x, v in columns(e.decay.curve, axis)), "blue")
    negative = e.decay.first_negative.value
    if negative is not None and axis.has(negative):
        x = axis(negative)
        body += f'<path class="fill-orange" d="M{x:.1f} {at(0):.1f}l-5 -9h10z"/>'
        body += text(width - 2, 13, f"< 0 at {whole(negative)}", "warn-label", "end")
    return Figure("similarity-small", "Similarity against distance", pairs.similarity(e), width, height, body)
