"""The quick reference: the claims ledger on one page of A4 for each language."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from posenc.records.account import EncodingAccount
from posenc.records.analysis import Claim, Ledger
from posenc.rendering.figures import curves, dials
from posenc.rendering.files import replaced
from posenc.rendering.page import environment

Language = Literal["en", "zh"]
DISTANCE = 100
"""Where the hands stand."""
VERDICTS = ("exact", "holds within stated bounds", "counterexample", "refuted", "needs training")
SIGNS = {
    "exact": ("exact", "✓"),
    "holds within stated bounds": ("bounds", "≈"),
    "counterexample": ("counter", "✗"),
    "refuted": ("refuted", "✗"),
    "needs training": ("training", "?"),
}


@dataclass(frozen=True)
class Words:
    """Everything on a page that is not a claim."""

    tag: str
    title: str
    subtitle: str
    verdicts: dict[str, str]
    formulas: tuple[tuple[str, str, str], ...]
    """Name, formula, remark."""
    glossary: tuple[tuple[str, str], ...]
    hands: str
    figure: str
    foot: str


FORMULAS = {
    "sinusoid": "PE(p) = (sin pθ<sub>i</sub>, cos pθ<sub>i</sub>),&ensp;θ<sub>i</sub> = b<sup>−2i/d</sup>",
    "rotary": "⟨R(m)q, R(n)k⟩ = ⟨q, R(n−m)k⟩",
    "shift": "PE(m+k) = M<sub>k</sub> PE(m)",
    "similarity": "κ(D) = (2/d) Σ cos Dθ<sub>i</sub>",
    "wavelength": "λ<sub>i</sub> = 2π/θ<sub>i</sub>",
    "alibi": "s<sub>ij</sub> − m<sub>h</sub>(i − j)",
}
ENGLISH = Words(
    tag="en",
    title="Position encodings, claim by claim",
    subtitle="What is said about sinusoids and rotary, with a verdict that a program computed. Ground: {subject}.",
    verdicts={verdict: verdict for verdict in VERDICTS},
    formulas=(
        ("sinusoid", FORMULAS["sinusoid"], "added to the input"),
        ("rotary", FORMULAS["rotary"], "turns queries and keys"),
        ("shift", FORMULAS["shift"], "one map for all m"),
        ("similarity", FORMULAS["similarity"], "of positions D apart"),
        ("wavelength", FORMULAS["wavelength"], "positions for one turn"),
        ("ALiBi", FORMULAS["alibi"], "lowers the score"),
    ),
    glossary=(
        ("clock", "one sine and cosine pair"),
        ("original", "length that a scaling was computed from"),
        ("trained", "longest context of the last training stage"),
        ("served", "what the config or engine admits"),
        ("Toeplitz", "constant along diagonals: depends on m − n alone"),
        ("alias", "distance at which similarity returns"),
    ),
    hands="Three pairs as clocks, at D = {distance}",
    figure="Similarity κ(D), D from 1 to {reach}",
    foot="Numbers are computed in float64 by posenc claims. Needs training: no formula decides it.",
)
CHINESE = Words(
    tag="zh-Hans",
    title="位置编码：逐条命题",
    subtitle="关于正弦编码与旋转编码的常见说法，结论由程序计算得出。对象：{subject}。",
    verdicts={
        "exact": "精确成立",
        "holds within stated bounds": "在所述范围内成立",
        "counterexample": "有反例",
        "refuted": "被推翻",
        "needs training": "需要训练",
    },
    formulas=(
        ("正弦", FORMULAS["sinusoid"], "加到输入上"),
        ("旋转", FORMULAS["rotary"], "转动查询与键"),
        ("平移", FORMULAS["shift"], "对所有 m 是同一个映射"),
        ("相似度", FORMULAS["similarity"], "相距 D 的两个位置"),
        ("波长", FORMULAS["wavelength"], "转一圈所需的位置数"),
        ("ALiBi", FORMULAS["alibi"], "降低得分"),
    ),
    glossary=(
        ("钟", "一对正弦与余弦"),
        ("原始长度", "计算缩放所依据的长度"),
        ("训练长度", "最后训练阶段的最长上下文"),
        ("服务长度", "配置或引擎允许的长度"),
        ("Toeplitz", "沿对角线不变：只取决于 m − n"),
        ("混叠", "相似度重新升高的距离"),
    ),
    hands="三对分量作为钟，D = {distance}",
    figure="相似度 κ(D)，D 从 1 到 {reach}",
    foot="所有数字由 posenc claims 以 float64 计算。需要训练：没有公式能判定。",
)
PAGES: dict[Language, Words] = {"en": ENGLISH, "zh": CHINESE}


def sheet(record: Ledger, drawn: EncodingAccount, languages: Sequence[Language] = ("en", "zh")) -> str:
    """The quick reference as HTML, a page for each language.

    Args:
        record: the ledger.
        drawn: the encoding whose similarity heads the page.
        languages: in order.

    Raises:
        PosencError: jinja2 is not installed.
    """
    hands = dials.small(drawn, DISTANCE)
    figure = curves.sparkline(drawn)
    counts = Counter[str](claim.verdict for claim in record.claims)
    pages = [
        {
            "words": PAGES[language],
            "subtitle": PAGES[language].subtitle.format(subject=record.subject),
            "hands_caption": PAGES[language].hands.format(distance=DISTANCE),
            "caption": PAGES[language].figure.format(reach=f"{drawn.decay.reach:,}"),
            "claims": [_said(claim, language) for claim in record.claims],
            "counts": [(verdict, counts[verdict]) for verdict in VERDICTS if counts[verdict]],
            "hands": hands.inline(f"hands-{language}"),
            "svg": figure.inline(f"spark-{language}"),
        }
        for language in languages
    ]
    return str(environment().get_template("sheet.html").render(pages=pages, signs=SIGNS))


def _said(claim: Claim, language: Language) -> dict[str, object]:
    chinese = language == "zh"
    return {
        "number": claim.number,
        "claim": claim.claim_zh if chinese else claim.claim,
        "evidence": claim.evidence_zh if chinese else claim.evidence,
        "verdict": claim.verdict,
    }


def write(
    record: Ledger, drawn: EncodingAccount, to: str | os.PathLike[str], languages: Sequence[Language] = ("en", "zh")
) -> Path:
    """Write the quick reference in one step.

    Raises:
        PosencError: the file cannot be written.
    """
    return replaced(to, sheet(record, drawn, languages).encode())
