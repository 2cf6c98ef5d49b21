"""P3, the precision map: what each dtype costs at each stage."""

from __future__ import annotations

from posenc.records.account import EncodingAccount
from posenc.records.analysis import PrecisionRow
from posenc.rendering.figures.canvas import WIDE, Figure, text
from posenc.rendering.sentences import pairs
from posenc.rendering.sentences.numbers import real, whole

LEFT, TOP, TALL = 100, 26, 62
LEFT_NARROW = 96
DTYPES = ("float32", "bfloat16", "float16")
STAGES = ("positions", "frequencies", "angles", "table")
FAR, SHORT = 4096, 512
"""Borders between the shades: last safe position."""


def precision(e: EncodingAccount, width: int = WIDE) -> Figure:
    """Draw a cell for each dtype and stage: last safe position, distinct rows, largest error."""
    left = LEFT if width > 500 else LEFT_NARROW
    each = (width - left - 4) / len(DTYPES)
    found: dict[tuple[str, str], PrecisionRow] = {(row.dtype, row.stage): row for row in e.precision.rows}
    parts = [text(left + each * (k + 0.5), 16, dtype, "strong", "middle") for k, dtype in enumerate(DTYPES)]
    rows = []
    for j, stage in enumerate(STAGES):
        y = TOP + TALL * j
        parts.append(text(left - 8, y + TALL / 2 + 4, stage, "strong", "end"))
        for k, dtype in enumerate(DTYPES):
            row = found.get((dtype, stage))
            if row is None:
                continue
            parts.append(_cell(row, left + each * k, y, each, width > 500))
            rows.append([stage, dtype, safe(row), f"{whole(row.distinct_rows)} of {whole(row.rows)}", error(row)])
    y = TOP + TALL * len(STAGES) + 20
    if width > 500:
        notes = (
            "Each cell: last safe position, distinct rows, largest error.",
            "Safe: every angle within 0.01 rad, and no row repeats.",
        )
    else:
        notes = ("Last safe position, distinct rows, largest error.", "Safe: angles within 0.01 rad, no row repeats.")
    parts += [text(left if width > 500 else 4, y + 17 * k, note) for k, note in enumerate(notes)]
    header = ("rounded", "dtype", "last safe position", "distinct rows", "largest error")
    title = f"What rounding costs within {whole(e.decay.reach)} positions"
    return Figure("precision", title, pairs.precision(e), width, round(y + 26), "".join(parts), header, rows)


def safe(row: PrecisionRow) -> str:
    """The last safe position, in words where it is the end."""
    return "all safe" if row.last_safe is None else whole(row.last_safe)


def error(row: PrecisionRow) -> str:
    """The largest error, and where the dtype ends."""
    text = f"{real(row.largest.value, 2)} rad"
    return text if row.overflow is None else f"{text}, ∞ from {whole(row.overflow)}"


def shade(row: PrecisionRow) -> int:
    """0 all safe, 1 far, 2 short, 3 very short."""
    if row.last_safe is None:
        return 0
    return 1 if row.last_safe >= FAR else 2 if row.last_safe >= SHORT else 3


def _cell(row: PrecisionRow, x: float, y: float, each: float, wide: bool) -> str:
    middle = x + each / 2
    distinct = f"{whole(row.distinct_rows)} of {whole(row.rows)} rows" if wide else f"{whole(row.distinct_rows)} rows"
    return (
        f'<g><title>{row.stage} in {row.dtype}</title><rect class="cell q{shade(row)}" x="{x:.1f}" y="{y}" '
        f'width="{each:.1f}" height="{TALL}" rx="5"/>'
        + text(middle, y + 22, safe(row), "big", "middle")
        + text(middle, y + 38, distinct, "", "middle")
        + text(middle, y + 53, error(row) if wide else f"{real(row.largest.value, 2)} rad", "", "middle")
        + "</g>"
    )
