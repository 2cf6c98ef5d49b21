"""Rules about numbers that are not what they look like: zeros that count as absent, exchanged ends, factors below 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from posenc.checker.apart import Apart, apart, apart_configs
from posenc.checker.lint.register import Settings, rule
from posenc.checker.lint.wording import factor_of, finding, path, shown
from posenc.errors import SpecError
from posenc.formats.engine_rewrites import gain, is_number, quotient
from posenc.formats.sources import read
from posenc.records.finding import Evidence, Finding
from posenc.spec import AsExecuted, Rotary, executable

PAIRS = (("beta_fast", "beta_slow"), ("high_freq_factor", "low_freq_factor"))
SAME = 1e-12


@rule(
    "wrong-mathematics",
    "defect",
    says="engines run it all the same: a factor below 1, exchanged betas, exchanged frequency factors",
    cases=("betas-exchanged",),
)
def wrong_mathematics(at: Settings) -> Iterator[Finding]:
    for encoding in at.reading.encodings() if at.reading else ():
        for scaling in getattr(encoding, "scaling", ()):
            if not isinstance(scaling, AsExecuted):
                continue
            words, mended = _mended(scaling)
            both = _instead(encoding, scaling, mended) if isinstance(encoding, Rotary) and mended else None
            yield finding(
                "defect",
                ("scaling-parameters",),
                scaling.faults[0].rstrip(".").partition(". ")[0],
                where=scaling.rule,
                both=both,
                names=(words, "as executed"),
                evidence=tuple(Evidence(name=name, seen=value) for name, value in scaling.settings if is_number(value)),
                cause=f"perhaps {words} is meant" if mended is not None else None,
                remedy=f"Write {words}." if mended is not None else "See the rule in the title.",
                cases=("betas-exchanged",) if "beta" in scaling.faults[0] else (),
            )


def _mended(scaling: AsExecuted) -> tuple[str, Any]:
    """What was probably meant: the reciprocal of a factor below 1, the two ends exchanged."""
    fields = {name: value for name, value in scaling.fields().items() if name != "kind"}
    if fields["factor"] < 1:
        words, fields["factor"] = f"factor {shown(1 / fields['factor'])}", 1 / fields["factor"]
    else:
        for upper, lower in PAIRS:
            if upper in fields and fields[upper] < fields[lower]:
                fields[upper], fields[lower] = fields[lower], fields[upper]
                words = f"{upper} {shown(fields[upper])} and {lower} {shown(fields[lower])}"
                break
        else:
            return "", None
    try:
        mended = executable(scaling.rule, **fields)
    except SpecError:
        return "", None
    return words, None if isinstance(mended, AsExecuted) else mended


def _instead(encoding: Rotary, executed: Any, mended: Any) -> Apart | None:
    chain = tuple(mended if s is executed else s for s in encoding.scaling)
    return apart(read(encoding.replace(scaling=chain)), read(encoding))


@rule(
    "mscale-zero",
    "defect",
    says="mscale or mscale_all_dim is 0, which counts as absent: the quotient is not taken",
    cases=("factor-cossin-conflated", "factor-generic-yarn-ratio"),
)
def mscale_zero(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        m, every, factor = block.data.get("mscale"), block.data.get("mscale_all_dim"), factor_of(block)
        explicit = block.data.get("attention_factor") is not None
        if block.type != "yarn" or explicit or not factor or not (is_number(m) and is_number(every)) or (m and every):
            continue
        written, used = quotient(factor, m, every), gain(block.data)
        if abs(written - used) <= SAME:
            continue
        zero = "mscale" if not m else "mscale_all_dim"
        yield finding(
            "defect",
            ("attention-factor", "config-parsing"),
            f"{zero} is 0, so the gain is 0.1 ln(factor) + 1 and not the quotient of the two",
            where=path(block, zero),
            evidence=(
                Evidence(name="gain on cos and sin", expected=written, seen=used, where="as written / transformers"),
                Evidence(name="factor on scores", expected=written**2, seen=used**2),
            ),
            cause="readers test `if mscale and mscale_all_dim`",
            remedy=f"State attention_factor = {written:.10g}, or delete both to get {used:.10g}.",
            cases=("factor-cossin-conflated",),
        )


@rule(
    "mscale-alone",
    "convention",
    says="only one of mscale and mscale_all_dim is stated: some readers ignore it, some put a default for the other",
    cases=("factor-generic-yarn-ratio", "factor-mscale-collapse"),
)
def mscale_alone(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        m, every, factor = block.data.get("mscale"), block.data.get("mscale_all_dim"), factor_of(block)
        explicit = block.data.get("attention_factor") is not None
        if block.type != "yarn" or explicit or not factor or is_number(m) == is_number(every):
            continue
        used = gain(block.data)
        defaults = quotient(factor, m if is_number(m) else 1.0, every if is_number(every) else 0.0)
        if abs(used - defaults) <= SAME:
            continue
        given, missing = ("mscale", "mscale_all_dim") if is_number(m) else ("mscale_all_dim", "mscale")
        yield finding(
            "convention",
            ("attention-factor", "config-parsing"),
            f"{given} is stated and {missing} is not: the gain depends on the reader",
            where=path(block, given),
            evidence=(
                Evidence(
                    name="gain on cos and sin",
                    expected=used,
                    seen=defaults,
                    where="transformers / with the defaults mscale 1, mscale_all_dim 0 (mlx-lm)",
                ),
            ),
            remedy="State both, or the gain itself as attention_factor.",
            cases=("factor-generic-yarn-ratio",),
        )


@rule("attention-factor-zero", "defect", says="attention_factor is 0 or less: cos and sin vanish or change sign")
def attention_factor_zero(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        value = block.data.get("attention_factor")
        if is_number(value) and value <= 0:
            own = gain(block.data) if factor_of(block) and block.type == "yarn" else 1.0
            at.explained.add(block.key)
            yield finding(
                "defect",
                ("attention-factor",),
                f"attention_factor is {shown(value)}, and it replaces the gain on cos and sin",
                where=path(block, "attention_factor"),
                evidence=(Evidence(name="gain on cos and sin", expected=own, seen=value),),
                cause="0 is not the same as absent here",
                remedy=f"Delete it for the computed gain {own:.10g}, or state 1 for none.",
            )


@rule("factor-zero", "defect", says="factor is 0 or negative: every frequency is divided by it")
def factor_zero(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        value = block.data.get("factor")
        if is_number(value) and value <= 0:
            at.explained.add(block.key)
            yield finding(
                "defect",
                ("scaling-parameters", "config-parsing"),
                f"factor is {shown(value)}",
                where=path(block, "factor"),
                evidence=(Evidence(name="factor", expected="at least 1", seen=value),),
                remedy="Delete the block for no scaling, or state a factor of at least 1.",
            )


@rule("factor-one", "harmless", says="factor is 1, so the scaling does nothing")
def factor_one(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        if block.type in ("linear", "dynamic", "yarn", "llama3", "ntk") and factor_of(block) == 1:
            yield finding(
                "harmless",
                ("scaling-parameters",),
                f"{block.type} with factor 1 changes no frequency",
                where=path(block, "factor"),
                evidence=(Evidence(name="factor", seen=1.0),),
                remedy="Delete the block, or state the factor that is meant.",
            )


@rule("beta-zero", "defect", says="beta_fast or beta_slow is 0, which transformers takes for its default")
def beta_zero(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        for key, default in (("beta_fast", 32), ("beta_slow", 1)):
            value = block.data.get(key)
            if block.type == "yarn" and is_number(value) and value == 0:
                yield finding(
                    "defect",
                    ("scaling-parameters", "config-parsing"),
                    f"{key} is 0: transformers takes it for {default}, others divide by it",
                    where=path(block, key),
                    evidence=(Evidence(name=key, expected=default, seen=0),),
                    cause="`value or default`",
                    remedy=f"Delete it for the default {default}, or state the number of turns that is meant.",
                )


@rule(
    "nested-truncate",
    "defect",
    says="truncate: false stands in a block nested by layer type, where transformers 5.24 does not look",
    cases=("scaling-yarn-truncate", "truncate-unrecognised", "nested-shared-key"),
)
def nested_truncate(at: Settings) -> Iterator[Finding]:
    for block in at.blocks:
        if not (block.nested and block.type == "yarn" and block.data.get("truncate") is False):
            continue

        def rounded(stack: dict[str, Any], data: dict[str, Any]) -> None:
            del data["truncate"]

        yield finding(
            "defect",
            ("scaling-parameters", "config-parsing"),
            "truncate: false is not seen by transformers 5.24, which rounds the ends of YaRN's ramp",
            where=path(block, "truncate"),
            both=apart_configs(at.config or {}, at.changed(rounded, block)),
            names=("as stated", "transformers 5.24"),
            remedy="Put truncate beside the layer types as well, or write the frequencies as longrope factors.",
            cases=("scaling-yarn-truncate",),
        )
