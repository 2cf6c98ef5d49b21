"""ALiBi as channels of queries and keys beside a full mask and flex_attention: memory, time, error. Causal attention.

    python benchmarks/bench_bias_channels.py [--tokens 8192] [--heads 8 32] [--dims 64 128] [--runs 3] [--quick]

Every way runs in a process of its own, so that the peak of its resident memory is its own: what is counted comes on top
of queries, keys, values and the libraries, and includes the result (and, for flex_attention, the compiler). The time is
that of one attention with the mask, the channels' positions or the compiled kernel ready: processor time of one thread,
medians. The error is the largest of the last 64 tokens against float64 on the same inputs, beside that of rounding the
exact result to the dtype. A way that would not fit into free memory is left out and named.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
WAYS = {
    "no bias (limit)": "plain",
    "ALiBi as channels (posenc)": "channels",
    "SDPA with a full mask": "mask",
    "flex_attention, compiled": "flex",
}
BYTES = {"float32": 4, "bfloat16": 2}


def one(way: str, tokens: int, heads: int, dim: int, dtype_name: str, runs: int) -> dict[str, float]:
    """Run one way in this process."""
    import torch
    from torch.nn import functional

    from posenc.nn.channels import AlibiChannels

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dtype = getattr(torch, dtype_name)
    q, k, v = (torch.randn(1, heads, tokens, dim).to(dtype) for _ in range(3))
    channels = AlibiChannels(heads)
    slopes = torch.as_tensor(channels.derive()["slopes"])
    attend = functional.scaled_dot_product_attention
    warm = torch.randn(1, 1, 64, 16, dtype=dtype)
    attend(warm, warm, warm, is_causal=True)

    def ready():
        if way == "plain":
            return lambda: attend(q, k, v, is_causal=True)
        if way == "channels":
            positions = channels.prepare(torch.arange(tokens))

            def with_channels():
                wide_q, wide_k = channels(q, k, positions)
                wide_v = functional.pad(v, (0, wide_k.shape[-1] - dim))
                return attend(wide_q, wide_k, wide_v, is_causal=True, scale=dim**-0.5)[..., :dim]

            return with_channels
        if way == "mask":
            at = torch.arange(tokens, dtype=torch.float32)
            mask = torch.empty(1, heads, tokens, tokens, dtype=dtype)
            for i in range(0, tokens, 256):  # some rows at a time, so that memory holds little beside the mask
                distance = at - at[i : i + 256, None]
                distance.masked_fill_(distance > 0, -torch.inf)
                mask[0, :, i : i + 256] = (distance * slopes.float()[:, None, None]).to(dtype)
            return lambda: attend(q, k, v, attn_mask=mask)
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        blocks = create_block_mask(lambda b, h, i, j: i >= j, None, None, tokens, tokens, device="cpu")
        m = slopes.float()
        compiled = torch.compile(flex_attention, dynamic=False)
        return lambda: compiled(q, k, v, score_mod=lambda s, b, h, i, j: s + m[h] * (j - i), block_mask=blocks)

    with torch.no_grad():
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before = status("VmRSS")
        attention = ready()
        result = attention()
        memory = (status("VmHWM") - before) / 1024
        times = []
        for _ in range(runs):
            start = time.thread_time()
            result = attention()
            times.append(time.thread_time() - start)
        error, rounding = errors(q, k, v, result, slopes if way != "plain" else torch.zeros(heads))
    return {"seconds": statistics.median(times), "memory": memory, "error": error, "rounding": rounding}


def errors(q, k, v, result, slopes) -> tuple[float, float]:
    """Largest error of the last 64 tokens, and that of rounding the exact result alone."""
    import torch

    tokens, dim = q.shape[2:]
    rows = torch.arange(tokens - 64, tokens)
    worst = rounding = 0.0
    for head in range(q.shape[1]):
        at = torch.arange(tokens)
        scores = q[0, head, rows].double() @ k[0, head].double().T / dim**0.5
        scores += (at - rows[:, None]).double() * slopes[head].double()
        exact = scores.masked_fill(at > rows[:, None], -torch.inf).softmax(-1) @ v[0, head].double()
        worst = max(worst, float((result[0, head, rows].double() - exact).abs().max()))
        rounding = max(rounding, float((exact.to(result.dtype).double() - exact).abs().max()))
    return worst, rounding


def status(name: str) -> int:
    """A line of this process's status, in KiB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def free_gib() -> float:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--heads", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"], choices=BYTES)
    parser.add_argument("--runs", type=int, default=3, help="attentions timed in each process")
    parser.add_argument("--quick", action="store_true", help="1024 tokens")
    parser.add_argument("--one", nargs=4, metavar=("WAY", "HEADS", "DIM", "DTYPE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    tokens = 1024 if args.quick else args.tokens
    if args.one:
        way, heads, dim, dtype = args.one
        print(json.dumps(one(way, tokens, int(heads), int(dim), dtype, args.runs)))
        return
    import torch
    from measuring import machine, table, time_of

    print(f"{machine(1)}, torch {torch.__version__}; {tokens} tokens, causal, batch 1\n")
    for dtype in args.dtypes:
        for heads in args.heads:
            for dim in args.dims:
                rows, found = [], {}
                for name, way in WAYS.items():
                    needed = (heads * tokens**2 * BYTES[dtype] * (way == "mask")) / 2**30 + 2
                    if free_gib() < needed:
                        print(f"not measured: {name}, {dtype}, {heads} heads ({needed:.0f} GiB are not free)")
                        continue
                    flags = ["--tokens", str(tokens), "--runs", str(args.runs)]
                    command = [sys.executable, __file__, *flags, "--one", way, str(heads), str(dim), dtype]
                    run = subprocess.run(command, capture_output=True, text=True)
                    if run.returncode:
                        print(f"not measured: {name} ({(run.stderr.strip().splitlines() or ['killed'])[-1][:120]})")
                        continue
                    f = found[way] = json.loads(run.stdout.splitlines()[-1])
                    rows.append([
                        name, f"{f['memory']:.0f} MiB", time_of(f["seconds"]), f"{f['error']:.1e}",
                        f"{f['rounding']:.1e}",
                    ])  # fmt: skip
                print(f"{dtype}, {heads} heads of {dim}\n")
                print(table(["way", "memory", "time", "largest error", "of rounding alone"], rows))
                if "mask" in found and "channels" in found:
                    ours, mask = found["channels"], found["mask"]
                    quotients = [f"memory {ours['memory'] / mask['memory']:.3f}"]
                    quotients += [f"time {ours['seconds'] / mask['seconds']:.2f}"]
                    quotients += [f"error {ours['error'] / mask['error']:.2f}"]
                    print(f"channels / full mask: {', '.join(quotients)}\n", flush=True)


if __name__ == "__main__":
    main()
