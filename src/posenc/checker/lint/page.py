"""``docs/lint.md``: the rules and the engines' rows as a page, generated from the registers."""

from __future__ import annotations

from collections.abc import Iterator

from posenc.checker.lint.register import RULES, links
from posenc.formats.engines import NEWEST, Row, engines

HEAD = """# Lint: settings without code

`posenc check config.json` (a config, a GGUF file, a model folder, a name of the catalogue) reads the settings, applies
the rules below and says how engines would read them differently. A finding carries both readings as numbers, the
largest difference in a frequency or gain, public cases of the same kind, and what to do. Where there are weights, the
pairing of the stored query and key rows is measured from them and compared with the one the settings turn.

Verdicts: **defect**, wrong numbers or numbers that depend on who reads them; **convention**, right under one reading
and wrong under another, both in use; **harmless**, nothing changes. Keys beside the rope block that nothing reads are
notes.

This page is generated from the registers (`python -m posenc.checker.lint.page`).
"""

ENGINES = """
## How engines read a config

The reader follows transformers 5.24. Each row is a deviation that was seen in the engine's source or stated by its
maintainers; `until` is the day it was mended. What could not be verified has no row. A row is applied by rewriting the
config into what the engine reads; the encoding that comes out is compared number against number.
"""


def markdown() -> str:
    """The page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield HEAD
    yield "| rule | verdicts | looks for | cases |"
    yield "|---|---|---|---|"
    for rule in RULES.values():
        cases = ", ".join(f"[{i + 1}]({url})" for i, url in enumerate(links(*rule.cases)))
        yield f"| `{rule.id}` | {', '.join(rule.verdicts)} | {_cell(rule.says)} | {cases} |"
    yield ENGINES.rstrip("\n")
    for engine in engines():
        yield f"\n### {engine.title}\n\nNewest state: {engine.versions}; checked {engine.checked}.\n"
        yield "| row | what it does | holds | seen | source |"
        yield "|---|---|---|---|---|"
        for row in engine.rows:
            yield f"| `{row.id}` | {_cell(row.says)} | {_holds(row)} | {_cell(row.seen)} | [{row.date}]({row.source}) |"


def _holds(row: Row) -> str:
    since = f"since {row.since}" if row.since else ""
    until = "" if row.until == NEWEST else f"until {row.until}"
    return " ".join(filter(None, (since, until))) or "yes"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    import posenc.checker.lint.linting  # noqa: F401 - registers the rules

    print(markdown(), end="")
