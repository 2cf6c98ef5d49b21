"""The encodings: one discriminated union, one mechanism each.

An encoding declares facts, and the rooms dispatch on facts: where it enters (``input``, ``query_key``, ``score``),
whether its scores depend on positions only through differences (``relative``), on the content, on the declared length.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from posenc.spec.encodings.base import EncodingBase, Enters, Unmodelled
from posenc.spec.encodings.baselines import Clock, Constant, OneHot, RandomVectors
from posenc.spec.encodings.biases import Alibi, Fire, Kerple, Sandwich, SinusoidalBias, T5Bias
from posenc.spec.encodings.composed import Adjusted, Hierarchical
from posenc.spec.encodings.contextual import Cope, Forgetting, SelectiveRotary
from posenc.spec.encodings.relative import Disentangled, RelativeSinusoid, Shaw, TransformerXL
from posenc.spec.encodings.rotary import QueryScale, Rotary
from posenc.spec.encodings.tables import Learned, Seasonal, Sinusoidal
from posenc.spec.encodings.time import Calendar, Fourier, LearnableFourier, Time2Vec

Encoding = Annotated[
    Sinusoidal
    | Learned
    | Rotary
    | Alibi
    | T5Bias
    | QueryScale
    | Seasonal
    | Adjusted
    | Hierarchical
    | Calendar
    | Time2Vec
    | Fourier
    | LearnableFourier
    | OneHot
    | RandomVectors
    | Constant
    | Clock
    | Kerple
    | Fire
    | Sandwich
    | SinusoidalBias
    | Shaw
    | RelativeSinusoid
    | TransformerXL
    | Disentangled
    | Cope
    | Forgetting
    | SelectiveRotary
    | Unmodelled,
    Field(discriminator="kind"),
]
ENCODINGS: dict[str, type[Any]] = {
    cls.model_fields["kind"].default: cls
    for cls in (
        Sinusoidal,
        Learned,
        Rotary,
        Alibi,
        T5Bias,
        QueryScale,
        Seasonal,
        Adjusted,
        Hierarchical,
        Calendar,
        Time2Vec,
        Fourier,
        LearnableFourier,
        OneHot,
        RandomVectors,
        Constant,
        Clock,
        Kerple,
        Fire,
        Sandwich,
        SinusoidalBias,
        Shaw,
        RelativeSinusoid,
        TransformerXL,
        Disentangled,
        Cope,
        Forgetting,
        SelectiveRotary,
        Unmodelled,
    )
}

__all__ = [
    "ENCODINGS",
    "Adjusted",
    "Alibi",
    "Calendar",
    "Clock",
    "Constant",
    "Cope",
    "Disentangled",
    "Encoding",
    "EncodingBase",
    "Enters",
    "Fire",
    "Forgetting",
    "Fourier",
    "Hierarchical",
    "Kerple",
    "LearnableFourier",
    "Learned",
    "OneHot",
    "QueryScale",
    "RandomVectors",
    "RelativeSinusoid",
    "Rotary",
    "Sandwich",
    "Seasonal",
    "SelectiveRotary",
    "Shaw",
    "Sinusoidal",
    "SinusoidalBias",
    "T5Bias",
    "Time2Vec",
    "TransformerXL",
    "Unmodelled",
]
