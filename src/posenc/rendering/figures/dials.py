"""P1, the clocks: three hands at position m (twelve) and n, and the cosine of every pair.

The page's script (``templates/page.js``) moves what this draws; both place a hand at ``D theta`` from twelve,
clockwise.
"""

from __future__ import annotations

import math

from posenc.records.account import Clock, EncodingAccount
from posenc.rendering.figures.canvas import WIDE, Figure, line, text
from posenc.rendering.sentences import pairs as sentences
from posenc.rendering.sentences.numbers import level, real, whole

COLOURS = {"fast": "orange", "middle": "green", "slow": "blue"}
MOST_BARS = 256
MOST_THETA = 4096
"""Pairs whose cosines the page's script adds up; of more, every n-th."""


def clocks(e: EncodingAccount, distance: int | None = None, width: int = WIDE) -> Figure:
    """Draw the hands at one distance.

    Args:
        e: the encoding.
        distance: ``D = m - n`` in positions; a quarter turn of the middle pair unless given.
        width: in pixels.
    """
    d = sentences.telling_distance(e) if distance is None else distance
    theta = [0.0 if w is None else 2 * math.pi / w for w in e.waves.wavelengths]
    radius = min(62.0, width / 3 / 2 - 16)
    each = width / max(len(e.clocks), 1)
    parts = [_dial(clock, d, (k + 0.5) * each, radius + 24, radius) for k, clock in enumerate(e.clocks)]
    top = 2 * radius + 150
    kappa = sentences.similarity_at(e, d)
    parts.append(_bars(e, theta, d, kappa, width, top))
    height = round(top + 108)
    shown = _thinned(theta, MOST_THETA)
    root = (
        f'<g data-clocks="" data-theta="{" ".join(f"{t:.12g}" for t in shown)}" data-distance="{d}" '
        f'data-pairs="{len(theta)}">{"".join(parts)}</g>'
    )
    distances = sorted({d, *(2**k for k in range(0, 40, 2) if 2**k <= e.decay.reach)})
    rows = [
        [whole(x), *(f"{level(math.cos(x * c.theta))}" for c in e.clocks), level(sentences.similarity_at(e, x))]
        for x in distances
    ]
    return Figure(
        "clocks",
        f"Clocks at a distance of {whole(d)} positions",
        sentences.clocks(e, d),
        width,
        height,
        root,
        ("D", *(f"cos, {c.role} pair {c.pair}" for c in e.clocks), "similarity"),
        rows,
    )


def _dial(clock: Clock, d: int, x: float, y: float, radius: float) -> str:
    colour = COLOURS[clock.role]
    angle = math.degrees(math.fmod(d * clock.theta, 2 * math.pi))
    turn = math.radians(angle)
    minutes = "".join(
        f'<line class="minute" y1="{-radius + 1:.1f}" y2="{-radius + (7 if k % 3 == 0 else 4):.1f}" '
        f'transform="rotate({30 * k})"/>'
        for k in range(12)
    )
    tip = radius * 0.62
    cosine = math.cos(turn)
    half = min(radius, 56.0)
    return (
        f'<g class="dial" data-dial="{clock.role}" data-step="{clock.theta:.15g}" data-radius="{radius:.1f}" '
        f'data-half="{half:.1f}" transform="translate({x:.1f} {y:.1f})">'
        f'<circle class="face" r="{radius:.1f}"/>{minutes}'
        f'<path class="arc fill-{colour}" data-part="arc" d="{arc(turn, tip)}"/>'
        f'<line class="hand-m" y2="{-radius * 0.72:.1f}"/>{text(0, -radius - 7, "m", anchor="middle")}'
        f'<line class="hand {colour}" data-part="hand" y2="{-radius * 0.84:.1f}" transform="rotate({angle:.3f})"/>'
        f'<circle class="fill-ink" r="3.5"/>'
        + text(
            math.sin(turn) * radius * 1.13,
            4 - math.cos(turn) * radius * 1.13,
            "" if abs(math.sin(turn)) < 0.2 < math.cos(turn) else "n",
            "strong",
            "middle",
            ' data-part="n"',
        )
        + text(0, radius + 26, f"{clock.role}: pair {clock.pair}", "strong", "middle")
        + text(0, radius + 42, f"λ = {real(clock.wavelength)}", "", "middle")
        + text(0, radius + 58, turns(d, clock.theta), "", "middle", ' data-part="turns"')
        + line(-half, radius + 72, half, radius + 72, "axis")
        + line(0, radius + 67, 0, radius + 77, "axis")
        + f'<rect class="fill-{colour}" data-part="bar" x="{min(0, half * cosine):.1f}" y="{radius + 68:.1f}" '
        f'width="{abs(half * cosine):.1f}" height="8" rx="1"/>'
        + text(0, radius + 92, f"cos = {level(cosine)}", "strong", "middle", ' data-part="cos"')
        + "</g>"
    )


