"""Masked sums: exact for whoever survives, and of single vectors nothing is seen."""

from __future__ import annotations

import functools
import random
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1, generate_private_key

from tests.runtime.masking.sums import NAMES, SEGMENTS, STEPS, Sum, refused, vector
from tffc.runtime.masking.keys import Agreement, PrivateKey
from tffc.runtime.masking.participant import Participant, purpose_of_mask, purpose_of_shares
from tffc.runtime.masking.terms import Demands, Keys, Revealed, Terms
from tffc.runtime.masking.vectors import Vector
from tffc.support.errors import ExecutionError


@pytest.mark.parametrize("signing", [False, True])
def test_the_sum_is_exact(signing: bool) -> None:
    masked = Sum(signing=signing)
    assert masked.run() == masked.expected(NAMES)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", [NAMES[0], NAMES[3], NAMES[5]])
def test_one_who_drops_out_is_left_out_alone(step: str, name: str) -> None:
    masked = Sum()
    survivors = [n for n in NAMES if n != name or step in ("confirmed", "revealed")]
    assert masked.run(lambda s, n: (s, n) == (step, name)) == masked.expected(survivors)


@pytest.mark.parametrize("step", STEPS)
def test_below_the_threshold_there_is_no_sum(step: str) -> None:
    with pytest.raises(ExecutionError) as refusal:
        Sum().run(lambda s, n: s == step and n in NAMES[:2])
    assert refusal.value.code == "E980"
    gave = {"masked": "vectors", "confirmed": "confirmations", "revealed": "revealed shares"}
    assert refusal.value.message == (
        f"4 of 6 participants gave their {gave.get(step, step)}, and a masked sum needs 5"
    )


def schedule(seed: int) -> None:
    """One sum with random participants who drop out anywhere, and random order and doubles."""
    draw = random.Random(seed)
    names = NAMES[: draw.randint(2, 6)]
    threshold = draw.randint(1, len(names))
    masked = Sum(threshold, names, demands=Demands(1, 0), signing=draw.random() < 0.2)
    dropped = {
        name: draw.choice(STEPS) for name in names if draw.random() < draw.choice((0, 0.2, 0.6))
    }
    late = {"confirmed", "revealed", None}  # who drops out then has sent a vector
    survivors = [name for name in names if dropped.get(name) in late]
    is_enough = len(names) - len(dropped) >= threshold

    def run() -> list[list[int]]:
        return masked.run(
            lambda step, name: dropped.get(name) == step,
            lambda alive: draw.sample(alive, len(alive)),
            lambda: draw.random() < 0.3,
        )

    if is_enough:
        assert run() == masked.expected(survivors)
    else:
        assert refused(run).startswith("E980: ")


def test_random_schedules() -> None:
    for seed in range(150):
        schedule(seed)


@pytest.mark.long
def test_ten_thousand_random_schedules() -> None:
    for seed in range(10_000):
        schedule(seed)


# What is seen of single vectors.


def pooled(masked: Collection[Vector]) -> np.ndarray:
    """The bytes of all vectors' first segment."""
    return np.frombuffer(b"".join(v[0].tobytes() for v in masked), np.uint8)


@pytest.mark.parametrize("value", [0, 1, 2**32 - 1])
def test_masked_vectors_are_uniform_whatever_they_hold(value: int) -> None:
    """A chi-square statistic of the 256 values of a byte: above 400 once in 10 million."""
    held = [np.full(s.size, value % s.modulus, s.dtype) for s in SEGMENTS]
    seen = [
        vector
        for _ in range(40)
        for masked in [Sum(3, NAMES[:3], demands=Demands(3, 0), vectors=dict.fromkeys(NAMES, held))]
        for _ in [masked.run()]
        for vector in masked.masked.values()
    ]
    found = np.bincount(pooled(seen), minlength=256)
    even = found.sum() / 256
    assert float(((found - even) ** 2 / even).sum()) < 400


def test_masked_vectors_share_nothing_between_rounds() -> None:
    vectors = {name: vector(0) for name in NAMES}
    first, second = Sum(vectors=vectors), Sum(vectors=vectors)
    first.run()
    second.run()
    for name in NAMES:
        for one, other in zip(first.masked[name], second.masked[name], strict=True):
            if one.dtype.itemsize > 2:
                assert not np.any(one == other)


def test_a_server_that_keeps_everything_sees_what_any_vectors_of_that_sum_would_show() -> None:
    """The simulation of the paper's definition: what all send, under keys that are given, is as
    likely for other vectors with the same sum.

    With the masks of those who are asked taken out, all but one of the masked vectors are free: for
    any others' vectors there are masks, each as likely, under which the same is sent.
    """
    masked = Sum()
    masked.run()
    others = dict(zip(NAMES, [vector(100 + i) for i in range(5)], strict=False))
    total = masked.expected(NAMES)
    rest = [
        np.array(
            [
                (t - sum(int(v[k][i]) for v in others.values())) % s.modulus
                for i, t in enumerate(total[k])
            ],
            s.dtype,
        )
        for k, s in enumerate(SEGMENTS)
    ]
    others[NAMES[5]] = rest
    again = Sum(vectors=others)
    assert again.run() == total


