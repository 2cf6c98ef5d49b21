"""Similarity of 2^20 distances at d = 128: block products beside chunked broadcasting, one thread, one process.

    python benchmarks/bench_similarity.py [--runs 9] [--dim 128] [--base 10000] [--distances 1048576] [--quick]

Prints both times as medians of interleaved runs, the quotient of each pair of runs, and the error of each way at 50
random distances against mpmath, once for the float64 frequencies and once for the frequencies of the paper without
rounding. ``OPENBLAS_CORETYPE`` picks slower matrix products than this processor has when it is set for an older one, so
it is removed before NumPy is loaded; one thread is asked of every linear algebra library.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

removed = os.environ.pop("OPENBLAS_CORETYPE", None)
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402 - after the environment is settled
from mpmath import mp, mpf  # noqa: E402

from posenc.formulas import frequencies, similarity  # noqa: E402
from posenc.spec import Rotary  # noqa: E402


def broadcast(theta: np.ndarray, stop: int, chunk: int) -> np.ndarray:
    """The plain way: a cosine for every distance and pair, ``chunk`` distances at a time."""
    result = np.empty(stop)
    for i in range(0, stop, chunk):
        result[i : i + chunk] = np.cos(np.arange(i, min(stop, i + chunk))[:, None] * theta).mean(1)
    return result


def seconds(function) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def errors(values: np.ndarray, distances, dim: int, base: float, theta: np.ndarray) -> tuple[float, float]:
    """Largest error at the distances: for the float64 frequencies, and for those of the paper."""
    with mp.workdps(50):
        rounded = [mpf(float(t)) for t in theta]
        exact = [mpf(base) ** (-mpf(2 * i) / dim) for i in range(dim // 2)]
        worst = []
        for thetas in (rounded, exact):
            gaps = (sum(mp.cos(int(d) * t) for t in thetas) / len(thetas) - mpf(float(values[d])) for d in distances)
            worst.append(float(max(map(abs, gaps))))
    return worst[0], worst[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--base", type=float, default=10000.0)
    parser.add_argument("--distances", type=int, default=2**20)
    parser.add_argument("--quick", action="store_true", help="three runs")
    args = parser.parse_args()
    if args.quick:
        args.runs = 3
    f = frequencies(Rotary(args.dim, base=args.base))
    theta, stop = f.fused, args.distances
    ways = {"block products": lambda: similarity(f, 0, stop)}
    ways |= {f"broadcasting, chunks of {c}": (lambda c=c: broadcast(theta, stop, c)) for c in (512, 8192)}
    times: dict[str, list[float]] = {name: [] for name in ways}
    values = {}
    for name, way in ways.items():
        values[name] = way()  # once without the clock
    for _ in range(args.runs):
        for name, way in ways.items():
            times[name].append(seconds(way)[0])
    print(f"numpy {np.__version__}, one thread, d={args.dim}, base={args.base:g}, {stop} distances, {args.runs} runs")
    if removed is not None:
        print(f"OPENBLAS_CORETYPE={removed} was set and has been removed")
    picked = np.random.default_rng(0).integers(0, stop, 50)
    for name, measured in times.items():
        rounded, exact = errors(values[name], picked, args.dim, args.base, theta)
        spread = f"{min(measured) * 1e3:.2f} to {max(measured) * 1e3:.2f}"
        print(f"{name:30s} {statistics.median(measured) * 1e3:9.2f} ms ({spread})", end="")
        print(f"   error {rounded:.1e} for float64 frequencies, {exact:.1e} for the paper's")
    ours = times["block products"]
    best = min((n for n in times if n != "block products"), key=lambda n: statistics.median(times[n]))
    quotients = [b / a for a, b in zip(ours, times[best], strict=True)]
    print(f"block products are {statistics.median(quotients):.0f} times faster than {best}", end="")
    print(f" (median of {args.runs} pairs; {min(quotients):.0f} to {max(quotients):.0f})")


if __name__ == "__main__":
    main()
