"""The smallest rotary base for a context, certified: time, agreement with published values, direct cosines.

    python benchmarks/bench_base_search.py [--quick] [--thorough]

For each context and width the whole search runs once (exclusion of every smaller base, three runs of feasible bases,
the base from which on all are feasible, models). Then every distance is evaluated by direct cosines at the base found,
and the distance that is named is evaluated with 40 digits just below it. ``--thorough`` adds the walk over large bases
for contexts beyond 2^16 (minutes). The clock is the processor time of one thread.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.pop("OPENBLAS_CORETYPE", None)  # picks slower matrix products when set for an older processor
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402 - after the environment is settled
from measuring import machine, table, time_of  # noqa: E402
from mpmath import mp, mpf  # noqa: E402

from posenc.analysis.base_search import smallest_base  # noqa: E402
from posenc.analysis.base_search.excluding import Exclusion  # noqa: E402
from posenc.analysis.base_search.sums import exponents  # noqa: E402

PUBLISHED = {2**12: 26952.3395, 2**14: 231643.65, 2**16: 2090179.69, 2**18: 23662397.3, 2**20: 65374955.8}
"""Upper ends of brackets of 1e-7, width 128."""
CASES = [
    *((n, 128) for n in PUBLISHED),
    (2**12, 64),
    (2**16, 64),
    (2**14, 256),
    (10_000, 96),
    (5000, 6),
    (200_000, 128),
]


def direct(context: int, head_dim: int, base: float, chunk: int = 8192) -> float:
    """The smallest mean of cosines over 1..context, a cosine for each distance and pair."""
    thetas, least = base ** -(np.arange(0, head_dim, 2) / head_dim), 1.0
    for first in range(1, context + 1, chunk):
        distances = np.arange(first, min(first + chunk, context + 1))
        least = min(least, float(np.cos(distances[:, None] * thetas).mean(1).min()))
    return least


def exact(distance: int, head_dim: int, base: float) -> float:
    """The mean of cosines of one distance with 40 digits."""
    with mp.workdps(40):
        return float(sum(mp.cos(distance * mpf(base) ** -(mpf(2 * i) / head_dim)) for i in range(head_dim // 2))) / (
            head_dim / 2
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="contexts up to 2^16")
    parser.add_argument("--thorough", action="store_true", help="certify from which base on all serve everywhere")
    args = parser.parse_args()
    print(f"{machine(1)}\n")
    rows = []
    for context, head_dim in CASES:
        if args.quick and context > 2**16:
            continue
        clock = time.process_time()
        Exclusion(context, exponents(head_dim)).opening(0.0, 200.0)
        excluding = time.process_time() - clock
        clock = time.process_time()
        found = smallest_base(context, head_dim, thorough=args.thorough)
        whole = time.process_time() - clock
        base, published = found.infimum.high, PUBLISHED.get(context) if head_dim == 128 else None
        a = found.above
        rows.append([
            str(context), str(head_dim), f"{base:.12g}", f"{base / found.infimum.low - 1:.0e}",
            "" if published is None else f"{base / published - 1:+.0e}",
            f"{direct(context, head_dim, base):+.0e}", f"{exact(found.lowest_at, head_dim, found.infimum.low):+.0e}",
            f"{a.certified:.9g}" if a.exact else f"{a.certified:.3g} (found below: {a.infeasible:.3g})",
            str(len(found.undecided)), time_of(excluding), time_of(whole),
        ])  # fmt: skip
        print(f"done: {rows[-1]}", flush=True)
    head = ["context", "d", "smallest base", "bracket", "beside published", "least mean there", "mean just below",
            "all above", "undecided", "infimum alone", "whole search"]  # fmt: skip
    print("\n" + table(head, rows))
    print(
        "least mean there: direct cosines of every distance, float64, at the base found. Mean just below: the distance"
    )
    print(
        "that is named, 40 digits, at the lower end of the bracket. All above: certified; where the walk was not made,"
    )
    print("the bound that needs no search, and the largest base found infeasible on a grid.")


if __name__ == "__main__":
    main()
