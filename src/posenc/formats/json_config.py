"""JSON of a config, read in bounded time and memory: no NaN, no infinity, no repeated key, no endless nesting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from posenc.errors import FormatError

MAX_BYTES = 2**22
"""4 MiB; the largest published configs, with 20,000 labels, stay below two. Empty lists of this size take 100 MB."""


def load_object(path: str | Path, what: str = "a config") -> dict[str, Any]:
    """Read the JSON object in a file.

    Raises:
        FormatError: no such file, too large, not UTF-8, not JSON, NaN or infinity in it, a repeated key, or no object.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise FormatError(f"{what} can be read", f"{path}: {error.strerror or error}") from None
    return parse_object(raw, f"{what} ({path.name})")


def parse_object(raw: bytes, what: str = "a config", limit: int = MAX_BYTES) -> dict[str, Any]:
    """Parse the bytes of one JSON object; see :func:`load_object`.

    >>> parse_object(b'{"rope_theta": 5e5}')
    {'rope_theta': 500000.0}
    """
    if len(raw) > limit:
        raise FormatError(f"{what} has at most {limit} bytes", "more")
    try:
        found = json.loads(raw.decode("utf-8-sig"), parse_constant=_refuse, object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        raise FormatError(f"{what} is UTF-8", f"byte {raw[error.start]:#04x} at {error.start}") from None
    except _RuleError as error:
        raise FormatError(f"{what} {error.rule}", error.seen) from None
    except RecursionError:
        raise FormatError(f"{what} is not nested this deeply") from None
    except ValueError as error:
        raise FormatError(f"{what} is JSON", str(error)) from None
    if not isinstance(found, dict):
        raise FormatError(f"{what} is a JSON object", type(found).__name__)
    return found


class _RuleError(Exception):
    """A rule of ours that JSON does not have, on its way through the parser."""

    def __init__(self, rule: str, seen: object) -> None:
        super().__init__(rule)
        self.rule, self.seen = rule, seen


def _refuse(name: str) -> Any:
    raise _RuleError("has finite numbers only", name)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        repeated = next(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]
        raise _RuleError("has each key once", repeated)
    return found