@pytest.mark.slow
def test_two_vectors_cannot_be_told_apart_by_what_is_sent() -> None:
    """An attacker who sees a masked vector guesses which of two it hides; as often right as not.

    It guesses by the nearest, the lowest bit, and the sum.  Of 400 guesses, within four standard
    deviations of half are right.
    """
    choice = random.Random(5)
    zeros = [np.zeros(s.size, s.dtype) for s in SEGMENTS]
    ones = [np.full(s.size, 1, s.dtype) for s in SEGMENTS]
    right = [0, 0, 0]
    for _ in range(400):
        hidden = choice.random() < 0.5
        held = dict.fromkeys(NAMES[:3], zeros) | {NAMES[0]: ones if hidden else zeros}
        masked = Sum(3, NAMES[:3], demands=Demands(3, 0), vectors=held)
        masked.run()
        (seen, *_) = masked.masked[NAMES[0]]
        guesses = (
            int(np.abs(seen.astype(np.int32)).min()) % 2 == 1,
            int(seen[0]) % 2 == 1,
            int(seen.sum(dtype=np.uint64)) % 2 == 1,
        )
        for index, guess in enumerate(guesses):
            right[index] += guess == hidden
    assert all(120 < count < 280 for count in right)


# What participants refuse.


def shared(masked: Sum) -> tuple[Participant, dict[str, Any], dict[str, Any]]:
    """The first participant, what the others sealed for it, and what each sealed for all others."""
    keys = masked.keys()
    sealed = {name: each.shares(keys) for name, each in masked.people.items()}
    one = masked.people[NAMES[0]]
    return one, {name: sealed[name][one.name] for name in NAMES[1:]}, sealed


def test_survivors_who_differ_are_refused() -> None:
    one, own, _ = shared(Sum())
    one.masked(own, vector(0), b"")
    one.confirmed(NAMES)
    assert refused(lambda: one.confirmed(NAMES[:5])) == (
        "E981: silo-0 takes no further part in a masked sum: it is told of other survivors than "
        "before"
    )
    assert refused(lambda: one.revealed({})).startswith("E788: ")


@pytest.mark.parametrize("survivors", [[*NAMES, "stranger"], NAMES[1:]])
def test_survivors_are_participants_and_it_is_one(survivors: list[str]) -> None:
    one, own, _ = shared(Sum())
    one.masked(own, vector(0), b"")
    assert refused(lambda: one.confirmed(survivors)) == (
        "E981: silo-0 takes no further part in a masked sum: the survivors are not participants, "
        "or it is none of them"
    )


def test_keys_are_its_own_and_differ() -> None:
    masked = Sum()
    keys = masked.keys()
    one = masked.people[NAMES[0]]
    assert refused(lambda: one.shares(keys | {NAMES[0]: keys[NAMES[1]]})) == (
        "E981: silo-0 takes no further part in a masked sum: its own public keys are not among "
        "those of all"
    )
    masked = Sum()
    keys = masked.keys()
    one = masked.people[NAMES[0]]
    twice = keys | {NAMES[2]: keys[NAMES[1]]}
    assert refused(lambda: one.shares(twice)) == (
        "E981: silo-0 takes no further part in a masked sum: two participants have one public key"
    )


def test_shares_that_are_sent_back_are_refused() -> None:
    """What one sealed for another is not what the other sealed for it: the keys differ."""
    one, own, sealed = shared(Sum())
    reflected = own | {NAMES[1]: sealed[one.name][NAMES[1]]}
    assert refused(lambda: one.masked(reflected, vector(0), b"")) == (
        "E981: silo-0 takes no further part in a masked sum: the shares of silo-1 are damaged"
    )


def test_keys_are_bound_to_one_sum_one_purpose_and_two_participants() -> None:
    digests = [
        Terms(label, threshold, segments).digest()
        for label in (b"round 1", b"round 2")
        for threshold in (4, 5)
        for segments in (SEGMENTS, SEGMENTS[:2])
    ]
    pairs = [("a", "b"), ("b", "a"), ("a", "c"), ("ab", "c")]
    shares = [purpose_of_shares(digest, *pair) for digest in digests for pair in pairs]
    masks = [purpose_of_mask(digest, *pair) for digest in digests for pair in pairs[1:]]
    assert len({*shares, *masks}) == len(shares) + len(masks)
    assert purpose_of_mask(digests[0], "a", "b") == purpose_of_mask(digests[0], "b", "a")
    one, other = Agreement(), Agreement()
    agreed = [one.agree(other.public, purpose) for purpose in shares]
    assert len(set(agreed)) == len(shares)
    assert agreed == [other.agree(one.public, purpose) for purpose in shares]


