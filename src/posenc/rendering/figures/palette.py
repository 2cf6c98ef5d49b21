"""Colours: one palette for light and one for dark paper, told apart by people with any colour vision.

Text colours have a contrast of at least 4.5 on their paper, lines and marks of at least 3 (WCAG 2.2, AA). Blue and
orange carry every opposition, and a second sign (shape, dash, words) goes with each colour.
"""

from __future__ import annotations

import re
from pathlib import Path

LIGHT = {
    "paper": "#fdfdfc",
    "ink": "#1c1c1a",
    "soft": "#5c5b55",
    "line": "#dedcd5",
    "tint": "#f4f3ee",
    "grey": "#7a7972",
    "blue": "#0a5fa8",
    "orange": "#b4480a",
    "green": "#00705a",
    "violet": "#6a4bb5",
    "bad": "#a8201a",
    "blue-tint": "#dcebf8",
    "most-tint": "#b3d4f0",
    "green-tint": "#dff1ea",
    "orange-tint": "#fdebd9",
    "deep-tint": "#f8cfab",
    "violet-tint": "#ece7f9",
    "bad-tint": "#fce8e6",
}
DARK = {
    "paper": "#171716",
    "ink": "#ecebe5",
    "soft": "#aeaca3",
    "line": "#3c3b38",
    "tint": "#222220",
    "grey": "#96948c",
    "blue": "#6fb4f5",
    "orange": "#f59a5b",
    "green": "#4ccaa8",
    "violet": "#b7a1f5",
    "bad": "#ff8f85",
    "blue-tint": "#18324a",
    "most-tint": "#245079",
    "green-tint": "#163a31",
    "orange-tint": "#412a17",
    "deep-tint": "#5a3210",
    "violet-tint": "#2e2748",
    "bad-tint": "#431f1c",
}
VARIABLE = re.compile(r"var\(--([a-z-]+)\)")

FIGURE_CSS = Path(__file__).parents[1].joinpath("templates", "figures.css").read_text("utf-8")

HEAT = ((0x12, 0x3F, 0x7A), (0x6A, 0xA3, 0xD8), (0xF7, 0xF6, 0xF2), (0xF2, 0xA2, 0x5C), (0x8F, 0x34, 0x03))
"""From the most negative value through zero to the most positive one."""


def variables(palette: dict[str, str]) -> str:
    """The palette as CSS declarations."""
    return " ".join(f"--{name}: {colour};" for name, colour in palette.items())


def fixed(css: str, palette: dict[str, str] = LIGHT) -> str:
    """CSS with the variables filled in, for files that stand alone.

    >>> fixed("text { fill: var(--ink); }")
    'text { fill: #1c1c1a; }'
    """
    return VARIABLE.sub(lambda found: palette[found[1]], css)


def heat_colours(steps: int = 255) -> bytes:
    """``steps`` colours of the heat map, three bytes each, evenly from -1 to 1."""
    made = bytearray()
    for k in range(steps):
        at = k * (len(HEAT) - 1) / (steps - 1)
        i = min(int(at), len(HEAT) - 2)
        made += bytes(round(a + (b - a) * (at - i)) for a, b in zip(HEAT[i], HEAT[i + 1], strict=True))
    return bytes(made)


def scoped(css: str, scope: str) -> str:
    """The same rules inside ``scope`` only.

    >>> scoped("text { fill: red; } .a, .b { x: 1; }", ".p svg")
    '.p svg text { fill: red; }\\n.p svg .a, .p svg .b { x: 1; }'
    """
    rules = [rule.partition("{") for rule in css.split("}") if rule.strip()]
    return "\n".join(
        ", ".join(f"{scope} {selector.strip()}" for selector in selectors.split(",")) + f" {{{body.rstrip()} }}"
        for selectors, _, body in rules
    )
