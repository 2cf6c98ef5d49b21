"""Two processes with real collectives: biases, channels, content, attention, encodings at the input."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def test_two_processes_agree(tmp_path):
    command = [sys.executable, str(HERE / "encodings_on_two.py")]
    meeting, environment = str(tmp_path / "meeting"), {**os.environ, "PYTHONPATH": str(HERE.parent)}
    both = [
        subprocess.Popen(
            [*command, str(rank), meeting],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=tmp_path,
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=180) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert [out.strip() for out, _ in said] == ["fine", "fine"]
