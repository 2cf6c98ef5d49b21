"""An attention decomposition as terminal output: one row for each head."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import ConsoleRenderable
from rich.padding import Padding
from rich.text import Text

from posenc.records.decomposition import AttentionDecomposition, HeadDecomposition, ScoreTerm
from posenc.rendering.plain import count, figures, short
from posenc.rendering.terminal import labelled, table


def decomposition(record: AttentionDecomposition) -> Iterator[ConsoleRenderable]:
    """The facts, the table of heads, and how to read it."""
    yield Text(short(record.name), style="bold")
    yield labelled(facts(record))
    yield Text("")
    yield Padding(table(*heads(record), left=0), (0, 0, 0, 2))
    yield Text("")
    yield Padding(Text(summary(record)), (0, 0, 0, 2))
    for note in record.notes:
        yield Padding(Text(note, style="dim"), (0, 0, 0, 2))


def facts(record: AttentionDecomposition) -> list[tuple[str, str]]:
    """What was decomposed, and how exactly the terms add up."""
    sees = "each token attends to itself and earlier ones" if record.causal else "every token attends to every token"
    lines = [
        ("read from", record.source),
        ("layer", f"{record.layer}: {count(len(record.heads), 'head')}, positions {MECHANISMS[record.mechanism]}"),
        ("sentence", f"{count(len(record.tokens), 'token')}: {' '.join(record.tokens)}"),
        ("attention", f"{sees}; scores before the softmax, in {record.precision}"),
    ]
    lines += [(term.name, described(term)) for term in record.terms]
    lines.append(("sum of terms", f"the scores to {record.sum_error:.1e}"))
    if record.cancel_error is not None:
        gone = ", ".join(part.name for part in record.parts if part.cancels)
        lines.append(("cancel", f"{gone}: without them the attention changes by {record.cancel_error:.1e}"))
    if record.expansion is not None and record.expansion.errors is not None:
        zero, _, two = record.expansion.errors
        lines.append(
            ("expansion", f"content alone is off by {zero:.0%}, with two orders of the positions by {two:.0%}")
        )
    return [(label, short(text, 600)) for label, text in lines]


MECHANISMS = {"additive": "added to the input", "rotary": "rotate queries and keys"}


def described(term: ScoreTerm) -> str:
    """What a term holds, with its wavelengths if it has any."""
    if term.wavelengths is None:
        return term.meaning
    return f"{term.meaning}, {figures(term.wavelengths[0], 4)} to {figures(term.wavelengths[1], 4)} positions per turn"


def heads(record: AttentionDecomposition) -> tuple[tuple[str, ...], list[list[str]]]:
    """Column titles and rows: the share of each term, the positional part, the Toeplitz forms."""
    additive = record.mechanism == "additive"
    titles = ("head", *(heading(term) for term in record.terms), "positional", "verdict")
    titles += ("off\nToeplitz",) if additive else ()
    return titles, [_row(head, len(record.terms), additive) for head in record.heads]


def heading(term: ScoreTerm) -> str:
    """A column title; a term of two sides in two lines."""
    return "\n".join(short(side, 40) for side in term.name.split("-", 1))


def _row(head: HeadDecomposition, terms: int, additive: bool) -> list[str]:
    shares = [f"{term.share:.1%}" for term in head.terms] or ["-"] * terms
    row = [str(head.head), *shares, "-" if head.positional is None else f"{head.positional:.1%}", head.verdict]
    if additive:
        defect = head.toeplitz.sentence_defect if head.toeplitz else None
        row.append("-" if defect is None else f"{defect:.2f}")
    return row


def summary(record: AttentionDecomposition) -> str:
    """The finding in one sentence, with its number."""
    known = [head for head in record.heads if head.positional is not None]
    if not known:
        return "No head's scores differ between keys: the sentence is too short or the weights are constant."
    most = max(known, key=lambda head: head.positional or 0.0)
    words = sum(head.verdict == "content" for head in known)
    return (
        f"Head {most.head} is the most positional: position explains {most.positional:.1%} of what its scores differ "
        f"by. In {words} of {count(len(record.heads), 'head')} position explains at most 10 %."
    )
