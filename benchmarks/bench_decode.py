"""One decode step of queries and keys, 1x32x1x128, through the module given what ``prepare`` returned.

    python benchmarks/bench_decode.py [--dtype float32] [--rounds 25]

transformers is given its cos and sin; the cost of ``prepare`` and of transformers' own module stand beside it.
"""

from __future__ import annotations

import argparse

import torch
from measuring import interleaved, machine, table, time_of

from posenc.nn.rotary import RotaryEmbedding


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--rounds", type=int, default=25)
    args = parser.parse_args()
    torch.set_num_threads(1)
    from transformers.models.llama.configuration_llama import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    dtype = getattr(torch, args.dtype)
    rotary, at = RotaryEmbedding(128), torch.tensor([777])
    theirs = LlamaRotaryEmbedding(LlamaConfig(hidden_size=4096, num_attention_heads=32))
    results = {}
    for name, heads in (("32 query heads, 32 key heads", 32), ("32 query heads, 8 key heads", 8)):
        q, k = torch.randn(1, 32, 1, 128).to(dtype), torch.randn(1, heads, 1, 128).to(dtype)
        ready, given = rotary.prepare(at), theirs(q, at[None])
        room = torch.empty_like(q), torch.empty_like(k)
        grads = q.clone().requires_grad_(), k.clone().requires_grad_()

        def with_gradient(f=rotary, x=grads, r=ready):
            with torch.enable_grad():
                return f(*x, r)

        ways = {
            "limit: two empty_like": lambda q=q, k=k: (torch.empty_like(q), torch.empty_like(k)),
            "posenc": lambda q=q, k=k, r=ready: rotary(q, k, r),
            "posenc, out=": lambda q=q, k=k, r=ready, o=room: rotary(q, k, r, out=o),
            "posenc, prepare": lambda: rotary.prepare(at),
            "posenc, a gradient wanted": with_gradient,
            "transformers": lambda q=q, k=k, g=given: apply_rotary_pos_emb(q, k, *g),
            "transformers, cos and sin": lambda q=q: theirs(q, at[None]),
        }
        with torch.no_grad():
            results[name] = interleaved(ways, args.rounds)
    print(f"## One decode step, {args.dtype}\n\n{machine(1)}\n")
    for name, medians in results.items():
        rows = [[way, time_of(t), f"{t / medians['transformers']:.2f}"] for way, t in medians.items()]
        print(table([name, "time", "x transformers"], rows))


if __name__ == "__main__":
    main()