def turns(d: int, theta: float) -> str:
    """How far a hand has gone, in turns."""
    return f"{real(d * abs(theta) / (2 * math.pi))} turns"


def arc(turn: float, radius: float) -> str:
    """The sector from twelve to the hand, clockwise; the way of a negative turn is the other one."""
    x, y = radius * math.sin(turn), -radius * math.cos(turn)
    large, sweep = int(abs(turn) > math.pi), int(turn >= 0)
    return f"M0 0V{-radius:.1f}A{radius:.1f} {radius:.1f} 0 {large} {sweep} {x:.1f} {y:.1f}Z"


def _thinned(values: list[float], most: int) -> list[float]:
    return values[:: -(-len(values) // most)]


def _bars(e: EncodingAccount, theta: list[float], d: int, kappa: float, width: int, top: float) -> str:
    """One bar for each pair: its cosine, whose mean is the similarity."""
    shown = list(range(0, len(theta), -(-len(theta) // MOST_BARS)))
    left, right, middle, tall = 34.0, width - 10.0, top + 58, 38.0
    step = (right - left) / len(shown)
    roles = {clock.pair: COLOURS[clock.role] for clock in e.clocks}
    parts = [
        text(left, top, f"cos(Dθ) of every pair; mean κ = {level(kappa)}", "strong", extra=' data-part="mean"'),
        text(left - 6, middle - tall + 4, "1", anchor="end"),
        text(left - 6, middle + 4, "0", anchor="end"),
        text(left - 6, middle + tall + 4, "−1", anchor="end"),
        line(left, middle - tall, right, middle - tall, "grid"),
        line(left, middle + tall, right, middle + tall, "grid"),
    ]
    groups: dict[str, list[int]] = {"grey": [], **{colour: [] for colour in roles.values()}}
    for place, i in enumerate(shown):
        groups[roles.get(i, "grey")].append(place)
    for colour, places in groups.items():
        strokes = "".join(
            f"M{left + (k + 0.5) * step:.1f} {middle:.1f}v{-tall * math.cos(d * theta[shown[k]]):.1f}" for k in places
        )
        parts.append(
            f'<path class="bars {colour}" data-part="bars" data-pairs="{" ".join(str(shown[k]) for k in places)}" '
            f'data-places="{" ".join(map(str, places))}" stroke-width="{max(step * 0.7, 1):.1f}" d="{strokes}"/>'
        )
    y = middle - tall * kappa
    parts.append(line(left, middle, right, middle, "axis"))
    parts.append(
        f'<line class="curve black dashed" data-part="level" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
    )
    box = f'data-left="{left}" data-step="{step:.4f}" data-middle="{middle:.1f}" data-tall="{tall}"'
    return f'<g data-bars="" {box}>{"".join(parts)}</g>'


def small(e: EncodingAccount, distance: int, width: int = 250) -> Figure:
    """The hands alone, for a corner."""
    radius = min(34.0, width / len(e.clocks) / 2 - 7)
    each = width / len(e.clocks)
    parts = []
    for k, clock in enumerate(e.clocks):
        turn = math.fmod(distance * clock.theta, 2 * math.pi)
        parts.append(
            f'<g transform="translate({(k + 0.5) * each:.1f} {radius + 4:.1f})"><circle class="face" r="{radius}"/>'
            f'<path class="arc fill-{COLOURS[clock.role]}" d="{arc(turn, radius * 0.62)}"/>'
            f'<line class="hand-m" y2="{-radius * 0.72:.1f}"/><line class="hand {COLOURS[clock.role]}" '
            f'y2="{-radius * 0.84:.1f}" transform="rotate({math.degrees(turn):.3f})"/>'
            f'<circle class="fill-ink" r="2.5"/>{text(0, radius + 15, f"λ {real(clock.wavelength)}", "", "middle")}</g>'
        )
    finding = sentences.clocks(e, distance)
    return Figure("clocks-small", f"Clocks at D = {distance}", finding, width, round(2 * radius + 24), "".join(parts))
