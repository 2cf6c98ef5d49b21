"""Two threads beside one for rotations of 8 MiB and more, in wall-clock time; wants an idle machine.

python benchmarks/bench_threads.py [--rounds 11]
"""

from __future__ import annotations

import argparse
import time

import torch
from measuring import interleaved, machine, table, time_of

from posenc.nn.rotary import RotaryEmbedding


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    args = parser.parse_args()
    print(f"## Two threads beside one\n\n{machine()}\n")
    rows = []
    for dtype in (torch.float32, torch.bfloat16):
        for shape in ((1, 32, 2048, 128), (1, 8, 8192, 64), (4, 8, 1024, 128)):
            q, k = (torch.randn(shape).to(dtype) for _ in range(2))
            rotary, ids = RotaryEmbedding(shape[-1]), torch.arange(shape[2])
            ready, room = rotary.prepare(ids), (torch.empty_like(q), torch.empty_like(k))

            def run(threads, q=q, k=k, ready=ready, room=room, rotary=rotary):
                torch.set_num_threads(threads)
                return rotary(q, k, ready, out=room)

            def copied(threads, q=q, k=k, room=room):
                torch.set_num_threads(threads)
                return room[0].copy_(q), room[1].copy_(k)

            ways = {n: (lambda n=n, run=run: run(n)) for n in (1, 2)}
            ways |= {n + 2: (lambda n=n, copied=copied: copied(n)) for n in (1, 2)}
            with torch.no_grad():
                medians = interleaved(ways, args.rounds, at_least=2e-2, clock=time.perf_counter)
            one, two, copy_one, copy_two = (medians[n] for n in (1, 2, 3, 4))
            size = f"{dtype}".removeprefix("torch.") + ", " + "x".join(map(str, shape))
            rows.append([size, time_of(one), time_of(two), f"{one / two:.2f}", f"{copy_one / copy_two:.2f}"])
    print(table(["q and k, out=", "one thread", "two", "posenc: quotient", "copy_: quotient"], rows))


if __name__ == "__main__":
    main()
