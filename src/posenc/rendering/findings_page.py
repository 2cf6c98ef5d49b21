"""Findings as one self-contained HTML page, the evidence drawn; nothing on it asks another host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from posenc.rendering.findings import answer
from posenc.rendering.plain import figures, inert

if TYPE_CHECKING:
    from posenc.records.base import Curve
    from posenc.records.finding import CheckReport, Drawn, Finding

STYLE = """
.pc{font:16px/1.5 system-ui,sans-serif;color:#1b1f24;background:#fff;max-width:52rem;margin:0 auto;padding:1.5rem}
.pc h1{font-size:1.5rem;overflow-wrap:anywhere}.pc h2{font-size:1.05rem;margin:1.6rem 0 .4rem;overflow-wrap:anywhere}
.pc table{border-collapse:collapse;font-size:.9rem;width:100%}.pc td,.pc th{padding:.2rem .6rem .2rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid #d7dce2;overflow-wrap:anywhere}.pc th{font-weight:500;color:#4b5563}
.pc .v{display:inline-block;padding:0 .5rem;border-radius:.7rem;font-size:.8rem;margin-right:.5rem;border:1px solid currentColor}
.pc .defect{color:#a11}.pc .convention{color:#7a5200}.pc .naming{color:#04637a}.pc .harmless{color:#1c6b30}
.pc dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1rem 1rem;font-size:.92rem}.pc dt{color:#4b5563}.pc dd{margin:0;overflow-wrap:anywhere}
.pc figure{margin:.8rem 0}.pc figcaption{font-size:.85rem;color:#4b5563}.pc svg{max-width:100%;height:auto}.pc svg text{font-size:11px;fill:currentColor}
@media (prefers-color-scheme:dark){.pc{color:#e6e8eb;background:#14171a}.pc td,.pc th{border-color:#343a40}.pc th,.pc dt,.pc figcaption{color:#a9b1ba}
.pc .defect{color:#ff8a80}.pc .convention{color:#f0c36d}.pc .naming{color:#6cc7dd}.pc .harmless{color:#81d394}}
"""
WIDTH, HEIGHT, LEFT, BOTTOM = 640, 240, 64, 40


def page(records: Sequence[CheckReport]) -> str:
    """The whole page."""
    title = records[0].subject if len(records) == 1 else f"{len(records)} subjects"
    return document(f"{title}: findings", "".join(body(record) for record in records))


def document(title: str, content: str) -> str:
    """A page of its own around ``content``, which is HTML; nothing on it asks another host."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><title>{_e(title)}</title></head>'
        f"<body>{content}</body></html>\n"
    )


def body(record: CheckReport) -> str:
    """One report as HTML."""
    rows = [("wanted", record.expected)] if record.expected else []
    rows += [("assumed", text) for text in record.assumed]
    for candidate in record.identified:
        rows.append(
            (
                "is",
                f"{candidate.notation}; {candidate.confidence}" + (f"; {candidate.remark}" if candidate.remark else ""),
            )
        )
    parts = [
        f"<style>{STYLE}</style><main class='pc'><h1>{_e(record.subject)}</h1><p>{_e(answer(record).plain)}</p>{_list(rows)}"
    ]
    parts += [_finding(f) for f in record.findings]
    if record.recovered:
        parts.append(
            "<h2>Recovered</h2>"
            + listed(
                ("parameter", "value", "wanted"), [(r.name, _v(r.value), _v(r.expected)) for r in record.recovered]
            )
        )
    if record.measured:
        parts.append(
            "<h2>Measured</h2>"
            + listed(("what", "value", ""), [(m.name, _v(m.value), m.note or "") for m in record.measured])
        )
    tail = (
        [("note", n) for n in record.notes]
        + [("examined", ", ".join(record.probes))]
        + [("not examined", n) for n in record.not_probed]
    )
    parts.append(f"<h2>How it was examined</h2>{_list(tail)}</main>")
    return "".join(parts)


def _finding(f: Finding) -> str:
    rows = [("kinds", ", ".join(f.kinds))]
    if f.first_wrong is not None:
        first = f.first_wrong
        said = [
            f"position {first.position:g}" if first.position is not None else "",
            f"{first.of} {first.pair}" if first.pair is not None else "",
            first.dtype or "",
        ]
        rows.append(("first wrong", ", ".join(s for s in said if s)))
    rows += [
        (k, v) for k, v in (("with length", f.shape_against_length), ("cause", f.cause), ("remedy", f.remedy)) if v
    ]
    evidence = [
        (e.name + (f" ({e.where})" if e.where else ""), _v(e.expected), _v(e.seen) + (f" {e.unit}" if e.unit else ""))
        for e in f.evidence
    ]
    recovered = [(r.name, _v(r.expected), _v(r.value)) for r in f.recovered]
    see = "".join(
        f'<dt>see</dt><dd><a href="{escape(link)}">{_e(link)}</a></dd>'
        for link in f.links
        if link.startswith("https://")
    )
    where = f"{f.where}: " if f.where else ""
    return (
        f'<section><h2><span class="v {f.verdict}">{f.verdict}</span>{_e(where + f.title)}</h2>'
        + listed(("evidence", "wanted", "seen"), evidence + recovered)
        + _list(rows, see)
        + "".join(figure(d) for d in f.drawn)
        + "</section>"
    )


def _list(rows: Sequence[tuple[str, str | None]], more: str = "") -> str:
    return "<dl>" + "".join(f"<dt>{_e(k)}</dt><dd>{_e(v)}</dd>" for k, v in rows if v) + more + "</dl>"


def listed(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of text as a table; nothing if there are none."""
    if not rows:
        return ""
    head = "".join(f"<th>{_e(h)}</th>" for h in header)
    lines = "".join("<tr>" + "".join(f"<td>{_e(c)}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _e(text: object) -> str:
    return escape(inert(text))


def _v(value: object) -> str:
    return "-" if value is None else figures(value, 7) if isinstance(value, float) else str(value)


def figure(d: Drawn) -> str:
    """Expected (dashed) and seen (solid) as one SVG."""
    curves = [c for c in (d.expected, d.seen) if c is not None and c.x]
    points = [(x, y) for c in curves for x, y in zip(c.x, c.y, strict=True) if not d.log or y > 0]
    if len(points) < 2:
        return ""
    high = max(math.log10(y) if d.log else y for _, y in points)
    low = min(math.log10(y) if d.log else y for _, y in points)
    left, right = min(x for x, _ in points), max(x for x, _ in points)

    def at(x: float, y: float) -> str:
        v = math.log10(y) if d.log else y
        return f"{LEFT + (x - left) / ((right - left) or 1) * (WIDTH - LEFT - 10):.1f},{10 + (high - v) / ((high - low) or 1) * (HEIGHT - BOTTOM - 10):.1f}"

    def line(c: Curve, dash: str) -> str:
        path = " ".join(at(x, y) for x, y in zip(c.x, c.y, strict=True) if not d.log or y > 0)
        return f'<polyline points="{path}" fill="none" stroke="{"#888" if dash else "#c2410c"}" stroke-width="1.6" {dash}/>'

    lines = [line(d.seen, "")] + (
        [line(d.expected, 'stroke-dasharray="5 4"')] if d.expected is not None and d.expected.x else []
    )
    top, bottom = (figures(10.0**v if d.log else v, 3) for v in (high, low))
    labels = (
        f'<text x="{LEFT - 6}" y="18" text-anchor="end">{_e(top)}</text><text x="{LEFT - 6}" y="{HEIGHT - BOTTOM}" text-anchor="end">{_e(bottom)}</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 22}">{_e(figures(left, 4))}</text><text x="{WIDTH - 10}" y="{HEIGHT - 22}" text-anchor="end">{_e(figures(right, 4))}</text>'
        f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{_e(d.x)}</text>'
    )
    axes = f'<path d="M{LEFT},6V{HEIGHT - BOTTOM}H{WIDTH - 8}" fill="none" stroke="currentColor" stroke-width=".8"/>'
    what = (
        f"{d.title}{' (logarithmic)' if d.log else ''}: seen solid{', wanted dashed' if d.expected is not None else ''}"
    )
    return f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{_e(what)}">{axes}{"".join(lines)}{labels}</svg><figcaption>{_e(what)}</figcaption></figure>'
