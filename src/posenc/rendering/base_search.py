"""A base search as terminal output: the answer, the runs, what is certified and what is not, and what is in use."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from rich.console import ConsoleRenderable
from rich.padding import Padding
from rich.text import Text

from posenc.records.base_search import BaseSearch, UsedBase
from posenc.rendering.facts import Fact
from posenc.rendering.terminal import labelled, table

DIGITS = 12
MODELS = 12
"""Most models shown; those with a context nearest to the one asked about."""


def base_search(record: BaseSearch) -> Iterator[ConsoleRenderable]:
    """A base search in at most 80 columns."""
    yield Text(f"smallest base for a context of {record.context} at head_dim {record.head_dim}", style="bold")
    yield labelled([*_answer(record), *_large(record), *_rounding(record)])
    yield Text("")
    yield Padding(table(("feasible from", "to", "width", "D below", "D above"), _runs(record), left=0), (0, 0, 0, 2))
    yield Padding(Text(_after(record), style="dim"), (0, 0, 0, 2))
    for title, rows in _used(record):
        yield Text("")
        yield Padding(table((title, "base", "context", "sum below 0 at"), rows, left=1), (0, 0, 0, 2))


def _answer(r: BaseSearch) -> list[Fact]:
    criterion = f"sum of cos(D b^(-2i/d)) >= 0 for every integer D in 0..{r.context}"
    if r.infimum.low == 1:
        return [("criterion", criterion), ("smallest", "every base above 1 serves")]
    width = r.infimum.high / r.infimum.low - 1
    return [
        ("criterion", criterion),
        ("smallest", _up(r.infimum.high)),
        ("certified", f"no base from 1 to {_down(r.infimum.low)} serves, nothing left out; the infimum is known to "
         f"{width:.0e}. There the sum at D = {r.lowest_at} passes 0"),
    ]  # fmt: skip


def _large(r: BaseSearch) -> list[Fact]:
    a = r.above
    if r.infimum.low == 1:
        return []
    if a.exact:
        same = a.certified <= r.infimum.high
        below = "" if same else f"; right below it the sum at D = {a.witness} is negative"
        return [("all above", f"{_up(a.certified)} and every larger base serve (certified){below}")]
    facts = [("all above", f"{_up(a.certified)} and every larger base serve (certified)")]
    found = "no base that does not serve was found"
    if a.infeasible is not None:
        found = f"the largest base found that does not serve is {_base(a.infeasible)} (D = {a.witness})"
    grid = "" if a.ratio is None else f", on a grid with steps of {100 * (a.ratio - 1):.2g} %"
    return [*facts, ("", f"below that {found}{grid}; between grid points nothing is certified")]


def _rounding(r: BaseSearch) -> list[Fact]:
    text = f"a mean of cosines within {r.error:.1e} of 0 is undecided in float64"
    if not r.undecided:
        return [("rounding", f"{text}; no base below the last run was left undecided")]
    shown = ", ".join(f"{_down(b.low)} (+{b.high / b.low - 1:.0e})" for b in r.undecided[:3])
    more = f" and {len(r.undecided) - 3} more" if len(r.undecided) > 3 else ""
    return [("rounding", f"{text}; undecided, so that a run that narrow may hide there: {shown}{more}")]


def _runs(r: BaseSearch) -> Iterator[tuple[str, ...]]:
    for run in r.runs:
        settled = r.above.exact and r.above.certified <= run.begin.high * (1 + 1e-9)
        end = "all larger" if settled else _down(run.held) if run.end else f"{_down(run.held)} or more"
        width = "" if settled else f"{run.held / run.begin.high - 1:.1e}"
        yield _up(run.begin.high), end, width, _distance(run.begins_at), _distance(run.ends_at)


def _after(r: BaseSearch) -> str:
    """What lies between the runs, and after the last."""
    text = "Every base between these runs is excluded." if len(r.runs) > 1 else ""
    if r.runs[-1].end is not None:
        text += f" Bases after {_down(r.searched)} were not searched for further runs."
    return text.strip()


def _used(r: BaseSearch) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Papers, then the models with a context next to the one asked about."""
    papers = [u for u in r.used if u.kind == "paper"]
    if papers:
        yield "proposed (printed digits)", [_row(u) for u in papers]
    models = [u for u in r.used if u.kind == "model" and u.length]
    near = [u for u in models if r.context <= 2 * (u.length or 0) and (u.length or 0) <= 2 * r.context]
    if near:
        shown = near if len(near) <= MODELS else near[:: -(-len(near) // MODELS)]
        title = "models with such a context" if len(shown) == len(near) else f"{len(shown)} of {len(near)} models"
        yield title, [_row(u) for u in shown]


def _row(u: UsedBase) -> tuple[str, ...]:
    base = _base(u.base, 8) + (" scaled" if u.scaled else "")
    negative = "never" if u.first_negative is None else str(u.first_negative)
    return u.who, base, str(u.length or ""), negative if u.decided else f"{negative}?"


def _base(value: float, digits: int = 6) -> str:
    """A base in plain decimals where these are readable.

    >>> _base(8.9136375e11), _base(5e5, 8)
    ('8.91364e+11', '500000')
    """
    return f"{value:.{digits}g}"


def _up(value: float) -> str:
    """A base with 12 digits, not rounded down: one that is named as feasible, is.

    >>> _up(26952.33923055187), _down(26952.33923055187), _up(500000.0)
    ('26952.3392306', '26952.3392305', '500000')
    """
    return _base(float(Context(prec=DIGITS, rounding=ROUND_CEILING).create_decimal(value)), DIGITS)


def _down(value: float) -> str:
    """A base with 12 digits, not rounded up."""
    return _base(float(Context(prec=DIGITS, rounding=ROUND_FLOOR).create_decimal(value)), DIGITS)


def _distance(value: int | None) -> str:
    return "" if value is None else str(value)
