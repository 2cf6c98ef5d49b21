"""Which channels the stored query and key rows pair, measured from the weights themselves.

A score sees the rows of a rotary pair only together: ``q_a k_a + q_b k_b`` turned by a cosine and ``q_a k_b - q_b k_a``
by a sine, each at the pair's own frequency. Training therefore aligns query row ``a`` with key row ``b`` where the two
are partners, and has no reason to where they are not. The mean squared cosine between partners, over that of all rows
of a head, tells pairs ``(2i, 2i + 1)`` from ``(i, i + d/2)`` without a name or a number of the settings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from posenc.checker.causes import links, remedy
from posenc.errors import FormatError, PosencError
from posenc.formats.projections import rotaries_of, stored_layout
from posenc.records import Reading
from posenc.records.finding import Evidence, Finding, Recovered
from posenc.shapes import Float
from posenc.spec import Rotary

Pairs = Literal["adjacent", "half"]

MOST_LAYERS, MOST_NUMBERS = 12, 2**26
FEWEST_LAYERS = 4
SURE = 5.0
"""Standard errors by which the two pairings must differ."""
ALIGNED = 1.25
"""Alignment of partners, over that of all rows, below which nothing is told."""
MOST_CHANNELS = 0.9
"""Share of channels that must side with the pairing told: a shuffled order has single pairs in common with it."""

WORDS: dict[str, str] = {"adjacent": "(2i, 2i + 1)", "half": "(i, i + d/2)"}
NAMES = (
    ("blk.{}.attn_q.weight", "blk.{}.attn_k.weight", "blk.{}.attn_norm.weight"),
    (
        "model.layers.{}.self_attn.q_proj.weight",
        "model.layers.{}.self_attn.k_proj.weight",
        "model.layers.{}.input_layernorm.weight",
    ),
    ("layers.{}.attention.wq.weight", "layers.{}.attention.wk.weight", "layers.{}.attention_norm.weight"),
)
"""Queries, keys and the normalisation before them: GGUF, transformers, Meta."""


@dataclass(frozen=True)
class Stored:
    """What the weights say.

    Args:
        pairs: the pairing, None where the weights do not tell.
        adjacent, half: alignment of partners under each pairing; 1 is that of any two rows of a head.
        apart: how many standard errors over the layers lie between their logarithms.
        lengths_adjacent, lengths_half: correlation of the logarithms of partners' row lengths.
        layers: how many layers were read.
    """

    pairs: Pairs | None
    adjacent: float
    half: float
    apart: float
    lengths_adjacent: float
    lengths_half: float
    layers: int


def alignment(
    query: Float[np.ndarray, "heads d width"], key: Float[np.ndarray, "key_heads d width"]
) -> Float[np.ndarray, "d d"]:
    """Mean squared cosine of query row ``i`` and key row ``j`` over the heads, over that of all ``i != j``."""
    q, k = (v / np.maximum(np.linalg.norm(v, axis=2, keepdims=True), 1e-300) for v in (query, key))
    shared = len(q) // len(k)
    found = np.mean([(q[h] @ k[h // shared].T) ** 2 for h in range(len(q))], axis=0)
    d = len(found)
    others = (found.sum() - np.trace(found)) / (d * (d - 1))
    return np.asarray(found / max(others, 1e-300))


def partners(d: int, pairs: Pairs) -> np.ndarray:
    """``(d,)`` the partner of each channel.

    >>> partners(6, "adjacent").tolist(), partners(6, "half").tolist()
    ([1, 0, 3, 2, 5, 4], [3, 4, 5, 0, 1, 2])
    """
    at = np.arange(d)
    return at ^ 1 if pairs == "adjacent" else (at + d // 2) % d


def measured(layers: list[tuple[np.ndarray, np.ndarray]]) -> Stored:
    """The pairing of some layers' rows.

    Args:
        layers: ``(heads, d, width)`` query rows and ``(key_heads, d, width)`` key rows of each layer, rotated channels
            alone, multiplied by the weight of the normalisation before them.
    """
    d = layers[0][0].shape[1]
    at, order = np.arange(d), {pairs: partners(d, pairs) for pairs in ("adjacent", "half")}
    tables = np.array([alignment(q, k) for q, k in layers])
    shares = np.stack([tables[:, at, order[pairs]] for pairs in order])
    logs = np.log(np.maximum(shares.mean(axis=2), 1e-300)).T
    favoured = float((shares.mean(axis=1)[0] > shares.mean(axis=1)[1]).mean())
    gap = logs[:, 0] - logs[:, 1]
    error = gap.std(ddof=1) / math.sqrt(len(gap)) if len(gap) > 1 else math.inf
    apart = float(gap.mean() / max(error, 1e-12))
    lengths = [np.log(np.maximum(np.linalg.norm(rows, axis=2), 1e-300)) for pair in layers for rows in pair]
    alike = {pairs: float(np.mean([_correlation(v, v[:, order[pairs]]) for v in lengths])) for pairs in order}
    adjacent, half = (float(v) for v in np.exp(logs.mean(axis=0)))
    sure = len(gap) >= FEWEST_LAYERS and abs(apart) >= SURE and max(adjacent, half) >= ALIGNED
    sure = sure and max(favoured, 1 - favoured) >= MOST_CHANNELS
    pairs: Pairs | None = None if not sure else "adjacent" if apart > 0 else "half"
    return Stored(pairs, adjacent, half, apart, alike["adjacent"], alike["half"], len(layers))


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a.ravel() - a.mean(), b.ravel() - b.mean()
    return float((a @ b) / max(math.sqrt((a @ a) * (b @ b)), 1e-300))


def in_words(stored: Stored) -> str:
    """The measurement in one line."""
    said = "cannot be told from the weights" if stored.pairs is None else f"stored for pairs {WORDS[stored.pairs]}"
    return (
        f"rows of q and k, measured on {stored.layers} layers: {said} (alignment of partners over that of any two rows "
        f"{stored.adjacent:.2f} for {WORDS['adjacent']}, {stored.half:.2f} for {WORDS['half']}; correlation of their "
        f"lengths {stored.lengths_adjacent:.2f} and {stored.lengths_half:.2f}; {abs(stored.apart):.1f} standard errors)"
    )


def row_findings(stored: Stored | None, own: Reading, wanted: Reading | None) -> list[Finding]:
    """Rows against the file's own settings (a defect) and, where these agree, against what is wanted (a convention).

    Args:
        stored: the measurement; None without weights.
        own: the settings.
        wanted: what they should be, if something is.
    """
    said, asked = _pairing(own), None if wanted is None else _pairing(wanted)
    seen = None if stored is None else stored.pairs
    if said is None:
        return []
    if seen is not None and seen != said:
        return [
            Finding(
                verdict="defect",
                kinds=("layout",),
                title="query and key rows are stored for the other pairing than the settings turn",
                evidence=_evidence(stored, said),
                cause="the rows were not permuted when the model was converted, or twice",
                links=links(("layout",), "gguf permute"),
                remedy=remedy(("layout",)),
                recovered=(Recovered(name="pairs of the stored rows", value=WORDS[seen], expected=WORDS[said]),),
            )
        ]
    if asked is None or asked == said or own.row_order is None:
        return []
    return [
        Finding(
            verdict="convention",
            kinds=("layout",),
            title="query and key rows are permuted against the wanted pairing, and turned to match",
            evidence=_evidence(stored, asked),
            cause=f"{'the weights and ' if seen else ''}the file's architecture pair channels {WORDS[said]}; rows and "
            "rotation belong together",
            links=links(("layout",), "gguf permute"),
            remedy="Nothing, where the file's own pairing turns them; permute the rows before using the wanted one.",
            recovered=(Recovered(name="pairs of the stored rows", value=WORDS[said], expected=WORDS[asked]),),
        )
    ]


def _pairing(reading: Reading) -> Pairs | None:
    """The one pairing of a reading's rotaries."""
    if reading.row_order is not None:
        return reading.row_order
    try:
        return stored_layout(rotaries_of(reading))
    except PosencError:
        return None


