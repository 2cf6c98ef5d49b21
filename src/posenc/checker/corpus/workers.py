"""Worker processes that serve one subject after another, and are replaced before they grow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

from posenc.checker.running import end
from posenc.records.finding import CheckReport

SERVED = 40
"""Subjects of one process: importing torch and transformers costs seconds, and modules of models stay in memory."""
MEGABYTES = 2000.0
"""Peak memory after which a process is replaced."""
START = 180.0
"""Seconds for the imports of a process."""

SERVING = [sys.executable, "-m", "posenc.checker.corpus.serving"]
"""The command of a process."""


class Worker:
    """One process at a time, started when a subject comes.

    Args:
        probes: run whole passes too.
    """

    def __init__(self, probes: bool = True) -> None:
        self.probes = probes
        self.child: subprocess.Popen[bytes] | None = None
        self.served = 0
        self.closed = False

    def examine(self, subject: str, timeout: float) -> CheckReport:
        """The report of a subject; one that hangs, or ends the process, is reported as not run."""
        start = time.perf_counter()
        problem = self._ready()
        if problem is None:
            start = time.perf_counter()
            request = json.dumps({"subject": subject, "probes": self.probes})
            line, late = self._answer(request, timeout)
            if line:
                answer = json.loads(line)
                self.served += 1
                if self.served >= SERVED or answer["megabytes"] > MEGABYTES:
                    self.stop()
                return CheckReport.model_validate(answer["report"])
            problem = (
                f"no answer within {timeout:g} s: the subject was ended"
                if late
                else f"the process ended without an answer ({self._how()})"
            )
            self.stop()
        return CheckReport(subject=subject, could_not_run=problem, seconds=round(time.perf_counter() - start, 3))

    def stop(self) -> None:
        """End the process."""
        if self.child is not None:
            end(self.child)
            for stream in (self.child.stdin, self.child.stdout):
                if stream is not None:
                    with suppress(OSError):  # what was not written can no longer be
                        stream.close()
        self.child, self.served = None, 0

    def close(self) -> None:
        """End the process for good, from another thread too: what it is at comes to nothing."""
        self.closed = True
        if self.child is not None:
            end(self.child)

    def _ready(self) -> str | None:
        if self.child is not None:
            return None
        if self.closed:
            return "the process ended: the run was interrupted"
        self.child = subprocess.Popen(
            SERVING,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")},
            start_new_session=True,
        )
        if self.closed:  # in the meantime, by another thread
            end(self.child)
        line, late = self._answer(None, START)
        if line.strip() == b"ready":
            return None
        how = "no answer" if late else self._how()
        self.stop()
        return f"the process ended before it was ready ({how})"

    def _answer(self, request: str | None, timeout: float) -> tuple[bytes, bool]:
        """One line from the process, empty if it ended; and whether it was ended for being late."""
        child = self.child
        if child is None or child.stdin is None or child.stdout is None:  # closed by another thread
            return b"", False
        late = threading.Event()

        def expire() -> None:
            late.set()
            end(child)

        timer = threading.Timer(timeout, expire)
        timer.daemon = True
        timer.start()
        try:
            if request is not None:
                child.stdin.write(request.encode() + b"\n")
                child.stdin.flush()
            line = child.stdout.readline()
        except (OSError, ValueError):
            line = b""
        finally:
            timer.cancel()
        return line if line.endswith(b"\n") else b"", late.is_set()

    def _how(self) -> str:
        code = None if self.child is None else self.child.wait()
        return "ended by another" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"
