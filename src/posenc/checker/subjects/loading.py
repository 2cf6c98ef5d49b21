"""A subject by its name: ``module:attr``, ``file.py``, ``file#tensor``, ``transformers:llama``, a folder."""

from __future__ import annotations

import copy
import dataclasses
import enum
import importlib
import importlib.util
import inspect as signatures
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from posenc.checker.calling.caller import raised
from posenc.checker.subjects.arrays import is_array_file, load_arrays
from posenc.errors import PosencError, SubjectError


@dataclass
class Subject:
    """Something to examine.

    Args:
        name: what the user called it.
        kind: ``code`` (a callable or class), ``several`` (those of a file, by name), ``arrays`` (by name), ``model`` (a
            type, a folder, a module in it).
        value: the object, or the arrays by name.
        fresh: makes a new one without history, where that can be done.
        source: where it came from.
        kept: an object as it was made, where making another takes long; copies of it are new objects too.
        part: which part of a file was chosen, in words, where the rest could not be examined.
    """

    name: str
    kind: str
    value: Any
    fresh: Callable[[], Any] | None = None
    source: str | None = None
    assumed: list[str] = field(default_factory=list)
    part: str | None = None
    kept: Any = None


def is_reference(text: str) -> bool:
    """Whether a text names code: ``module:attr``, ``file.py`` or ``file.py:attr``."""
    module, colon, name = text.rpartition(":")
    if text.endswith(".py"):
        return True
    if not colon or not module or not name:
        return False
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    return module.endswith(".py") or all(part.isidentifier() for part in module.split("."))


def load(subject: Any) -> Subject:
    """Load a subject.

    Raises:
        FormatError: a file cannot be read, or is pickled.
        SubjectError: code cannot be imported, or has no such attribute.
    """
    if isinstance(subject, Subject):
        return subject
    if isinstance(subject, Path):
        subject = str(subject)
    if not isinstance(subject, str):
        return from_object(subject)
    path, tensor = _file(subject)
    if path is not None and is_array_file(path):
        return Subject(subject, "arrays", load_arrays(path, tensor), source=str(path))
    if subject.startswith("transformers:"):
        return Subject(subject, "model", subject)
    if is_reference(subject):
        return _code(subject)
    if path is not None and path.is_dir():
        return Subject(subject, "model", subject, source=str(path))
    raise SubjectError(
        "a subject is module:attr, a .py file, arrays (.npy, .npz, "
        ".safetensors, .gguf), a model folder or transformers:TYPE",
        subject,
    )


def from_object(value: Any) -> Subject:
    """A subject that is already in memory."""
    import numpy as np

    name = getattr(value, "__name__", type(value).__name__)
    if isinstance(value, dict) and not callable(value) and value and all(isinstance(k, str) for k in value):
        return Subject("arrays", "arrays", {k: np.asarray(v) for k, v in value.items()})
    if isinstance(value, np.ndarray) or (hasattr(value, "shape") and hasattr(value, "dtype") and not callable(value)):
        from posenc.checker.calling.library import dtype_of, plain
        from posenc.checker.subjects.arrays import typed

        array = value if isinstance(value, np.ndarray) else plain(value)
        stored = dtype_of(value)
        return Subject("array", "arrays", {"array": typed(array, stored) if stored else array})
    if isinstance(value, tuple) and len(value) == 2 and all(hasattr(v, "shape") for v in value):
        return Subject("cos, sin", "arrays", {"cos": np.asarray(value[0]), "sin": np.asarray(value[1])})
    if not callable(value) and not getattr(value, "posenc_adapter", False) and not _has_methods(value):
        raise SubjectError("a subject is code, arrays or a model", type(value).__name__)
    if hasattr(value, "config") and hasattr(value, "named_modules") and hasattr(value, "base_model"):
        return Subject(name, "model", value)
    return Subject(name, "code", value, fresh=_fresh(value))


def _has_methods(value: Any) -> bool:
    from posenc.checker.calling.discovering import METHODS

    return any(callable(getattr(value, m, None)) for m in METHODS)


