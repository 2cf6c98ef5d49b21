"""Values: encodings, scalings and a model's positions; frozen, validated, hashable, JSON and notation both ways."""

from posenc.spec.axes import Axes, Interleave, Mixed, Split
from posenc.spec.encodings import (
    ENCODINGS,
    Alibi,
    Encoding,
    Learned,
    QueryScale,
    Rotary,
    Seasonal,
    Sinusoidal,
    T5Bias,
    Unmodelled,
)
from posenc.spec.json import from_json, to_json
from posenc.spec.model import LayerKind, ModelPositions
from posenc.spec.notation import notation, parse
from posenc.spec.scalings import (
    NTK,
    SCALINGS,
    AsExecuted,
    ByParts,
    Dynamic,
    Factors,
    Linear,
    Llama3,
    LongRope,
    Resonance,
    Scaling,
    Yarn,
    executable,
)
from posenc.spec.schedules import Arithmetic, Explicit, Geometric, Periods, Random, Schedule
from posenc.spec.value import Value

__all__ = [
    "ENCODINGS",
    "NTK",
    "SCALINGS",
    "Alibi",
    "Arithmetic",
    "AsExecuted",
    "Axes",
    "ByParts",
    "Dynamic",
    "Encoding",
    "Explicit",
    "Factors",
    "Geometric",
    "Interleave",
    "LayerKind",
    "Learned",
    "Linear",
    "Llama3",
    "LongRope",
    "Mixed",
    "ModelPositions",
    "Periods",
    "QueryScale",
    "Random",
    "Resonance",
    "Rotary",
    "Scaling",
    "Schedule",
    "Seasonal",
    "Sinusoidal",
    "Split",
    "T5Bias",
    "Unmodelled",
    "Value",
    "Yarn",
    "executable",
    "from_json",
    "notation",
    "parse",
    "to_json",
]
