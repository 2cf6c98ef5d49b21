"""JSON both ways: always complete, with a schema version, exact for every float."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from posenc.errors import SpecError
from posenc.spec.encodings import Encoding
from posenc.spec.model import ModelPositions
from posenc.spec.value import Value, as_spec_error

SCHEMA = 1


@cache
def _encodings() -> TypeAdapter[Any]:
    """Built on first use: it takes a tenth of a start."""
    return TypeAdapter(Encoding)


def to_json(value: Value, indent: int | None = None) -> str:
    """Write an encoding or a model's positions with every field and the schema version.

    >>> from posenc.spec import Alibi
    >>> to_json(Alibi(12))
    '{"schema":1,"kind":"alibi","num_heads":12,"max_bias":8.0,"symmetric":false}'
    """
    if isinstance(value, ModelPositions):
        return value.model_dump_json(indent=indent)
    body = value.model_dump_json(indent=indent)
    gap = "" if indent is None else "\n" + " " * indent
    colon = ":" if indent is None else ": "
    return "{" + gap + f'"schema"{colon}{SCHEMA},' + body[1:]


def from_json(text: str | bytes) -> Any:
    """Read what :func:`to_json` wrote.

    Raises:
        SpecError: not JSON, another schema version, or an impossible value.
    """
    import json

    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError("a value is read from JSON", str(error)) from None
    if not isinstance(fields, dict) or fields.get("schema") != SCHEMA or isinstance(fields.get("schema"), bool):
        seen = fields.get("schema") if isinstance(fields, dict) else type(fields).__name__
        raise SpecError(f'the JSON of a value carries "schema": {SCHEMA}', seen)
    try:
        if "kinds" in fields:
            return ModelPositions.model_validate_json(text)
        del fields["schema"]
        return _encodings().validate_json(json.dumps(fields))
    except ValidationError as error:
        raise as_spec_error(error, "value") from None
