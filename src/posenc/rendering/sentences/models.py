"""What is said of a whole model, of several, and of the claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from posenc.records.account import Account, EncodingAccount
from posenc.records.analysis import Claim
from posenc.records.inspection import EncodingInspection, Inspection, PartInspection
from posenc.rendering.plain import short
from posenc.rendering.sentences.numbers import listed, many, real, whole

KINDS = {
    "rotary": "rotates queries and keys",
    "sinusoidal": "adds sines and cosines",
    "learned": "adds a trained table",
    "adjusted": "adds sines with a trained correction",
    "alibi": "lowers scores linearly with distance",
    "t5_bias": "adds a trained bias for buckets of distances",
    "query_scale": "scales queries with their position",
    "unmodelled": "uses a mechanism that is named and not computed here",
}


def lead(account: Account) -> str:
    """What the model does with positions, in one sentence."""
    if account.array is not None:
        t = account.array
        return f"A table of {many(t.rows, 'position')} with {many(t.width, 'number')} each."
    record = account.inspection
    if record is None or not any(part.encodings for part in record.parts):
        return f"{short(account.name, 120)} uses no position encoding."
    main = record.parts[0]
    told = [_does(main, e, i) for i, e in enumerate(main.encodings)]
    more = len(record.parts) - 1
    have = "has positions of its own" if more == 1 else "have positions of their own"
    rest = f" {many(more, 'more stack')} of layers {have}." if more else ""
    return f"{short(record.name, 120)} {listed(told)}.{rest}" if told else f"{short(record.name, 120)}:{rest}"


def _does(part: PartInspection, e: EncodingInspection, index: int) -> str:
    layers = sum(kind.count for kind in part.kinds if index in kind.encodings)
    where = f" in {many(layers, 'layer')}" if layers and index not in part.input else ""
    waves = [w for w in e.spectrum.states[-1].wavelength if w is not None] if e.spectrum else []
    if not e.spectrum or not waves:
        return f"{KINDS.get(e.kind, f'uses {e.kind}')}{where}"
    return (
        f"{KINDS.get(e.kind, f'uses {e.kind}')}{where} with {many(len(e.spectrum.unscaled), 'pair')}, from one turn in "
        f"{real(min(waves))} to one in {real(max(waves))} positions"
    )


def assumed(record: Inspection) -> str:
    """How much of it was stated and how much filled in."""
    filled, ignored = len(record.assumed), len(record.unread)
    if not filled and not ignored:
        return "Nothing was assumed, and every key about positions was read."
    told = [f"{many(filled, 'value')} {'was' if filled == 1 else 'were'} not stated and filled in"] if filled else []
    if ignored:
        told.append(f"{many(ignored, 'key')} about positions {'was' if ignored == 1 else 'were'} not read")
    return listed(told)[0].upper() + listed(told)[1:] + "."


def claims(found: Sequence[Claim]) -> str:
    """How the claims fare."""
    counts = Counter[str](claim.verdict for claim in found)
    order = ("exact", "holds within stated bounds", "counterexample", "refuted", "needs training")
    words = {
        "exact": "exact",
        "holds within stated bounds": "true within stated bounds",
        "counterexample": "with a counterexample",
        "refuted": "refuted",
        "needs training": "left to training",
    }
    told = [f"{counts[verdict]} {words[verdict]}" for verdict in order if counts[verdict]]
    return f"{many(len(found), 'common claim')}: {listed(told)}."


def compared(named: Sequence[tuple[str, EncodingAccount]]) -> str:
    """Whose similarity turns negative first and last, and who turns slowest."""
    ranked = [
        (float(e.decay.first_negative.value), name) for name, e in named if e.decay.first_negative.value is not None
    ]
    slow = max((max((w for w in e.waves.wavelengths if w), default=0.0), name) for name, e in named)
    tail = f"the longest wavelength is {real(slow[0])} positions ({slow[1]})."
    if not ranked:
        return f"No similarity turns negative; {tail}"
    first, last = min(ranked), max(ranked)
    return (
        f"Similarity turns negative first in {first[1]}, at D = {whole(first[0])}, and last in {last[1]}, at "
        f"D = {whole(last[0])}; {tail}"
    )
