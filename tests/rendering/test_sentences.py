"""Sentences: each states its number, and what it says is what the record holds."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from posenc.analysis.account import account, claims_about
from posenc.records.account import Account, EncodingAccount
from posenc.records.analysis import Quantity, UnseenAngles
from posenc.rendering.sentences import models, pairs, tables
from readings import LLAMA31, reading


@cache
def llama() -> Account:
    return account(reading(LLAMA31, name="Llama", trained=131072, served=131072))


def first() -> EncodingAccount:
    return llama().encodings[0]


def changed(e: EncodingAccount, part: str, **fields: object) -> EncodingAccount:
    return e.model_copy(update={part: getattr(e, part).model_copy(update=fields)})


def test_the_clocks_say_how_far_they_have_turned():
    told = pairs.clocks(first(), 1000)
    assert f"the fast pair 0 has turned {1000 / (2 * math.pi):.1f} times" in told
    assert told.startswith("At a distance of 1,000 positions ")
    assert "At a distance of 1 position " in pairs.clocks(first(), 1)


def test_a_telling_distance_is_a_quarter_turn_of_the_middle_pair():
    d, (_, middle, _) = pairs.telling_distance(first()), first().clocks
    assert d * middle.theta == pytest.approx(math.pi / 2, rel=1e-3)


def test_similarity_says_where_it_is_negative_first():
    e = first()
    assert "first falls below zero at D = 85,133;" in pairs.similarity(e)
    never = changed(e, "decay", first_negative=Quantity(value=None, note="none up to 7"), aliases=())
    assert "is never negative (none up to 7)" in pairs.similarity(never)
    assert "comes back" in pairs.similarity(e)
    assert "comes back" not in pairs.similarity(never)


def test_the_ladder_counts_unfinished_pairs_for_each_length():
    slow = [sum(w > n for w in first().waves.wavelengths) for n in (8192, 131072)]
    told = pairs.ladder(first())
    assert f"{slow[0]} of 64 pairs complete no turn within the original length of 8,192" in told
    assert f"{slow[1]} of 64 pairs complete no turn within the trained and served length of 131,072" in told
    assert "no source states a length" in pairs.ladder(account("rotary(6)", claims=False).encodings[0])


def test_unseen_angles_are_said_or_not():
    e = first()
    unseen = pairs.unseen(e)
    assert "29 pairs (from pair 35) reach angles that training on 8,192 never showed" in unseen
    assert unseen.endswith("; a later stage of training reached 131,072.")
    every = UnseenAngles(seen_length=64, length=99, pairs=0, first_pair=None, largest=Quantity(value=0.0))
    assert pairs.unseen(changed(e, "waves", unseen=every)) == (
        "Training on 64 positions showed every angle that 99 positions reach."
    )
    assert pairs.unseen(changed(e, "waves", unseen=None)) is None


def test_the_scaling_names_its_pairs():
    told = pairs.scaling(llama().inspection.parts[0].encodings[0])
    assert told.startswith(
        "The scaling keeps pairs 0-28, stretches in part pairs 29-34 and stretches in full pairs 35-63"
    )
    assert "at most 8," in told
    plain = account("rotary(6)", claims=False).inspection.parts[0].encodings[0]
    assert pairs.scaling(plain) is None


def test_before_and_after_are_values_of_the_two_curves():
    def kappa(distance: int, factor: float) -> float:
        return sum(math.cos(distance / factor * 10000 ** (-2 * i / 64)) for i in range(32)) / 32

    e = account(reading("rotary(64) >> linear(4)", served=1000), claims=False).encodings[0]
    at = max((2**k for k in range(10)), key=lambda d: abs(kappa(d, 4) - kappa(d, 1)))
    before, after = kappa(at, 1), kappa(at, 4)
    assert pairs.before_after(e) == f"At D = {at} the scaling raises similarity from {before:.3f} to {after:.3f}."


def test_precision_names_the_first_harm():
    told = pairs.precision(first())
    assert told.startswith("Rounding bites first when bfloat16 holds the angles: position 4 is the last")
    assert "float32 is safe at every stage to position 131,071" in told
    safe = tuple(row.model_copy(update={"last_safe": None}) for row in first().precision.rows)
    assert pairs.precision(changed(first(), "precision", rows=safe)) == (
        "No rounding does harm within 131,072 positions."
    )


def test_breaks_are_only_what_happens_inside_the_lengths():
    assert "first at D = 85,133" in pairs.breaks(first())[0]
    short = account(reading("rotary(64)", trained=100, served=100), claims=False).encodings[0]
    assert not any("turns negative" in sentence for sentence in pairs.breaks(short))


def test_a_lead_names_every_encoding():
    assert models.lead(llama()) == (
        "Llama rotates queries and keys in 5 layers with 64 pairs, from one turn in 6.283 to one in 20,473,564 "
        "positions."
    )
    assert models.lead(account(reading("none", name="Bare"))) == "Bare uses no position encoding."
    assert models.lead(account(np.eye(13))) == "A table of 13 positions with 13 numbers each."
    assert "lowers scores linearly with distance" in models.lead(account(reading("alibi(6)", name="A")))


def test_claims_are_counted():
    assert models.claims(claims_about().claims) == (
        "23 common claims: 8 exact, 3 true within stated bounds, 6 with a counterexample, 3 refuted and 3 left to "
        "training."
    )


def test_what_was_assumed_is_counted():
    record = llama().inspection
    assert models.assumed(record) == "Nothing was assumed, and every key about positions was read."
    from posenc.records import Assumption, UnreadKey

    more = record.model_copy(
        update={
            "assumed": (Assumption(key="a", value="1", why="w"),) * 2,
            "unread": (UnreadKey(key="k", value="v"),),
        }
    )
    assert models.assumed(more) == "2 values were not stated and filled in and 1 key about positions was not read."


def test_tables_say_what_breaks():
    rng = np.random.default_rng(7)
    own = account(rng.standard_normal((37, 6)), claims=False).array
    assert "37 rows of 6 columns have rank 6" in tables.table(own)
    assert "is not a function of m − n" in tables.kernel(own)
    assert tables.norm(own).startswith("Rows have lengths from ")
    assert "No linear map takes every row to the next" in tables.shift(own)
    assert len(tables.breaks(own)) == 3
    plain = account(np.eye(37), claims=False).array
    assert tables.norm(plain) == "Every row has length 1."
    assert tables.breaks(plain) == ["There is no row past 36 in what was examined."]
    assert "do not decide" in tables.shift(plain)
    assert tables.diagonals(plain) == (
        "On average the inner product falls to 0 of K(m, m) one step away and is smallest, 0, at distance 1."
    )
