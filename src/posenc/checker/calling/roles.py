"""What the arguments of a subject stand for, by their names; unknown names are tried in the usual orders."""

from __future__ import annotations

import inspect as signatures
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from posenc.errors import SubjectError

NAMES: dict[str, tuple[str, ...]] = {
    "x": (
        "x",
        "t",
        "tensor",
        "input",
        "inputs",
        "q_or_k",
        "hidden_states",
        "vec",
        "embeddings",
        "token_embedding",
        "x_in",
        "array",
        "feature",
        "u",
    ),
    "q": ("q", "query", "queries", "xq", "q_embed", "query_states", "query_layer"),
    "k": ("k", "key", "keys", "xk", "k_embed", "key_states", "key_layer"),
    "v": ("v", "value", "values", "xv", "value_states", "value_layer"),
    "cos": ("cos", "cos_", "freqs_cos", "cosines", "cos_cached", "cos_freqs"),
    "sin": ("sin", "sin_", "freqs_sin", "sines", "sin_cached", "sin_freqs"),
    "angles": ("freqs", "angles", "rotary_freqs", "rope_freqs"),
    "complex": ("freqs_cis", "freqs_complex", "freq_cis"),
    "positions": (
        "positions",
        "position_ids",
        "position",
        "pos",
        "input_pos",
        "pos_ids",
        "indices",
        "token_positions",
        "p",
        "input_positions",
        "timesteps",
        "timestep",
        "times",
        "time",
        "seq_pos",
        "position_id",
        "coords",
        "ids",
        "index",
    ),
    "offset": (
        "offset",
        "start_pos",
        "start_index",
        "start",
        "past_key_values_length",
        "past_length",
        "seqlen_offset",
        "cache_offset",
        "pos_offset",
    ),
    "length": (
        "seq_len",
        "seq_length",
        "seqlen",
        "length",
        "max_len",
        "max_length",
        "n",
        "end",
        "max_seq_len",
        "max_position_embeddings",
        "n_positions",
        "num_positions",
        "context_length",
        "max_position",
        "max_seqlen",
        "sequence_length",
        "num_tokens",
        "n_position",
        "block_size",
        "num_embeddings",
        "rows",
        "seq",
        "max_seq_length",
    ),
    "dim": (
        "dim",
        "d",
        "d_model",
        "head_dim",
        "embedding_dim",
        "hidden_size",
        "rotary_dim",
        "embed_dim",
        "channels",
        "d_head",
        "dims",
        "depth",
        "hidden_dim",
        "d_hid",
        "emb_dim",
        "embedding_size",
        "n_dim",
        "size_per_head",
        "dim_head",
        "head_size",
        "model_dim",
        "width",
        "embed_size",
    ),
    "base": (
        "base",
        "theta",
        "rope_theta",
        "rotary_base",
        "max_period",
        "max_timescale",
        "rope_base",
        "freq_base",
        "max_wavelength",
        "wavelength",
    ),
    "heads": (
        "heads",
        "num_heads",
        "n_heads",
        "n_head",
        "nheads",
        "num_attention_heads",
        "attn_heads",
        "total_num_heads",
    ),
    "n_q": ("query_length", "q_len", "qlen", "seqlen_q", "n_q", "len_q", "num_queries", "q_length"),
    "n_k": ("key_length", "k_len", "klen", "seqlen_k", "n_k", "len_k", "num_keys", "k_length", "kv_len"),
    "relative": (
        "relative_position",
        "relative_positions",
        "rel_pos",
        "relative",
        "rel",
        "distance",
        "distances",
        "relative_pos",
    ),
    "mask": ("attention_mask", "mask", "padding_mask", "key_padding_mask", "attn_mask"),
    "document": ("document", "document_ids", "doc_ids", "segment_ids", "sequence_ids", "documents"),
    "interleaved": ("interleaved", "traditional", "rotary_interleaved"),
    "not_interleaved": ("is_neox_style", "half", "neox"),
    "scaling": ("rope_scaling", "scaling"),
    "layer": ("layer_idx", "layer", "layer_id", "layer_type"),
    "dropout": ("dropout", "drop", "dropout_p", "p_drop", "drop_rate", "dropout_prob"),
    "config": ("config", "cfg", "args", "params", "model_args"),
    "scores": ("scores", "attention_scores", "sim", "qk_dots", "logits", "attn_scores", "attention_logits", "dots"),
    "ready": ("ready",),
    "q_at": ("q_at", "query_positions"),
    "k_at": ("k_at", "key_positions"),
    "buckets": ("num_buckets", "n_buckets", "relative_attention_num_buckets"),
    "max_distance": ("max_distance", "relative_attention_max_distance"),
    "height": ("height", "h", "h_patches", "grid_h", "grid_height"),
    "columns": ("columns", "cols", "w", "w_patches", "grid_w", "grid_width"),
    "grid": ("grid_size", "grid", "grid_shape"),
}
ROLE_OF = {name: role for role, names in NAMES.items() for name in names}

