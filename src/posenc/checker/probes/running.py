"""Which probes fit a subject, run one after the other; none of them can stop the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from posenc.checker.boxes import Box
from posenc.checker.calling.caller import clipped, raised, why
from posenc.checker.gathering import Gathered
from posenc.checker.probes import (  # noqa: F401 - each registers
    cached_keys,
    compiling,
    dtypes,
    exporting,
    history,
    lengths,
    modules,
    neighbours,
    padding,
    shapes,
    splits,
)
from posenc.checker.probes.registry import PROBES, Probe, Probed
from posenc.errors import PosencError


def run_probes(
    notes: Gathered, loaded: Any, value: Any, box: Box, encoding: Any, hints: Any, served: int | None
) -> None:
    """Run every probe that fits; what a probe cannot do is said."""
    probed = Probed(loaded, value, box, encoding, hints, served)
    for probe in sorted(PROBES, key=_order):
        if not isinstance(box, probe.boxes):
            continue
        _guarded(notes, probe.name, lambda probe=probe: probe.run(notes, probed))  # type: ignore[misc]


ORDER = (
    "dtypes",
    "history",
    "splits",
    "cached_keys",
    "padding",
    "lengths",
    "modules",
    "shapes",
    "exporting",
    "compiling",
    "neighbours",
)
"""Modules of probes, those whose findings explain others first."""


def _order(probe: Probe) -> int:
    return ORDER.index(probe.run.__module__.rsplit(".", 1)[-1])


def _guarded(notes: Gathered, name: str, run: Callable[[], Any]) -> None:
    try:
        reason = run()
    except PosencError as error:
        notes.skipped(name, clipped(str(error), 240) if error.remedy else why(error, 240))
    except (KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:  # a hostile subject must not take the report with it
        notes.skipped(name, raised(error, 160))
    else:
        if isinstance(reason, str):
            notes.skipped(name, reason)
        else:
            notes.ran(name)
