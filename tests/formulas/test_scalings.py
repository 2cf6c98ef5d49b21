"""Every scaling: the published numbers, 40 digits, and what its paper promises."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from oracles import scalings as oracle
from posenc.errors import PosencError, SpecError
from posenc.formulas import frequencies
from posenc.formulas.scalings import mscale, turning_pair
from posenc.spec import (
    NTK,
    AsExecuted,
    ByParts,
    Dynamic,
    Explicit,
    Factors,
    Linear,
    Llama3,
    LongRope,
    Resonance,
    Rotary,
    Sinusoidal,
    Yarn,
    executable,
)

LLAMA2 = Rotary(128)
GPT_OSS = Rotary(64, base=150000.0)
DEEPSEEK_V3 = Yarn(40, original=4096, mscale=1.0, mscale_all_dim=1.0, softmax_mscale=1.0)
LLAMA31 = Llama3(8, original=8192)


def theta(encoding, length=None):
    return frequencies(encoding, length).theta[0]


PUBLISHED = {
    "linear": (Rotary(8) >> Linear(4), None, {0: "0.25", 1: "0.025", 2: "0.0025", 3: "0.00025"}),
    "ntk": (Rotary(8) >> NTK(4), None, {0: "1", 1: "0.06299605249474366", 2: "0.0039685026299205", 3: "0.00025"}),
    "yarn, Llama 2": (
        LLAMA2 >> Yarn(16, original=4096),
        None,
        {0: "1", 20: "0.0562341325190", 21: "0.0469408599980", 33: "0.00460043546785", 46: "8.33450895102e-05",
         47: "7.21738740431e-05", 63: "7.21738740431e-06"},
    ),
    "yarn, gpt-oss": (
        GPT_OSS >> Yarn(32, original=4096, truncate=False),
        None,
        {8: "0.0508132748155", 9: "0.0317056961847", 16: "0.000456483919223", 17: "0.000129318701245",
         18: "3.83088123738e-05", 31: "3.02351142812e-07"},
    ),
    "yarn, DeepSeek V3": (
        Rotary(64) >> DEEPSEEK_V3,
        None,
        {10: "0.0562341325190", 16: "0.0055", 22: "0.000177828", 23: "3.33380358e-05", 31: "3.33380358e-06"},
    ),
    "llama3, 3.1 8B": (
        Rotary(128, base=5e5) >> LLAMA31,
        None,
        {28: "0.00321144599475", 29: "0.00216657076350", 30: "0.00137189356776", 31: "0.000856751412920",
         34: "0.000178507812768", 35: "9.55621235396e-05", 36: "7.78465527393e-05", 63: "3.06892598891e-07"},
    ),
    "llama3, 3.2 1B": (
        Rotary(64, base=5e5) >> Llama3(32, original=8192),
        None,
        {14: "0.00321144599475", 15: "0.00129054792821", 16: "0.000429556796559", 17: "9.70828780263e-05",
         18: "1.94616381848e-05"},
    ),
    "resonance": (
        Rotary(8) >> Resonance(),
        None,
        {0: "1.0471975512", 1: "0.0997331001", 2: "0.0100050721", 3: "0.0010000294934"},
    ),
}  # fmt: skip


def unit(number):
    """The value of one in the last digit that a number was published with; of the 15th where it is short and exact."""
    mantissa, _, exponent = number.partition("e")
    whole, _, decimals = mantissa.partition(".")
    if len((whole + decimals).lstrip("0")) < 6:
        return 10.0 ** (math.floor(math.log10(float(number))) - 14)
    return 10.0 ** (int(exponent or 0) - len(decimals))


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_frequencies(name):
    encoding, length, numbers = PUBLISHED[name]
    result = theta(encoding, length)
    for pair, number in numbers.items():
        assert result[pair] == pytest.approx(float(number), abs=0.51 * unit(number)), pair


@pytest.mark.parametrize(
    ("dim", "scaling", "base"),
    [(8, NTK(4), 63496.04207872797), (128, NTK(8), 82684.62264056221)],
)
def test_published_ntk_bases(dim, scaling, base):
    f = frequencies(Rotary(dim) >> scaling)
    assert f.base == pytest.approx(base, rel=1e-14)
    np.testing.assert_allclose(f.theta, frequencies(Rotary(dim, base=base)).theta, rtol=1e-13)


@pytest.mark.parametrize(
    ("length", "base"), [(None, 1e4), (1, 1e4), (2048, 1e4), (4096, 30527.7367488), (8192, 72195.8600865)]
)
def test_published_dynamic_bases(length, base):
    f = frequencies(Rotary(128) >> Dynamic(2, original=2048), length)
    assert f.base == pytest.approx(base, rel=1e-12)
    np.testing.assert_allclose(f.theta, frequencies(Rotary(128, base=base)).theta, rtol=1e-11)


@pytest.mark.parametrize(
    ("dim", "base", "low", "high"),
    [(128, 1e4, 20.9445, 45.0269), (64, 150000.0, 8.0927791155, 17.3980245016)],
)
def test_published_ends_of_the_ramp(dim, base, low, high):
    places = 4 if base == 1e4 else 10
    assert turning_pair(32, 4096, dim, base) == pytest.approx(low, abs=0.51 * 10**-places)
    assert turning_pair(1, 4096, dim, base) == pytest.approx(high, abs=0.51 * 10**-places)


def test_ramp_is_zero_and_one_at_its_ends():
    """Llama 2: pairs to 20 are kept, from 46 on divided; DeepSeek: 10 and 23."""
    for encoding, scaling, low, high in (
        (LLAMA2, Yarn(16, original=4096), 20, 46),
        (Rotary(64), DEEPSEEK_V3, 10, 23),
    ):
        ratio = theta(encoding) / theta(encoding >> scaling)
        np.testing.assert_allclose(ratio[: low + 1], 1, rtol=1e-14)
        np.testing.assert_allclose(ratio[high:], scaling.factor, rtol=1e-14)
        assert ((ratio[low + 1 : high] > 1) & (ratio[low + 1 : high] < scaling.factor)).all()


def test_truncation_of_gpt_oss_matters():
    """Rounding the ends outwards would change a frequency by up to 76 %."""
    exact, rounded = (theta(GPT_OSS >> Yarn(32, original=4096, truncate=t)) for t in (False, True))
    assert np.abs(rounded / exact - 1).max() == pytest.approx(0.76, abs=0.005)


@pytest.mark.parametrize(
    ("factor", "gain"),
    [
        (1, 1),
        (2, 1.0693147181),
        (4, 1.1386294361),
        (8, 1.2079441542),
        (16, 1.2772588722),
        (32, 1.3465735903),
        (40, 1.3688879454),
    ],
)
def test_published_gains(factor, gain):
    assert mscale(factor) == pytest.approx(gain, abs=5e-11)
    assert frequencies(LLAMA2 >> Yarn(factor, original=4096)).gain == pytest.approx(gain, abs=5e-11)


@pytest.mark.parametrize(
    ("fields", "gain", "logit_scale"),
    [
        ({"mscale": 1.0, "mscale_all_dim": 1.0}, 1.0, 1.0),
        ({"mscale": 1.0, "mscale_all_dim": 1.0, "softmax_mscale": 1.0}, 1.0, 1.8738542071),  # DeepSeek V3
        ({"mscale": 0.707, "mscale_all_dim": 0.707, "softmax_mscale": 0.707}, 1.0, 1.5896261651),  # V2
        ({"mscale": 1.0, "mscale_all_dim": 0.0}, 1.3688879454, 1.0),  # a 0 counts as absent
        ({"mscale": 0.5, "mscale_all_dim": 0.0}, 1.3688879454, 1.0),
        ({"mscale": 0.707}, 1.3688879454, 1.0),
        ({"attention_factor": 1.25, "mscale": 1.0, "mscale_all_dim": 0.5}, 1.25, 1.0),
        ({"mscale": 1.0, "mscale_all_dim": 0.5}, 1.3688879454 / 1.1844439727, 1.0),
    ],
)
def test_gain_and_softmax_scale_of_yarn(fields, gain, logit_scale):
    f = frequencies(Rotary(64) >> Yarn(40, original=4096, **fields))
    assert f.gain == pytest.approx(gain, abs=2e-10)
    assert f.logit_scale == pytest.approx(logit_scale, abs=5e-11)


def test_code_and_paper_differ_in_the_ramp():
    """The paper's ramp is linear in turns: the ratio code / paper runs from 0.971 to 3.041, largest at pair 38."""
    plain = theta(LLAMA2)
    turns = 4096 * plain / (2 * math.pi)
    gamma = np.clip((turns - 1) / 31, 0, 1)
    paper = (1 - gamma) * plain / 16 + gamma * plain
    ratio = theta(LLAMA2 >> Yarn(16, original=4096)) / paper
    assert ratio.min() == pytest.approx(0.971, abs=5e-4)
    assert ratio.max() == pytest.approx(3.041, abs=5e-4)
    assert ratio.argmax() == 38


