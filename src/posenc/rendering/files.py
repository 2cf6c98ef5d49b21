"""Files that are replaced in one step: readers see the old one or the whole new one."""

from __future__ import annotations

import os
from pathlib import Path

from posenc.errors import PosencError


def replaced(to: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file beside its place and move it there.

    Raises:
        PosencError: it cannot be written; nothing is left behind.
    """
    path = Path(to)
    if not path.name or path.is_dir():
        raise PosencError("what is made here is written to a file", f"{path}: Is a directory")
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise PosencError("what is made here is written to a file", f"{path}: {error.strerror}") from None
    return path
