"""The record of a reading: whose positions, from where, and everything assumed, ignored or wrong on the way."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from posenc.records.base import Record
from posenc.spec import Encoding, ModelPositions


class Assumption(BaseModel):
    """A value that the input did not state and that was filled in.

    Args:
        key: the foreign key that was missing.
        value: what was assumed, as text.
        why: whose default it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    key: str
    value: str
    why: str


class UnreadKey(BaseModel):
    """A key that speaks of positions and that nothing consumed.

    Args:
        key: dotted path in the input.
        value: what stood there, shortened.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    key: str
    value: str


class Part(BaseModel):
    """One stack of layers of a model: ``model``, ``text``, ``vision``, ``audio``, ``encoder`` or ``decoder``."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    name: str
    positions: ModelPositions


class Reading(Record):
    """What was read: the positions of a model, and everything that was assumed, ignored or wrong on the way.

    Args:
        name: what the user asked for, or the model's own name.
        format: what kind of input it was.
        source: where the values come from: a path, a hub id, a catalogue row's source.
        model_type: the architecture's name in the input's own words.
        parts: the stacks; the first one is the main one.
        assumed: defaults that were filled in.
        unread: keys about positions that nothing consumed.
        faults: mathematics that is wrong and that engines execute all the same.
        notes: what else a reader should know (stored row order, verification of a catalogue row).
        row_order: for weights in this input, the pairs that q and k rows are stored for: ``adjacent`` (2i, 2i+1) or
            ``half`` (i, i + d/2); None where there are no weights or it is not known.
    """

    name: str
    format: Literal["config", "gguf", "folder", "hub", "catalogue", "notation", "array"]
    source: str
    model_type: str | None = None
    parts: Annotated[tuple[Part, ...], Field(min_length=1)]
    assumed: tuple[Assumption, ...] = ()
    unread: tuple[UnreadKey, ...] = ()
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    row_order: Literal["adjacent", "half"] | None = None

    @property
    def positions(self) -> ModelPositions:
        """The positions of the main stack."""
        return self.parts[0].positions

    def encodings(self) -> tuple[Encoding, ...]:
        """Every encoding of every part once."""
        return tuple(dict.fromkeys(e for part in self.parts for e in part.positions.encodings))

    def _repr_html_(self) -> str:
        """A table of the reading's own fields, for notebooks."""
        from html import escape

        rows: list[tuple[str, Any]] = [("name", self.name), ("source", self.source), ("model type", self.model_type)]
        for part in self.parts:
            at = part.positions
            for encoding in at.input:
                rows.append((f"{part.name}, input", encoding))
            for i, kind in enumerate(at.kinds):
                text = " + ".join(map(str, kind.encodings)) or "none"
                rows.append((f"{part.name}, {kind.name} ({len(at.layers_of(i))} layers)", text))
            rows.append((f"{part.name}, original / trained / served", f"{at.original} / {at.trained} / {at.served}"))
        rows += [("assumed", f"{a.key} = {a.value} ({a.why})") for a in self.assumed]
        rows += [("not read", f"{u.key} = {u.value}") for u in self.unread]
        rows += [("wrong", fault) for fault in self.faults]
        rows += [("note", note) for note in self.notes]
        cells = "".join(f"<tr><th>{escape(k)}</th><td>{escape(str(v))}</td></tr>" for k, v in rows)
        return f"<table>{cells}</table>"
