"""How far two readings of the same settings are apart, in frequencies and gains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from posenc.analysis.wording import abridged
from posenc.errors import PosencError
from posenc.formats.huggingface import read_config
from posenc.formulas.sameness import Difference, differences
from posenc.records import Reading
from posenc.records.finding import Evidence
from posenc.spec import notation

CLOSE = 1e-6
"""Relative; what went through float32 is off by up to 6e-8."""
BRIEF = 160


@dataclass(frozen=True)
class Apart:
    """The largest differences between two readings.

    Args:
        frequency: the pair whose frequencies differ most, relatively.
        others: everything else that differs: gains, widths, kinds, windows.
        left, right: the readings in notation, shortened.
    """

    frequency: Difference | None
    others: tuple[Difference, ...]
    left: str
    right: str

    def evidence(self, left: str, right: str) -> tuple[Evidence, ...]:
        """Both readings and the largest difference of each quantity; ``left`` is what is expected."""
        found = [Evidence(name="encoding", expected=self.left, seen=self.right, where=f"{left} / {right}")]
        for d in (self.frequency, *self.others[:6]):
            if d is None:
                continue
            pair = "" if d.where is None else f" {d.where}"
            length = None if d.length is None else f"rows of {d.length} positions"
            unit = "radians per position" if "frequency" in d.what else None
            found.append(Evidence(name=d.what + pair, expected=d.left, seen=d.right, where=length, unit=unit))
        if self.frequency is not None:
            found.append(Evidence(name="largest relative difference in a frequency", seen=relative(self.frequency)))
        return tuple(found)


def relative(d: Difference) -> float:
    """``|a - b| / max(|a|, |b|)``; 0 for words."""
    a, b = d.left, d.right
    if not isinstance(a, int | float) or not isinstance(b, int | float) or not (a or b):
        return 0.0
    return abs(a - b) / max(abs(a), abs(b))


def apart(a: Reading, b: Reading) -> Apart | None:
    """Where two readings differ; None if they compute the same.

    >>> from posenc.formats.sources import read
    >>> found = apart(read("rotary(8)"), read("rotary(8, base=5e5)"))
    >>> found.frequency.where, round(found.frequency.right, 9)
    (3, 5.3183e-05)
    """
    found = [d for d in _differences(a, b) if not d.is_convention]
    if not found:
        return None
    turning = [d for d in found if "frequency" in d.what]
    most = max(turning, key=relative, default=None)
    others = tuple(d for d in found if "frequency" not in d.what)
    return Apart(most, others, in_words(a), in_words(b))


def read_quietly(config: Mapping[str, Any]) -> Reading | None:
    """A config's reading, or None where it cannot be read."""
    try:
        return read_config(config, name="config", source="config")
    except PosencError:
        return None


def apart_configs(a: Mapping[str, Any], b: Mapping[str, Any]) -> Apart | None:
    """Where two configs differ; None if they compute the same or one cannot be read."""
    left, right = read_quietly(a), read_quietly(b)
    return None if left is None or right is None else apart(left, right)


def _differences(a: Reading, b: Reading) -> Iterator[Difference]:
    if len(a.parts) != len(b.parts):
        yield Difference("stacks", None, len(a.parts), len(b.parts))
    for x, y in zip(a.parts, b.parts, strict=False):
        yield from _sequence(x.positions.input, y.positions.input)
        seen: set[tuple[Any, Any]] = set()
        for i, j in zip(x.positions.layers, y.positions.layers, strict=False):
            if (i, j) in seen:
                continue
            seen.add((i, j))
            left, right = x.positions.kinds[i], y.positions.kinds[j]
            yield from _sequence(left.encodings, right.encodings)
            if left.window != right.window:
                yield Difference("window", None, left.window, right.window)


def _sequence(a: tuple[Any, ...], b: tuple[Any, ...]) -> Iterator[Difference]:
    if len(a) != len(b):
        yield Difference("number of encodings", None, len(a), len(b))
    for left, right in zip(a, b, strict=False):
        yield from differences(left, right, tolerance=CLOSE)


def in_words(reading: Reading, limit: int = BRIEF) -> str:
    """The encodings of a reading in notation; long lists and long lines shortened."""
    text = abridged(" | ".join(dict.fromkeys(notation(e) for e in reading.encodings()))) or "none"
    return text if len(text) <= limit else text[: limit - 1] + "…"
