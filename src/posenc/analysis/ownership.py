"""Whether a subject is somebody's own table or function, which nothing reads and everything can examine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def is_own(subject: Any) -> bool:
    """Whether a subject is somebody's own table or function: an array, a callable, ``.npy``, ``module:name``.

    >>> is_own("table.npy"), is_own("my_module:encoding"), is_own("llama-3.1-8b")
    (True, True, False)
    """
    if isinstance(subject, str | Path):
        text = str(subject)
        return text.endswith((".npy", ".npz")) or reference(text) is not None
    return isinstance(subject, np.ndarray) or (callable(subject) and not hasattr(subject, "kind"))


def reference(text: str) -> tuple[str, str] | None:
    """``module:name`` or ``path/file.py:name`` in two, if the text is one."""
    module, colon, name = text.rpartition(":")
    if not colon or not name.isidentifier() or not module:
        return None
    plain = all(part.isidentifier() for part in module.split("."))
    return (module, name) if plain or module.endswith(".py") else None
