"""Half precision: inputs in it, the module cast to it, autocast around it. Positions and angles must not follow."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.checker.boxes import ROUNDING, Array, CosSin, Rows, Turning
from posenc.checker.calling.caller import why
from posenc.checker.examining.along import check_along
from posenc.checker.examining.cosines import waves_from
from posenc.checker.examining.matrices import in_order
from posenc.checker.gathering import Gathered
from posenc.checker.probes.again import bound_of, box_again, fresh, is_module
from posenc.checker.probes.registry import Probed, probe
from posenc.checker.recovery.angles import Waves, ladder, waves_of
from posenc.checker.recovery.rotation import blocks
from posenc.checker.recovery.tables import best_order, read_in
from posenc.errors import PosencError

REACH = 4096
WAVES = ("rotary", "sinusoidal")
NO_WAVES = "the wanted encoding is neither rotary nor sinusoidal"


def reader(box: Any) -> Callable[[Any, Array], Waves]:
    """How to read waves from boxes like this one: the pairs and orders found in float32 are kept."""
    if isinstance(box, Turning):
        found = blocks(box)
        return lambda other, at: waves_of(in_order(other, found), found.pairs, at)
    if isinstance(box, CosSin):
        return lambda other, at: waves_from(other, at)[0]
    at = ladder(box, 256)
    shape = best_order(box.rows(at), at, box.rounding)
    if shape is None:
        raise PosencError("the table has an order of sines and cosines")
    return lambda other, at: read_in(other.rows(at), at, shape.order).waves


def _look(notes: Gathered, p: Probed, other: Any, dtype: str, situation: str, only: str = "") -> bool:
    """Compare another box's angles with the first one's frequencies; findings say in which situation.

    Args:
        notes, p: gathered so far, and the subject.
        other: the box in the situation.
        dtype: of the situation.
        situation: in words.
        only: when the subject is right, in words: its findings are conventions then.
    """
    read = reader(p.box)
    whole = read(p.box, ladder(p.box, 256))
    theta = whole.theta
    at = ladder(other, REACH)
    originals = [
        s.fields()["original"] if s.kind == "as_executed" else getattr(s, "original", None)
        for s in getattr(p.encoding, "scaling", ())
    ]
    if getattr(p.encoding, "needs_length", False):  # beyond it the frequencies are others
        at = at[at < min(int(o) for o in originals if o)]
    seen = read(other, at)
    rounding = max(ROUNDING.get(dtype, 0.0), other.rounding)
    tried = Gathered()
    moved = Waves(
        seen.positions,
        seen.z,
        theta,
        whole.error,
        np.zeros_like(theta) + whole.start,
        seen.residual,
        seen.gain,
        seen.growth,
        seen.not_turning,
    )
    ok = check_along(tried, moved, theta, 2 * rounding, dtype)
    for finding in tried.findings:
        changes: dict[str, Any] = {"title": f"{situation}: {finding.title}"}
        if only:
            changes["verdict"] = "convention"
            changes["cause"] = (
                finding.cause or "frequencies or tables were rounded with the module's buffers"
            ) + f"; right as long as {only}"
        notes.findings.append(finding.model_copy(update=changes))
    for m in tried.measured:
        notes.measure(f"{m.name}, {situation}", m.value, m.note)
    return ok


@probe("half-precision inputs", Turning, CosSin, Rows)
def half_inputs(notes: Gathered, p: Probed) -> str | None:
    """Inputs in bfloat16 and float16; the subject itself as it is."""
    bound = bound_of(p)
    if bound is None:
        return "the subject is an array"
    if p.encoding.kind not in WAVES:
        return NO_WAVES
    if not bound.has("x") and not bound.has("q"):
        return "the subject takes no vectors"
    if notes.has("precision", "layout"):
        return "float32 already fails"
    done = []
    for dtype in ("bfloat16", "float16"):
        try:
            value = fresh(p)
        except PosencError:
            value = p.value
        try:
            other = box_again(p, value, dtype=dtype)
            only = "inputs are float32, as NumPy code mostly has them" if bound.library.name == "numpy" else ""
            _look(notes, p, other, dtype, f"with {dtype} inputs", only)
            done.append(dtype)
        except PosencError as error:
            notes.skipped(f"{dtype} inputs", why(error, 160))
    return None if done else "half precision is refused"


@probe("cast as a whole", Turning, CosSin, Rows)
def cast(notes: Gathered, p: Probed) -> str | None:
    """A copy after ``.bfloat16()`` and after ``.half()``."""
    if not is_module(p.value) or bound_of(p) is None:
        return "the subject is no torch module"
    if p.encoding.kind not in WAVES:
        return NO_WAVES
    if notes.has("precision", "meta-init", "layout"):
        return "it fails as it is"
    for dtype, method in (("bfloat16", "bfloat16"), ("float16", "half")):
        moved = getattr(copy.deepcopy(p.value), method)()
        try:
            other = box_again(p, moved, dtype=dtype)
            if not _look(notes, p, other, dtype, f"after .{method}()", "it is not cast as a whole"):
                break
        except PosencError as error:
            notes.skipped(f"after .{method}()", why(error, 160))
    return None


@probe("autocast", Turning, CosSin)
def autocast(notes: Gathered, p: Probed) -> str | None:
    """Inside torch.autocast: matrix products of positions and frequencies are on its list."""
    bound = bound_of(p)
    if bound is None or bound.library.name != "torch":
        return "the subject is not of torch"
    if notes.has("precision", "layout"):
        return "it fails without autocast"
    import torch

    def wrap(function: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return function(*args, **kwargs)

        run.__signature__ = _signature(function)  # type: ignore[attr-defined]
        run.__self__ = getattr(function, "__self__", function)  # type: ignore[attr-defined]
        return run

    with contextlib.suppress(PosencError):
        other = box_again(p, fresh(p), wrap=wrap)
        _look(notes, p, other, "bfloat16", "inside autocast")
        return None
    other = box_again(p, p.value, wrap=wrap)
    _look(notes, p, other, "bfloat16", "inside autocast")
    return None


def _signature(function: Any) -> Any:
    import inspect as signatures

    target = function.forward if hasattr(function, "forward") and not signatures.isroutine(function) else function
    return signatures.signature(target)


__all__ = ["Rows", "autocast", "cast", "half_inputs"]
