"""The register of probes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from posenc.checker.gathering import Gathered


@dataclass
class Probed:
    """What a probe works on.

    Args:
        loaded: the subject, with a way to make a fresh one.
        value: the object that is called.
        box: the box around it.
        encoding: the wanted encoding.
        hints: how it is called.
        served: the longest context that is admitted.
    """

    loaded: Any
    value: Any
    box: Any
    encoding: Any
    hints: Any
    served: int | None


@dataclass(frozen=True)
class Probe:
    """One probe.

    Args:
        name: what it looks at.
        boxes: the boxes it fits.
        run: adds findings; returns a reason where it does not apply, None where it ran.
    """

    name: str
    boxes: tuple[type, ...]
    run: Callable[[Gathered, Probed], str | None]


PROBES: list[Probe] = []


def probe(
    name: str, *boxes: type
) -> Callable[[Callable[[Gathered, Probed], str | None]], Callable[[Gathered, Probed], str | None]]:
    """Register a probe for some boxes."""

    def add(run: Callable[[Gathered, Probed], str | None]) -> Callable[[Gathered, Probed], str | None]:
        PROBES.append(Probe(name, boxes, run))
        return run

    return add
