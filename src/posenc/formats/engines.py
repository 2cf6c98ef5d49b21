"""How engines read a config: dated rows of ``engines/*.toml``, applied, and the encodings that come out.

A row holds one deviation from the reader of ``posenc.formats.huggingface`` (transformers 5.24): since when and until
when, who says so and when that was seen. What could not be verified has no row, and :class:`NotCompared` rows say so
where silence would be a claim.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from posenc.errors import FormatError, PosencError
from posenc.formats.engine_rewrites import ON_STACKS, REWRITES, NotCompared, Refused, blocks, stacks, type_of
from posenc.formats.huggingface import read_config
from posenc.records import Reading

NEWEST = "9999-12-31"


@dataclass(frozen=True)
class Row:
    """One deviation of one engine.

    Args:
        id: unique in its engine.
        does: name of a rewrite.
        says: the deviation in a sentence.
        source: address of what was read.
        date: of that source.
        seen: version or commit it was seen in.
        since, until: the dates between which it holds, ISO; ``until`` is the day it was mended.
        rope_types: types of blocks it concerns; empty for all.
        model_types, not_model_types: model types it concerns, or does not.
        how: arguments of the rewrite.
    """

    id: str
    does: str
    says: str
    source: str
    date: str
    seen: str
    since: str = ""
    until: str = NEWEST
    rope_types: tuple[str, ...] = ()
    model_types: tuple[str, ...] = ()
    not_model_types: tuple[str, ...] = ()
    how: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    def concerns(self, model_type: Any) -> bool:
        if self.model_types:
            return model_type in self.model_types
        return model_type not in self.not_model_types

    def holds(self, day: str) -> bool:
        return self.since <= day < self.until


@dataclass(frozen=True)
class Engine:
    """An engine and its rows.

    Args:
        name: as in the file's name.
        title: as its makers write it.
        checked: the day all rows were last looked at.
        versions: which releases the newest state stands for.
        rows: deviations, in the order in which they apply.
    """

    name: str
    title: str
    checked: str
    versions: str
    rows: tuple[Row, ...]

    def states(self) -> tuple[str, ...]:
        """A day for each distinct set of rows, the newest first."""
        days = {self.checked} | {_before(row.until) for row in self.rows if row.until != NEWEST}
        return tuple(sorted(days, reverse=True))


@dataclass(frozen=True)
class AsRead:
    """What an engine makes of a config.

    Args:
        engine: the engine.
        day: the state of the engine that was asked for.
        reading: its encodings; None where it refuses or nothing is claimed.
        rows: the rows that changed something, or that stopped it.
        refused: why it stops.
        unclaimed: what is not verified.
    """

    engine: Engine
    day: str
    reading: Reading | None
    rows: tuple[Row, ...] = ()
    refused: str | None = None
    unclaimed: str | None = None

    @property
    def when(self) -> str:
        """The releases this state stands for, in words."""
        return self.engine.versions if self.day == self.engine.checked else f"until {self.day}"


@cache
def engines() -> tuple[Engine, ...]:
    """Every engine with rows, by name."""
    folder = files("posenc.formats").joinpath("engines")
    found = [_engine(f.name.removesuffix(".toml"), f.read_text("utf-8")) for f in folder.iterdir() if _is_toml(f.name)]
    return tuple(sorted(found, key=lambda e: e.name))


def engine(name: str) -> Engine:
    """One engine.

    Raises:
        FormatError: there are no rows for it.

    >>> engine("llama_cpp").title
    'llama.cpp'
    """
    for each in engines():
        if name in (each.name, each.title):
            return each
    raise FormatError("the engine is a known one", name, f"Known: {', '.join(e.name for e in engines())}.")


def as_read_by(config: Mapping[str, Any], which: Engine | str, day: str | None = None) -> AsRead:
    """What an engine makes of a config.

    Args:
        config: the parsed ``config.json``.
        which: the engine or its name.
        day: state of the engine, an ISO date; the newest by default.

    Raises:
        FormatError: no such engine.

    >>> at = as_read_by({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 1,
    ...                  "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}, "transformers_4")
    >>> [row.id for row in at.rows], str(at.reading.encodings()[0])
    (['rope-parameters-unread'], 'rotary(32)')
    """
    found = engine(which) if isinstance(which, str) else which
    day = found.checked if day is None else day
    rewritten: dict[str, Any] = copy.deepcopy(dict(config))
    applied: list[Row] = []
    for row in found.rows:
        if not row.holds(day):
            continue
        try:
            if _applied(rewritten, row):
                applied.append(row)
        except Refused as refused:
            return AsRead(found, day, None, (row,), refused=str(refused))
        except NotCompared as unclaimed:
            return AsRead(found, day, None, (row,), unclaimed=str(unclaimed))
    try:
        reading = read_config(rewritten, name=found.title, source=found.title)
    except PosencError as error:
        return AsRead(found, day, None, tuple(applied), refused=str(error))
    return AsRead(found, day, reading, tuple(applied))


def _applied(config: dict[str, Any], row: Row) -> bool:
    """Whether the row changed something."""
    before = copy.deepcopy(config)
    rewrite = REWRITES[row.does]
    for stack in stacks(config):
        model_type = stack.get("model_type") or config.get("model_type")
        if not row.concerns(model_type):
            continue
        found = blocks(stack)
        if row.does in ON_STACKS:
            rewrite(stack, {}, row.how)
            continue
        for block in found.values():
            if not row.rope_types or type_of(block) in row.rope_types:
                rewrite(stack, block, row.how)
    return config != before


def _is_toml(name: str) -> bool:
    return name.endswith(".toml")


def _engine(name: str, text: str) -> Engine:
    data = tomllib.loads(text)
    rows = tuple(_row(fields) for fields in data.get("rows", ()))
    return Engine(name, data["title"], data["checked"], data["versions"], rows)


def _row(fields: Mapping[str, Any]) -> Row:
    lists = {k: tuple(v) for k, v in fields.items() if k in ("rope_types", "model_types", "not_model_types")}
    how = MappingProxyType(dict(fields.get("how", {})))
    return Row(**{**fields, **lists, "how": how})


def _before(day: str) -> str:
    from datetime import date, timedelta

    return (date.fromisoformat(day) - timedelta(days=1)).isoformat()
