"""The record of an inspection: what a model's position encodings are, number by number."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from posenc.records.base import Curve, Record
from posenc.records.reading import Assumption, UnreadKey

Span = tuple[int, int]
"""First and last index of a run, both included."""

Effect = Literal["kept", "blended", "stretched", "shortened", "own ratio", "still"]
"""What a scaling does to a pair: nothing; part of its factor; all of its factor; a shorter wavelength; a ratio that no
common factor explains (LongRoPE, resonance); ``still`` is a pair that does not turn, scaled or not."""


class _Item(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Lengths(_Item):
    """Three lengths, never mixed; None where no source states one.

    Args:
        original: the length that the scalings were computed from.
        trained: longest context of the last training stage.
        trained_source: who states it.
        served: the longest context that the config or engine admits.
    """

    original: int | None = None
    trained: int | None = None
    trained_source: str | None = None
    served: int | None = None

    def named(self) -> tuple[tuple[Literal["original", "trained", "served"], int], ...]:
        """The lengths that are known, with their names."""
        known = (("original", self.original), ("trained", self.trained), ("served", self.served))
        return tuple((name, length) for name, length in known if length is not None)  # type: ignore[misc]


class Band(_Item):
    """Neighbouring pairs to which a scaling does the same.

    Args:
        effect: what it does.
        pairs: the run of pairs.
        ratio: smallest and largest wavelength after over before scaling; None for pairs that do not turn.
    """

    effect: Effect
    pairs: Span
    ratio: tuple[float, float] | None


class State(_Item):
    """The frequencies in force for rows of some declared length.

    Args:
        applies: to which rows, in words.
        length: the declared length computed with; None where any will do.
        theta: radians per position of each pair.
        wavelength: positions per turn of each pair; None for a pair that does not turn.
        ratio: wavelength after over before scaling of each pair; None for a pair that does not turn.
        bands: the same in runs.
        base: base of the geometric schedule after scaling; None where there is none.
        gain: factor on cos and sin (scores get its square).
        logit_scale: factor on the softmax scale.
        similarity: mean of ``cos(D theta_i)`` over the pairs against the distance D; None where it was not asked for.
    """

    applies: str
    length: int | None
    theta: tuple[float, ...]
    wavelength: tuple[float | None, ...]
    ratio: tuple[float | None, ...]
    bands: tuple[Band, ...]
    base: float | None
    gain: float
    logit_scale: float
    similarity: Curve | None = None


class Unfinished(_Item):
    """Pairs that complete no turn within a length.

    Args:
        within: which of the three lengths.
        length: its value in positions.
        pairs: the runs of such pairs.
        count: how many they are.
    """

    within: Literal["original", "trained", "served"]
    length: int
    pairs: tuple[Span, ...]
    count: int


class Spectrum(_Item):
    """The pairs of an encoding and their frequencies.

    Args:
        channels: the channels of each pair; sine before cosine for a table, one channel for a lone sine.
        axis: the coordinate that turns each pair; None with a single coordinate or where all turn it.
        unscaled: radians per position before scaling.
        unscaled_wavelength: positions per turn before scaling; None for a pair that does not turn.
        length_rule: how the declared length of a row decides, in words.
        states: the frequencies in force, one entry for each case of that rule.
        unfinished: pairs that complete no turn within each of the three lengths.
        remark: what else the numbers need to be read right.
    """

    channels: tuple[tuple[int, ...], ...]
    axis: tuple[int | None, ...] | None
    unscaled: tuple[float, ...]
    unscaled_wavelength: tuple[float | None, ...]
    length_rule: str
    states: Annotated[tuple[State, ...], Field(min_length=1)]
    unfinished: tuple[Unfinished, ...]
    remark: str | None = None


class Numbers(_Item):
    """Numbers of an encoding that are no frequencies, by name (``slopes`` of ALiBi)."""

    name: str
    values: tuple[float, ...]


class EncodingInspection(_Item):
    """One encoding.

    Args:
        kind: its mechanism.
        notation: the whole value in one line, which ``posenc.spec.parse`` reads back.
        formula: its formula with its numbers.
        scaling: the formulas of its scalings with their numbers, in order.
        layout: which channels take part and which form a pair.
        enters: at the ``input``, to ``query_key``, or in the ``score``.
        relative: whether scores depend on positions through differences only.
        content_dependent: whether positions depend on the input.
        needs_length: whether its numbers depend on the declared length of a row.
        spectrum: its pairs; None where it has no frequencies.
        numbers: what else it computes with.
        faults: mathematics that is wrong and executed all the same.
    """

    kind: str
    notation: str
    formula: str
    scaling: tuple[str, ...] = ()
    layout: str | None = None
    enters: str
    relative: bool
    content_dependent: bool
    needs_length: bool
    spectrum: Spectrum | None = None
    numbers: tuple[Numbers, ...] = ()
    faults: tuple[str, ...] = ()


class KindInspection(_Item):
    """Layers that treat positions alike.

    Args:
        name: what the model calls them.
        layers: runs of layer indices; empty where the number of layers is unknown.
        count: how many layers.
        window: a query sees this many positions back; None for all.
        chunk: attention stays inside chunks of this many positions; None for no chunks.
        encodings: indices into the part's encodings; empty for no position at all (NoPE).
    """

    name: str
    layers: tuple[Span, ...]
    count: int
    window: int | None
    chunk: int | None
    encodings: tuple[int, ...]


class PartInspection(_Item):
    """One stack of layers: its lengths, its encodings once each, and who uses them.

    Args:
        name: ``model``, ``text``, ``vision``…
        lengths: original, trained, served.
        layers: number of layers; None where unknown.
        input: indices of the encodings that enter with the embeddings.
        kinds: the kinds of layers.
        encodings: every encoding once.
    """

    name: str
    lengths: Lengths
    layers: int | None
    input: tuple[int, ...]
    kinds: tuple[KindInspection, ...]
    encodings: tuple[EncodingInspection, ...]


class Inspection(Record):
    """What a model's position encodings are, with everything assumed, unread or wrong.

    Args:
        name: what was asked for, or the model's own name.
        format: what kind of input it was.
        source: where the values come from.
        model_type: the architecture's name in the input's own words.
        row_order: pairs that stored q and k rows are ordered for (``adjacent``, ``half``); None without weights.
        parts: the stacks of layers, the main one first.
        assumed: defaults that were filled in.
        unread: keys about positions that nothing consumed.
        faults: mathematics that is wrong and executed all the same.
        notes: what else a reader should know.
    """

    name: str
    format: str
    source: str
    model_type: str | None = None
    row_order: str | None = None
    parts: tuple[PartInspection, ...]
    assumed: tuple[Assumption, ...] = ()
    unread: tuple[UnreadKey, ...] = ()
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """The report's section of this model, for notebooks."""
        from importlib import import_module

        # Records are below rendering and do not import it: the page is looked up by name when a notebook asks for it.
        page: Any = import_module("posenc.rendering.page")
        return str(page.notebook(self))
