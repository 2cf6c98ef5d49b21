"""References: the papers that define the values, by the keys that values cite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from posenc.spec.value import Value


@dataclass(frozen=True)
class Reference:
    """A paper, a post or a book.

    Args:
        key: what ``cites`` of a value names.
        title, authors, year: as published.
        arxiv: arXiv identifier, where it has one.
        url: address, for what is not on arXiv.
        publisher: of a book.
    """

    key: str
    title: str
    authors: tuple[str, ...]
    year: int
    arxiv: str | None = None
    url: str | None = None
    publisher: str | None = None

    @property
    def link(self) -> str | None:
        """Where to read it."""
        return f"https://arxiv.org/abs/{self.arxiv}" if self.arxiv else self.url

    @property
    def bibtex(self) -> str:
        """A BibTeX entry; braces keep the capitals of the title."""
        kind = "book" if self.publisher else "article" if self.arxiv else "misc"
        fields = {"title": "{" + self.title + "}", "author": " and ".join(map(_bibtex_author, self.authors))}
        if self.arxiv:
            fields |= {
                "journal": f"arXiv preprint arXiv:{self.arxiv}",
                "eprint": self.arxiv,
                "archivePrefix": "arXiv",
            }
        if self.publisher:
            fields["publisher"] = self.publisher
        fields["year"] = str(self.year)
        if self.url:
            fields["howpublished"] = f"\\url{{{self.url}}}"
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
        return f"@{kind}{{{self.key},\n{lines}\n}}"


def _bibtex_author(author: str) -> str:
    """A name of one word or of an organisation is kept whole."""
    return "{" + author + "}" if "," in author or " " not in author or author.split()[-1] in ("AI", "Team") else author


@cache
def references() -> dict[str, Reference]:
    """Every reference by its key."""
    import tomllib
    from importlib.resources import files

    table = tomllib.loads((files("posenc.spec") / "references.toml").read_text(encoding="utf-8"))
    return {key: Reference(key=key, **{**row, "authors": tuple(row["authors"])}) for key, row in table.items()}


def cited(values: Any) -> tuple[Reference, ...]:
    """The references behind values and everything nested in them, each once, oldest first.

    >>> from posenc.spec import Rotary, Yarn
    >>> [reference.key for reference in cited(Rotary(64) >> Yarn(4, original=4096))]
    ['su2021', 'peng2023']
    """
    keys = dict.fromkeys(key for value in _nested(values) for key in value.cites)
    return tuple(sorted((references()[key] for key in keys), key=lambda r: r.year))


def _nested(value: Any) -> Iterator[Value]:
    if isinstance(value, Value):
        yield value
        for name in type(value).model_fields:
            yield from _nested(getattr(value, name))
    elif isinstance(value, tuple | list):
        for item in value:
            if isinstance(item, Value | tuple):
                yield from _nested(item)
