"""The report as a document: for each subject its parts, encodings, drawings and sentences, ready for the templates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from posenc.records.account import Account, EncodingAccount
from posenc.records.analysis import TableFacts
from posenc.records.decomposition import AttentionDecomposition
from posenc.records.inspection import EncodingInspection, Inspection, Lengths, PartInspection
from posenc.rendering import figures
from posenc.rendering.figures import NARROW, WIDE, Figure
from posenc.rendering.plain import slug
from posenc.rendering.sentences import models, pairs, tables


@dataclass(frozen=True)
class Drawing:
    """A figure in its sizes, opened by one sentence.

    Args:
        key: unique on the page.
        finding: the sentence.
        variants: (CSS class, figure); the first one is the widest and the one that is saved.
        notes: more sentences below it.
        controlled: the page offers a distance to move it.
        switched: it has a logarithmic and a linear axis.
    """

    key: str
    finding: str
    variants: tuple[tuple[str, Figure], ...]
    notes: tuple[str, ...] = ()
    controlled: bool = False
    switched: bool = False

    @property
    def figure(self) -> Figure:
        return self.variants[0][1]

    def svgs(self) -> list[str]:
        """Every variant for the page."""
        return [figure.inline(f"{self.key}-{k}", css) for k, (css, figure) in enumerate(self.variants)]


@dataclass(frozen=True)
class EncodingView:
    """One encoding: what was read, and what follows where it has frequencies."""

    key: str
    number: int
    part: PartInspection
    read: EncodingInspection
    follows: EncodingAccount | None
    means: tuple[Drawing, ...]
    breaks: tuple[Drawing, ...]
    warnings: tuple[str, ...]
    several: bool


@dataclass(frozen=True)
class SubjectView:
    """One subject of the report."""

    key: str
    account: Account
    lead: str
    encodings: tuple[EncodingView, ...] = ()
    table: tuple[Drawing, ...] = ()
    attention: tuple[Drawing, ...] = ()
    decomposition: AttentionDecomposition | None = None

    def drawings(self) -> Iterator[Drawing]:
        """Every drawing in order."""
        for view in self.encodings:
            yield from (*view.means, *view.breaks)
        yield from (*self.table, *self.attention)


def both(draw: Callable[[int], Figure], **variants: str) -> tuple[tuple[str, Figure], ...]:
    """A figure for screens and for phones."""
    extra = f" {variants['css']}" if variants else ""
    return ((f"wide{extra}", draw(WIDE)), (f"narrow{extra}", draw(NARROW)))


def subject(account: Account, key: str, decomposition: AttentionDecomposition | None = None) -> SubjectView:
    """Lay out one subject.

    Args:
        account: what is known of it.
        key: prefix of the ids on the page.
        decomposition: of its first layer's attention, if one was asked for.
    """
    views = tuple(_encodings(account.inspection, account, key)) if account.inspection else ()
    drawn = (_drawing(f"{key}-attention", lambda w: figures.heads(decomposition, w)),) if decomposition else ()
    table = tuple(_table(account, key)) if account.array else ()
    return SubjectView(key, account, models.lead(account), views, table, drawn, decomposition)


def _drawing(key: str, draw: Callable[[int], Figure], *notes: str | None) -> Drawing:
    variants = both(draw)
    return Drawing(key, variants[0][1].finding, variants, tuple(note for note in notes if note))


def _encodings(record: Inspection, account: Account, key: str) -> Iterator[EncodingView]:
    number = 0
    total = sum(len(part.encodings) for part in record.parts)
    for part in record.parts:
        for n, read in enumerate(part.encodings):
            number += 1
            follows = next((e for e in account.encodings if e.part == part.name and e.notation == read.notation), None)
            at = f"{key}e{number}"
            means = tuple(_means(at, read, follows, part.lengths)) if read.spectrum else ()
            breaks = tuple(_breaks(at, follows)) if follows else ()
            told = tuple(sentence for sentence in pairs.breaks(follows)[:-1]) if follows else ()
            yield EncodingView(at, n + 1, part, read, follows, means, breaks, told, total > 1)


def _means(key: str, read: EncodingInspection, e: EncodingAccount | None, lengths: Lengths) -> Iterator[Drawing]:
    if e is not None:
        if e.clocks:
            variants = both(lambda w: figures.clocks(e, None, w))
            yield Drawing(f"{key}-clocks", variants[0][1].finding, variants, controlled=True)
        variants = (
            *both(lambda w: figures.similarity(e, w), css="log"),
            *both(lambda w: figures.similarity(e, w, log=False), css="linear"),
        )
        notes = [note for note in (pairs.before_after(e), pairs.limit(e)) if note]
        yield Drawing(f"{key}-similarity", pairs.similarity(e), variants, tuple(notes), switched=True)
    finding = pairs.ladder(e) if e is not None else pairs.range_of(read)
    yield _drawing(f"{key}-ladder", lambda w: figures.ladder(read, lengths, finding, w))
    changed = pairs.scaling(read)
    if changed is not None:
        yield _drawing(f"{key}-scaling", lambda w: figures.scaling(read, changed, w))
    if e is not None:
        yield from _heat(key, e.table, ": sines, then cosines")


def _heat(key: str, table: TableFacts, order: str = "") -> Iterator[Drawing]:
    for name, drawn in (("table", figures.table_heat(table, order)), ("kernel-heat", figures.kernel_heat(table))):
        yield Drawing(f"{key}-{name}", drawn.finding, (("half", drawn),))


def _breaks(key: str, e: EncodingAccount) -> Iterator[Drawing]:
    yield _drawing(f"{key}-precision", lambda w: figures.precision(e, w))


def _table(account: Account, key: str) -> Iterator[Drawing]:
    t = account.array
    if t is None:
        return
    yield from _heat(key, t)
    yield _drawing(f"{key}-kernel", lambda w: figures.kernel(t, w), tables.norm(t), tables.shift(t))


def named(views: Sequence[SubjectView]) -> Iterator[tuple[str, Figure]]:
    """File names and figures of a whole report, the wide ones."""
    for view in views:
        prefix = slug(view.account.name)
        several = len(view.encodings) > 1
        for drawing in view.drawings():
            number = next((e.number for e in view.encodings if drawing.key.startswith(f"{e.key}-")), 0)
            stem = f"{prefix}-{number}" if several and number else prefix
            shown = [figure for css, figure in drawing.variants if "narrow" not in css]
            for figure in shown:
                yield f"{stem}-{figure.name}", figure
