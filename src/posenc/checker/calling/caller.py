"""One guarded call: output swallowed, inputs watched, every exception one line."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from posenc.checker.calling.library import Library, plain
from posenc.errors import PosencError, SubjectError

MOST = 2**27
"""Numbers in one answer of a subject."""


class Misshapen(SubjectError):  # noqa: N818 - it is an answer of the wrong shape, told like any other
    """The subject answered without complaint, in another shape than was asked for."""


class WrongAxis(SubjectError):  # noqa: N818 - it is what a subject does, told like any other
    """The subject runs, and positions run along another dimension than that of the tokens.

    Args:
        layout: in which it was called.
        axis: the letter along which the answer varies.
        stated: the layout is that of the subject's documentation, and nobody told it.
    """

    def __init__(self, layout: str, axis: str, stated: bool = False) -> None:
        super().__init__(
            f"in layout ({', '.join(layout)}) positions run along the tokens t", f"the result varies along {axis}"
        )
        self.layout, self.axis, self.stated = layout, axis, stated

    @property
    def exchanged(self) -> str:
        """The layout with the tokens where the positions run."""
        return self.layout.translate(str.maketrans("t" + self.axis, self.axis + "t"))


@dataclass
class Caller:
    """Calls a subject with arrays of its library.

    Args:
        function: the subject.
        library: its arrays.
        printed: characters the subject wrote to stdout or stderr.
        changed: roles of inputs that the subject changed in place.
        calls: how often it was called.
    """

    function: Callable[..., Any]
    library: Library
    printed: int = 0
    changed: set[str] = field(default_factory=set)
    calls: int = 0

    def __call__(self, by_name: dict[str, Any], *by_position: Any) -> Any:
        """Call it; arguments named ``#i`` are given by position.

        Raises:
            SubjectError: it raised; the message names the exception.
        """
        ordered = [v for k, v in sorted(by_name.items()) if k.startswith("#")]
        named = {k: v for k, v in by_name.items() if not k.startswith("#")}
        watched = {k: (v, _copy(v)) for k, v in by_name.items()}
        out = io.StringIO()
        self.calls += 1
        try:
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(out),
                warnings.catch_warnings(),
                _no_gradients(self.library.name),
            ):
                warnings.simplefilter("ignore")
                result = self.function(*by_position, *ordered, **named)
        except (PosencError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise SubjectError("the subject runs", raised(error)) from None
        finally:
            self.printed += len(out.getvalue())
        for name, (now, before) in watched.items():
            if before is not None and not _equal(now, before):
                self.changed.add(name)
        return result


def why(error: PosencError, room: int = SubjectError.room) -> str:
    """The reason inside an error that wraps another: what the subject raised, else the rule and what was seen."""
    if error.rule == "the subject runs" and error.seen:
        return clipped(error.seen, room)
    return clipped(error.rule if error.seen is None else f"{error.rule}; got {error.seen}", room)


def raised(error: BaseException, room: int = 200) -> str:
    """An exception's name, and what its message says first: its first line, with the next where that only leads to it.

    >>> raised(TypeError("f() received an invalid combination of arguments, but expected one of:\\n * (int)"))
    'TypeError: f() received an invalid combination of arguments'
    >>> raised(AssertionError())
    'AssertionError without a message'
    """
    name = type(error).__name__
    try:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    except Exception:
        return f"{name} without a message"
    first = lines[0].removesuffix(", but expected one of:") if lines else ""
    if first.endswith(":") and len(lines) > 1:
        first = f"{first} {lines[1]}"
    return f"{name}: {clipped(first, room)}" if first else f"{name} without a message"


def clipped(text: str, room: int) -> str:
    """A text of at most so many characters, ended between words.

    >>> clipped("the size of tensor a (513)", 18)
    'the size of...'
    """
    if len(text) <= room:
        return text
    kept = text[: room - 3]
    front, space, _ = kept.rpartition(" ")
    return (front if space else kept).rstrip(" ,;:([") + "..."


def _copy(value: Any) -> np.ndarray | None:
    if getattr(value, "shape", None) is None or not hasattr(value, "dtype"):
        return None
    try:
        return plain(value).copy()
    except Exception:
        return None


def _equal(now: Any, before: np.ndarray) -> bool:
    try:
        return bool(np.array_equal(plain(now), before, equal_nan=before.dtype.kind != "i"))
    except Exception:
        return True


@contextlib.contextmanager
def _no_gradients(name: str) -> Any:
    if name != "torch":
        yield
        return
    import torch

    with torch.no_grad():
        yield


def parts(result: Any) -> list[np.ndarray]:
    """The arrays of a result: one, or those of a tuple, list, dict or a record with fields.

    Raises:
        SubjectError: there is none.
    """
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, tuple | list) and not _numbers(result):
        found = [plain(each) for each in result if each is not None]
    else:
        found = [plain(result)]
    if not found:
        raise SubjectError("the subject returns arrays", type(result).__name__)
    if sum(each.size for each in found) > MOST:
        raise SubjectError(f"an answer has at most {MOST} numbers", [each.shape for each in found])
    return found


def _numbers(result: Any, depth: int = 0) -> bool:
    if depth > 8 or not len(result):
        return False
    return all(isinstance(v, int | float) or (isinstance(v, list) and _numbers(v, depth + 1)) for v in result)