def _evidence(stored: Stored | None, expected: Pairs) -> tuple[Evidence, ...]:
    other: Pairs = "half" if expected == "adjacent" else "adjacent"
    if stored is None or stored.pairs is None:
        return (Evidence(name="pairs of the stored rows", expected=WORDS[expected], seen=WORDS[other]),)
    place = f"{stored.layers} layers"
    shares = {"adjacent": stored.adjacent, "half": stored.half}
    lengths = {"adjacent": stored.lengths_adjacent, "half": stored.lengths_half}
    return (
        *(
            Evidence(name=f"alignment of rows {WORDS[p]}, 1 for any two", seen=shares[p], where=place)
            for p in (expected, other)
        ),
        *(
            Evidence(name=f"correlation of the lengths of rows {WORDS[p]}", seen=lengths[p], where=place)
            for p in (expected, other)
        ),
        Evidence(name="standard errors between the two", seen=abs(stored.apart)),
    )


def stored_rows(subject: Any, reading: Reading) -> Stored | str:
    """What the weights of a file or folder say, or why they say nothing.

    Args:
        subject: a GGUF file, or a folder with one or with safetensors.
        reading: its settings.
    """
    try:
        tensors = _tensors(Path(subject).expanduser())
        if tensors is None:
            return "there are no weights"
        layers = _layers(tensors, rotaries_of(reading))
    except (PosencError, OSError) as error:
        return str(error)[:200]
    if len(layers) < FEWEST_LAYERS:
        return f"fewer than {FEWEST_LAYERS} layers with separate query and key projections were found"
    return measured(layers)


