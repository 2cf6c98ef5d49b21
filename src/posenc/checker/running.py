"""A subject in a process of its own: it may hang, exit or print, and the report still comes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from posenc.errors import SubjectError
from posenc.records.finding import CheckReport


def check_apart(subject: str, expect: Any, timeout: float, **options: Any) -> CheckReport:
    """Check a subject named by text in a child process that is ended after ``timeout`` seconds.

    Raises:
        PosencError: the wanted encoding cannot be read.
        SubjectError: ``expect`` has no text form, or the timeout is not positive.
    """
    from posenc.checker.examining.makers import is_task
    from posenc.checker.expecting import expected

    if not 0 < timeout < 86400:
        raise SubjectError("a timeout is between 0 and 86400 seconds", timeout)
    wanted = None if expect is None or is_task(expect) else expected(expect)
    text = (
        None
        if expect is None
        else expect
        if isinstance(expect, str)
        else " + ".join(map(str, wanted.encodings))
        if wanted
        else None
    )
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="posenc-check-") as folder:
        answer = Path(folder) / "report.json"
        request = {"subject": subject, "expect": text, "options": options, "answer": str(answer)}
        child = subprocess.Popen(
            [sys.executable, "-m", "posenc.checker.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")},
            start_new_session=True,
        )
        problem = None
        try:
            child.communicate(json.dumps(request).encode(), timeout=timeout)
        except subprocess.TimeoutExpired:
            problem = f"no answer within {timeout:g} s: the subject was ended"
        finally:
            end(child)
        if answer.exists():
            try:
                return CheckReport.model_validate_json(answer.read_text(encoding="utf-8"))
            except ValueError:
                problem = problem or "the answer of the child process can be read"
        if problem is None:
            code = child.returncode or 0
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            problem = f"the process ended without an answer ({how})"
    line = text if wanted is None else wanted.line
    return CheckReport(
        subject=subject, expected=line, could_not_run=problem, seconds=round(time.perf_counter() - start, 3)
    )


def end(child: subprocess.Popen[bytes]) -> None:
    """End the child and whatever it started in its own session."""
    if child.poll() is None:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            child.kill()
        child.wait()
