"""A user's own encoding: an array, a file of one, or a function of positions, as a table (A11)."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from posenc.analysis.ownership import is_own, reference
from posenc.analysis.symmetry import as_table
from posenc.errors import FormatError, PosencError, ShapeError, SubjectError

__all__ = ["is_own", "own_table"]

LARGEST = 2**27
"""Entries of a table that is examined."""
ROWS = 512
"""Rows that a function is asked for."""


def own_table(subject: Any) -> tuple[str, np.ndarray]:
    """A name and the table ``(rows, width)`` of somebody's own encoding.

    Args:
        subject: ``(rows, width)`` array; ``.npy`` file, or ``.npz`` with one array; a function of integer positions
            ``(n,)`` (or of their number) that returns ``(n, width)``; ``module:name`` or ``file.py:name`` of one.

    Raises:
        FormatError: a file is not readable as an array (pickled objects are refused).
        SubjectError: a function cannot be found, raises, or returns no array.
        ShapeError: what came back is not a finite real table.
    """
    if isinstance(subject, str | Path):
        text = str(subject)
        found = reference(text)
        if found is not None:
            return text, _called(_imported(*found), text)
        return Path(text).name, _loaded(Path(text))
    if isinstance(subject, np.ndarray):
        return "array", as_table(subject)
    return getattr(subject, "__name__", type(subject).__name__), _called(subject, repr(subject))


def _loaded(path: Path) -> np.ndarray:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
        if hasattr(found, "files"):
            if len(found.files) != 1:
                raise FormatError("an .npz holds one array", sorted(found.files)[:8], "Save the one to look at.")
            found = found[found.files[0]]
        if found.size > LARGEST:
            raise ShapeError(f"a table has at most {LARGEST} entries", found.shape)
        return as_table(np.asarray(found))
    except PosencError:
        raise
    except FileNotFoundError:
        raise FormatError("no such file", str(path)) from None
    except Exception as error:  # numpy raises half a dozen kinds for files that are no arrays
        raise FormatError("the file holds one plain array", f"{path}: {error}", "Save it with numpy.save.") from None


def _imported(module: str, name: str) -> Any:
    try:
        if module.endswith(".py"):
            spec = importlib.util.spec_from_file_location("posenc_subject", module)
            if spec is None or spec.loader is None or not Path(module).is_file():
                raise SubjectError("no such file", module)
            loaded = importlib.util.module_from_spec(spec)
            sys.modules["posenc_subject"] = loaded
            spec.loader.exec_module(loaded)
        else:
            here = str(Path.cwd())
            sys.path.insert(0, here)
            importlib.invalidate_caches()
            try:
                loaded = importlib.import_module(module)
            finally:
                sys.path.remove(here)
    except PosencError:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise SubjectError(f"{module} can be imported", f"{type(error).__name__}: {error}") from None
    if not hasattr(loaded, name):
        raise SubjectError(f"{module} has {name}", [n for n in dir(loaded) if not n.startswith("_")][:8])
    return getattr(loaded, name)


def _called(function: Any, name: str) -> np.ndarray:
    if isinstance(function, np.ndarray):
        return as_table(function)
    if not callable(function):
        raise SubjectError("an encoding is an array or a function of positions", type(function).__name__)
    failures = []
    for argument in (np.arange(ROWS), ROWS):
        try:
            result = np.asarray(_detached(function(argument)))
        except Exception as error:
            failures.append(f"{type(error).__name__}: {error}")
            continue
        if result.ndim == 3 and result.shape[0] == 1:  # (1, n, width) is common
            result = result[0]
        if result.ndim == 2 and result.shape[0] == ROWS:
            return as_table(result)
        failures.append(f"shape {result.shape}")
    raise SubjectError(
        f"{name} returns ({ROWS}, width) for {ROWS} positions (an array of them, or their number)",
        "; ".join(failures),
    )


def _detached(value: Any) -> Any:
    """A tensor of any library as something NumPy takes."""
    for step in ("detach", "cpu", "numpy"):
        method: Callable[[], Any] | None = getattr(value, step, None)
        if callable(method):
            value = method()
    return value
