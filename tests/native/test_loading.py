"""Why the C library is used or not: every reason is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from posenc.native import find, state
from posenc.native.loading import LEVELS

built = pytest.mark.skipif(find().path.is_file() is False, reason="the library was not built")


def test_each_reason_not_to_use_it(tmp_path):
    assert "not built" in state(tmp_path / "none.so", None).reason
    broken = tmp_path / "libposenc.so"
    broken.write_bytes(b"no library")
    assert "does not load" in state(broken, None).reason
    assert "turns it off" in state(find().path, "0").reason
    assert state(broken, None).level == state(broken, None).best_level == ""


@built
def test_levels_can_be_chosen():
    path = find().path
    found = state(path, "portable")
    try:
        assert found.level == "portable"
        assert LEVELS.index(found.best_level) >= 0
        assert "none of 0, 1" in state(path, "fast").reason
        missing = next(name for n, name in enumerate(LEVELS) if found.handle.posenc_use_level(n))
        assert "does not have" in state(path, missing).reason
    finally:
        found.handle.posenc_use_level(found.handle.posenc_best_level())


@built
def test_it_is_plain_c():
    """Neither Python, nor PyTorch, nor a C++ library is needed to load it."""
    if not sys.platform.startswith("linux"):
        pytest.skip("reads ELF symbols")
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(open('/proc/self/maps').read().count('libstdc++'))"
    text = subprocess.run([sys.executable, "-c", code, str(find().path)], capture_output=True, text=True, check=True)
    assert text.stdout.strip() == "0"


def test_off_means_the_plain_path_in_torch_too():
    code = "from posenc.nn import _ops; print(_ops.LIBRARY, _ops.REASON)"
    environment = {"POSENC_NATIVE": "0", "PATH": "", "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert text.stdout.strip() == "None POSENC_NATIVE=0 turns it off"
