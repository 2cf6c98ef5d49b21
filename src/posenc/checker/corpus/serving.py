"""A worker process: one request a line on stdin, one report a line on stdout; what subjects print goes nowhere."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

MEMORY = 4 << 30
"""Bytes that a worker may allocate, where the system can limit it; a subject that needs more cannot be run."""


def main() -> int:
    """Say ``ready`` once everything heavy is imported, then answer requests until stdin ends."""
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    _limit()
    from posenc.checker.checking import check

    check("transformers:llama", probes=False)  # imports what the first subject would otherwise wait for
    print("ready", file=answers, flush=True)
    for line in requests:
        request: dict[str, Any] = json.loads(line)
        report = check(request["subject"], probes=request["probes"])
        answer = {"report": report.model_dump(mode="json"), "megabytes": _largest()}
        print(json.dumps(answer), file=answers, flush=True)
    return 0


def _limit() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY if hard < 0 else min(MEMORY, hard), hard))


def _largest() -> float:
    """The most memory that this process has held, in MB; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0.0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


if __name__ == "__main__":
    code = main()
    os._exit(code)  # threads and exit handlers of a subject must not keep the process alive
