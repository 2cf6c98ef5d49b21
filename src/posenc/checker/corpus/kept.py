"""What a run has done, one subject a line: appended as it comes, so that another run takes up where one was ended."""

from __future__ import annotations

import os
from pathlib import Path

from posenc.errors import FormatError
from posenc.records.corpus import Examined


class Kept:
    """A file of finished subjects.

    Args:
        path: the file; it is made if it does not exist. None keeps nothing.

    Raises:
        FormatError: it holds something else, or cannot be read.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.done: dict[str, Examined] = {}
        if path is None or not path.exists():
            return
        try:
            text = path.read_bytes()
        except OSError as error:
            raise FormatError("a file of finished subjects can be read", f"{path}: {error.strerror}") from None
        whole = text[: text.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                each = Examined.model_validate_json(line)
            except ValueError:
                raise FormatError("every line holds one finished subject", f"{path}, line {number}") from None
            self.done[each.name] = each  # the later one counts
        if not whole and text:
            raise FormatError("every line holds one finished subject", f"{path}, line 1")
        if len(whole) < len(text):  # the last line was cut off when a run was ended
            os.truncate(path, len(whole))

    def add(self, each: Examined) -> None:
        """Append a subject in one write.

        Raises:
            FormatError: the file cannot be written.
        """
        self.done[each.name] = each
        if self.path is None:
            return
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(file, each.model_dump_json().encode() + b"\n")
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise FormatError("finished subjects can be written", f"{self.path}: {error.strerror}") from None
