"""``docs/cases.md``: every public case, the mutant or lint rule that expresses it, or why nothing can."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from importlib.resources import files

import posenc.checker.lint.linting  # noqa: F401 - registers the rules
from mutants import capturing, makers, scores, tables, turning, vectors
from mutants.register import MUTANTS, Mutant
from posenc.checker.lint.register import RULES

assert all((capturing, makers, scores, tables, turning, vectors))

NOT_EXPRESSED = {
    "buffer-unexpected-key": "the stored numbers are right and only their key is unknown to the model that loads them: "
    "which keys it takes is no property of an encoding. The vector is acquitted (test_acquittals).",
}
"""Public cases that are no broken encoding, with the reason."""

HEAD = """# Public cases and the broken encodings that stand for them

Made by `make docs` from the registers; a test keeps it true.

A case is a public report of a wrong position encoding. Its mutant (`tests/mutants/`) is the same fault in our own
words, as code or as data, which `posenc check` must catch with the verdict, the kind and the numbers stated here; a
lint rule finds it in settings alone ([lint.md](lint.md)).

| case | kind | mutant: verdict and what is recovered | lint rules |
|---|---|---|---|
"""
OWN = """
## Further broken encodings

Tutorials' faults and variations without a public case of their own.

| mutant | wanted | kind | verdict and what is recovered |
|---|---|---|---|
"""
NONE = """
## Cases that no code or data expresses

"""


def public_cases() -> dict[str, tuple[str, str]]:
    """Kind and address of each case."""
    rows = tomllib.loads((files("posenc.checker") / "cases.toml").read_text("utf-8"))["case"]
    found = {row["id"]: (row["kind"], row["url"]) for row in rows}
    for name, url in json.loads((files("posenc.checker.lint") / "cases.json").read_text("utf-8")).items():
        found.setdefault(name, ("config-parsing", url))
    return found


def rules_by_case() -> dict[str, list[str]]:
    """Lint rules that name a case."""
    found: dict[str, list[str]] = {}
    for rule in RULES.values():
        for case in rule.cases:
            found.setdefault(case, []).append(rule.id)
    return found


def markdown() -> str:
    """The page."""
    return "".join(_parts())


def _parts() -> Iterator[str]:
    by_name = {m.name: m for m in MUTANTS}
    cases, rules = public_cases(), rules_by_case()
    yield HEAD
    for name, (kind, url) in cases.items():
        mutant = _outcome(by_name[name]) if name in by_name else "none"
        linted = ", ".join(f"`{r}`" for r in rules.get(name, ())) or "none"
        yield f"| [{name}]({url}) | {kind} | {_cell(mutant)} | {linted} |\n"
    yield OWN
    for m in MUTANTS:
        if m.name not in cases:
            yield f"| `{m.name}` | `{_cell(m.expect)}` | {m.kind} | {_cell(_outcome(m))} |\n"
    yield NONE
    yield from (f"- [{name}]({cases[name][1]}): {why}\n" for name, why in NOT_EXPRESSED.items())


def _outcome(m: Mutant) -> str:
    told = (f"{k} = {v:.6g}" if isinstance(v, float) else f"{k} = {v}" for k, v in m.recovered.items())
    return "; ".join(filter(None, (m.verdict, ", ".join(told))))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