def test_too_few_participants_or_too_low_a_threshold_are_refused() -> None:
    masked = Sum(threshold=4)
    keys = masked.keys()
    assert refused(lambda: masked.people[NAMES[0]].shares(keys)) == (
        "E980: silo-0 takes no further part in a masked sum: 6 participants with a threshold of 4 "
        "are less than it demands: 3, and more than 67% of them as the threshold"
    )
    assert not Demands().met_by(2, 2)
    assert Demands().threshold(6) == 5
    assert Demands().threshold(7) == 5


def test_shares_that_are_damaged_or_swapped_are_refused() -> None:
    one, own, _ = shared(Sum())
    swapped = own | {NAMES[1]: own[NAMES[2]]}
    assert refused(lambda: one.masked(swapped, vector(0), b"")) == (
        "E981: silo-0 takes no further part in a masked sum: the shares of silo-1 are damaged"
    )
    one, own, _ = shared(Sum())
    few = {n: own[n] for n in NAMES[1:4]}
    assert refused(lambda: one.masked(few, vector(0), b"")) == (
        "E980: silo-0 takes no further part in a masked sum: 4 participants gave shares of their "
        "secrets, and the threshold is 5"
    )


def test_keys_and_confirmations_that_others_signed_are_refused() -> None:
    masked = Sum(signing=True)
    keys = masked.keys()
    one = masked.people[NAMES[0]]
    forged = Keys(keys[NAMES[1]].masking, keys[NAMES[1]].sealing, keys[NAMES[1]].signature)
    assert refused(lambda: one.shares(keys | {NAMES[1]: forged})) == (
        "E985: silo-0 takes no further part in a masked sum: what silo-1 says is not signed with "
        "a key it knows"
    )
    for name, code in ((NAMES[1], "E985: "), (NAMES[0], "E980: ")):
        one, own, _ = shared(Sum(signing=True))
        one.masked(own, vector(0), b"")
        confirmation = one.confirmed(NAMES)
        assert refused(functools.partial(one.revealed, {name: confirmation})).startswith(code)


def test_a_key_that_is_none_is_refused() -> None:
    masked = Sum()
    keys = masked.keys()
    zero = Keys(bytes(32), keys[NAMES[1]].masking)
    assert refused(lambda: masked.people[NAMES[0]].shares(keys | {NAMES[1]: zero})).startswith(
        "E860: a participant's public key cannot be one: "
    )


# What the server refuses, and passes over.


def test_a_vector_of_another_sum_is_refused() -> None:
    masked = Sum()
    assert refused(lambda: masked.server.receive_masked(NAMES[0], vector(0)[:2])) == (
        "E860: silo-0 sends a vector that does not belong to this masked sum"
    )


class Liar(Participant):
    """Gives shares that nobody split."""

    def revealed(self, confirmations: Mapping[str, bytes]) -> Revealed:
        honest = super().revealed(confirmations)
        return Revealed(honest.seeds, dict.fromkeys(honest.secrets, 1))


class Miser(Participant):
    """Gives no shares."""

    def revealed(self, confirmations: Mapping[str, bytes]) -> Revealed:
        return Revealed({}, {})


def test_shares_that_give_back_another_secret_are_refused() -> None:
    masked = Sum()
    masked.people[NAMES[0]] = Liar(NAMES[0], masked.terms)
    assert refused(lambda: masked.run(lambda s, n: (s, n) == ("masked", NAMES[5]))) == (
        "E860: the shares of silo-5 do not give back its secret: wrong shares are from silo-0"
    )


def test_shares_of_some_only_do_not_count() -> None:
    masked = Sum()
    for name in NAMES[:2]:
        masked.people[name] = Miser(name, masked.terms)
    assert refused(masked.run).startswith("E980: 4 of 6 participants gave their revealed shares")


def test_a_node_signs_with_the_key_that_it_has() -> None:
    key = PrivateKey(generate_private_key(SECP384R1()))
    signature = key.sign(b"said")
    assert key.public().verify(signature, b"said")
    assert not key.public().verify(signature, b"something else")


def test_a_participant_goes_on_in_another_process() -> None:
    """What it knows is whole after every step, so the sum is as if it had stayed."""
    made = Sum(names=NAMES[:3], threshold=3)

    def moved(name: str) -> Participant:
        content = made.people[name].to_bytes()
        made.people[name] = Participant.from_bytes(content)
        assert made.people[name].to_bytes() == content
        return made.people[name]

    for name in made.names:
        made.server.receive_keys(name, moved(name).keys())
    keys = made.server.all_keys()
    for name in made.names:
        made.server.receive_shares(name, moved(name).shares(keys))
    shares = made.server.all_shares()
    for name in made.names:
        masked = moved(name).masked(shares[name], made.vectors[name], b"")
        made.server.receive_masked(name, masked)
    survivors = made.server.survivors()
    for name in made.names:
        made.server.receive_confirmed(name, moved(name).confirmed(survivors))
    confirmations = made.server.confirmations()
    for name in made.names:
        made.server.receive_revealed(name, moved(name).revealed(confirmations))
    assert [part.tolist() for part in made.server.total()] == made.expected(made.names)
