"""What is known before a subject is called: widths, heads, base and length of the wanted encoding, or usual ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from posenc.checker.boxes import CosSin
from posenc.spec import Rotary


@dataclass(frozen=True)
class Hints:
    """Numbers to call a subject with.

    Args:
        encoding: the wanted one; None to identify.
        dims: widths to try, the likeliest first.
        heads: number of heads.
        base: base of the schedule, if the subject asks for one.
        length: rows, if the subject asks for a number of them.
        call: roles told by the user, in order of the parameters; None to discover.
        layout: letters of the dimensions of q (``bhtd``), told by the user; None to discover.
        library: the library told by the user; None to discover.
        dtype: floating type of inputs.
    """

    encoding: Any = None
    dims: tuple[int, ...] = (64, 128, 32, 16, 8, 96, 80, 256, 6, 512, 4)
    heads: int = 8
    base: float = 10000.0
    length: int = 4099
    call: tuple[str, ...] | None = None
    layout: str | None = None
    library: str | None = None
    dtype: str = "float32"
    measured: tuple[int | None] | None = None
    """The largest position, where it is known already: asking for it leaves traces in a subject that grows."""

    waves: CosSin | None = None
    """Whose cosines and sines a function is given that only applies them; None for those of the wanted encoding."""

    def replace(self, **changes: Any) -> Hints:
        return replace(self, **changes)

    @property
    def wants(self) -> str | None:
        """Where the wanted encoding enters, and of what kind it is."""
        return None if self.encoding is None else str(self.encoding.kind)

    def fixed(self, role: str, dim: int, length: int | None = None) -> Any:
        """The value of a role that says what to build.

        Raises:
            KeyError: the role is not one of these.
        """
        e = self.encoding
        interleaved = bool(getattr(e, "interleaved", False))
        return {
            "dim": dim,
            "base": self.base,
            "heads": self.heads,
            "length": self.length if length is None else length,
            "dropout": 0.0,
            "interleaved": interleaved,
            "not_interleaved": not interleaved,
            "buckets": getattr(e, "num_buckets", 32),
            "bidirectional": bool(getattr(e, "bidirectional", True)),
            "max_distance": getattr(e, "max_distance", 128),
        }[role]


FIXED = (
    *("dim", "base", "heads", "dropout", "interleaved", "not_interleaved"),
    *("buckets", "max_distance", "bidirectional"),
)


def hints_of(encoding: Any, served: int | None = None, **options: Any) -> Hints:
    """Hints from the wanted encoding."""
    if encoding is None:
        return Hints(**options)
    found: dict[str, Any] = {"encoding": encoding}
    if isinstance(encoding, Rotary):
        found["dims"] = tuple(dict.fromkeys([encoding.head_dim, encoding.rotary_dim]))
    elif hasattr(encoding, "dim"):
        found["dims"] = (int(encoding.dim),)
    if hasattr(encoding, "num_heads"):
        found["heads"] = int(encoding.num_heads)
    base = getattr(getattr(encoding, "schedule", None), "base", None)
    if base is not None:
        found["base"] = float(base)
    if served is not None:
        found["length"] = int(min(max(served, 512), 2**15 + 3))
    return Hints(**{**found, **options})
