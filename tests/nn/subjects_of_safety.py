"""Every encoding of scores, channels and content, and attention with each, as a function of tokens and positions."""

from __future__ import annotations

import torch
from torch import nn

from posenc.nn import Attention, ContentEncoding, Positions, QueryKeyEncoding, ScoreEncoding, build

HEADS, HEAD_DIM = 3, 4
DIM = HEADS * HEAD_DIM
SCORES = (
    "alibi(3)",
    "alibi(3, symmetric=True)",
    "t5_bias(3, num_buckets=8, max_distance=16)",
    "kerple(3)",
    "kerple(3, form='power')",
    "fire(3, hidden=5)",
    "sandwich(3, dim=8)",
    "sinusoidal_bias(3, sinusoid=sinusoidal(6))",
    "sinusoidal_bias(3, sinusoid=sinusoidal(6), limit=4)",
    "shaw(4, limit=3, values=False)",
    "relative_sinusoid(sinusoidal(4))",
    "relative_sinusoid(sinusoidal(4), limit=5)",
    "transformer_xl(4, num_heads=3)",
    "transformer_xl(4, num_heads=3, limit=5)",
    "disentangled(4, num_heads=3, span=8)",
    "disentangled(4, num_heads=3, span=8, max_distance=32, norm=True)",
    "cope(4, positions=5)",
)
CONTENT = (
    "forgetting(12, num_heads=3)",
    "forgetting(12, num_heads=3, form='softplus')",
    "selective_rotary(12, head_dim=4, num_heads=3, rank=5)",
)
CHANNELS = ("alibi(3)", "sandwich(3, dim=8)", "sinusoidal_bias(3, sinusoid=sinusoidal(6))")
ATTENTION = (
    "",
    "rotary(4)",
    "alibi(3)",
    "t5_bias(3)",
    "shaw(4, limit=3)",
    "cope(4)",
    "rotary(4, rotary_dim=2) + query_scale(0.1, original=3)",
    "rotary(4) + forgetting(12, num_heads=3)",
    "selective_rotary(12, head_dim=4, num_heads=3)",
)


class Layer(nn.Module):
    """Queries and keys cut from the tokens, and their scores with an encoding."""

    def __init__(self, encoding):
        super().__init__()
        self.encoding = encoding

    def forward(self, x, ids):
        heads = x.unflatten(-1, (HEADS, HEAD_DIM)).transpose(1, 2)
        q, k, at = heads, heads.flip(-1) * 0.5, Positions(ids)
        if isinstance(self.encoding, ContentEncoding):
            where, _ = self.encoding(x, at)
            q, k = self.encoding.applied(q, k, self.encoding.applied.prepare(where))
        elif isinstance(self.encoding, QueryKeyEncoding):
            q, k = self.encoding(q, k, self.encoding.prepare(at))
        scores = (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1) / 2  # no product that autocast would round
        if isinstance(self.encoding, ScoreEncoding):
            hidden = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
            scores = self.encoding(scores.masked_fill(hidden, -torch.inf), q, k, at, at)
        return scores.tril()


class Attending(nn.Module):
    """Attention, its result alone."""

    def __init__(self, encodings):
        super().__init__()
        self.attention = Attention(DIM, HEADS, encodings or ())

    def forward(self, x, ids):
        return self.attention(x, Positions(ids))[0]


ALIKE = (
    "alibi(3, symmetric=True)",
    "kerple(3, form='power')",
    "disentangled(4, num_heads=3, span=8, max_distance=32, norm=True)",
    "forgetting(12, num_heads=3, form='softplus')",
)
"""Subjects that differ from another one by a number or a function only: not compiled and exported apart."""
SUBJECTS = {
    **{line: lambda line=line: Layer(build(line)) for line in (*SCORES, *CONTENT)},
    **{f"{line} as channels": lambda line=line: Layer(build(line, channels=True)) for line in CHANNELS},
    **{f"attention with {line or 'nothing'}": lambda line=line: Attending(line) for line in ATTENTION},
}


def made(name, seed=11):
    """A subject with trained numbers that differ."""
    module = SUBJECTS[name]()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) * 0.5)
    return module


def inputs(tokens=7, batch=2, dtype=torch.float32):
    """Tokens and positions."""
    generator = torch.Generator().manual_seed(tokens)
    return torch.randn(batch, tokens, DIM, generator=generator).to(dtype), torch.arange(tokens) + 1001
