"""Records as terminal output: rich renderables that hold plain text only, so that no name can style the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleRenderable
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from posenc.analysis.wording import abridged
from posenc.records import Difference, Finding, Inspection
from posenc.records.inspection import EncodingInspection, PartInspection
from posenc.rendering import facts
from posenc.rendering.plain import count, figures, short

if TYPE_CHECKING:
    from posenc.records.entry import Entry
    from posenc.spec.references import Reference

LABELS = {"wrong": "bold red", "assumed": "yellow", "not read": "yellow"}


def console(width: int | None = None) -> Console:
    """A console that interprets nothing: no markup, no highlighting, no emoji codes; no colour where none is wanted."""
    return Console(markup=False, highlight=False, emoji=False, width=width)


def text_of(renderables: Iterable[ConsoleRenderable], to: Console) -> str:
    """What the console would print, as one string, without spaces at the ends of lines."""
    with to.capture() as capture:
        for each in renderables:
            to.print(each)
    return "\n".join(line.rstrip() for line in capture.get().split("\n"))


def inspection(record: Inspection, width: int) -> Iterator[ConsoleRenderable]:
    """An inspection, the long table of pairs cut to its ends and to the borders of its bands."""
    yield Text(short(record.name), style="bold")
    yield labelled([*facts.origin(record), *facts.wrong(record)])
    for part in record.parts:
        yield Text("")
        yield from _part(part, width)
    remarks = facts.remarks(record)
    if remarks:
        yield Text("")
        yield labelled(remarks)


def _part(part: PartInspection, width: int) -> Iterator[ConsoleRenderable]:
    layers = count(part.layers, "layer") if part.layers else "layers not stated"
    yield Text.assemble((short(part.name), "bold"), f": {layers}")
    yield labelled(facts.lengths(part))
    yield Text("")
    yield Padding(table(*facts.kinds(part), left=4), (0, 0, 0, 2))
    for i, encoding in enumerate(part.encodings):
        title = Table.grid(padding=(0, 1))
        title.add_row(Text(f"#{i + 1}", style="bold cyan"), Text(short(abridged(encoding.notation), 200), style="bold"))
        yield Padding(title, (1, 0, 0, 2))
        yield from _encoding(encoding, width)


def _encoding(e: EncodingInspection, width: int) -> Iterator[ConsoleRenderable]:
    yield labelled(facts.encoding(e), indent=5)
    s = e.spectrum
    if s is None:
        return
    scaled = bool(e.scaling)
    if scaled:
        yield Padding(table(*facts.bands(s), left=4), (1, 0, 0, 5))
    indices = facts.selection(s.states, len(s.unscaled))
    wide = width >= 42 + (36 * len(s.states) if scaled else 0) + (7 if s.axis else 0)
    rows = facts.pair_rows(s, indices, scaled=scaled, frequencies=wide)
    yield Padding(Text(facts.legend(s, scaled), style="dim"), (1, 0, 0, 5))
    yield Padding(table(*rows), (0, 0, 0, 5))


def labelled(rows: Sequence[facts.Fact], indent: int = 2) -> ConsoleRenderable:
    """Labels with their text beside them; a repeated label is said once."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    before = None
    for label, value in rows:
        style = LABELS.get(label, "dim")
        grid.add_row(Text("" if label == before else label, style=style), Text(short(value, 2000)))
        before = label
    return Padding(grid, (0, 0, 0, indent))


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 0) -> Table:
    """A table of text; the first ``left`` columns are aligned to the left, the others to the right."""
    made = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 1))
    for i, name in enumerate(header):
        made.add_column(Text(name), justify="left" if i < left else "right", overflow="fold")
    for row in rows:
        made.add_row(*(Text(short(cell)) for cell in row))
    return made


def difference(record: Difference) -> Iterator[ConsoleRenderable]:
    """A comparison: the answer first, then every finding with both sides."""
    answer = Text("same position encodings", "bold green") if record.same else Text("different", "bold red")
    yield answer
    grid = [(side, f"{each.name} ({each.format}: {each.source})") for side, each in (("a", record.a), ("b", record.b))]
    yield labelled([*grid, *(("compared", line) for line in record.compared)])
    for weight in ("difference", "convention", "information"):
        found = [f for f in record.findings if f.weight == weight]
        if found:
            yield Text("")
            yield Text(_heading(weight, len(found)), style="bold" if weight == "difference" else "")
            for each in found:
                yield labelled(_finding(each))


def _heading(weight: str, number: int) -> str:
    if weight == "difference":
        return count(number, "difference")
    return {"convention": "stored differently, computes the same", "information": "to know"}[weight]


def _finding(f: Finding) -> list[facts.Fact]:
    """A difference gives both sides a line of their own; what is only to know fits one."""
    what = (f.what if f.index is None else f"{f.what} {f.index}") + (f" ({f.where})" if f.where else "")
    remark = [("", f.remark)] if f.remark else []
    if f.a == "-" or f.b == "-":  # an assumption or unread key of one side
        side, value = ("a", f.a) if f.b == "-" else ("b", f.b)
        return [(side, f"{what} = {value}"), *remark]
    if f.weight == "information" and f.relative is None:
        return [("", f"{what}: a {f.a}, b {f.b}"), *remark]
    rows = [("", what), ("a", f.a), ("b", f.b)]
    if f.count is not None:
        of = f" of {f.of}" if f.of is not None else ""
        most = f", by up to {figures(100 * (f.relative or 0), 3)} %" if f.relative is not None else ""
        rows.append(("", f"first of {f.count}{of} that differ{most}"))
    return rows + remark


def models(found: Sequence[Entry]) -> Iterator[ConsoleRenderable]:
    """The catalogue; long encodings are cut, ``inspect`` shows them whole."""
    made = table(("model", "trained", "served", "encodings"), (), left=1)
    made.columns[0].max_width = 28
    made.columns[3].justify = "left"
    for entry in found:
        at = entry.lengths
        text = " + ".join(map(abridged, entry.encodings)) or "none (NoPE)"
        cells = (short(entry.name), str(at.trained or "-"), str(at.served or "-"), short(text, 110))
        made.add_row(*map(Text, cells))
    yield made
    yield Text(count(len(found), "model"), style="dim")


def references(found: Sequence[Reference]) -> Iterator[ConsoleRenderable]:
    """References as one reads them: authors, year, title, where."""
    for reference in found:
        who = ", ".join(reference.authors[:3]) + (" and others" if len(reference.authors) > 3 else "")
        yield Text(f"{reference.title}", style="bold")
        yield labelled([("", f"{who}, {reference.year}"), ("", reference.link or reference.publisher or "")], indent=0)
    if not found:
        yield Text("Nothing in this configuration has a reference.")
