"""What is said of one encoding with frequencies: opens its figures, and lists where it breaks."""

from __future__ import annotations

import math

from posenc.records.account import EncodingAccount
from posenc.records.analysis import PrecisionRow, Within
from posenc.records.inspection import EncodingInspection
from posenc.rendering.plain import spans
from posenc.rendering.sentences.numbers import level, listed, many, real, whole


def similarity_at(e: EncodingAccount, distance: float) -> float:
    """``kappa(D)``: the mean of ``cos(D theta_i)`` over the pairs; a pair that does not turn counts 1.

    Distances are integers below 2^53, so the angle is exact to the wavelength's own rounding.
    """
    waves = e.waves.wavelengths
    return math.fsum(1.0 if w is None else math.cos(2 * math.pi * math.fmod(distance / w, 1.0)) for w in waves) / len(
        waves
    )


def telling_distance(e: EncodingAccount) -> int:
    """The distance that the clocks show first: a quarter turn of the middle pair."""
    middle = next((clock.wavelength for clock in e.clocks if clock.role == "middle"), None)
    return min(max(round((middle or 4) / 4), 1), e.decay.reach)


def clocks(e: EncodingAccount, distance: int | None = None) -> str:
    """How far three hands have turned, and what the cosines add up to."""
    if not e.clocks:
        return "No pair turns: every position looks like every other."
    d = telling_distance(e) if distance is None else distance
    turned = [
        f"the {clock.role} pair {clock.pair} has turned {real(d * abs(clock.theta) / (2 * math.pi))} times"
        for clock in e.clocks
    ]
    return (
        f"At a distance of {many(d, 'position')} {listed(turned)}; the mean of all {len(e.waves.wavelengths)} cosines, "
        f"the similarity, is {level(similarity_at(e, d))}."
    )


def similarity(e: EncodingAccount) -> str:
    """First negative distance, first rise, largest return."""
    negative = e.decay.first_negative.value
    falls = (
        f"Similarity first falls below zero at D = {whole(negative)}"
        if negative is not None
        else f"Similarity is never negative ({e.decay.first_negative.note})"
    )
    rise = e.decay.first_rise.value
    steady = f"it does not fall steadily: from D = {whole(rise)} it rises" if rise is not None else "it never rises"
    back = ""
    if e.decay.aliases:
        best = e.decay.aliases[0]
        back = f", and after the main lobe it comes back to {level(best.similarity)} at D = {whole(best.distance)}"
    return (
        f"{falls}; {steady}{back}. Over {many(e.decay.reach, 'position')} its root mean square is "
        f"{level(e.decay.rms.value or 0.0)}, where the long run gives {level(e.decay.long_run_rms.value or 0.0)}."
    )


def limit(e: EncodingAccount) -> str | None:
    """How far the finite sum is from its continuous limit; None where there is no limit."""
    gap = e.decay.limit_gap
    if e.decay.limit is None or gap.value is None:
        return None
    return (
        f"The sum over {len(e.waves.wavelengths)} pairs differs from its continuous limit by up to {level(gap.value)}."
    )


def before_after(e: EncodingAccount) -> str | None:
    """What the scaling does to the similarity, at the largest power of two that both curves keep."""
    if e.before is None:
        return None
    before, after = (dict(zip(c.x, c.y, strict=True)) for c in (e.before, e.decay.curve))
    shared = [x for x in before if x in after and x >= 1 and math.log2(x).is_integer()]
    if not shared:
        return None
    at = max(shared, key=lambda x: (abs(after[x] - before[x]), x))
    way = "raises" if after[at] > before[at] else "lowers" if after[at] < before[at] else "keeps"
    return f"At D = {whole(at)} the scaling {way} similarity from {level(before[at])} to {level(after[at])}."


def ladder(e: EncodingAccount) -> str:
    """The range of wavelengths, and how many pairs never complete a turn."""
    waves = [w for w in e.waves.wavelengths if w is not None]
    if not waves:
        return "No pair turns."
    span = f"Wavelengths run from {real(min(waves))} to {real(max(waves))} positions"
    grouped: dict[int, list[Within]] = {}
    for within in e.waves.within:
        grouped.setdefault(within.length, []).append(within)
    told = [
        f"{same[0].incomplete} of {len(e.waves.wavelengths)} pairs complete no turn within the {listed(_names(same))} "
        f"length of {whole(length)}"
        for length, same in sorted(grouped.items())
    ]
    return f"{span}; {listed(told)}." if told else f"{span}; no source states a length to hold them against."


