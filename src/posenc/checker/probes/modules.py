"""Torch modules beyond a call: devices, state_dict, meta device, what the optimiser sees."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np

from posenc.checker.boxes import CosSin, Rows, Turning
from posenc.checker.calling.caller import clipped, raised
from posenc.checker.gathering import Gathered
from posenc.checker.probes.again import apart, asked, bound_of, box_again, fresh, is_module
from posenc.checker.probes.registry import Probed, probe
from posenc.errors import PosencError
from posenc.records.finding import Evidence, FirstWrong, Recovered

AT = np.arange(11.0)
SMALLEST_TABLE = 4
"""Parameters of fewer numbers are weights beside a table, not the table."""
FILLED = 1234.5
"""What stands in memory that nobody filled."""


@probe("moving to another device", Turning, CosSin, Rows)
def devices(notes: Gathered, p: Probed) -> str | None:
    """A copy moved to the meta device and called there: a table kept as a plain attribute stays behind."""
    bound = bound_of(p)
    if not is_module(p.value) or bound is None:
        return "the subject is no torch module"
    import torch

    moved = copy.deepcopy(p.value)
    behind = [name for name, value in _plain_tensors(moved)]
    if not behind:
        return None
    moved.to("meta")
    still = [
        f"{name}"
        for name, value in _plain_tensors(moved)
        if value.device.type != "meta" and value.is_floating_point() and value.numel() > 1
    ]
    if not still:
        return None
    try:
        values = _meta_call(bound, moved, p)
    except Exception as error:
        if "device" not in str(error).lower() and "meta" not in str(error).lower():
            return f"on the meta device it raised {raised(error, 100)}"
        values = None
    if values is None or any(isinstance(v, torch.Tensor) and v.device.type != "meta" for v in values):
        notes.found(
            "defect",
            ("buffer-state-dict",),
            f"the table ({', '.join(still[:3])}) is a plain attribute: it stays behind when the module moves",
            evidence=[Evidence(name="device of the table after .to('meta')", expected="meta", seen="cpu")],
            cause="the tensor was assigned to an attribute in place of register_buffer",
            recovered=[Recovered(name="held as", value="plain attribute", expected="buffer")],
            like="buffer",
            remedy="register_buffer(name, table, persistent=False).",
        )
    return None


def _meta_call(bound: Any, moved: Any, p: Probed) -> list[Any]:
    """Call with inputs on the meta device, in the layout found."""
    import torch

    given: dict[str, Any] = {}
    for name, role in bound.roles.items():
        if role in ("x", "q", "k"):
            layout = p.box.calls.get("layout", "btd")
            sizes = {"b": 1, "h": 1, "t": 7}
            given[name] = torch.empty(tuple(sizes.get(c, bound.dim) for c in layout), device="meta")
        elif role == "positions":
            given[name] = (
                torch.zeros(1, 7, dtype=torch.long, device="meta")
                if "1" in str(p.box.calls.get("form", ""))
                else torch.zeros(7, dtype=torch.long, device="meta")
            )
        elif role == "length":
            given[name] = 7
        elif role == "ready":
            given[name] = moved.prepare(torch.zeros(7, dtype=torch.long, device="meta"))
    old = bound.caller.function
    function = getattr(moved, old.__name__) if getattr(old, "__self__", None) is p.value else moved
    result = function(**given)
    return list(result) if isinstance(result, tuple | list) else [result]


def _plain_tensors(module: Any) -> list[tuple[str, Any]]:
    """Tensors that are attributes of a module (or a submodule) and neither parameters nor buffers."""
    import torch

    found = []
    for prefix, each in module.named_modules():
        for name, value in vars(each).items():
            if isinstance(value, torch.Tensor):
                found.append((f"{prefix}.{name}".lstrip("."), value))
    return found


@probe("what the optimiser sees", Turning, CosSin, Rows)
def optimised(notes: Gathered, p: Probed) -> str | None:
    """One step with weight decay: fixed tables must not move; trainable tensors must be seen."""
    if not is_module(p.value):
        return "the subject is no torch module"
    import torch

    loose = [name for name, value in _plain_tensors(p.value) if value.requires_grad and value.is_leaf]
    if loose:
        notes.found(
            "defect",
            ("integration",),
            f"a trainable tensor ({', '.join(loose[:3])}) is not registered: no optimiser will see it",
            evidence=[Evidence(name="tensors that want a gradient and are no parameters", expected=0, seen=len(loose))],
            cause="a tensor with requires_grad was assigned in place of a Parameter",
            recovered=[Recovered(name="unregistered", value=", ".join(loose[:3]), expected="none")],
            remedy="Wrap it in torch.nn.Parameter.",
        )
    trained = getattr(p.encoding, "learned", False) or p.encoding.kind == "learned"
    parameters = [(n, v) for n, v in p.value.named_parameters() if v.numel() >= SMALLEST_TABLE]
    if trained or not parameters or bound_of(p) is None:
        return None
    moved = copy.deepcopy(p.value)
    before = asked(box_again(p, moved), AT)
    with torch.no_grad():
        changed = []
        for name, value in moved.named_parameters():
            if value.requires_grad and value.numel() >= SMALLEST_TABLE:
                value.mul_(1 - 0.1)  # what weight decay does in a step without a gradient
                changed.append(name)
    after = asked(box_again(p, moved), AT)
    gap = apart(before, after)
    if gap > 1e-4:
        notes.found(
            "defect",
            ("buffer-state-dict",),
            f"a fixed table is a trainable parameter ({', '.join(changed[:3])}): "
            "a step of weight decay changes the encoding",
            evidence=[Evidence(name="largest change of the result", expected=0.0, seen=gap)],
            cause="the table is a Parameter with requires_grad",
            recovered=[
                Recovered(name="held as", value="trainable Parameter", expected="buffer"),
                Recovered(name="trainable numbers", value=sum(v.numel() for _, v in parameters), expected=0),
            ],
            like="buffer",
        )
        return None
    with torch.no_grad():
        for _, value in moved.named_parameters():
            if value.numel() >= SMALLEST_TABLE:
                value.mul_(0.5)
    if apart(before, asked(box_again(p, moved), AT)) > 1e-4:
        frozen = [name for name, value in parameters if not value.requires_grad]
        notes.found(
            "convention",
            ("buffer-state-dict",),
            f"a fixed table is a frozen Parameter ({', '.join(frozen[:3])}): "
            "it is counted, saved and cast with the weights",
            evidence=[
                Evidence(name="numbers counted as parameters", expected=0, seen=sum(v.numel() for _, v in parameters))
            ],
            cause="requires_grad=False in place of a buffer",
            recovered=[Recovered(name="held as", value="frozen Parameter", expected="buffer")],
            like="buffer",
        )
    return None


@probe("state_dict", Turning, CosSin, Rows)
def state_dict(notes: Gathered, p: Probed) -> str | None:
    """Saved after a long call, loaded strictly into a fresh subject, which then answers alike."""
    if not is_module(p.value) or bound_of(p) is None:
        return "the subject is no torch module"
    if any(base.__module__.startswith("keras") for base in type(p.value).__mro__):
        return "Keras saves the weights of a layer itself, once it is built"
    used, new = fresh(p), fresh(p, seed=1)
    box = box_again(p, used)
    top = min(3001, box.largest if box.largest is not None else 3001)  # type: ignore[union-attr]
    asked(box, np.append(AT, float(top)))
    saved = used.state_dict()
    try:
        new.load_state_dict(saved, strict=True)
    except Exception as error:
        notes.found(
            "defect",
            ("buffer-state-dict",),
            "a state_dict saved after a long call does not load into a fresh subject",
            evidence=[
                Evidence(
                    name="strict load", expected="loads", seen=clipped(str(error).strip().split("\n")[-1].strip(), 160)
                )
            ],
            cause="a table that grows is saved with the weights",
            remedy="Keep derived tables out of the state_dict (persistent=False).",
            like="buffer",
        )
        return None
    gap = apart(asked(box_again(p, new), AT), asked(p.box, AT))
    if gap > 1e-4:
        notes.found(
            "defect",
            ("buffer-state-dict",),
            "after loading its own state_dict a fresh subject answers otherwise",
            evidence=[Evidence(name="largest difference", expected=0.0, seen=gap)],
            like="buffer",
        )
    return None


@probe("meta device", Turning, CosSin, Rows)
def meta(notes: Gathered, p: Probed) -> str | None:
    """Emptied as after construction on the meta device, state loaded, reset if it can be: are buffers rebuilt?"""
    if not is_module(p.value) or bound_of(p) is None:
        return "the subject is no torch module"
    import torch

    try:
        moved = fresh(p)
    except PosencError:
        moved = copy.deepcopy(p.value)
    saved = {k: v.clone() for k, v in moved.state_dict().items()}
    if not list(moved.buffers()) and not list(moved.parameters()):
        return "the subject has no buffers and no parameters"
    moved.to_empty(device="cpu")
    with torch.no_grad():
        for value in (*moved.buffers(), *moved.parameters()):
            if value.is_floating_point():
                value.fill_(FILLED)
    reset = []
    for module in moved.modules():
        for name in ("reset_parameters", "reset_buffers", "_init_weights", "rope_init", "init_buffers"):
            method = getattr(module, name, None)
            if callable(method):
                try:
                    method()
                    reset.append(name)
                except Exception:  # a method of that name with other arguments
                    continue
    moved.load_state_dict(saved, strict=False)
    gap = apart(asked(box_again(p, moved), AT), asked(p.box, AT))
    if gap > 1e-4:
        lost = [
            name for name, value in moved.named_buffers() if value.is_floating_point() and bool((value == FILLED).any())
        ]
        notes.found(
            "convention",
            ("meta-init",),
            "after to_empty and loading its state the subject answers from "
            f"unfilled memory ({', '.join(lost[:3]) or 'a buffer'})",
            evidence=[
                Evidence(name="largest difference", expected=0.0, seen=gap),
                Evidence(name="buffers not rebuilt", expected=0, seen=len(lost)),
            ],
            first=FirstWrong(position=0.0),
            cause=(
                "a derived buffer is not in the state_dict and nothing rebuilds "
                "it: right as built, wrong after meta construction"
            ),
            like="meta",
        )
    return None


@probe("plain copies", Turning, CosSin, Rows)
def copies(notes: Gathered, p: Probed) -> str | None:
    """A deep copy answers like the original."""
    if not is_module(p.value) or bound_of(p) is None:
        return "the subject is no torch module"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = copy.deepcopy(p.value)
    except Exception as error:
        notes.found(
            "harmless",
            ("buffer-state-dict",),
            f"the module cannot be copied: {type(error).__name__}",
            remedy="Keep tensors with a history out of attributes.",
        )
        return None
    gap = apart(asked(box_again(p, other), AT), asked(p.box, AT))
    if gap > 1e-5:
        notes.found(
            "defect",
            ("buffer-state-dict",),
            "a deep copy answers otherwise",
            evidence=[Evidence(name="largest difference", expected=0.0, seen=gap)],
        )
    return None


__all__ = ["PosencError", "copies", "devices", "meta", "optimised", "state_dict"]
