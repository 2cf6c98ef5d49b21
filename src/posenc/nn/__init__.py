"""Every encoding as a PyTorch module, right in every dtype and under every way of running a model."""

from posenc.nn.building import build
from posenc.nn.interfaces import (
    ContentEncoding,
    InputEncoding,
    Positions,
    QueryKeyEncoding,
    ScoreEncoding,
    as_positions,
)

__all__ = [
    "ContentEncoding",
    "InputEncoding",
    "Positions",
    "QueryKeyEncoding",
    "ScoreEncoding",
    "as_positions",
    "build",
]
