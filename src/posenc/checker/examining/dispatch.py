"""The examination that fits a box and a wanted encoding."""

from __future__ import annotations

from typing import Any

from posenc.checker.boxes import Attention, Bias, Box, Buckets, CosSin, Rows, Turning, Vector
from posenc.checker.examining.attention import examine_attention
from posenc.checker.examining.biases import examine_bias
from posenc.checker.examining.buckets import examine_buckets
from posenc.checker.examining.cosines import examine_cos_sin, examine_vector
from posenc.checker.examining.learned import examine_learned
from posenc.checker.examining.other import examine_other
from posenc.checker.examining.rows import examine_rows
from posenc.checker.examining.slopes import examine_slopes
from posenc.checker.examining.turning import examine_turning
from posenc.checker.gathering import Gathered
from posenc.errors import SubjectError
from posenc.spec import Alibi, Learned, Rotary, Sinusoidal, T5Bias


def examine(notes: Gathered, box: Box, encoding: Any, served: int | None = None) -> None:
    """Measure a box and compare it with the wanted encoding.

    Raises:
        SubjectError: the two do not belong together.
    """
    match box, encoding:
        case Turning(), Rotary():
            examine_turning(notes, box, encoding, served)
        case CosSin(), Rotary():
            examine_cos_sin(notes, box, encoding, served)
        case Vector(), Rotary() | Sinusoidal() if box.holds == "frequencies":
            examine_vector(notes, box, encoding)
        case Vector(), Alibi():
            examine_slopes(notes, box, encoding)
        case Rows(), Sinusoidal():
            examine_rows(notes, box, encoding, served)
        case Rows(), Learned():
            examine_learned(notes, box, encoding)
        case Bias(), Alibi() | T5Bias():
            examine_bias(notes, box, encoding)
        case Buckets(), T5Bias():
            examine_buckets(notes, box, encoding)
        case Attention(), _:
            examine_attention(notes, box, encoding)
        case Rows(), _:
            examine_other(notes, box, encoding)
        case _:
            raise SubjectError(
                f"a {encoding.kind} is compared with what computes one", f"a {type(box).__name__.lower()}"
            )
