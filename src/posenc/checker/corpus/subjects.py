"""The subjects that a pattern names: model types of the installed transformers."""

from __future__ import annotations

from fnmatch import fnmatchcase

from posenc.errors import SubjectError

PREFIX = "transformers:"


def subjects(pattern: str) -> list[str]:
    """The names of all subjects, sorted.

    Raises:
        SubjectError: transformers is not installed, the pattern asks for a module inside, or nothing matches.
    """
    from posenc.checker.models.tiny import library

    if "#" in pattern:
        raise SubjectError("a pattern names whole models; a module inside is asked of one type", pattern)
    known = [f"{PREFIX}{name}" for name in sorted(library().CONFIG_MAPPING.keys())]
    names = [name for name in known if fnmatchcase(name, pattern)]
    if not names:
        raise SubjectError("a pattern matches a model type of the installed transformers", pattern)
    return names
