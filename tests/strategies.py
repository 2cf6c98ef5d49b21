"""Hypothesis strategies for every value of ``posenc.spec``: all of them valid, small, and of every kind."""

from itertools import pairwise

from hypothesis import strategies as st

from posenc import spec

WORDS = st.text(min_size=1, max_size=20)
LENGTHS = st.integers(1, 2**48)
INDICES = st.integers(0, 2**48)
POSITIVE = st.floats(1e-6, 1e6)
NON_NEGATIVE = st.floats(0, 1e6)
FACTORS = st.floats(1, 1e4)
WIDTHS = st.integers(1, 4096)
SEEDS = st.integers(0, 2**63 - 1)
ANY = st.floats(-1e9, 1e9)


def floats_of(count, numbers=POSITIVE):
    return st.lists(numbers, min_size=count, max_size=count).map(tuple)


@st.composite
def parts(draw, total, most=4):
    """Positive integers that add up to ``total``."""
    count = draw(st.integers(1, min(most, total)))
    cuts = sorted(
        draw(st.lists(st.integers(1, total - 1), min_size=count - 1, max_size=count - 1, unique=True))
        if count > 1
        else []
    )
    edges = [0, *cuts, total]
    return tuple(b - a for a, b in pairwise(edges))


@st.composite
def periodic(draw, pairs=None):
    """Periods and harmonics, of ``pairs`` in all if given."""
    total = draw(st.integers(1, 8)) if pairs is None else pairs
    harmonics = draw(parts(total))
    return draw(floats_of(len(harmonics))), harmonics


@st.composite
def geometric(draw, pairs):
    shift = draw(st.sampled_from([0.0, 0.25, 1.0])) if pairs > 2 else 0.0
    return spec.Geometric(
        base=draw(st.floats(1.0, 1e9, exclude_min=True)),
        keep=draw(st.floats(0, 1)),
        shift=shift,
        first=draw(POSITIVE),
    )


def schedules(pairs, listed=True):
    """Any schedule of ``pairs`` pairs; without ``listed`` only those that have a formula for any number."""
    formulas = [
        geometric(pairs),
        st.builds(spec.Arithmetic, first=POSITIVE, last=POSITIVE),
        st.builds(spec.Random, sigma=POSITIVE, seed=st.integers(0, 2**63 - 1)),
    ]
    if not listed:
        return st.one_of(formulas)
    return st.one_of(
        *formulas,
        floats_of(pairs, NON_NEGATIVE).map(lambda t: spec.Explicit(theta=t)),
        periodic(pairs).map(lambda p: spec.Periods(periods=p[0], harmonics=p[1])),
    )


