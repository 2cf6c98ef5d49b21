"""A user's own table, and a claims ledger, as terminal output."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import ConsoleRenderable
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from posenc.records.account import Account
from posenc.records.analysis import Claim, Ledger
from posenc.rendering.plain import count, short
from posenc.rendering.sentences import models, tables
from posenc.rendering.terminal import labelled

STYLES = {
    "exact": "green",
    "holds within stated bounds": "green",
    "counterexample": "red",
    "refuted": "red",
    "needs training": "yellow",
}


def table_of(account: Account) -> Iterator[ConsoleRenderable]:
    """What a table of positions can and cannot do, one sentence for each fact."""
    t = account.array
    if t is None:
        return
    yield Text(short(account.name), style="bold")
    facts = [
        ("table", f"{count(t.rows, 'position')} of width {t.width}"),
        ("rows", tables.table(t)),
        ("length", tables.norm(t)),
        ("kernel", f"{tables.kernel(t)} {tables.diagonals(t)}"),
        ("shift", tables.shift(t)),
    ]
    facts += [("breaks", sentence) for sentence in tables.breaks(t)]
    if account.permutation is not None:
        facts.append(("order", tables.permutation(account.permutation)))
    facts += [("note", note) for note in account.notes]
    yield labelled(facts)


def ledger(record: Ledger) -> Iterator[ConsoleRenderable]:
    """Every claim with its verdict and its evidence."""
    yield Text(f"Claims about {short(record.subject, 200)}", style="bold")
    yield Padding(Text(models.claims(record.claims)), (0, 0, 1, 2))
    for claim in record.claims:
        yield _claim(claim)


def _claim(claim: Claim) -> ConsoleRenderable:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=4, justify="right")
    grid.add_column(overflow="fold")
    grid.add_row(Text(str(claim.number), style="dim"), Text(claim.claim, style="bold"))
    grid.add_row(Text(""), Text(claim.verdict, style=STYLES[claim.verdict]))
    grid.add_row(Text(""), Text(short(claim.evidence, 1200)))
    grid.add_row(Text(""), Text(claim.source, style="dim"))
    return Padding(grid, (0, 0, 1, 0))
