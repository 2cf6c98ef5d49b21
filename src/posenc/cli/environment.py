"""``posenc env``: what is installed and which path runs."""

from __future__ import annotations

import importlib.util
import os
import platform
from importlib import metadata
from typing import Annotated, Any

from posenc.cli.output import JSON, as_json, write

PACKAGES = ("numpy", "scipy", "torch", "transformers", "ml_dtypes", "gguf", "safetensors")
VARIABLES = ("POSENC_NATIVE", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def env(json: Annotated[bool, JSON] = False) -> None:
    """Say what is installed, which path rotations take on this machine, and why."""
    found = described()
    if json:
        write(as_json(found))
        return
    lines = [f"posenc {found['posenc']}, Python {found['python']}, {found['platform']}"]
    lines.append("packages    " + ", ".join(f"{n} {v or 'not installed'}" for n, v in found["packages"].items()))
    lines.append(f"C library   {found['library']}")
    lines.append(f"NumPy path  {found['numpy_path']}")
    lines.append(f"torch path  {found['torch_path']}")
    lines.append(f"threads     {found['threads']}")
    lines.extend(f"{name}={value}" for name, value in found["variables"].items())
    write("\n".join(lines))


def described() -> dict[str, Any]:
    """The same as plain values."""
    from posenc import __version__
    from posenc.native import find

    library = find()
    path, threads = torch_path()
    where = f"{library.path}: " if library.path.is_file() else ""
    uses = f"uses {library.level} instructions; the best here are {library.best_level}"
    return {
        "posenc": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: installed(name) for name in PACKAGES},
        "library": where + (library.reason or uses),
        "numpy_path": "C kernels" if library.handle is not None else f"plain NumPy, because {library.reason}",
        "torch_path": path,
        "threads": threads,
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def installed(package: str) -> str | None:
    """A package's version without importing it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def torch_path() -> tuple[str, str]:
    """Which path rotations of tensors take on the CPU, and how many threads they may use."""
    cores = os.cpu_count() or 1
    if importlib.util.find_spec("torch") is None:
        return "none, because torch is not installed", f"1 of {cores} cores"
    import torch

    from posenc.nn import _ops

    threads = f"{torch.get_num_threads()} of {cores} cores"
    if _ops.LIBRARY is None:
        return f"plain PyTorch, because {_ops.REASON}", f"{threads}, PyTorch's own pool"
    pool = "PyTorch's own pool" if _ops.THREADED else "posenc's kernels 1, for this PyTorch lends no pool"
    path = "C operators on the CPU (float32, bfloat16, float16); plain PyTorch when compiled or exported, on other"
    return f"{path} devices and in other dtypes", f"{threads}, {pool}"