NOTATION = ROLE_OF | {role: role for role in NAMES}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a subject.

    Args:
        name: its name.
        role: what the name stands for; None if it is not known.
        required: it has no default.
        keyword: it can only be given by name.
    """

    name: str
    role: str | None
    required: bool
    keyword: bool = False


@dataclass(frozen=True)
class Signature:
    """The parameters of a subject, and whether they could be read at all."""

    parameters: tuple[Parameter, ...] = ()
    readable: bool = True
    open_ended: bool = field(default=False)

    def role(self, role: str) -> Parameter | None:
        """The parameter with a role; required ones first."""
        with_it = [p for p in self.parameters if p.role == role]
        return next((p for p in with_it if p.required), with_it[0] if with_it else None)

    @property
    def required(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.required)


def signature_of(function: Callable[..., Any]) -> Signature:
    """Read the parameters of a callable; a module's are those of its ``forward``."""
    target = function
    forward = getattr(function, "forward", None)
    if callable(forward) and not isinstance(function, type):
        target = forward
    try:
        found = signatures.signature(target)
    except (TypeError, ValueError):
        return Signature(readable=False)
    parameters = []
    spread = False
    for name, p in found.parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            spread = True
            continue
        parameters.append(Parameter(name, ROLE_OF.get(name.lower()), p.default is p.empty, p.kind is p.KEYWORD_ONLY))
    return Signature(tuple(parameters), True, spread)


GUESSES: dict[int, tuple[tuple[str, ...], ...]] = {
    1: (("x",), ("positions",), ("length",), ("relative",)),
    2: (
        ("x", "positions"),
        ("q", "k"),
        ("length", "dim"),
        ("dim", "length"),
        ("positions", "dim"),
        ("n_q", "n_k"),
        ("x", "offset"),
    ),
    3: (
        ("q", "k", "positions"),
        ("x", "cos", "sin"),
        ("dim", "length", "base"),
        ("q", "k", "v"),
        ("heads", "n_q", "n_k"),
    ),
    4: (("q", "k", "cos", "sin"), ("q", "k", "v", "positions"), ("x", "cos", "sin", "positions")),
    5: (("q", "k", "cos", "sin", "positions"),),
}


def bindings(signature: Signature, told: tuple[str, ...] | None = None) -> Iterator[dict[str, str]]:
    """Ways to give parameters roles: ``{parameter: role}`` for those that are given, the likeliest first.

    Args:
        signature: of the subject.
        told: roles in order of the parameters, if the user said them.

    Raises:
        SubjectError: the user named more roles than there are parameters.
    """
    parameters = signature.parameters
    if told is not None:
        if len(told) > len(parameters) and parameters:
            raise SubjectError(f"the subject takes {len(parameters)} arguments", f"{len(told)} roles")
        names = [p.name for p in parameters] or [f"#{i}" for i in range(len(told))]
        yield dict(zip(names, told, strict=False))
        return
    required = signature.required
    known = {p.name: p.role for p in required if p.role}
    if len(known) == len(required):
        optional = [
            p
            for p in parameters
            if not p.required and p.role in ("positions", "offset", "k", "length", "dim", "base", "heads", "n_k")
        ]
        roles = set(known.values())
        useful = {
            p.name: p.role
            for p in optional
            if p.role and p.role not in roles and p.role not in ("k", "length", "offset")
        }
        if required or useful:
            yield {**known, **useful}
            if useful:
                yield dict(known)
        else:
            first = [p for p in parameters if p.role][:2]
            for p in first:
                yield {p.name: str(p.role)}
    count = len(required) or (2 if signature.open_ended or not parameters else 0)
    names = [p.name for p in required] or [f"#{i}" for i in range(count)]
    for roles_in_order in GUESSES.get(len(names), ()):
        guess = dict(zip(names, roles_in_order, strict=True))
        if len(names) == 1 or all(known.get(name, role) == role for name, role in guess.items()):
            yield guess
    if not parameters and not signature.readable:
        for one in (("x", "positions"), ("x",)):
            yield {f"#{i}": role for i, role in enumerate(one)}
