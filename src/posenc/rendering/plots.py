"""``posenc.plot``: the report's figures one by one, for notebooks and papers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from posenc.errors import SubjectError
from posenc.records.account import Account, EncodingAccount
from posenc.records.inspection import EncodingInspection, Lengths
from posenc.rendering import document, figures
from posenc.rendering.document import Drawing
from posenc.rendering.figures import Figure
from posenc.rendering.sentences import pairs


@dataclass(frozen=True)
class Plot:
    """A figure that shows itself in a notebook and saves itself as SVG or PNG.

    Args:
        drawing: the figure in its sizes, with the sentence that opens it.
        reach: the farthest distance that its control offers.
    """

    drawing: Drawing
    reach: int | None = None

    @property
    def finding(self) -> str:
        """What it shows, in one sentence with its number."""
        return self.drawing.finding

    @property
    def figure(self) -> Figure:
        """The wide drawing, with its numbers as a table."""
        return self.drawing.figure

    def svg(self) -> str:
        """A file of its own."""
        return self.figure.svg()

    def png(self, scale: float = 2.0) -> bytes:
        """The same as a PNG, ``scale`` pixels for each unit.

        Raises:
            PosencError: vl-convert-python is not installed.
        """
        return self.figure.png(scale)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an ``.svg`` or a ``.png``.

        Raises:
            PosencError: another ending, or the file cannot be written.
        """
        self.figure.save(path)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        from posenc.errors import PosencError
        from posenc.rendering.page import environment, script_text

        try:
            template = environment().get_template("figure.html")
        except PosencError:
            return self.svg()
        return str(template.render(drawing=self.drawing, reach=self.reach, script=script_text()))


class Plots:
    """The report's figures one by one.

    Every method takes anything :func:`posenc.report` takes, or an account that was made of it; ``encoding`` picks one
    of several encodings with frequencies, counted from 0.

    >>> print(plot.similarity("rotary(64)").finding.partition(";")[0])
    Similarity first falls below zero at D = 725
    """

    def clocks(self, subject: Any, distance: int | None = None, *, encoding: int = 0) -> Plot:
        """Three hands at positions m and n, and the cosine of every pair.

        Args:
            subject: a model or an encoding with frequencies.
            distance: ``D = m - n``; a quarter turn of the middle pair unless given.
            encoding: which of several.

        Raises:
            PosencError: the subject cannot be read, or no pair turns.
        """
        e = _analysed(subject, encoding)[0]
        if not e.clocks:
            raise SubjectError("a clock turns", e.notation)
        if distance is not None and not 0 <= distance <= 2**53:
            raise SubjectError("a distance is a whole number from 0 to 2^53", distance)
        variants = document.both(lambda w: figures.clocks(e, distance, w))
        drawing = Drawing(_key(), variants[0][1].finding, variants, controlled=True)
        return Plot(drawing, max(e.decay.reach, distance or 0))

    def similarity(self, subject: Any, *, log: bool = True, encoding: int = 0) -> Plot:
        """Similarity against distance; of a table, the mean of K(m, n) along each diagonal.

        Args:
            subject: a model, an encoding with frequencies, a table or a function.
            log: a logarithmic axis of distances.
            encoding: which of several.

        Raises:
            PosencError: the subject cannot be read.
        """
        account = _account(subject)
        if account.array is not None:
            table = account.array
            return _plot(lambda w: figures.kernel(table, w))
        e = _analysed(account, encoding)[0]
        return _plot(lambda w: figures.similarity(e, w, log=log))

    def ladder(self, subject: Any, *, encoding: int = 0) -> Plot:
        """Every pair's wavelength against the original, trained and served length.

        Raises:
            PosencError: the subject cannot be read, or has no frequencies.
        """
        e, read, lengths = _analysed(subject, encoding)
        return _plot(lambda w: figures.ladder(read, lengths, pairs.ladder(e), w))

    def scaling(self, subject: Any, *, encoding: int = 0) -> Plot:
        """The factor of a scaling on every pair's wavelength.

        Raises:
            PosencError: the subject cannot be read, or is not scaled.
        """
        _, read, _ = _analysed(subject, encoding)
        finding = pairs.scaling(read)
        if finding is None:
            raise SubjectError("an encoding with a scaling has factors to draw", read.notation)
        return _plot(lambda w: figures.scaling(read, finding, w))

    def heat(self, subject: Any, of: Literal["kernel", "table"] = "kernel", *, encoding: int = 0) -> Plot:
        """The table of positions as a heat map, or its inner products K(m, n).

        Raises:
            PosencError: the subject cannot be read, or has neither a table nor frequencies.
        """
        if of not in ("kernel", "table"):
            raise SubjectError("a heat map is of the kernel or of the table", of)
        account = _account(subject)
        table = account.array or _analysed(account, encoding)[0].table
        drawn = figures.kernel_heat(table) if of == "kernel" else figures.table_heat(table)
        return Plot(Drawing(_key(), drawn.finding, (("half", drawn),)))

    def precision(self, subject: Any, *, encoding: int = 0) -> Plot:
        """What rounding costs, by dtype and by stage.

        Raises:
            PosencError: the subject cannot be read, or has no frequencies.
        """
        e = _analysed(subject, encoding)[0]
        return _plot(lambda w: figures.precision(e, w))


def _account(subject: Any) -> Account:
    if isinstance(subject, Account):
        return subject
    from posenc.analysis.account import account

    return account(subject, claims=False)


def _analysed(subject: Any, index: int) -> tuple[EncodingAccount, EncodingInspection, Lengths]:
    account = _account(subject)
    if account.inspection is None or not account.encodings:
        raise SubjectError("a figure of pairs is drawn of an encoding with frequencies", account.name)
    if not 0 <= index < len(account.encodings):
        raise SubjectError(f"{account.name} has encodings 0 to {len(account.encodings) - 1}", index)
    e = account.encodings[index]
    for part in account.inspection.parts:
        for read in part.encodings:
            if part.name == e.part and read.notation == e.notation:
                return e, read, part.lengths
    raise SubjectError("an account holds what was read", e.notation)


def _plot(draw: Callable[[int], Figure]) -> Plot:
    variants = document.both(draw)
    return Plot(Drawing(_key(), variants[0][1].finding, variants))


def _key() -> str:
    """An id that no other output of the notebook has."""
    return f"p{os.urandom(6).hex()}"


plot = Plots()