def _tensors(path: Path) -> Any:
    from posenc.formats.weights import GgufFile, SafetensorsFiles

    if path.is_dir():
        files = sorted(path.glob("*.gguf"))
        if any(path.glob("*.safetensors")):
            return SafetensorsFiles(path)
        return GgufFile(files[0]) if files else None
    return GgufFile(path) if path.suffix == ".gguf" and path.is_file() else None


def _layers(tensors: Any, rotaries: dict[int | None, Rotary | None]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Query and key rows of up to 12 layers, evenly spaced.

    Raises:
        FormatError: rotary widths differ, or a tensor has another shape than the settings say.
    """
    names = next((n for n in NAMES if any(n[0].format(i) in tensors for i in range(4))), None)
    if names is None:
        return []
    turned = [n for n in sorted(rotaries, key=lambda n: -1 if n is None else n) if rotaries[n] is not None]
    numbers = range(1024) if turned == [None] else [n for n in turned if n is not None]
    there = [n for n in numbers if all(name.format(n) in tensors for name in names[:2])]
    chosen = [there[round(i)] for i in np.linspace(0, len(there) - 1, min(MOST_LAYERS, len(there)))]
    found = []
    for n in chosen:
        rotary = rotaries.get(n, rotaries.get(None))
        if rotary is not None:
            gain = tensors.rows(names[2].format(n)).ravel() if names[2].format(n) in tensors else 1.0
            query, key = (_rows(tensors, name.format(n), rotary, gain) for name in names[:2])
            if len(query) % len(key):
                raise FormatError("key heads divide query heads", (len(query), len(key)))
            found.append((query, key))
    if len({q.shape[1] for q, _ in found}) > 1:
        raise FormatError("all layers turn as many channels", sorted({q.shape[1] for q, _ in found}))
    return found


def _rows(tensors: Any, name: str, rotary: Rotary, gain: Any) -> np.ndarray:
    """``(heads, rotated channels, width)``."""
    shape = tensors.shape(name)
    if len(shape) != 2 or shape[0] % rotary.head_dim or math.prod(shape) > MOST_NUMBERS:
        raise FormatError(f"{name} has heads of {rotary.head_dim} rows, at most {MOST_NUMBERS} numbers", shape)
    if np.size(gain) not in (1, shape[1]):
        raise FormatError(f"the normalisation before {name} has {shape[1]} numbers", np.size(gain))
    rows = tensors.rows(name).reshape(-1, rotary.head_dim, shape[1]) * gain
    first = rotary.head_dim - rotary.rotary_dim if rotary.where == "last" else 0
    rows = rows[:, first : first + rotary.rotary_dim]
    if not np.isfinite(rows).all():
        raise FormatError(f"{name} holds finite numbers", "others")
    return np.asarray(rows)