def test_llama3_touches_the_published_pairs():
    """Llama 3.1: changed from pair 29 on, blended on 29 to 34; 3.2 1B: blended on 15, 16, 17."""
    for encoding, scaling, medium in (
        (Rotary(128, base=5e5), LLAMA31, range(29, 35)),
        (Rotary(64, base=5e5), Llama3(32, original=8192), range(15, 18)),
    ):
        ratio = theta(encoding) / theta(encoding >> scaling)
        np.testing.assert_array_equal(ratio[: medium[0]], 1)
        np.testing.assert_allclose(ratio[medium[-1] + 1 :], scaling.factor, rtol=1e-14)
        assert ((ratio[list(medium)] > 1) & (ratio[list(medium)] < scaling.factor)).all()


def test_llama4_scouts_equal_ends_divide_nothing_by_zero():
    """low = high = 1: transformers computes 0 / 0 and masks it; here a step without warning."""
    ratio = theta(Rotary(128, base=5e5)) / theta(
        Rotary(128, base=5e5) >> Llama3(16, original=8192, high_freq_factor=1.0)
    )
    assert set(ratio.round(12)) == {1.0, 16.0}


def test_longrope_threshold_and_gain():
    """Phi-3 (131072 over 4096): short factors to 4096, long beyond, gain 1.19024 for both."""
    short, long = (1.0, 1.5, 2.0, 2.5), (1.25, 8.0, 16.0, 33.0)
    encoding = Rotary(8) >> LongRope(32, original=4096, short_factor=short, long_factor=long)
    plain = theta(Rotary(8))
    for length, factors in ((None, short), (1, short), (4096, short), (4097, long), (10**6, long)):
        f = frequencies(encoding, length)
        np.testing.assert_allclose(f.theta[0], plain / np.array(factors), rtol=1e-15)
        assert f.gain == pytest.approx(1.1902380714238083, rel=1e-15)
    fields = {"original": 4096, "short_factor": short, "long_factor": long}
    assert frequencies(Rotary(8) >> LongRope(1, **fields)).gain == 1.0
    assert frequencies(Rotary(8) >> LongRope(32, attention_factor=1.5, **fields)).gain == 1.5


