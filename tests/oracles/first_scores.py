"""Scores of a transformers model's first layer, in float64: the model's own queries and keys, multiplied by loops.

The model runs; its attention function is replaced by one that keeps the queries and keys it is handed (after any
rotation) and the factor. Two of transformers' modules compute in float32 whatever the model's dtype is; they are
replaced by float64 ones written here.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from transformers import AttentionInterface


def scores(model, **inputs):
    """``(heads, tokens, tokens)`` of layer 0 for one sentence; the model must be float64."""
    kept = []

    def capture(module, query, key, value, attention_mask, scaling=None, **kwargs):
        scaling = query.size(-1) ** -0.5 if scaling is None else scaling
        kept.append((query.detach().numpy()[0], key.detach().numpy()[0], scaling))
        out = value.repeat_interleave(query.size(1) // value.size(1), dim=1)
        return out.transpose(1, 2).contiguous(), None

    AttentionInterface.register("posenc_capture", capture)
    model.set_attn_implementation("posenc_capture")
    with torch.no_grad():
        model(**inputs)
    query, key, scaling = kept[0]
    assert query.dtype == np.float64
    heads, tokens, _ = query.shape
    made = np.zeros((heads, tokens, tokens))
    for h in range(heads):
        for m in range(tokens):
            for n in range(tokens):
                made[h, m, n] = float(query[h, m] @ key[h // (heads // len(key)), n]) * scaling
    return made


class Norm(torch.nn.Module):
    """RMS normalisation without a cast."""

    def __init__(self, weight, eps):
        super().__init__()
        self.weight, self.eps = weight, eps

    def forward(self, x):
        return torch.nn.functional.rms_norm(x, x.shape[-1:], self.weight, self.eps)


class Turn(torch.nn.Module):
    """cos and sin for transformers' ``apply_rotary_pos_emb``, from the standard library."""

    def __init__(self, head_dim, base):
        super().__init__()
        self.head_dim, self.base = head_dim, base

    def forward(self, x, position_ids):
        half = [self.base ** -(2 * i / self.head_dim) for i in range(self.head_dim // 2)]
        angle = [[p * t for t in half + half] for p in position_ids[0].tolist()]
        return tuple(
            torch.tensor([[[f(a) for a in row] for row in angle]], dtype=torch.float64) for f in (math.cos, math.sin)
        )


def in_float64(decoder, base):
    """A Llama-like model in float64 throughout its first layer."""
    decoder = decoder.double().eval()
    attention = decoder.layers[0].self_attn
    norm = decoder.layers[0].input_layernorm
    decoder.layers[0].input_layernorm = Norm(norm.weight, norm.variance_epsilon)
    for name in ("q_norm", "k_norm"):
        if hasattr(attention, name):
            norm = getattr(attention, name)
            setattr(attention, name, Norm(norm.weight, norm.variance_epsilon))
    decoder.rotary_emb = Turn(attention.head_dim, base)
    return decoder
