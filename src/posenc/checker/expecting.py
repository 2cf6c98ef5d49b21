"""What is wanted: an encoding, a line of notation or a model, as encodings to compare with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from posenc.analysis.wording import abridged
from posenc.errors import SpecError
from posenc.spec.value import Value


@dataclass(frozen=True)
class Expected:
    """The wanted encodings.

    Args:
        encodings: each once; a model with two kinds of layers has two.
        line: in words.
        served: the longest context that is admitted; None if it is not known.
        reading: what was read, if it was a model.
    """

    encodings: tuple[Any, ...]
    line: str
    served: int | None = None
    reading: Any = None


def expected(expect: Any) -> Expected:
    """Resolve what the user wants.

    Raises:
        PosencError: it is no encoding and no model, or has no position encoding.

    >>> expected("rotary(8) >> linear(2)").line
    'rotary(8) >> linear(2)'
    """
    if isinstance(expect, Expected):
        return expect
    if isinstance(expect, Value) and getattr(expect, "kind", None) != "model_positions" and hasattr(expect, "enters"):
        return Expected((expect,), abridged(str(expect)))
    from posenc.formats.sources import read

    reading = read(expect)
    encodings = tuple(e for e in reading.encodings() if e.kind != "unmodelled")
    if not encodings:
        raise SpecError("what is expected has a position encoding", reading.name)
    line = " | ".join(abridged(str(e)) for e in encodings)
    return Expected(encodings, line, reading.positions.served, reading)
