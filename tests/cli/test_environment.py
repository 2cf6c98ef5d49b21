"""posenc env says which path runs and why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from posenc.native import find


def ran(*arguments, **variables):
    source = str(Path(__file__).parents[2] / "src")
    environment = {k: v for k, v in os.environ.items() if k != "POSENC_NATIVE"} | variables | {"PYTHONPATH": source}
    command = [sys.executable, "-m", "posenc", "env", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def test_off_is_said_with_its_reason():
    lines = ran(POSENC_NATIVE="0").splitlines()
    assert "torch path  plain PyTorch, because POSENC_NATIVE=0 turns it off" in lines
    assert "NumPy path  plain NumPy, because POSENC_NATIVE=0 turns it off" in lines
    assert "POSENC_NATIVE=0" in lines


@pytest.mark.skipif(not find().path.is_file(), reason="the library was not built")
def test_on_names_the_instructions():
    found = json.loads(ran("--json", POSENC_NATIVE="portable", OMP_NUM_THREADS="1"))
    assert "uses portable instructions" in found["library"]
    assert found["torch_path"].startswith("C operators")
    assert found["threads"].startswith("1 of ")
    assert found["variables"] == {"OMP_NUM_THREADS": "1", "POSENC_NATIVE": "portable"}
    assert found["packages"]["numpy"]
