"""One config.json, as a dict, to a :class:`posenc.records.Reading`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from posenc.errors import FormatError
from posenc.formats.huggingface import registry
from posenc.formats.huggingface.keys import Keys
from posenc.records import Reading


def read_config(
    config: Mapping[str, Any],
    *,
    name: str,
    source: str,
    format: Literal["config", "gguf", "folder", "hub", "catalogue"] = "config",
) -> Reading:
    """Read the positions of a model from a transformers config.

    Args:
        config: the parsed ``config.json``.
        name: what the user asked for.
        source: where the config comes from.
        format: what kind of input it was found in.

    Raises:
        FormatError: it is no config, its type is unknown, or a key breaks a rule.
        SpecError: its numbers make an encoding that cannot exist.

    >>> at = read_config({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 3,
    ...                   "rope_theta": 5e5, "max_position_embeddings": 8192}, name="tiny", source="doctest")
    >>> str(at.encodings()[0])
    'rotary(32, base=500000)'
    """
    if not isinstance(config, Mapping):
        raise FormatError("a config is a JSON object", type(config).__name__)
    keys = Keys(config)
    parts = registry.parts(keys)
    faults = [fault for part in parts for encoding in part.positions.encodings for fault in encoding.faults]
    model_type = config.get("model_type")
    return Reading(
        name=name,
        format=format,
        source=source,
        model_type=model_type if isinstance(model_type, str) else None,
        parts=parts,
        assumed=tuple(keys.assumed.values()),
        unread=keys.unread(),
        faults=tuple(dict.fromkeys((*faults, *keys.faults))),
        notes=tuple(dict.fromkeys(keys.notes)),
    )