def range_of(e: EncodingInspection) -> str:
    """The range of wavelengths, from the inspection alone."""
    waves = [w for w in e.spectrum.states[-1].wavelength if w is not None] if e.spectrum else []
    if not waves:
        return "No pair turns."
    return f"{many(len(waves), 'pair')} turn, once in {real(min(waves))} to {real(max(waves))} positions."


def _names(same: list[Within]) -> list[str]:
    return [within.name for within in same]


def unseen(e: EncodingAccount) -> str | None:
    """Angles that training never showed; None where the lengths are not known."""
    found = e.waves.unseen
    if found is None:
        return None
    if not found.pairs:
        return (
            f"Training on {many(found.seen_length, 'position')} showed every angle that "
            f"{whole(found.length)} positions reach."
        )
    trained = max((within.length for within in e.waves.within if within.name == "trained"), default=0)
    later = f"; a later stage of training reached {whole(trained)}" if trained > found.seen_length else ""
    return (
        f"Within {many(found.length, 'position')}, {many(found.pairs, 'pair')} (from pair {found.first_pair}) reach "
        f"angles that training on {whole(found.seen_length)} never showed, by up to "
        f"{level(found.largest.value or 0.0)} of a turn{later}."
    )


def scaling(e: EncodingInspection) -> str | None:
    """What the scaling does to which pairs; None without one."""
    if not e.scaling or e.spectrum is None:
        return None
    state = e.spectrum.states[-1]
    ratios = [r for r in state.ratio if r is not None]
    if not ratios:
        return "No pair turns, scaled or not."
    told = []
    for effect in dict.fromkeys(band.effect for band in state.bands):
        runs = tuple(band.pairs for band in state.bands if band.effect == effect)
        one = runs[0][0] == runs[-1][1]
        told.append(f"{WORDS[effect]} pair{'' if one else 's'} {spans(runs) if len(runs) < 6 else _ends(runs)}")
    rows = f" for {state.applies}" if len(e.spectrum.states) > 1 else ""
    waves = [w for w in state.wavelength if w is not None]
    return (
        f"The scaling{rows} {listed(told)}; wavelengths grow by a factor of at most {real(max(ratios))}, "
        f"and the longest becomes {real(max(waves))} positions."
    )


WORDS = {
    "kept": "keeps",
    "blended": "stretches in part",
    "stretched": "stretches in full",
    "shortened": "shortens",
    "own ratio": "gives a ratio of its own to",
    "still": "leaves still",
}


def _ends(runs: tuple[tuple[int, int], ...]) -> str:
    return f"in {len(runs)} runs between {runs[0][0]} and {runs[-1][1]}"


def precision(e: EncodingAccount) -> str:
    """Where rounding bites first, and what float32 costs."""
    reach = e.decay.reach
    single = [row for row in e.precision.rows if row.dtype == "float32"]
    unsafe = [row for row in e.precision.rows if row.last_safe is not None]
    if not unsafe:
        return f"No rounding does harm within {many(reach, 'position')}."
    first = min(unsafe, key=lambda row: row.last_safe or 0)
    worst = max(single, key=lambda row: row.largest.value or 0.0)
    bound = [row.last_safe for row in single if row.last_safe is not None]
    holds = (
        f"is safe to position {whole(min(bound))}"
        if bound
        else f"is safe at every stage to position {whole(reach - 1)}"
    )
    return (
        f"Rounding bites first when {first.dtype} holds the {first.stage}: {_harm(first)}. float32 {holds}; its "
        f"largest error is {real(worst.largest.value, 2)} rad ({worst.stage})."
    )


def _harm(row: PrecisionRow) -> str:
    last = row.last_safe or 0
    return (
        f"position {whole(last)} is the last that is told apart and within 0.01 rad" if last else "from position 1 on"
    )


def breaks(e: EncodingAccount) -> list[str]:
    """Where the encoding breaks, one sentence each, the certain ones only."""
    found = [unseen(e), precision(e)]
    longest = max((within.length for within in e.waves.within), default=None)
    negative = e.decay.first_negative.value
    if longest is not None and negative is not None and negative <= longest:
        found.insert(
            0,
            f"Inside its {many(longest, 'position')} similarity turns negative, first at D = {whole(negative)}: "
            "there, among random contents, a matching key scores lower than a random one (Men et al. 2024).",
        )
    return [sentence for sentence in found if sentence]