def axes(pairs, mixed=True):
    """Any axes over ``pairs`` pairs, or none; interleaved ones are even, so that they fit between each other."""
    where = st.sampled_from(["index", "unit"])
    split = st.builds(spec.Split, pairs=parts(pairs), own_schedule=st.booleans(), coordinates=where)
    choices = [st.none(), split]
    for n in (2, 3):
        if pairs % n == 0:
            choices.append(st.builds(spec.Interleave, pairs=st.just((pairs // n,) * n), coordinates=where))
    if mixed and pairs % 2 == 0:
        choices.append(st.builds(spec.Mixed, heads=st.integers(1, 9), seed=st.integers(0, 99), coordinates=where))
    return st.one_of(choices)


@st.composite
def sinusoidals(draw):
    order = draw(st.sampled_from(["interleaved", "interleaved_cos_first", "sin|cos", "cos|sin"]))
    dim = draw(st.integers(2, 24))
    odd = "zero" if dim % 2 and "|" in order else draw(st.sampled_from(["lone_sine", "zero"]))
    pairs = dim // 2 if odd == "zero" else (dim + 1) // 2
    chosen = draw(axes(pairs, mixed=False)) if dim % 2 == 0 else None
    own = getattr(chosen, "own_schedule", False)
    schedule = draw(schedules(min(getattr(chosen, "pairs", (pairs,))) if own else pairs, listed=not own))
    if own and isinstance(schedule, spec.Geometric):
        schedule = schedule.replace(shift=0.0)
    return spec.Sinusoidal(
        dim,
        schedule=schedule,
        order=order,
        odd=odd,
        axes=chosen,
        offset=draw(INDICES),
        padding_row=None if chosen is not None else draw(st.none() | INDICES),
        prefix=draw(st.integers(0, 3)),
        learned=draw(st.booleans())
        and getattr(schedule, "keep", 1.0) == 1
        and 0.0 not in getattr(schedule, "theta", ()),
    )


@st.composite
def adjusteds(draw):
    sinusoid = draw(sinusoidals()).replace(padding_row=None, learned=False)
    count = 1 if sinusoid.axes is None else len(sinusoid.axes.pairs)
    sinusoid = sinusoid if count <= 3 else sinusoid.replace(axes=None, schedule=spec.Geometric())
    shape = tuple(draw(st.lists(LENGTHS, min_size=count, max_size=count))) if count <= 3 else (7,)
    return spec.ENCODINGS["adjusted"](sinusoid, shape=shape, form=draw(st.sampled_from(["table", "scale_shift"])))


@st.composite
def hierarchicals(draw):
    dims = draw(st.lists(st.integers(1, 9), min_size=2, max_size=4))
    levels = tuple(spec.Sinusoidal(d, base=draw(st.floats(2, 1e6)), offset=draw(INDICES)) for d in dims)
    sizes = (
        tuple(draw(st.lists(LENGTHS, min_size=len(dims) - 1, max_size=len(dims) - 1))) if draw(st.booleans()) else ()
    )
    return spec.ENCODINGS["hierarchical"](levels, sizes=sizes)


@st.composite
def calendars(draw):
    names = ["second", "minute", "hour", "weekday", "day", "day_of_year", "month"]
    return spec.ENCODINGS["calendar"](
        tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=7, unique=True))),
        form=draw(st.sampled_from(["cyclic", "scaled"])),
        per_second=draw(st.integers(1, 10**9)),
        utc_offset=draw(st.integers(-86399, 86399)),
        trend=draw(st.none() | POSITIVE),
    )


@st.composite
def learnable_fouriers(draw):
    groups = draw(st.integers(1, 4))
    return spec.ENCODINGS["learnable_fourier"](
        groups * draw(st.integers(1, 64)),
        axes=groups * draw(st.integers(1, 4)),
        groups=groups,
        features=2 * draw(st.integers(1, 64)),
        hidden=draw(st.integers(1, 64)),
        gamma=draw(POSITIVE),
    )


@st.composite
def learneds(draw):
    return spec.Learned(
        draw(st.integers(1, 4096)),
        shape=tuple(draw(st.lists(st.integers(1, 512), min_size=1, max_size=3))),
        offset=draw(INDICES),
        prefix=draw(INDICES),
    )


@st.composite
def yarns(draw):
    slow = draw(st.floats(1e-3, 1e3))
    return spec.Yarn(
        draw(FACTORS),
        original=draw(LENGTHS),
        beta_slow=slow,
        beta_fast=slow + draw(st.floats(0.5, 1e3)),
        truncate=draw(st.booleans()),
        attention_factor=draw(st.none() | POSITIVE),
        mscale=draw(st.none() | NON_NEGATIVE),
        mscale_all_dim=draw(st.none() | NON_NEGATIVE),
        softmax_mscale=draw(st.none() | NON_NEGATIVE),
    )


@st.composite
def llama3s(draw):
    low = draw(st.floats(1e-3, 1e3))
    return spec.Llama3(
        draw(FACTORS), original=draw(LENGTHS), low_freq_factor=low, high_freq_factor=low + draw(st.floats(0, 1e3))
    )


@st.composite
def by_parts(draw):
    lows = [draw(st.floats(1e-3, 1e3)) for _ in range(2)]
    beta, gamma = ((low + draw(st.floats(0.5, 1e3)), low) for low in lows)
    return spec.ByParts(draw(FACTORS), original=draw(LENGTHS), beta=beta, gamma=gamma)


@st.composite
def longropes(draw, pairs):
    return spec.LongRope(
        draw(FACTORS),
        original=draw(st.integers(2, 2**48)),
        short_factor=draw(floats_of(pairs)),
        long_factor=draw(floats_of(pairs)),
        attention_factor=draw(st.none() | POSITIVE),
    )


def executed():
    """Wrong mathematics that engines run."""
    return st.one_of(
        st.floats(0.01, 0.99).map(lambda f: spec.executable("linear", factor=f)),
        st.builds(
            lambda f, n: spec.executable("yarn", factor=f, original=n, beta_fast=1.0, beta_slow=32.0),
            FACTORS,
            st.integers(1, 2**48),
        ),
    )


def scalings(pairs, based=True):
    """Any scaling of ``pairs`` pairs; those that read a base only where ``based``."""
    free = [
        st.builds(spec.Linear, factor=FACTORS),
        st.just(spec.Resonance()),
        floats_of(pairs).flatmap(lambda v: st.builds(spec.Factors, values=st.just(v), attention_factor=POSITIVE)),
        longropes(pairs),
        llama3s(),
    ]
    if not based:
        return st.one_of(free)
    return st.one_of(
        *free,
        st.builds(spec.NTK, factor=FACTORS),
        st.builds(spec.Dynamic, factor=FACTORS, original=LENGTHS),
        by_parts(),
        yarns(),
        executed(),
    )


@st.composite
def rotaries(draw):
    pairs = draw(st.integers(1, 12))
    chosen = draw(axes(pairs))
    own = getattr(chosen, "own_schedule", False)
    mixed = isinstance(chosen, spec.Mixed)
    count = min(chosen.pairs) if own else pairs // 2 if mixed else pairs
    schedule = draw(schedules(count, listed=not own))
    if isinstance(schedule, spec.Geometric) and (own or mixed or draw(st.booleans())):
        schedule = schedule.replace(shift=0.0, first=1.0)
    based = isinstance(schedule, spec.Geometric) and (schedule.shift, schedule.first) == (0.0, 1.0)
    based = based and pairs > 1 and not mixed and not own
    return spec.Rotary(
        2 * pairs + draw(st.integers(0, 5)),
        rotary_dim=2 * pairs,
        where=draw(st.sampled_from(["first", "last"])),
        interleaved=draw(st.booleans()),
        schedule=schedule,
        axes=chosen,
        scaling=tuple(draw(st.lists(scalings(pairs, based), max_size=3))),
        learned=draw(st.booleans()),
        xpos_scale_base=draw(st.none() | POSITIVE),
    )


@st.composite
def t5_biases(draw):
    both = draw(st.booleans())
    buckets = draw(st.integers(1, 64)) * 4
    exact = buckets // (4 if both else 2)
    return spec.T5Bias(
        draw(st.integers(1, 99)),
        num_buckets=buckets,
        max_distance=exact + draw(st.integers(1, 2**40)),
        bidirectional=both,
    )


@st.composite
def seasonals(draw):
    periods, harmonics = draw(periodic())
    return spec.Seasonal(periods, harmonics=harmonics, trend=draw(st.none() | POSITIVE))


def made(kind, **fields):
    """The encoding of this kind with every field drawn."""
    return st.builds(spec.ENCODINGS[kind], **fields)


HEADS = st.integers(1, 2**20)
LIMITS = st.integers(1, 2**20)
WAVES = st.builds(
    lambda dim, order, base: spec.Sinusoidal(dim, order=order, base=base, odd="zero"),
    WIDTHS,
    st.sampled_from(["interleaved", "interleaved_cos_first", "sin|cos", "cos|sin"]),
    st.floats(2, 1e6),
)
USES = st.sampled_from([(True, True), (True, False), (False, True)])


@st.composite
def relative_vectors(draw, kind):
    keys, values = draw(USES)
    first = draw(WAVES if kind == "relative_sinusoid" else WIDTHS)
    limit = draw(LIMITS if kind == "shaw" else st.none() | LIMITS)
    return spec.ENCODINGS[kind](first, limit=limit, keys=keys, values=values)


@st.composite
def disentangleds(draw):
    span = 2 * draw(st.integers(2, 2**19))
    one, other = draw(USES)
    return spec.Disentangled(
        draw(WIDTHS),
        num_heads=draw(WIDTHS),
        dim=draw(WIDTHS),
        span=span,
        max_distance=draw(st.none() | st.integers(span // 2 + 2, 2**20)),
        content_to_position=one,
        position_to_content=other,
        norm=draw(st.booleans()),
        as_printed=draw(st.booleans()),
    )


@st.composite
def selective_rotaries(draw):
    heads = draw(st.integers(1, 64))
    return spec.SelectiveRotary(
        heads * draw(st.integers(1, 64)),
        head_dim=2 * draw(st.integers(1, 64)),
        num_heads=heads,
        rank=draw(WIDTHS),
        window=draw(st.integers(1, 64)),
        base=draw(st.floats(2, 1e9)),
    )


ALIBIS = st.builds(spec.Alibi, num_heads=st.integers(1, 2**20), max_bias=POSITIVE, symmetric=st.booleans())
QUERY_SCALES = st.builds(spec.QueryScale, beta=POSITIVE, original=LENGTHS, offset=INDICES)
UNMODELLED = st.builds(spec.Unmodelled, name=WORDS, note=st.text(max_size=40))

ENCODINGS = {
    "sinusoidal": sinusoidals(),
    "learned": learneds(),
    "rotary": rotaries(),
    "alibi": ALIBIS,
    "t5_bias": t5_biases(),
    "query_scale": QUERY_SCALES,
    "seasonal": seasonals(),
    "adjusted": adjusteds(),
    "hierarchical": hierarchicals(),
    "calendar": calendars(),
    "time2vec": made("time2vec", dim=WIDTHS, unit=POSITIVE, origin=ANY),
    "fourier": made("fourier", dim=WIDTHS.map(lambda n: 2 * n), sigma=POSITIVE, seed=SEEDS, axes=st.integers(1, 16)),
    "learnable_fourier": learnable_fouriers(),
    "one_hot": made("one_hot", dim=WIDTHS),
    "random_vectors": made("random_vectors", dim=WIDTHS, length=st.integers(1, 2**16), seed=SEEDS, scale=POSITIVE),
    "constant": made("constant", dim=WIDTHS, level=ANY),
    "clock": made("clock", dim=WIDTHS.map(lambda n: 2 * n), period=POSITIVE),
    "kerple": made("kerple", num_heads=HEADS, form=st.sampled_from(["log", "power"])),
    "fire": made(
        "fire", num_heads=HEADS, hidden=st.integers(1, 4096), c=POSITIVE, threshold=POSITIVE, eps=st.floats(1e-12, 1)
    ),
    "sandwich": made(
        "sandwich",
        num_heads=HEADS,
        dim=WIDTHS.map(lambda n: 2 * n),
        base=st.floats(2, 1e6),
        compression=POSITIVE,
        first_pair=st.sampled_from([0, 1]),
    ),
    "sinusoidal_bias": made("sinusoidal_bias", num_heads=HEADS, sinusoid=WAVES, limit=st.none() | LIMITS),
    "shaw": relative_vectors("shaw"),
    "relative_sinusoid": relative_vectors("relative_sinusoid"),
    "transformer_xl": made(
        "transformer_xl", head_dim=WIDTHS, num_heads=WIDTHS, sinusoid=WAVES, limit=st.none() | LIMITS
    ),
    "disentangled": disentangleds(),
    "cope": made("cope", head_dim=WIDTHS, positions=st.integers(2, 2**16)),
    "forgetting": made(
        "forgetting",
        dim=WIDTHS,
        num_heads=WIDTHS,
        form=st.sampled_from(["log_sigmoid", "softplus"]),
        bias=st.booleans(),
    ),
    "selective_rotary": selective_rotaries(),
    "unmodelled": UNMODELLED,
}
encodings = st.one_of(*ENCODINGS.values())


@st.composite
def models(draw):
    names = draw(st.lists(WORDS, min_size=1, max_size=3, unique=True))
    kinds = tuple(
        spec.LayerKind(
            name=name,
            encodings=tuple(draw(st.lists(encodings, max_size=2))),
            window=draw(st.none() | LENGTHS),
            chunk=draw(st.none() | LENGTHS),
        )
        for name in names
    )
    return spec.ModelPositions(
        input=tuple(draw(st.lists(encodings, max_size=2))),
        kinds=kinds,
        layers=tuple(draw(st.lists(st.integers(0, len(kinds) - 1), max_size=5))),
        trained=draw(st.none() | LENGTHS),
        trained_source=draw(st.none() | WORDS),
        served=draw(st.none() | LENGTHS),
    )
