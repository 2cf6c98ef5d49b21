"""The content of an inspection as labelled text and rows, the same for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence

from posenc.records.inspection import EncodingInspection, Inspection, PartInspection, Spectrum, State
from posenc.rendering.plain import count, figures, spans

Fact = tuple[str, str]
ENTERS = {
    "input": "added to the input",
    "query_key": "applied to queries and keys",
    "score": "added to the score",
    "unknown": "not known",
}
ORDERS = {"adjacent": "pairs (2i, 2i + 1)", "half": "pairs (i, i + d/2)"}


def origin(record: Inspection) -> list[Fact]:
    """Where the values come from."""
    facts = [("read from", f"{record.format}: {record.source}" if record.source else record.format)]
    if record.model_type:
        facts.append(("model type", record.model_type))
    if record.row_order:
        facts.append(("stored rows", f"ordered for {ORDERS.get(record.row_order, record.row_order)}"))
    return facts


def lengths(part: PartInspection) -> list[Fact]:
    """Original, trained and served length; an original length exists only with a scaling."""
    at = part.lengths
    facts = [("original", f"{at.original} positions, which the scaling was computed from")] if at.original else []
    source = f" ({at.trained_source})" if at.trained_source and at.trained else ""
    facts.append(("trained", f"{at.trained} positions{source}" if at.trained else "unknown: no source states it"))
    facts.append(("served", f"{at.served} positions" if at.served else "not stated"))
    return facts


def kinds(part: PartInspection) -> tuple[Sequence[str], list[list[str]]]:
    """Which layers use which encodings."""
    rows = [["input", "", str_indices(part.input), ""]] if part.input else []
    for kind in part.kinds:
        layers = f"{spans(kind.layers)} ({count(kind.count, 'layer')})" if kind.layers else "not stated"
        sees = [f"{kind.window} back"] if kind.window else []
        sees += [f"chunks of {kind.chunk}"] if kind.chunk else []
        used = str_indices(kind.encodings) if kind.encodings or not part.input else "none of their own"
        rows.append([kind.name, layers, used, ", ".join(sees) or "everything"])
    return ("kind", "layers", "encoding", "attends to"), rows


def str_indices(indices: Sequence[int]) -> str:
    """Encodings by their number on the page, counted from 1; none is said."""
    return " + ".join(f"#{i + 1}" for i in indices) or "none (NoPE)"


def encoding(e: EncodingInspection) -> list[Fact]:
    """Formula, scaling, layout, gain and length rule."""
    facts = [("formula", e.formula)]
    facts += [("scaling", line) for line in e.scaling]
    if e.layout:
        facts.append(("layout", e.layout))
    if e.enters != "unknown":
        depends = "relative: scores depend on differences of positions" if e.relative else "absolute"
        facts.append(("enters", f"{ENTERS[e.enters]}; {depends}"))
    for numbers in e.numbers:
        facts.append((numbers.name, ", ".join(figures(v) for v in numbers.values)))
    if e.spectrum is not None:
        facts += _spectrum(e.spectrum, scaled=bool(e.scaling))
    return facts


def _spectrum(s: Spectrum, scaled: bool) -> list[Fact]:
    facts = [("length rule", s.length_rule)] if scaled else []
    gains = {(state.gain, state.logit_scale) for state in s.states}
    if gains != {(1.0, 1.0)}:
        for state in s.states if len(gains) > 1 else s.states[:1]:
            rows = f" for {state.applies}" if len(gains) > 1 else ""
            squared = f" (scores by its square, {figures(state.gain**2)})" if state.gain != 1 else ""
            facts.append(("gain", f"{figures(state.gain, 8)} on cos and sin{squared}{rows}"))
            if state.logit_scale != 1:
                facts.append(("logit scale", f"{figures(state.logit_scale, 8)}{rows}"))
    elif scaled:
        facts.append(("gain", "1 on cos and sin, logit scale 1"))
    for length in dict.fromkeys(slow.length for slow in s.unfinished):
        same = [slow for slow in s.unfinished if slow.length == length]
        pairs = f"pairs {spans(same[0].pairs)} ({same[0].count} of {len(s.unscaled)})" if same[0].count else "none"
        facts.append(("no full turn", f"within {length} ({', '.join(slow.within for slow in same)}): {pairs}"))
    return facts + ([("remark", s.remark)] if s.remark else [])


def bands(s: Spectrum) -> tuple[Sequence[str], list[list[str]]]:
    """What the scaling does to which pairs."""
    several = len(s.states) > 1
    rows = []
    for state in s.states:
        for n, band in enumerate(state.bands):
            ratio = "does not turn" if band.ratio is None else _ratio(*band.ratio)
            which = [state.applies if n == 0 else ""] if several else []
            rows.append([*which, spans((band.pairs,)), band.effect, ratio])
    return (*(["rows"] if several else []), "pairs", "effect", "wavelength"), rows


def _ratio(least: float, most: float) -> str:
    return f"× {figures(least)}" if figures(least) == figures(most) else f"× {figures(least)} … {figures(most)}"


def pair_rows(
    s: Spectrum, indices: Sequence[int | None], *, scaled: bool, frequencies: bool = True
) -> tuple[Sequence[str], list[list[str]]]:
    """The table of pairs for some indices; None makes a row of dots. ``frequencies`` can be left out when narrow."""
    header = ["pair", "channels", *(["axis"] if s.axis else [])]
    header += ["θ", "λ"] if frequencies else ["λ"]
    for n, _ in enumerate(s.states) if scaled else ():
        mark = "'" * (n + 1)
        header += [f"θ{mark}", f"λ{mark}", f"λ{mark}/λ"] if frequencies else [f"λ{mark}", f"λ{mark}/λ"]
    return header, [["…"] * len(header) if i is None else _pair_row(s, i, scaled, frequencies) for i in indices]


def _pair_row(s: Spectrum, i: int, scaled: bool, frequencies: bool) -> list[str]:
    row = [str(i), ", ".join(map(str, s.channels[i]))]
    if s.axis:
        row.append("-" if s.axis[i] is None else str(s.axis[i]))
    row += [figures(s.unscaled[i])] if frequencies else []
    row.append(figures(s.unscaled_wavelength[i]))
    for state in s.states if scaled else ():
        row += [figures(state.theta[i])] if frequencies else []
        row += [figures(state.wavelength[i]), "-" if state.ratio[i] is None else figures(state.ratio[i], 5)]
    return row


def legend(s: Spectrum, scaled: bool) -> str:
    """What the columns of the pair table mean."""
    text = "θ radians per position, λ = 2π/θ positions per turn"
    if not scaled:
        return text
    if len(s.states) == 1:
        return f"{text}; θ', λ' after scaling"
    marks = "; ".join(f"{chr(39) * (n + 1)} for {state.applies}" for n, state in enumerate(s.states))
    return f"{text}; after scaling: {marks}"


def selection(states: Sequence[State], pairs: int, limit: int = 16) -> list[int | None]:
    """Indices worth a row: both ends, and both sides of every border between bands; None where some are left out."""
    chosen = {0, 1, 2, pairs - 3, pairs - 2, pairs - 1}
    for state in states:
        for band in state.bands:
            chosen |= set(band.pairs)
    inside = sorted(i for i in chosen if 0 <= i < pairs)
    if len(inside) > limit:
        inside = inside[: limit // 2] + inside[-limit // 2 :]
    result: list[int | None] = []
    for i in inside:
        if result and i != (result[-1] or 0) + 1:
            result.append(None)
        result.append(i)
    return result


def wrong(record: Inspection) -> list[Fact]:
    """Mathematics that is wrong and executed all the same."""
    return [("wrong", f"{fault} (engines execute it all the same)") for fault in record.faults]


def remarks(record: Inspection) -> list[Fact]:
    """What was assumed, left unread, or is worth a note."""
    facts = [("assumed", f"{a.key} = {a.value} ({a.why})") for a in record.assumed]
    facts += [("not read", f"{u.key} = {u.value}") for u in record.unread]
    return facts + [("note", note) for note in record.notes]
