"""Rotation on an accelerator: the compiled plain path beside ``clone`` and transformers, timed by CUDA events.

    python benchmarks/bench_gpu.py [--dtype bfloat16] [--rounds 30]

It claims nothing until it has run on such a machine; without one it says so and ends. The C kernels are for the CPU.
"""

from __future__ import annotations

import argparse
import statistics

import torch
from measuring import table, time_of

from posenc.nn.rotary import RotaryEmbedding

SHAPES = [(1, 32, 1, 128), (4, 32, 2048, 128), (1, 32, 32768, 128), (8, 16, 4096, 64)]


def seconds(way, rounds: int) -> float:
    """Median time of one call on the device; the caches are flushed in between."""
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    times = []
    for _ in range(rounds):
        flush.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        way()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        print("No CUDA device: nothing measured, nothing claimed.")
        return
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    dtype = getattr(torch, args.dtype)
    print(f"## Rotation on {torch.cuda.get_device_name()}, {args.dtype}, torch {torch.__version__}\n")
    for shape in SHAPES:
        q, k = (torch.randn(shape, device="cuda").to(dtype) for _ in range(2))
        rotary, ids = RotaryEmbedding(shape[-1]).to("cuda"), torch.arange(shape[2], device="cuda")
        ready = rotary.prepare(ids)
        cos, sin = (torch.cat((t, t), -1)[0].to(dtype) for t in ready)
        whole = torch.compile(lambda q, k, ids, r=rotary: r(q, k, r.prepare(ids)))
        given = torch.compile(lambda q, k, cos, sin, r=rotary: r(q, k, (cos, sin)))
        theirs = torch.compile(apply_rotary_pos_emb)
        ways = {
            "limit: clone": lambda q=q, k=k: (q.clone(), k.clone()),
            "posenc, eager": lambda q=q, k=k, r=rotary, t=ready: r(q, k, t),
            "posenc, compiled": lambda q=q, k=k, t=ready, f=given: f(q, k, *t),
            "posenc, compiled with prepare": lambda q=q, k=k, ids=ids, f=whole: f(q, k, ids),
            "transformers, eager": lambda q=q, k=k, c=cos, s=sin: apply_rotary_pos_emb(q, k, c, s),
            "transformers, compiled": lambda q=q, k=k, c=cos, s=sin, f=theirs: f(q, k, c, s),
        }
        with torch.no_grad():
            for way in ways.values():
                way()
                way()
            medians = {name: seconds(way, args.rounds) for name, way in ways.items()}
        limit = medians["limit: clone"]
        print(
            table(
                ["x".join(map(str, shape)), "time", "x clone"],
                [[n, time_of(t), f"{t / limit:.2f}"] for n, t in medians.items()],
            )
        )


if __name__ == "__main__":
    main()
