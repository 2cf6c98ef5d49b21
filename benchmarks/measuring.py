"""What every benchmark shares: interleaved runs in one process, medians, the machine, tables in Markdown."""

from __future__ import annotations

import os
import platform
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

Way = Callable[[], object]


def interleaved(
    ways: dict[str, Way], rounds: int = 15, at_least: float = 2e-3, clock: Callable[[], float] = time.thread_time
) -> dict[str, float]:
    """Median seconds of one call of each way; every round runs all ways once, in a new order.

    The clock is the thread's own processor time, page faults included, so that a busy machine disturbs little; with
    several threads take ``time.perf_counter`` and an idle machine.

    Ways that take less than ``at_least`` seconds are called in a loop, so that the clock is no part of the result.
    """
    inner = {}
    for name, way in ways.items():
        way()
        way()
        start = clock()
        way()
        inner[name] = max(1, round(at_least / max(clock() - start, 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in ways}
    names, order = list(ways), random.Random(0)
    for _ in range(rounds):
        order.shuffle(names)
        for name in names:
            way, n = ways[name], inner[name]
            start = clock()
            for _ in range(n):
                way()
            times[name].append((clock() - start) / n)
    return {name: statistics.median(found) for name, found in times.items()}


def machine(threads: int | None = None) -> str:
    """The processor, its load before the run, and the versions that matter, as one line."""
    parts = [processor()]
    if hasattr(os, "getloadavg"):
        parts.append(f"load {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    parts.append(f"Python {platform.python_version()}")
    for name in ("numpy", "torch", "transformers"):
        module = __import__("sys").modules.get(name)
        if module is not None:
            parts.append(f"{name} {module.__version__}")
    from posenc.native import find

    found = find()
    parts.append(f"posenc's kernels: {found.level or found.reason}")
    if threads is not None:
        parts.append(f"{threads} thread{'s' if threads > 1 else ''}")
    return ", ".join(parts)


def processor() -> str:
    """Its name and caches, where the system tells them."""
    name = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        name = lines[0] if lines else name
    caches = []
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if (index / "type").read_text().strip() != "Instruction":
            caches.append(f"L{(index / 'level').read_text().strip()} {(index / 'size').read_text().strip()}")
    return f"{name} ({', '.join(caches)})" if caches else name


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [" | ".join(head), " | ".join("---" for _ in head), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines) + "\n"


def time_of(seconds: float) -> str:
    """Seconds as people read them."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
