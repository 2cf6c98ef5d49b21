"""Settings that a constructor takes as one object: a stand-in with the wanted numbers, or its dataclass filled in."""

from __future__ import annotations

import dataclasses
import inspect as signatures
import sys
import typing
from collections.abc import Iterator
from typing import Any

from posenc.checker.calling.hints import Hints
from posenc.checker.calling.roles import ROLE_OF
from posenc.errors import SubjectError
from posenc.spec import Learned, Rotary

MODEL_WIDTH = ("hidden_size", "n_embd", "d_model", "embed_dim", "emb_dim", "model_dim", "dim", "width", "embedding_dim")
HEAD_WIDTH = ("head_dim", "head_size", "d_head", "dim_head", "size_per_head", "kv_channels", "attention_head_dim")
ROTATED = ("rotary_dim", "rotary_ndims", "rope_dim", "n_rot", "qk_rope_head_dim", "rot_dim", "rope_head_dim")
FRACTION = ("partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_percent", "rotary_percentage")
KEY_HEADS = ("num_key_value_heads", "n_kv_heads", "num_kv_heads", "n_kv_head", "n_query_groups", "n_kv_groups")
PLAIN: dict[str, Any] = {
    **dict.fromkeys(("num_hidden_layers", "n_layers", "n_layer", "num_layers", "depth"), 2),
    "vocab_size": 101,
    "max_batch_size": 2,
    **dict.fromkeys(("norm_eps", "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "eps"), 1e-6),
    "initializer_range": 0.02,
    **dict.fromkeys(("attention_dropout", "hidden_dropout_prob", "attention_probs_dropout_prob", "resid_pdrop"), 0.0),
    **dict.fromkeys(("bias", "attention_bias", "qkv_bias"), False),
    "rope_scaling": None,
}
"""Settings that say nothing about positions and that a constructor may read beside those that do."""


def value_of(name: str, hints: Hints) -> Any:
    """The value of a setting by its name.

    Raises:
        KeyError: nothing is known by that name.
    """
    key, e = name.lower(), hints.encoding
    rotary = isinstance(e, Rotary)
    head = e.head_dim if rotary else hints.dims[0]
    if key in HEAD_WIDTH:
        return head
    if key in ROTATED:
        return e.rotary_dim if rotary else head
    if key in FRACTION:
        return e.rotary_dim / e.head_dim if rotary else 1.0
    if key in MODEL_WIDTH:
        return hints.heads * head if rotary or hasattr(e, "num_heads") else head
    if key in KEY_HEADS:
        return hints.heads
    if key == "rope_parameters":
        return {"rope_type": "default", "rope_theta": hints.base}
    if key in PLAIN:
        return PLAIN[key]
    role = ROLE_OF.get(key)
    if role == "length":
        return rows_of(e, hints)
    if role in ("base", "heads", "buckets", "max_distance", "interleaved", "not_interleaved", "dropout"):
        return hints.fixed(role, head)
    raise KeyError(name)


def rows_of(e: Any, hints: Hints) -> int:
    """A learned table has the rows it is wanted with; any other as many as are looked at."""
    return e.shape[0] + e.offset if isinstance(e, Learned) and len(e.shape) == 1 else hints.length


class Settings:
    """Settings as attributes or by key: names in use have values, others are missing, so that defaults are taken."""

    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self._read: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            self._read[name] = value_of(name, self._hints)
        except KeyError:
            raise AttributeError(f"no value is known for the setting {name}") from None
        return self._read[name]

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError as error:
            raise KeyError(str(error)) from None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and hasattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)

    def __deepcopy__(self, memo: Any) -> Settings:
        return Settings(self._hints)

    def __repr__(self) -> str:
        return f"settings({', '.join(f'{k}={v!r}' for k, v in self._read.items())})"


def annotations_of(cls: type) -> dict[str, Any]:
    """The types of a constructor's parameters, where they can be resolved."""
    try:
        return typing.get_type_hints(cls.__init__)  # type: ignore[misc]
    except Exception:
        return dict(getattr(cls.__init__, "__annotations__", {}))  # type: ignore[misc]


def settings_for(name: str, annotation: Any, hints: Hints) -> Any:
    """What is given for a parameter that takes settings: its own class filled in, or the stand-in.

    Raises:
        KeyError: the parameter is none of settings.
    """
    kind = _plain(annotation)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _filled(kind, hints)
    if ROLE_OF.get(name.lower()) == "config" or name.lower().endswith(("config", "cfg", "args", "params", "settings")):
        return Settings(hints)
    raise KeyError(name)


def by_type(name: str, annotation: Any) -> Any:
    """A harmless value for a parameter that says nothing about positions.

    Raises:
        KeyError: neither its name nor its type says what it is.
    """
    kind = _plain(annotation)
    torch: Any = sys.modules.get("torch")
    if torch is not None and (kind is torch.dtype or name in ("dtype", "torch_dtype")):
        return torch.float32
    if torch is not None and (kind is torch.device or name == "device"):
        return torch.device("cpu")
    if ROLE_OF.get(name.lower()) == "layer":
        return 0
    plain = {str: "", bool: False}
    if kind in plain:
        return plain[kind]
    if type(None) in typing.get_args(annotation):
        return None
    raise KeyError(name)


def _filled(kind: type, hints: Hints) -> Any:
    """A dataclass with the wanted encoding's numbers; fields that are not known keep their defaults.

    Raises:
        SubjectError: a field without default has no value that is known.
    """
    given: dict[str, Any] = {}
    unknown: list[str] = []
    types = annotations_of(kind)
    for p in signatures.signature(kind).parameters.values():
        required = p.default is p.empty
        if not required and (hints.encoding is None or p.name in PLAIN):
            continue
        try:
            given[p.name] = value_of(p.name, hints)
        except KeyError:
            if required:
                try:
                    given[p.name] = by_type(p.name, types.get(p.name))
                except KeyError:
                    unknown.append(p.name)
    if unknown:
        raise SubjectError(f"{kind.__name__} can be filled in", f"no value for {', '.join(unknown)}")
    return kind(**given)


def _plain(annotation: Any) -> Any:
    """The type behind ``Optional``."""
    inner = [a for a in typing.get_args(annotation) if a is not type(None)]
    return inner[0] if len(inner) == 1 and type(None) in typing.get_args(annotation) else annotation
