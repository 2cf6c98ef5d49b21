"""Two processes with real collectives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_two_processes_agree(tmp_path):
    script = Path(__file__).with_name("rotary_on_two.py")
    command = [sys.executable, str(script)]
    meeting = str(tmp_path / "meeting")
    both = [
        subprocess.Popen([*command, str(rank), meeting], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    said = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert [out.strip() for out, _ in said] == ["fine", "fine"]
