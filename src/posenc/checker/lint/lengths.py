"""Rules about lengths: the original, the served one, and the factor between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from posenc.checker.apart import apart_configs
from posenc.checker.lint.register import Block, Settings, rule
from posenc.checker.lint.wording import factor_of, finding, path, shown
from posenc.formats.engine_rewrites import ORIGINAL, original_of, positions_of
from posenc.records.finding import Evidence, Finding

FROM_ORIGINAL = ("yarn", "longrope", "llama3")


def _used(at: Settings, kind: str) -> set[float]:
    """Original lengths that the reading came to for scalings of a kind."""
    scalings = [s for e in (at.reading.encodings() if at.reading else ()) for s in getattr(e, "scaling", ())]
    executed = [(s.rule, s.fields()) if s.kind == "as_executed" else (s.kind, dict(s)) for s in scalings]
    return {fields["original"] for name, fields in executed if name == kind}


def _with_original(value: float) -> Any:
    def change(stack: dict[str, Any], data: dict[str, Any]) -> None:
        stack.pop(ORIGINAL, None)
        data[ORIGINAL] = int(value)

    return change


@rule(
    "original-missing",
    "defect",
    says="a scaling that is computed from the original length states none, so max_position_embeddings stands in",
    cases=("lengths-two-meanings",),
)
def original_missing(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        served, factor = positions_of(block.stack), factor_of(block)
        if block.type not in FROM_ORIGINAL or original_of(block.stack, block.data) or not served or not factor:
            continue
        if factor <= 1 or _used(at, block.type) != {served}:
            continue
        yield finding(
            "defect",
            ("scaling-parameters", "config-parsing"),
            f"{path(block, ORIGINAL)} is missing: {block.type} is computed from max_position_embeddings, "
            f"{shown(served)}",
            where=path(block, ORIGINAL),
            both=apart_configs(at.config or {}, at.changed(_with_original(max(served // factor, 1)), block)),
            names=(f"original {shown(served)}", f"original {shown(served // factor)}, if the number was multiplied"),
            remedy=f"State {ORIGINAL}, the context length that the model was trained with before scaling.",
            cases=("lengths-two-meanings",),
        )


@rule(
    "original-is-served",
    "convention",
    says="the original length equals max_position_embeddings although the factor exceeds 1: one of them may already "
    "be multiplied, or the served length not yet",
    cases=("lengths-two-meanings", "lengths-rescaled", "scaling-yarn-switched-off"),
)
def original_is_served(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        served, factor = positions_of(block.stack), factor_of(block)
        original = original_of(block.stack, block.data)
        if block.type not in ("yarn", "llama3") or not (served and factor and factor > 1) or original != served:
            continue
        reach = original * factor
        yield finding(
            "convention",
            ("scaling-parameters", "config-parsing"),
            f"{block.type} reaches {shown(reach)} positions and max_position_embeddings admits {shown(served)}, the "
            "original length",
            where=path(block, ORIGINAL),
            both=apart_configs(at.config or {}, at.changed(_with_original(max(original // factor, 1)), block)),
            names=(
                f"original {shown(original)}, as stated",
                f"original {shown(original // factor)}, if it was multiplied",
            ),
            evidence=(Evidence(name="served length", expected=reach, seen=served, unit="positions"),),
            cause="some engines multiply max_position_embeddings by the factor and some take it as it is",
            remedy=f"If {shown(original)} is the trained length, set max_position_embeddings to {shown(reach)}; if it "
            f"is the stretched one, set {ORIGINAL} to {shown(original / factor)}.",
            cases=("lengths-two-meanings", "lengths-rescaled"),
        )


@rule(
    "factor-against-lengths",
    "defect",
    "convention",
    says="the stated factor is not the quotient of served and original length (YaRN, LongRoPE)",
    cases=("config-explicit-factor",),
)
def factor_against_lengths(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        served, factor = positions_of(block.stack), factor_of(block)
        original = original_of(block.stack, block.data)
        if block.type not in ("yarn", "longrope") or not (served and factor and original) or served == original:
            continue
        quotient = served / original
        if abs(factor - quotient) <= 1e-6 * quotient:
            continue
        yield _unequal(at, block, served, original, factor, quotient)


def _unequal(at: Settings, block: Block, served: float, original: float, factor: float, quotient: float) -> Finding:
    def by_lengths(stack: dict[str, Any], data: dict[str, Any]) -> None:
        data["factor"] = quotient

    short = factor < quotient and block.type == "yarn"
    return finding(
        "defect" if short else "convention",
        ("scaling-parameters", "config-parsing"),
        f"factor is {shown(factor)} and max_position_embeddings / {ORIGINAL} is {shown(quotient)}"
        + (f": positions from {shown(factor * original)} on are beyond the scaling" if short else ""),
        where=path(block, "factor"),
        both=apart_configs(at.config or {}, at.changed(by_lengths, block)),
        names=(
            "the stated factor (transformers 5)",
            "the quotient (transformers before 2025-08, LongRoPE in vLLM)",
        ),
        evidence=(Evidence(name="reach", expected=served, seen=factor * original, unit="positions"),),
        remedy="Make the three numbers agree; the stated factor wins in transformers 5.",
        cases=("config-explicit-factor",),
    )


@rule(
    "dynamic-with-original",
    "defect",
    says="a dynamic block states an original length, which no code reads: dynamic starts at max_position_embeddings",
    cases=("scaling-dyn-ntk-constant", "scaling-dyn-below-original"),
)
def dynamic_with_original(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        original, served = original_of(block.stack, block.data), positions_of(block.stack)
        if block.type != "dynamic" or original is None or not served or original == served:
            continue
        at.explained.add(path(block, ORIGINAL))

        def from_original(stack: dict[str, Any], data: dict[str, Any], length: float = original) -> None:
            stack["max_position_embeddings"] = int(length)

        yield finding(
            "defect",
            ("scaling-parameters", "config-parsing"),
            f"{ORIGINAL} is {shown(original)} and dynamic NTK starts at max_position_embeddings, {shown(served)}",
            where=path(block, ORIGINAL),
            both=apart_configs(at.config or {}, at.changed(from_original, block)),
            names=(f"from {shown(served)} (transformers)", f"from {shown(original)}, as stated"),
            remedy=f"Set max_position_embeddings to {shown(original)}; rows beyond it stretch the base by themselves.",
            cases=("scaling-dyn-below-original",),
        )


@rule(
    "longrope-without-lengths",
    "defect",
    says="LongRoPE states neither a factor nor two different lengths, so its gain is 1 and the long factors are never "
    "reached",
    cases=("scaling-longrope-allocated",),
)
def longrope_without_lengths(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        served, original = positions_of(block.stack), original_of(block.stack, block.data)
        if block.type != "longrope" or block.data.get("factor") is not None:
            continue
        if original is None and served is not None and _used(at, "longrope") - {served}:
            continue  # the class has an original length of its own
        if served is not None and original is not None and original != served:
            continue
        yield finding(
            "defect",
            ("scaling-parameters", "attention-factor", "config-parsing"),
            "longrope has no factor, and its lengths do not give one",
            where=path(block, "factor"),
            evidence=(
                Evidence(name=ORIGINAL, seen=original, unit="positions"),
                Evidence(name="max_position_embeddings", seen=served, unit="positions"),
                Evidence(name="gain on cos and sin", seen=1.0),
            ),
            remedy=f"State {ORIGINAL} and a larger max_position_embeddings, or factor.",
            cases=("scaling-longrope-allocated",),
        )
