"""A decomposition of attention: the share of every term in every head."""

from __future__ import annotations

from posenc.records.decomposition import AttentionDecomposition
from posenc.rendering.figures.canvas import WIDE, Figure, text
from posenc.rendering.sentences import attention

LEFT, TOP, TALL, MOST = 62, 44, 24, 64


def heads(record: AttentionDecomposition, width: int = WIDE) -> Figure:
    """Draw a row for each head: its terms' shares, the positional part, and the verdict."""
    names = [term.name for term in record.terms] + ["positional"]
    verdict = 84 if width > 500 else 0
    each = (width - LEFT - verdict - 4) / len(names)
    parts = []
    for k, name in enumerate(names):
        for j, side in enumerate(name.replace(" ", "-").split("-", 1)):
            parts.append(text(LEFT + each * (k + 0.5), 16 + 15 * j, side[:12], "strong", "middle"))
    rows = []
    for place, head in enumerate(record.heads[:MOST]):
        y = TOP + TALL * place
        parts.append(text(LEFT - 8, y + 16, f"head {head.head}", anchor="end"))
        shares = [term.share for term in head.terms] or [0.0] * len(record.terms)
        known = [*shares, head.positional or 0.0]
        for k, value in enumerate(known):
            parts.append(_cell(LEFT + each * k, y, each, value, last=k == len(known) - 1))
        if verdict:
            parts.append(text(width - verdict + 6, y + 16, head.verdict))
        rows.append([str(head.head), *(f"{v:.1%}" for v in known), head.verdict])
    height = TOP + TALL * min(len(record.heads), MOST) + 8
    title = f"Layer {record.layer}: what the scores of each head are made of"
    header = ("head", *names, "verdict")
    return Figure("attention", title, attention.finding(record), width, height, "".join(parts), header, rows)


def _cell(x: float, y: float, each: float, value: float, *, last: bool) -> str:
    """A tint that grows with the share; the number stands in it."""
    level = 0 if value < 0.1 else 1 if value < 0.5 else 2
    css = ("q-none", "q0" if not last else "q2", "q-most" if not last else "q3")[level]
    return f'<rect class="cell {css}" x="{x:.1f}" y="{y}" width="{each:.1f}" height="{TALL}" rx="4"/>' + text(
        x + each / 2, y + 16, percent(value), "strong" if level else "", "middle"
    )


def percent(value: float) -> str:
    """A share without decimals, a true minus, no negative zero.

    >>> percent(-0.001), percent(-0.07)
    ('0%', '−7%')
    """
    rounded = f"{value:.0%}".replace("-", "−")
    return "0%" if rounded == "−0%" else rounded
