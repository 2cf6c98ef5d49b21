"""Similarity over 10^9 distances without storing them: minimum, first below, aliases; one thread.

    python benchmarks/bench_similarity_range.py [--distances 1000000000] [--quick]

Prints the processor time of each, the peak of memory beyond the import, and the error against 50 digits at what was
found. Broadcasting, a cosine for each distance and pair in chunks of 8192, is timed on 2^20 distances in the same
process and scaled up. The goal is a minimum of 10^9 distances in 15 s with errors below 1e-11.
"""

from __future__ import annotations

import argparse
import os
import resource
import time

removed = os.environ.pop("OPENBLAS_CORETYPE", None)
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402 - after the environment is settled
from measuring import machine, table, time_of  # noqa: E402
from mpmath import mp, mpf  # noqa: E402

from posenc.formulas import aliases, first_below, frequencies, minimum  # noqa: E402
from posenc.spec import Rotary  # noqa: E402


def seconds(way):
    clock = time.process_time()
    found = way()
    return time.process_time() - clock, found


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def broadcast_minimum(thetas: np.ndarray, stop: int, chunk: int = 8192) -> float:
    least = 1.0
    for i in range(0, stop, chunk):
        least = min(least, float(np.cos(np.arange(i, min(stop, i + chunk))[:, None] * thetas).mean(1).min()))
    return least


def exact(distance: int, thetas: np.ndarray) -> mpf:
    with mp.workdps(50):
        return sum(mp.cos(distance * mpf(float(t))) for t in thetas) / len(thetas)


def error(value: float, distance: int, thetas: np.ndarray) -> str:
    with mp.workdps(50):
        return f"{float(abs(exact(distance, thetas) - mpf(value))):.0e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--distances", type=int, default=10**9)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--quick", action="store_true", help="10^7 distances")
    args = parser.parse_args()
    stop = 10**7 if args.quick else args.distances
    f = frequencies(Rotary(args.dim))
    before, rows = peak_mib(), []
    print(f"{machine(1)}; d={args.dim}, base 10000, {stop} distances\n")
    took, (where, least) = seconds(lambda: minimum(f, 1, stop))
    rows.append(["minimum", time_of(took), f"{least:.12f} at {where}", error(least, where, f.fused)])
    took, at = seconds(lambda: first_below(f, least + 1e-9, stop=stop))
    rows.append(["first below (minimum + 1e-9)", time_of(took), str(at), "" if at is None else "exact position"])
    took, found = seconds(lambda: aliases(f, stop, start=1000))
    worst = max((error(p.similarity, p.distance, f.fused) for p in found), key=float)
    listed = ", ".join(f"{p.similarity:.4f} at {p.distance}" for p in found[:3])
    rows.append(["five aliases beyond 1000", time_of(took), listed, worst])
    memory = peak_mib() - before
    took, _ = seconds(lambda: broadcast_minimum(f.fused, 2**20))
    rows.append([f"broadcasting (2^20 timed: {time_of(took)})", time_of(took * stop / 2**20), "scaled up", ""])
    print(table(["what", "processor time", "found", "error, 50 digits"], rows))
    print(f"Peak memory beyond the import: {memory:.1f} MiB.")


if __name__ == "__main__":
    main()
