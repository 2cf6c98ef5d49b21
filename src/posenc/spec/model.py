"""What a model has: kinds of layers with their encodings, which layer is of which kind, and three lengths."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from posenc.errors import SpecError
from posenc.spec.encodings import Encoding
from posenc.spec.value import Length, Value

Name = Annotated[str, Field(min_length=1, max_length=200)]


class LayerKind(Value):
    """Layers that treat positions alike.

    Args:
        name: what the model calls them.
        encodings: what enters in these layers; empty for no position (NoPE), several for a hybrid.
        window: a query sees this many positions back; None for all.
        chunk: attention stays inside chunks of this many positions (Llama 4); None for no chunks.
    """

    name: Name
    encodings: Annotated[tuple[Encoding, ...], Field(max_length=64)] = ()
    window: Length | None = None
    chunk: Length | None = None


class ModelPositions(Value):
    """The position encodings of one stack of layers.

    Args:
        input: encodings that enter once, with the embeddings.
        kinds: the kinds of layers.
        layers: for each layer the index of its kind; empty where the number of layers is unknown.
        trained: longest context of the last training stage; None when no source states it.
        trained_source: who states it.
        served: the longest context that the config or engine admits.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    input: Annotated[tuple[Encoding, ...], Field(max_length=64)] = ()
    kinds: Annotated[tuple[LayerKind, ...], Field(min_length=1, max_length=4096)]
    layers: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(max_length=2**16)] = ()
    trained: Length | None = None
    trained_source: Annotated[str, Field(max_length=2000)] | None = None
    served: Length | None = None

    @model_validator(mode="after")
    def _layers_point_at_kinds(self) -> ModelPositions:
        names = [kind.name for kind in self.kinds]
        if len(set(names)) != len(names):
            raise SpecError("kinds of layers have different names", names)
        if self.layers and max(self.layers) >= len(self.kinds):
            raise SpecError(f"layers index the {len(self.kinds)} kinds", max(self.layers))
        return self

    @classmethod
    def uniform(cls, *encodings: Encoding, layers: int = 1, **fields: object) -> ModelPositions:
        """All layers alike: encodings that enter at the input go there, the others into every layer."""
        at_input = tuple(e for e in encodings if e.enters == "input")
        inside = tuple(e for e in encodings if e.enters != "input")
        return cls(input=at_input, kinds=(LayerKind(name="all", encodings=inside),), layers=(0,) * layers, **fields)

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """Every encoding once, in order of first appearance."""
        return tuple(dict.fromkeys((*self.input, *(e for kind in self.kinds for e in kind.encodings))))

    @property
    def original(self) -> int | None:
        """The length the scalings were computed from; None without scaling or where they disagree."""
        found = set()
        for encoding in self.encodings:
            for scaling in getattr(encoding, "scaling", ()):
                fields = scaling.fields() if scaling.kind == "as_executed" else dict(scaling)
                found.add(fields.get("original"))
        found.discard(None)
        return found.pop() if len(found) == 1 else None

    def layers_of(self, kind: int) -> tuple[int, ...]:
        """Indices of the layers that are of kind number ``kind``."""
        return tuple(i for i, k in enumerate(self.layers) if k == kind)