def test_resonance_makes_every_wavelength_whole():
    np.testing.assert_allclose(frequencies(Rotary(8) >> Resonance()).wavelengths, [6, 63, 628, 6283], rtol=1e-14)
    whole = frequencies(Rotary(64, base=5e5) >> Resonance()).wavelengths
    np.testing.assert_allclose(whole, np.round(whole), rtol=1e-14)
    halves = Rotary(4, schedule=Explicit(theta=(2 * math.pi / 2.5, 2 * math.pi / 3.5)))
    assert frequencies(halves).wavelengths.tolist() == [2.5, 3.5]
    np.testing.assert_allclose(frequencies(halves >> Resonance()).wavelengths, [2, 4], rtol=1e-15)  # half to even
    still = theta(Rotary(8, keep=0.5) >> Resonance())
    assert not still[2:].any()


ORACLES = {
    "linear": (Linear(5.5), lambda i, d, b: oracle.interpolated(i, d, b, 5.5), None),
    "ntk": (NTK(5.5), lambda i, d, b: oracle.ntk(i, d, b, 5.5), None),
    "dynamic": (Dynamic(3, original=777), lambda i, d, b: oracle.dynamic(i, d, b, 3, 777, 1900), 1900),
    "dynamic within": (Dynamic(3, original=777), lambda i, d, b: oracle.rope(i, d, b), 700),
    "by_parts": (ByParts(6, original=2048), lambda i, d, b: oracle.by_parts(i, d, b, 6, 2048), None),
    "yarn": (
        Yarn(7, original=2048, beta_fast=20, beta_slow=2),
        lambda i, d, b: oracle.yarn(i, d, b, 7, 2048, 20, 2),
        None,
    ),
    "yarn, exact ends": (
        Yarn(7, original=2048, truncate=False),
        lambda i, d, b: oracle.yarn(i, d, b, 7, 2048, truncate=False),
        None,
    ),
    "yarn, equal ends": (Yarn(7, original=6), lambda i, d, b: oracle.yarn(i, d, b, 7, 6), None),
    "llama3": (
        Llama3(9, original=3000, low_freq_factor=1.5, high_freq_factor=6),
        lambda i, d, b: oracle.llama3(i, d, b, 9, 1.5, 6, 3000),
        None,
    ),
    "resonance": (Resonance(), oracle.resonance, None),
}


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize(("dim", "base"), [(128, 1e4), (62, 5e5), (14, 1e6), (94, 500.0), (14, 50.0)])
def test_against_40_digits(name, dim, base):
    scaling, truth, length = ORACLES[name]
    with mp.workdps(40):
        expected = [float(truth(i, dim, base)) for i in range(dim // 2)]
    np.testing.assert_allclose(theta(Rotary(dim, base=base) >> scaling, length), expected, rtol=4e-13)


PLAIN = {
    "linear": Linear(1),
    "ntk": NTK(1),
    "dynamic": Dynamic(1, original=64),
    "by_parts": ByParts(1, original=2048),
    "yarn": Yarn(1, original=2048),
    "llama3": Llama3(1, original=2048),
    "factors": Factors((1.0,) * 24),
    "longrope": LongRope(1, original=2048, short_factor=(1.0,) * 24, long_factor=(1.0,) * 24),
}


@pytest.mark.parametrize(
    ("name", "length"), [(n, length) for n in PLAIN for length in (1, 64, 65, 4096) if n != "dynamic" or length <= 64]
)
def test_factor_one_is_the_identity(name, length):
    """Beyond its original length dynamic NTK grows by L / original even at factor 1."""
    f, plain = frequencies(Rotary(48) >> PLAIN[name], length), frequencies(Rotary(48))
    np.testing.assert_allclose(f.theta, plain.theta, rtol=1e-15)
    assert (f.gain, f.logit_scale) == (1.0, 1.0)


@settings(max_examples=60, deadline=None)
@given(
    half=st.integers(2, 64),
    base=st.floats(1.5, 1e8),
    factor=st.floats(1, 512),
    original=st.integers(16, 2**20),
    length=st.integers(1, 2**22),
    name=st.sampled_from(["linear", "ntk", "dynamic", "by_parts", "yarn", "llama3", "chain"]),
)
def test_positive_ordered_and_never_faster(half, base, factor, original, length, name):
    """Scalings stretch: frequencies stay positive, never grow and keep their order."""
    scalings = {
        "linear": (Linear(factor),),
        "ntk": (NTK(factor),),
        "dynamic": (Dynamic(factor, original=original),),
        "by_parts": (ByParts(factor, original=original),),
        "yarn": (Yarn(factor, original=original),),
        "llama3": (Llama3(factor, original=original),),
        "chain": (Linear(factor), NTK(factor), Yarn(factor, original=original)),
    }[name]
    plain = theta(Rotary(2 * half, base=base))
    scaled = theta(Rotary(2 * half, base=base, scaling=scalings), length)
    assert (scaled > 0).all()
    assert (scaled <= plain * (1 + 1e-12)).all()
    assert (scaled[1:] <= scaled[:-1] * (1 + 1e-12)).all()
    if name not in ("chain", "dynamic"):
        assert (scaled >= plain / factor * (1 - 1e-12)).all()


@settings(max_examples=40, deadline=None)
@given(half=st.integers(2, 64), base=st.floats(1.5, 1e8), factor=st.floats(1, 512))
def test_ntk_slows_the_slowest_pair_exactly_and_keeps_the_fastest(half, base, factor):
    plain, scaled = theta(Rotary(2 * half, base=base)), theta(Rotary(2 * half, base=base) >> NTK(factor))
    assert scaled[0] == plain[0]
    assert scaled[-1] == pytest.approx(plain[-1] / factor, rel=1e-13)


def test_chains_apply_in_order():
    chain = Rotary(16) >> Linear(2) >> NTK(3)
    np.testing.assert_allclose(theta(chain), theta(Rotary(16) >> NTK(3)) / 2, rtol=1e-14)
    gains = frequencies(Rotary(16) >> Yarn(4, original=64) >> Factors((2.0,) * 8, attention_factor=3.0))
    assert gains.gain == pytest.approx(3 * 1.1386294361, abs=1e-9)


def test_length_rules_in_chains():
    """What follows a length-dependent scaling is applied to each of its branches."""
    long = LongRope(4, original=64, short_factor=(1.0,) * 4, long_factor=(2.0,) * 4, attention_factor=1.0)
    for length, divisor in ((64, 3), (65, 6)):
        np.testing.assert_allclose(
            theta(Rotary(8) >> long >> Linear(3), length), theta(Rotary(8)) / divisor, rtol=1e-15
        )
        np.testing.assert_allclose(
            theta(Rotary(8) >> Linear(3) >> long, length), theta(Rotary(8)) / divisor, rtol=1e-15
        )
    grown = Rotary(8) >> Dynamic(2, original=64) >> Linear(3)
    np.testing.assert_allclose(theta(grown, 64), theta(Rotary(8)) / 3, rtol=1e-15)
    np.testing.assert_allclose(theta(grown, 128), theta(Rotary(8) >> NTK(3)) / 3, rtol=1e-14)
    for two in (long, Dynamic(2, original=32)):
        for one in (long, Dynamic(2, original=64)):
            with pytest.raises(SpecError, match="at most one scaling that depends on the length"):
                frequencies(Rotary(8) >> one >> two)


def test_any_static_vector_is_a_longrope():
    """Both factor lists theta / theta', the gain explicit: how chains reach engines that know longrope only."""
    yarn = frequencies(Rotary(32) >> Yarn(4, original=256))
    factors = tuple((theta(Rotary(32)) / yarn.theta[0]).tolist())
    as_longrope = LongRope(1, original=256, short_factor=factors, long_factor=factors, attention_factor=yarn.gain)
    for length in (10, 10_000):
        f = frequencies(Rotary(32) >> as_longrope, length)
        np.testing.assert_allclose(f.theta, yarn.theta, rtol=1e-15)
        assert f.gain == yarn.gain


def test_wrong_mathematics_runs_as_executed_only():
    half = executable("linear", factor=0.5)
    assert isinstance(half, AsExecuted)
    np.testing.assert_allclose(theta(Rotary(8) >> half), [2, 0.2, 0.02, 0.002], rtol=1e-15)
    swapped = executable("yarn", factor=4.0, original=64, beta_fast=1.0, beta_slow=32.0)
    assert "beta_fast must not be below" in swapped.faults[0]
    with mp.workdps(40):
        expected = [float(oracle.yarn(i, 32, 1e4, 4, 64, 1, 32)) for i in range(16)]
    np.testing.assert_allclose(theta(Rotary(32) >> swapped), expected, rtol=1e-13)


@pytest.mark.parametrize(
    "scaling",
    [NTK(1e308), Dynamic(1e308, original=1), Factors(values=(1.0, 1.0, 1.0, 1e-320)),
     LongRope(2, original=4, short_factor=(1.0,) * 4, long_factor=(1.0, 1.0, 1.0, 1e-320))],
)  # fmt: skip
def test_numbers_that_overflow_are_one_clear_error(scaling):
    with pytest.raises(PosencError, match="finite"):
        frequencies(Rotary(8) >> scaling, 10)


def test_scalings_that_need_a_base_refuse_other_schedules():
    for scaling in (NTK(2), Yarn(2, original=64), Dynamic(2, original=64), ByParts(2, original=64)):
        with pytest.raises(SpecError, match="geometric"):
            Rotary(4, schedule=Explicit(theta=(1.0, 0.5))) >> scaling
    np.testing.assert_array_equal(theta(Rotary(4, schedule=Explicit(theta=(1.0, 0.5))) >> Linear(2)), [0.5, 0.25])
    assert frequencies(Sinusoidal(8)).gain == 1.0
