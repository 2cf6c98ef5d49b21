"""The catalogue: published models as data, each row with its source, how far it was verified, and its three lengths.

A row is a config in the spelling of transformers, read by the same reader as any ``config.json``, or a line of notation
where transformers has no such type. The files are TOML, one for each group. Finding a name cuts the files into rows and
parses only the row that is asked for.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from posenc.errors import FormatError
from posenc.records import Part, Reading
from posenc.spec import ModelPositions, parse

ROW = "[[models]]\n"
NAME = re.compile(r'^name = "(.*)"$', re.MULTILINE)
ALIASES = re.compile(r"^aliases = \[(.*?)\]$", re.MULTILINE | re.DOTALL)
REMARK = re.compile(r"\([^()]*\)")
SEPARATORS = re.compile(r"[\s\-_./,:]+")
LENGTHS = ("original", "trained", "trained_source", "served")


@dataclass(frozen=True)
class Row:
    """One published model.

    Args:
        name: what it is called.
        source: where the values were read.
        verification: how far: ``copy`` of the published config, ``library default``, ``two sources``, ``conflict``, …
        group: the file it stands in.
        aliases: hub ids and short names.
        notes: what the values do not say.
        config: a config in the spelling of transformers; None if the row is a line of notation.
        notation: a line of notation; None if the row is a config.
        layers: number of layers of a line of notation.
        original, trained, served: the three lengths, None where no source states one; ``served`` of a config is the
            config's own unless given here.
        trained_source: who states ``trained``.
    """

    name: str
    source: str
    verification: str
    group: str
    aliases: tuple[str, ...] = ()
    notes: str = ""
    config: Mapping[str, Any] | None = field(default=None, hash=False)
    notation: str | None = None
    layers: int | None = None
    original: int | None = None
    trained: int | None = None
    trained_source: str | None = None
    served: int | None = None


@dataclass(frozen=True)
class _Text:
    """A row that is not parsed yet."""

    name: str
    aliases: tuple[str, ...]
    group: str
    body: str

    @property
    def keys(self) -> tuple[str, ...]:
        """Everything it can be called by: its name, its aliases, and hub ids without the organisation."""
        tails = (alias.partition("/")[2] for alias in self.aliases if "/" in alias)
        return tuple(dict.fromkeys(map(normal, (self.name, *self.aliases, *tails))))


def normal(name: str) -> str:
    """The form names are compared in: no case, no parenthesised remark, all separators alike.

    >>> normal("Phi-4 (14B)") == normal("phi_4"), normal("meta-llama/Llama-3.1-8B")
    (True, 'meta-llama-llama-3-1-8b')
    """
    return SEPARATORS.sub("-", REMARK.sub(" ", name).casefold()).strip("-")


@cache
def _texts() -> tuple[_Text, ...]:
    found = []
    for file in sorted(files("posenc.formats").joinpath("catalogue").iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".toml"):
            continue
        for body in file.read_text("utf-8").split(ROW)[1:]:
            name, aliases = NAME.search(body), ALIASES.search(body)
            if name is None:
                raise FormatError(f"every row of {file.name} has a name", body[:40])
            found.append(_Text(name[1], _listed(aliases), file.name.removesuffix(".toml"), body))
    return tuple(found)


def _listed(aliases: re.Match[str] | None) -> tuple[str, ...]:
    return () if aliases is None else tuple(re.findall(r'"([^"]*)"', aliases[1]))


@cache
def _row(text: _Text) -> Row:
    (fields,) = tomllib.loads(ROW + text.body)["models"]
    config = fields.get("config")
    if config is not None:
        config = {**config, **dict.fromkeys(fields.get("nulls", ()))}  # TOML has no null
    lengths = {name: fields.get("lengths", {}).get(name) for name in LENGTHS}
    given = {k: fields[k] for k in ("name", "source", "verification", "notes", "notation", "layers") if k in fields}
    return Row(**given, **lengths, aliases=text.aliases, group=text.group, config=config)


def rows() -> tuple[Row, ...]:
    """Every row, by group and in the order of its file."""
    return tuple(_row(text) for text in _texts())


def names() -> tuple[str, ...]:
    """The names of all rows."""
    return tuple(text.name for text in _texts())


def search(text: str = "") -> tuple[Row, ...]:
    """Rows whose name, aliases, model type, notation or group contain every word of ``text``; all rows for no word.

    >>> [row.name for row in search("smollm2 135m")]
    ['SmolLM2-135M']
    """
    words = [normal(word) for word in text.split()]

    def haystack(row: Row) -> str:
        model_type = (row.config or {}).get("model_type", "")
        return " ".join(map(normal, (row.name, *row.aliases, row.group, str(model_type), row.notation or "")))

    return tuple(row for row in rows() if all(word in haystack(row) for word in words))


def lookup(name: str) -> Row | None:
    """The row of a name, an alias, or an unambiguous start of one; None if there is none.

    Raises:
        FormatError: several rows start like this.
    """
    wanted = normal(name)
    if not wanted:
        return None
    exact = [text for text in _texts() if wanted in text.keys]
    if len(exact) == 1:
        return _row(exact[0])
    found = exact or [text for text in _texts() if any(key.startswith(wanted) for key in text.keys)]
    if len(found) > 1:
        listed = ", ".join(text.name for text in found[:8])
        more = f", … ({len(found)})" if len(found) > 8 else ""
        raise FormatError("a name in the catalogue is unique", name, f"It could be {listed}{more}.")
    return _row(found[0]) if found else None


def find(name: str) -> Row:
    """The row of a name, an alias, or an unambiguous start of one.

    Raises:
        FormatError: no row, with near misses; or several.

    >>> find("llama-3.1-8b").trained
    131072
    """
    row = lookup(name)
    if row is None:
        raise FormatError("the name is in the catalogue", name, hint(name))
    return row


def near(name: str, count: int = 3) -> tuple[str, ...]:
    """Names of rows that look like ``name``."""
    known = {key: text.name for text in reversed(_texts()) for key in text.keys}
    found = difflib.get_close_matches(normal(name)[:200], known, n=4 * count, cutoff=0.6)
    return tuple(dict.fromkeys(known[key] for key in found))[:count]


def hint(name: str) -> str:
    """What to do about a name that is not known."""
    similar = near(name)
    return f"Did you mean {' or '.join(similar)}?" if similar else "`posenc models` lists the catalogue."


def read_row(row: Row) -> Reading:
    """Read a row; the reading says how far the row was verified and who states its trained length.

    Raises:
        FormatError, SpecError: the row breaks a rule (a fault of the catalogue).
    """
    if row.config is not None:
        from posenc.formats.huggingface import read_config

        reading = read_config(row.config, name=row.name, source=row.source, format="catalogue")
    else:
        positions = ModelPositions.uniform(*parse(row.notation or "none"), layers=row.layers or 0)
        parts = (Part(name="model", positions=positions),)
        reading = Reading(name=row.name, format="catalogue", source=row.source, parts=parts)
    main = reading.parts[0]
    lengths: dict[str, Any] = {"trained": row.trained, "trained_source": row.trained_source}
    if row.served is not None:
        lengths["served"] = row.served
    stated = Part(name=main.name, positions=main.positions.replace(**lengths))
    notes = (*reading.notes, f"catalogue row, verified as: {row.verification}", *([row.notes] if row.notes else []))
    return reading.model_copy(update={"parts": (stated, *reading.parts[1:]), "notes": notes})