def _fresh(value: Any) -> Callable[[], Any] | None:
    if isinstance(value, type) or signatures.isroutine(value):
        return None
    try:
        copied = copy.deepcopy(value)
    except Exception:
        return None
    return lambda: copy.deepcopy(copied)


def _file(text: str) -> tuple[Path | None, str | None]:
    """The file a text names, and the tensor after ``#``."""
    try:
        whole = Path(text).expanduser()
        if whole.exists():
            return whole, None
        if is_array_file(whole):
            return whole, None
        front, hash_, tensor = text.rpartition("#")
        if hash_ and front:
            path = Path(front).expanduser()
            if path.exists() or is_array_file(path):
                return path, tensor
    except (OSError, ValueError, RuntimeError):
        return None, None
    return None, None


def _code(text: str) -> Subject:
    if text.endswith(".py"):
        module, name = text, ""
    else:
        module, _, name = text.rpartition(":")
    loaded = _imported(module)
    value = loaded
    if name:
        for part in name.split("."):
            if not hasattr(value, part):
                public = [n for n in dir(value) if not n.startswith("_")][:8]
                raise SubjectError(f"{module} has {name}", public)
            value = getattr(value, part)
    else:
        own = _own(loaded, module)
        if len(own) > 1:
            return Subject(text, "several", own, source=getattr(loaded, "__file__", None))
        (value,) = own.values()
    found = from_object(value)
    found.name, found.source = text, getattr(loaded, "__file__", None)
    if name == "" and hasattr(value, "__name__"):
        found.assumed.append(f"examined {value.__name__}, the only public class or function of the file")
    return found


def _own(module: types.ModuleType, name: str) -> dict[str, Any]:
    """The public functions and classes that a file defines; one named ``subject`` is the one.

    Raises:
        SubjectError: there are none.
    """
    listed = vars(module).get("subject")
    if listed is not None:
        return {"subject": listed}
    own = {
        k: v
        for k, v in vars(module).items()
        if not k.startswith("_") and callable(v) and getattr(v, "__module__", None) == module.__name__
    }
    own = {k: v for k, v in own.items() if not _holds_settings(v)} or own
    if not own:
        raise SubjectError(f"{name} defines a public function or class", [])
    return own


def _holds_settings(value: Any) -> bool:
    """Whether a class only holds fields (a dataclass, an enumeration), or is an exception."""
    if not isinstance(value, type):
        return False
    calls = any(callable(vars(value).get(name)) for name in ("__call__", "forward", "call"))
    return issubclass(value, enum.Enum | BaseException) or (dataclasses.is_dataclass(value) and not calls)


def _imported(module: str) -> types.ModuleType:
    try:
        if module.endswith(".py"):
            path = Path(module).expanduser()
            if not path.is_file():
                raise SubjectError("no such file", module)
            name = f"posenc_subject_{path.stem}"
            spec = importlib.util.spec_from_file_location(name, path)
            if spec is None or spec.loader is None:
                raise SubjectError("the file is Python", module)
            loaded = importlib.util.module_from_spec(spec)
            sys.modules[name] = loaded
            sys.path.insert(0, str(path.parent))
            try:
                spec.loader.exec_module(loaded)
            finally:
                sys.path.remove(str(path.parent))
            return loaded
        here = str(Path.cwd())
        sys.path.insert(0, here)
        importlib.invalidate_caches()
        try:
            return importlib.import_module(module)
        finally:
            sys.path.remove(here)
    except PosencError:
        raise
    except KeyboardInterrupt:
        raise
    except SystemExit as error:
        raise SubjectError(
            f"{module} can be imported",
            f"code that ends the program (exit {error.code})",
            "Put what runs it as a program, such as reading arguments, under if __name__ == '__main__'.",
        ) from None
    except ModuleNotFoundError as error:
        raise SubjectError(
            f"{module} can be imported",
            raised(error, 160),
            f"Install {error.name or 'it'} where posenc runs, or put what is examined in a file without it.",
        ) from None
    except BaseException as error:
        raise SubjectError(f"{module} can be imported", raised(error, 160)) from None
