"""The register of lint rules: each a small function from settings to findings."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import Any

from posenc.errors import PosencError
from posenc.formats.engine_rewrites import blocks, stacks, type_of
from posenc.formats.huggingface import read_config
from posenc.records import Reading
from posenc.records.finding import Finding, Verdict


@dataclass(frozen=True, eq=False)
class Block:
    """One rope block and where it stands.

    Args:
        key: dotted path inside the config.
        stack: the object it stands in.
        data: the block itself.
        nested: it is one of several, by layer type.
    """

    key: str
    stack: dict[str, Any]
    data: dict[str, Any]
    nested: bool

    @property
    def type(self) -> str:
        return type_of(self.data)


@dataclass(frozen=True, eq=False)
class Settings:
    """What a rule sees.

    Args:
        name: what was handed over.
        config: the parsed config; None for a GGUF file.
        reading: what the reader made of it; None where it could not be read.
        error: why not.
    """

    name: str
    config: dict[str, Any] | None = None
    reading: Reading | None = None
    error: PosencError | None = None
    explained: set[str] = field(default_factory=set)
    """Keys that a rule has spoken of, so that no other one does."""

    @cached_property
    def stacks(self) -> tuple[dict[str, Any], ...]:
        """The config itself and the objects in it that have rope keys."""
        if self.config is None:
            return ()
        return (self.config, *(s for s in stacks(self.config) if s is not self.config))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        found = []
        for stack in self.stacks:
            named = blocks(stack)
            found += [Block(key, stack, data, "." in key) for key, data in named.items()]
        return tuple(found)

    def of(self, stack: dict[str, Any]) -> list[Block]:
        """The rope blocks of one object."""
        return [b for b in self.blocks if b.stack is stack]

    def changed(self, change: Callable[[dict[str, Any], dict[str, Any]], None], block: Block) -> dict[str, Any]:
        """A copy of the config in which ``change(stack, block)`` was applied to this block."""
        if self.config is None:
            raise ValueError("a GGUF file has no config")
        number = self.blocks.index(block)
        copied = Settings(self.name, copy.deepcopy(self.config))
        there = copied.blocks[number]
        change(there.stack, there.data)
        return copied.config or {}

    def changed_stack(self, change: Callable[[dict[str, Any]], None], stack: dict[str, Any]) -> dict[str, Any]:
        """A copy of the config in which ``change(stack)`` was applied to this object."""
        number = next(i for i, s in enumerate(self.stacks) if s is stack)
        copied = Settings(self.name, copy.deepcopy(self.config))
        change(copied.stacks[number])
        return copied.config or {}


def settings_of(config: dict[str, Any], name: str) -> Settings:
    """The settings of a config, read as far as it can be."""
    try:
        return Settings(name, config, read_config(config, name=name, source=name))
    except PosencError as error:
        return Settings(name, config, None, error)


Check = Callable[[Settings], Iterable[Finding]]


@dataclass(frozen=True)
class Rule:
    """One thing the lint looks for.

    Args:
        id: short name.
        verdicts: what its findings can mean.
        says: what it looks for, in a sentence without a final stop.
        check: the function.
        cases: public cases of the kind, by id in ``cases.json``.
    """

    id: str
    verdicts: tuple[Verdict, ...]
    says: str
    check: Check
    cases: tuple[str, ...] = ()


RULES: dict[str, Rule] = {}


def rule(id: str, *verdicts: Verdict, says: str, cases: tuple[str, ...] = ()) -> Callable[[Check], Check]:
    """Register a rule; rules run in the order in which their modules are imported."""

    def register(check: Check) -> Check:
        RULES[id] = Rule(id, verdicts, says, check, cases)
        return check

    return register


def links(*cases: str) -> tuple[str, ...]:
    """Addresses of public cases, by id."""
    known = _addresses()
    return tuple(known[case] for case in cases)


def _addresses() -> dict[str, str]:
    found: dict[str, str] = json.loads(files("posenc.checker.lint").joinpath("cases.json").read_text("utf-8"))
    return found


def run(settings: Settings) -> Iterator[Finding]:
    """Every finding of every rule."""
    for each in RULES.values():
        yield from each.check(settings)
