"""Several subjects as one table: a column for each encoding with frequencies, and for each subject without one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from posenc.records.account import Account, EncodingAccount
from posenc.records.inspection import EncodingInspection, PartInspection
from posenc.rendering.plain import count, figures, short
from posenc.rendering.sentences.numbers import real, whole

NONE = "-"


@dataclass(frozen=True)
class Column:
    """One encoding of one subject; what does not exist is None."""

    account: Account
    part: PartInspection | None = None
    read: EncodingInspection | None = None
    follows: EncodingAccount | None = None


def columns(accounts: Sequence[Account]) -> list[Column]:
    """Every encoding that is analysed; one column for a subject that has none."""
    found = []
    for account in accounts:
        own: list[Column] = []
        for part in account.inspection.parts if account.inspection else ():
            for read in part.encodings:
                follows = next(
                    (e for e in account.encodings if e.part == part.name and e.notation == read.notation), None
                )
                if follows is not None:
                    own.append(Column(account, part, read, follows))
        if not own:
            first = account.inspection.parts[0] if account.inspection else None
            own.append(Column(account, first, first.encodings[0] if first is not None and first.encodings else None))
        found += own
    return found


def named(accounts: Sequence[Account]) -> list[tuple[str, EncodingAccount]]:
    """Every analysed encoding with the subject's name; several of one subject are numbered."""
    found = [(c, c.follows) for c in columns(accounts) if c.follows is not None]
    made = []
    for c, e in found:
        own = [other for other, _ in found if other.account is c.account]
        name = short(c.account.name, 40)
        made.append((f"{name} #{own.index(c) + 1}" if len(own) > 1 else name, e))
    return made


def table(accounts: Sequence[Account]) -> tuple[list[tuple[str, int]], list[tuple[str, list[str]]]]:
    """Subjects with the number of their columns; and rows with a label."""
    every = columns(accounts)
    heads = [(short(account.name, 80), sum(c.account is account for c in every)) for account in accounts]
    rows = [(label, [cell(column) for column in every]) for label, cell in ROWS]
    return heads, [row for row in rows if any(text != NONE for text in row[1])]


def _length(name: str) -> Callable[[Column], str]:
    def cell(c: Column) -> str:
        value = getattr(c.part.lengths, name) if c.part else None
        return NONE if value is None else whole(value)

    return cell


def _kind(c: Column) -> str:
    if c.account.array is not None:
        return f"table {whole(c.account.array.rows)} x {whole(c.account.array.width)}"
    return c.read.kind if c.read else "none"


def _layers(c: Column) -> str:
    if c.follows is None:
        return NONE
    return "input" if c.follows.layers is None else whole(c.follows.layers) if c.follows.layers else NONE


def _base(c: Column) -> str:
    """The base before scaling, which the notation states."""
    from posenc.spec import parse

    if c.read is None or c.read.spectrum is None:
        return NONE
    schedule: Any = getattr(parse(c.read.notation)[0], "schedule", None)
    return figures(schedule.base) if hasattr(schedule, "base") else schedule.kind if schedule else NONE


def _scaling(c: Column) -> str:
    if c.read is None or c.read.spectrum is None:
        return NONE
    return " >> ".join(line.partition(":")[0] for line in c.read.scaling) or "none"


def _pairs(c: Column) -> str:
    return whole(len(c.follows.waves.wavelengths)) if c.follows else NONE


def _longest(c: Column) -> str:
    waves = [w for w in c.follows.waves.wavelengths if w] if c.follows else []
    return real(max(waves)) if waves else NONE


def _unfinished(c: Column) -> str:
    """Within the longest length known."""
    if c.follows is None or not c.follows.waves.within:
        return NONE
    within = max(c.follows.waves.within, key=lambda w: w.length)
    return f"{within.incomplete} of {len(c.follows.waves.wavelengths)}"


def _unseen(c: Column) -> str:
    found = c.follows.waves.unseen if c.follows else None
    return NONE if found is None else count(found.pairs, "pair")


def _negative(c: Column) -> str:
    if c.follows is None:
        return NONE
    value = c.follows.decay.first_negative.value
    return "never met" if value is None else whole(value)


def _safe(dtype: str, stage: str) -> Callable[[Column], str]:
    def cell(c: Column) -> str:
        for row in c.follows.precision.rows if c.follows else ():
            if (row.dtype, row.stage) == (dtype, stage):
                return "all safe" if row.last_safe is None else whole(row.last_safe)
        return NONE

    return cell


def _defect(c: Column) -> str:
    t = c.follows.table if c.follows else c.account.array
    return NONE if t is None else real(t.toeplitz_defect.value, 2)


def _rank(c: Column) -> str:
    t = c.follows.table if c.follows else c.account.array
    return NONE if t is None else f"{whole(t.rank.value or 0)} of {whole(min(t.rows, t.width))}"


def _filled(c: Column) -> str:
    return NONE if c.account.inspection is None else whole(len(c.account.inspection.assumed))


ROWS: tuple[tuple[str, Callable[[Column], str]], ...] = (
    ("encoding", _kind),
    ("layers", _layers),
    ("base", _base),
    ("scaling", _scaling),
    ("original length", _length("original")),
    ("trained length", _length("trained")),
    ("served length", _length("served")),
    ("pairs", _pairs),
    ("longest wavelength", _longest),
    ("pairs without a full turn in the longest length", _unfinished),
    ("pairs that reach unseen angles", _unseen),
    ("first negative distance", _negative),
    ("last safe position, float32 angles", _safe("float32", "angles")),
    ("last safe position, bfloat16 positions", _safe("bfloat16", "positions")),
    ("Toeplitz defect", _defect),
    ("rank of the table", _rank),
    ("values assumed", _filled),
)
