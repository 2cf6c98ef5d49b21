"""Figures as plain SVG, drawn from records; the page's script moves some of them, none needs it."""

from posenc.rendering.figures.canvas import NARROW, WIDE, Figure
from posenc.rendering.figures.curves import kernel, overlaid, similarity
from posenc.rendering.figures.dials import clocks
from posenc.rendering.figures.heads import heads
from posenc.rendering.figures.heat import kernel_heat, table_heat
from posenc.rendering.figures.ratios import scaling
from posenc.rendering.figures.rounding import precision
from posenc.rendering.figures.rungs import ladder

__all__ = [
    "NARROW",
    "WIDE",
    "Figure",
    "clocks",
    "heads",
    "kernel",
    "kernel_heat",
    "ladder",
    "overlaid",
    "precision",
    "scaling",
    "similarity",
    "table_heat",
]
