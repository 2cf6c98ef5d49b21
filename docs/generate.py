"""Makes docs/encodings.md and docs/cases.md from the code and the registers of the tests; ``make docs`` runs it.

Tests compare the files with what this says, so the tables cannot go stale.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if str(HERE.parent / "tests") not in sys.path:
    sys.path.insert(0, str(HERE.parent / "tests"))

PLACES = {
    "input": "With the embeddings",
    "query_key": "At queries and keys",
    "score": "In the score",
}
INTRODUCTION = """\
# Encodings

Made by `make docs` from the code; a test keeps it true.

Every encoding is a value (`posenc.spec`), a float64 formula (`posenc.formulas`) and a module (`posenc.nn`). A line of
notation makes any of them: `posenc inspect "rotary(64)"`, `posenc.nn.build("rotary(64)")`.

*Relative*: scores depend on positions only through differences. *Content*: positions are made from the tokens.
*Length*: some values of the kind need the declared length of a row. *Trained*: numbers that training moves in the
example.
"""


def encodings() -> str:
    """The whole file."""
    from nn.register import REGISTER
    from posenc.nn import build
    from posenc.spec import ENCODINGS, parse
    from posenc.spec.references import cited

    parts = [INTRODUCTION]
    for place, title in PLACES.items():
        parts.append(f"\n## {title}\n\n")
        parts.append("| kind | what it is | example | module | relative | content | length | trained | sources |\n")
        parts.append("|---|---|---|---|---|---|---|---|---|\n")
        for kind, value_class in ENCODINGS.items():
            if value_class.enters != place or kind not in REGISTER:
                continue
            entry = REGISTER[kind]
            values = [parse(line)[0] for line in entry.lines]
            module: Any = build(values[0])
            links = [f"[{named(r)}]({r.link})" if r.link else named(r) for r in cited((values[0],))]
            cells = (
                f"`{kind}`",
                first_sentence(value_class),
                f"`{values[0]}`",
                f"`{entry.module}`",
                yes(value_class.relative),
                yes(value_class.content_dependent),
                yes(any(v.needs_length for v in values)),
                str(sum(p.numel() for p in module.parameters())),
                ", ".join(links) or "none",
            )
            parts.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |\n")
    return "".join(parts)


def cases() -> str:
    """Public cases and the broken encodings that stand for them."""
    from mutants.page import markdown

    return markdown()


def first_sentence(value_class: type) -> str:
    """What the docstring opens with, as Markdown."""
    opening = inspect.cleandoc(value_class.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    return opening.replace("``", "`")


def named(reference: Any) -> str:
    """First author and year."""
    first = reference.authors[0]
    short = first if first.split()[-1] in ("AI", "Team") else first.split()[-1]
    return f"{short} {reference.year}"


def yes(fact: bool) -> str:
    """A fact in a cell."""
    return "yes" if fact else "no"


if __name__ == "__main__":
    (HERE / "encodings.md").write_text(encodings(), "utf-8")
    (HERE / "cases.md").write_text(cases(), "utf-8")
