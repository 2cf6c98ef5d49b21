"""Rotation of queries and keys beside the limits of memory and beside other implementations, in one process per case.

    python benchmarks/bench_rotation.py [--quick] [--threads 1] [--case float32 1x32x2048x128]

Each case runs in a process of its own, for an allocator remembers what came before. Limits: ``copy_`` into memory
that is there, ``clone`` into fresh memory, ``mul_`` in place. Every way gets queries and keys and returns both. An
error is the largest distance to the rotation in float64 of the same inputs. Gradients: forward and backward beside two
clones of both.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time

import peers as files
import torch
from measuring import interleaved, machine, table, time_of

from posenc.nn.rotary import RotaryEmbedding

CASES = [
    ("float32", "1x32x2048x128"),
    ("float32", "1x8x8192x64"),
    ("float32", "4x8x512x64"),
    ("bfloat16", "1x32x2048x128"),
    ("bfloat16", "1x8x8192x64"),
    ("bfloat16", "4x8x512x64"),
]
QUICK = [CASES[2], CASES[5]]


def exact(x, angle, adjacent):
    """The rotation in float64."""
    x, c, s = x.double(), angle.cos(), angle.sin()
    if adjacent:
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((a * c - b * s, b * c + a * s), -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat((a * c - b * s, b * c + a * s), -1)


def peers(q, k, angle):
    """Other implementations that are installed: name -> (function of q and k, adjacent pairs, note)."""
    found = {}
    width, tokens, dtype = q.shape[-1], q.shape[-2], q.dtype
    cos, sin = angle.cos().float(), angle.sin().float()
    full = (torch.cat((cos, cos), -1).to(dtype)[None], torch.cat((sin, sin), -1).to(dtype)[None])

    def transformers():
        apply = importlib.import_module("transformers.models.llama.modeling_llama").apply_rotary_pos_emb
        return lambda q, k: apply(q, k, *full)

    def rotary_embedding_torch():
        module = importlib.import_module("rotary_embedding_torch").RotaryEmbedding(width, cache_max_seq_len=tokens)
        module.rotate_queries_or_keys(torch.zeros(1, 1, tokens, width))  # fill its cache
        return lambda q, k: (module.rotate_queries_or_keys(q), module.rotate_queries_or_keys(k))

    def x_transformers():
        apply = importlib.import_module("x_transformers.x_transformers").apply_rotary_pos_emb
        frequencies = angle.float().repeat_interleave(2, -1)[None]
        return lambda q, k: (apply(q, frequencies), apply(k, frequencies))

    def torchtune():
        module = files.torchtune().RotaryPositionalEmbeddings(width, max_seq_len=tokens)

        def one(x):  # its layout is (batch, tokens, heads, width): views of what the others get
            return module(x.transpose(1, 2)).transpose(1, 2)

        return lambda q, k: (one(q), one(k))

    def litgpt():
        module = files.litgpt()
        table = [part[None] for part in module.build_rope_cache(tokens, width)]
        return lambda q, k: (module.apply_rope(q, *table), module.apply_rope(k, *table))

    def complex_view():
        turn = torch.complex(cos, sin)

        def one(x):
            pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
            return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)

        return lambda q, k: (one(q), one(k))

    def plain(q, k):
        def one(x):
            a, b = x.float().chunk(2, -1)
            return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)

        return one(q), one(k)

    def compiled():
        function = torch.compile(plain, dynamic=False)
        function(q, k)
        return function

    makers = {
        "transformers, eager": (transformers, False),
        "rotary-embedding-torch": (rotary_embedding_torch, True),
        "x-transformers": (x_transformers, True),
        "torchtune": (torchtune, True),
        "litgpt": (litgpt, False),
        "complex view": (complex_view, True),
        "plain form": (lambda: plain, False),
        "plain form, torch.compile": (compiled, False),
    }
    for name, (make, adjacent) in makers.items():
        try:
            found[name] = make(), adjacent
        except Exception as error:
            print(f"not measured: {name} ({type(error).__name__}: {str(error).splitlines()[0][:80]})", file=sys.stderr)
    return found


def one_case(dtype_name, size, threads, rounds):
    """Measure one case and print its table."""
    dtype, shape = getattr(torch, dtype_name), tuple(map(int, size.split("x")))
    torch.manual_seed(0)
    q, k = torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)
    halves, adjacent = RotaryEmbedding(shape[-1]), RotaryEmbedding(shape[-1], interleaved=True)
    ready = halves.prepare(torch.arange(shape[-2]))
    theta = torch.from_numpy(halves.frequencies().theta[0].copy())
    angle = torch.arange(shape[-2], dtype=torch.float64)[:, None] * theta
    to_q, to_k, in_q, in_k = torch.empty_like(q), torch.empty_like(k), q.clone(), k.clone()
    ours = {
        "posenc, fresh": (lambda q, k: halves(q, k, ready), False),
        "posenc, out=": (lambda q, k: halves(q, k, ready, out=(to_q, to_k)), False),
        "posenc, adjacent pairs, fresh": (lambda q, k: adjacent(q, k, ready), True),
        "posenc, adjacent pairs, out=": (lambda q, k: adjacent(q, k, ready, out=(to_q, to_k)), True),
    }
    every = ours | peers(q, k, angle)
    ways = {
        "limit: copy_": lambda: (to_q.copy_(q), to_k.copy_(k)),
        "limit: clone": lambda: (q.clone(), k.clone()),
        "limit: mul_ in place": lambda: (in_q.mul_(1.0), in_k.mul_(1.0)),
        "posenc, in place": lambda: halves(in_q, in_k, ready, out=(in_q, in_k)),
        "posenc, adjacent pairs, in place": lambda: adjacent(in_q, in_k, ready, out=(in_q, in_k)),
    }
    errors = {}
    with torch.no_grad():
        for name, (function, is_adjacent) in every.items():
            ways[name] = lambda f=function: f(q, k)
            errors[name] = float((function(q, k)[0].double() - exact(q, angle, is_adjacent)).abs().max())
        clock = time.thread_time if threads == 1 else time.perf_counter
        medians = interleaved(ways, rounds, clock=clock)
    copy, clone, mine = medians["limit: copy_"], medians["limit: clone"], medians["posenc, fresh"]
    rows = []
    for name in sorted(medians, key=lambda n: (not n.startswith("limit"), not n.startswith("posenc"))):
        t = medians[name]
        error = f"{errors[name]:.1e}" if name in errors else ""
        rows.append([name, time_of(t), f"{t / copy:.2f}", f"{t / clone:.2f}", f"{t / mine:.2f}", error])
    print(f"\n### {dtype_name}, {size}, {threads} thread{'s' if threads > 1 else ''}\n")
    print(table(["way", "time", "x copy_", "x clone", "x posenc fresh", "largest error"], rows))
    gradients(q, k, ready, halves, every, rounds, clock)


def gradients(q, k, ready, rotary, every, rounds, clock):
    """Forward and backward beside two clones."""
    wanted = q.clone().requires_grad_(), k.clone().requires_grad_()
    weights = torch.randn_like(q), torch.randn_like(k)
    ways = {"limit: two clones of both": lambda: (q.clone(), k.clone(), q.clone(), k.clone())}
    for name, (function, _) in every.items():
        if "out=" not in name:
            ways[name] = lambda f=function: torch.autograd.grad(f(*wanted), wanted, weights)
    medians = interleaved(ways, rounds, clock=clock)
    limit = medians["limit: two clones of both"]
    rows = [[name, time_of(t), f"{t / limit:.2f}"] for name, t in medians.items()]
    print(table(["forward and backward", "time", "x two clones"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two small cases")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--case", nargs=2, metavar=("DTYPE", "SHAPE"), help="one case, in this process")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.case:
        one_case(*args.case, args.threads, args.rounds)
        return
    print(f"## Rotation of queries and keys\n\n{machine(args.threads)}")
    sys.stdout.flush()
    for case in QUICK if args.quick else CASES:
        command = [sys.executable, __file__, "--threads", str(args.threads), "--rounds", str(args.rounds)]
        subprocess.run([*command, "--case", *case], check=True)


if __name__ == "__main__":
    main()
