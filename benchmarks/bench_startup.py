"""Start-up: ``posenc inspect llama-3.1-8b`` against importing numpy, rich and one pydantic model.

Paired runs in alternation, each a fresh process; medians, and the median of the quotients of pairs. The goal is 2x.

    python benchmarks/bench_startup.py [runs]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

BASE = """
import numpy, rich
from pydantic import BaseModel
class Model(BaseModel):
    a: int
Model(a=1)
"""
COMMANDS = {
    "numpy, rich, one pydantic model": [sys.executable, "-c", BASE],
    "posenc inspect llama-3.1-8b": [sys.executable, "-m", "posenc", "inspect", "llama-3.1-8b"],
    "import posenc": [sys.executable, "-c", "import posenc"],
    "the interpreter alone": [sys.executable, "-c", "pass"],
}


def seconds(command: list[str], cache: str) -> float:
    """Wall time of one run of a fresh process, with compiled files as an installed package has them."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": cache}
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - start


def main(runs: int = 21) -> None:
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as cache:
        for command in COMMANDS.values():  # once before, so that compiled files and the page cache are warm for all
            seconds(command, cache)
        for _ in range(runs):
            for name, command in COMMANDS.items():
                taken[name].append(seconds(command, cache))
    for name, each in taken.items():
        print(f"{name:32} {1e3 * statistics.median(each):7.1f} ms   (quickest {1e3 * min(each):.1f})")
    base, ours, package, bare = taken.values()
    quotients = [b / a for a, b in zip(base, ours, strict=True)]
    print(f"inspect / base, median of {runs} pairs: {statistics.median(quotients):.2f} (goal: at most 2)")
    print(f"import posenc over the interpreter alone: {1e3 * (min(package) - min(bare)):.1f} ms (goal: below 5)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 21)
