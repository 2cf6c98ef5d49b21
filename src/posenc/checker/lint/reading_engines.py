"""How engines would read the same config differently, number against number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from posenc.checker.apart import apart
from posenc.checker.lint.register import Settings
from posenc.formats.engines import AsRead, Engine, as_read_by, engines
from posenc.records.finding import Evidence, Finding, Kind


def engine_findings(at: Settings) -> Iterator[Finding]:
    """A finding for every state of an engine that computes something else from this config, or refuses it."""
    if at.config is None or at.reading is None:
        return
    for engine in engines():
        seen: set[tuple[str, ...]] = set()
        for day in engine.states():
            read = _telling(at.config, as_read_by(at.config, engine, day))
            made = _finding(at, read)
            rows = tuple(row.id for row in read.rows)
            if made is None or rows in seen:
                continue
            seen.add(rows)
            yield made


def _telling(config: Mapping[str, Any], read: AsRead) -> AsRead:
    """The same with only those rows without which another encoding would come out."""
    if read.reading is None:
        return read
    kept = []
    for row in read.rows:
        rest = replace(read.engine, rows=tuple(r for r in read.engine.rows if r is not row))
        without = as_read_by(config, rest, read.day).reading
        if without is None or apart(read.reading, without) is not None:
            kept.append(row)
    return replace(read, rows=tuple(kept) or read.rows)


def unclaimed(at: Settings) -> tuple[str, ...]:
    """What is not verified about engines, as notes."""
    if at.config is None or at.reading is None:
        return ()
    found = [as_read_by(at.config, engine) for engine in engines()]
    return tuple(f"{r.engine.title}: {r.unclaimed}" for r in found if r.unclaimed)


def _finding(at: Settings, read: AsRead) -> Finding | None:
    who = f"{read.engine.title} ({read.when})"
    says = "; ".join(row.says for row in read.rows)
    sources = tuple(dict.fromkeys(row.source for row in read.rows))
    if read.refused is not None and read.rows:
        return Finding(
            verdict="convention",
            kinds=("config-parsing",),
            title=f"{who} refuses this config: {read.refused}",
            cause=says or None,
            links=sources,
            remedy="Write the config so that both accept it.",
            where=read.engine.name,
        )
    if read.reading is None or at.reading is None:
        return None
    both = apart(at.reading, read.reading)
    if both is None:
        return None
    dates = Evidence(name="source", seen=", ".join(f"{row.date} ({row.seen})" for row in read.rows)[:300])
    return Finding(
        verdict="convention",
        kinds=_kinds(read.engine, read),
        title=f"{who} computes another encoding: {says}",
        evidence=(*both.evidence("transformers 5.24", who), dates),
        cause=says or None,
        links=sources,
        remedy="Write what is meant in words that both read the same, for instance longrope with explicit factors and "
        "attention_factor, or use the engine's own setting.",
        where=read.engine.name,
    )


def _kinds(engine: Engine, read: AsRead) -> tuple[Kind, ...]:
    found: list[Kind] = []
    for row in read.rows:
        if "gain" in row.says or "mscale" in row.id or "attention" in row.id:
            found.append("attention-factor")
        if row.does in ("long_only", "dynamic_square", "unscaled", "drop_nested") or "truncate" in row.id:
            found.append("scaling-parameters")
    return (*dict.fromkeys(found), "config-parsing")
