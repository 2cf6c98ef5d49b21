"""P3, heat maps: a table of positions, and its inner products K(m, n)."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

from posenc.records.analysis import TableFacts
from posenc.rendering.figures.canvas import Axis, Figure, line, text
from posenc.rendering.figures.palette import heat_colours
from posenc.rendering.sentences import tables
from posenc.rendering.sentences.numbers import real, whole

WIDTH, LEFT, TOP, SIDE = 344, 40, 26, 288
STEPS = 255


def table_heat(t: TableFacts, order: str = "") -> Figure:
    """The first rows of a table, a row for each position.

    Args:
        t: the table.
        order: how its channels are ordered, in words.
    """
    title = f"The first {whole(len(t.table))} rows of the table"
    return _heat(
        "table", title, tables.table(t), t.table, (f"channel{order}", t.width - 1), ("position", len(t.table) - 1)
    )


def kernel_heat(t: TableFacts) -> Figure:
    """K(m, n) over the first rows."""
    last = len(t.heat) - 1
    title = f"K(m, n) of the first {whole(len(t.heat))} positions"
    return _heat("kernel-heat", title, tables.kernel(t), t.heat, ("n", last), ("m", last))


def _heat(
    name: str,
    title: str,
    finding: str,
    matrix: Sequence[Sequence[float]],
    across: tuple[str, int],
    down: tuple[str, int],
) -> Figure:
    most = max((abs(v) for row in matrix for v in row), default=0.0) or 1.0
    picture = base64.b64encode(png(matrix, most)).decode()
    parts = [
        text(LEFT, 14, title, "strong"),
        f'<image x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}" preserveAspectRatio="none" '
        f'image-rendering="optimizeSpeed" style="image-rendering:pixelated" href="data:image/png;base64,{picture}"/>',
    ]
    for (label, last), horizontal in ((across, True), (down, False)):
        axis = Axis(-0.5, last + 0.5, 0, SIDE, log=False)
        for value in axis.ticks(5):
            if 0 <= value <= last and value == int(value):
                at = axis(value)
                x, y = (LEFT + at, TOP + SIDE + 15) if horizontal else (LEFT - 5, TOP + at + 4)
                parts.append(text(x, y, f"{value:g}", anchor="middle" if horizontal else "end"))
        x, y = (LEFT + SIDE, TOP + SIDE + 31) if horizontal else (13, TOP + SIDE / 2)
        turn = "" if horizontal else f' transform="rotate(-90 {x} {y})"'
        parts.append(text(x, y, label, anchor="end" if horizontal else "middle", extra=turn))
    parts.append(_bar(most))
    picked = sorted({*range(0, len(matrix), -(-len(matrix) // 6)), len(matrix) - 1})
    columns = sorted({*range(0, len(matrix[0]), -(-len(matrix[0]) // 6)), len(matrix[0]) - 1})
    scale = across[1] / max(len(matrix[0]) - 1, 1)
    header = (down[0], *(f"{across[0]} {round(c * scale)}" for c in columns))
    rows = [[str(r), *(real(matrix[r][c], 3) for c in columns)] for r in picked]
    return Figure(name, title, finding, WIDTH, TOP + SIDE + 72, "".join(parts), header, rows)


def _bar(most: float) -> str:
    """The colours with their values."""
    y, steps = TOP + SIDE + 42, 33
    colours = heat_colours(steps)
    cells = [
        f'<rect x="{LEFT + SIDE * k / steps:.1f}" y="{y}" width="{SIDE / steps + 0.4:.1f}" height="9" '
        f'fill="#{colours[3 * k : 3 * k + 3].hex()}"/>'
        for k in range(steps)
    ]
    ends = ((0.0, -most, "start"), (0.5, 0.0, "middle"), (1.0, most, "end"))
    labels = [text(LEFT + SIDE * at, y + 24, real(v, 3), anchor=anchor) for at, v, anchor in ends]
    return "".join(cells) + line(LEFT + SIDE / 2, y, LEFT + SIDE / 2, y + 12, "axis") + "".join(labels)


def png(matrix: Sequence[Sequence[float]], most: float) -> bytes:
    """A matrix as a PNG with a palette, from ``-most`` to ``most``, one pixel for each entry."""
    half = (STEPS - 1) / 2
    scanlines = b"".join(b"\0" + bytes(round(half + half * v / most) for v in row) for row in matrix)
    size = struct.pack(">IIBBBBB", len(matrix[0]), len(matrix), 8, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", size),
        (b"PLTE", heat_colours(STEPS)),
        (b"IDAT", zlib.compress(scanlines, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
