"""The attacks of the table in docs/secure-sums.md, each played in this process.

`plays` names the rows that a test plays, here and in `tests.deploy.federation.test_masked_attacks`.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest

import tests.deploy.federation.test_masked_attacks
import tests.runtime.engines.test_secure_bounds
from tests.runtime.masking.sums import (
    NAMES,
    PLAYED,
    SEGMENTS,
    Sum,
    plays,
    refused,
    signers_of,
    vector,
)
from tffc.runtime.masking.aggregator import Aggregator
from tffc.runtime.masking.commitments import BOTH, SECRETS, SEEDS
from tffc.runtime.masking.history import MOST_ATTEMPTS, History
from tffc.runtime.masking.keys import FIELD, Agreement, distinct_points
from tffc.runtime.masking.participant import Participant
from tffc.runtime.masking.purposes import purpose_of_mask
from tffc.runtime.masking.shamir import PRIME, combine, weights
from tffc.runtime.masking.terms import Confirmation, Demands, Keys, Revealed, Terms, points
from tffc.runtime.masking.vectors import Vector, add, expand, subtract

pytestmark = pytest.mark.slow

# These play some of the rows.
assert tests.runtime.engines.test_secure_bounds
assert tests.deploy.federation.test_masked_attacks

FIRST, LAST = NAMES[0], NAMES[5]


@dataclasses.dataclass
class Masked:
    """A sum whose vectors have arrived, and what was sent until then."""

    sum: Sum
    keys: Mapping[str, Keys]
    dealt: Mapping[str, Mapping[str, bytes]]
    survivors: list[str]

    @property
    def people(self) -> Mapping[str, Participant]:
        return self.sum.people

    def confirmations(self) -> dict[str, bytes]:
        """What all survivors confirm."""
        return {name: self.people[name].confirmed(self.survivors) for name in self.survivors}


def until_masked(masked: Sum, dropped: Iterable[str] = ()) -> Masked:
    """Run a sum until the vectors arrive, of all but some."""
    server = masked.server
    for name, each in masked.people.items():
        server.receive_keys(name, each.keys())
    keys = server.all_keys()
    for name, each in masked.people.items():
        server.receive_shares(name, each.shares(keys))
    dealt = server.all_shares()
    for name, each in masked.people.items():
        if name not in dropped:
            clients, sent = masked.clients.get(name, 1), each.terms.sent
            held = masked.vectors[name][: len(each.segments)]
            masked.masked[name] = each.masked(dealt[name], held, sent, clients)
            server.receive_masked(name, masked.masked[name])
    return Masked(masked, keys, dealt, server.survivors())


def code(call: Callable[[], object]) -> str:
    """The code of a refusal."""
    return refused(call)[:4]


# The server sees masked vectors.


@plays("reading vectors")
@pytest.mark.parametrize("name", NAMES)
def test_a_vector_is_under_masks_that_the_server_does_not_know(name: str) -> None:
    """The two sums hold other vectors, and what is sent has nothing in common but its form."""
    one, other = Sum(), Sum(vectors={n: vector(10 + i) for i, n in enumerate(NAMES)})
    one.run()
    other.run()
    for masked in (one, other):
        for sent, held in zip(masked.masked[name], masked.vectors[name], strict=True):
            assert sent.tolist() != held.tolist()


@plays("reading vectors of those who are late")
@pytest.mark.parametrize("late", NAMES)
def test_a_vector_that_comes_late_stays_under_its_own_mask(late: str) -> None:
    """The server says that one dropped out, and gets its pairwise masks; its vector it has."""
    begun = until_masked(Sum())
    people, keys = begun.people, begun.keys
    survivors = [name for name in NAMES if name != late]
    confirmations = {name: people[name].confirmed(survivors) for name in survivors}
    revealed = {name: people[name].revealed(confirmations) for name in survivors}
    assert all(late not in each.seeds for each in revealed.values())
    at = points(NAMES)
    shares = (revealed[name].secrets[late] for name in survivors)
    secret = combine(shares, weights([at[name] for name in survivors]))
    agreement = Agreement(secret.to_bytes(32, "little"))
    assert agreement.public == keys[late].masking
    left = begun.sum.masked[late]
    for other in survivors:
        purpose = purpose_of_mask(begun.sum.terms.digest(), late, other)
        mask = expand(agreement.agree(keys[other].masking, purpose), SEGMENTS)
        left = (subtract if late < other else add)(left, mask, SEGMENTS)
    held = begun.sum.vectors[late]
    own = expand(people[late]._own_seed(), SEGMENTS)
    for part, value, mask in zip(left, held, own, strict=True):
        assert np.mean(part != value) > 0.5
        assert np.any(mask)
    assert [p.tolist() for p in subtract(left, own, SEGMENTS)] == [p.tolist() for p in held]


@plays("masks used again")
@pytest.mark.parametrize("signing", [False, True])
@pytest.mark.parametrize("label", [b"round 1", b"round 2"])
def test_nothing_of_one_sum_is_in_another(signing: bool, label: bytes) -> None:
    """The same vectors, names and signing keys; even the same label."""
    signers = signers_of(NAMES)
    held = {name: vector(0) for name in NAMES}
    first = Sum(signing=signing, signers=signers, vectors=held)
    second = Sum(signing=signing, signers=signers, vectors=held, label=label)
    assert first.run() == second.run()
    sent = [part[0] for masked in (first, second) for part in masked.masked.values()]
    numbers = [number for part in sent for number in part.tolist()]
    assert len(set(numbers)) == len(numbers)
    for name in NAMES:
        one, other = first.people[name], second.people[name]
        assert one._seed != other._seed
        assert one._masking.secret != other._masking.secret
        assert one._sealing.secret != other._sealing.secret


@plays("collusion below the threshold")
@pytest.mark.parametrize("kind", [SEEDS, SECRETS])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_fewer_shares_than_the_threshold_are_not_the_secret(kind: str, count: int) -> None:
    masked = Sum()
    people = until_masked(masked).people
    index = (SEEDS, SECRETS).index(kind)
    at = points(NAMES)
    holders = NAMES[1 : 1 + count]
    shares = [people[holder]._shares[FIRST][index] for holder in holders]
    combined = combine(shares, weights([at[holder] for holder in holders]))
    own = (people[FIRST]._seed, people[FIRST]._masking.secret)[index]
    assert combined != int.from_bytes(own, "little")


# D1: what participants were sent.

OTHERWISE: dict[str, dict[str, Any]] = {
    "values": {"sent": b"zeros"},
    "round": {"round": 8},
    "program": {"program": "another"},
    "attempt": {"label": b"round 2"},
    "threshold": {"threshold": 6},
    "segments": {"segments": SEGMENTS[:2]},
}
"""What the server may tell some participants otherwise."""

ABOUT = {"program": "training", "round": 7, "sent": b"the model"}


@plays("model inconsistency")
@pytest.mark.parametrize("victims", [[FIRST], [LAST], NAMES[:2], NAMES[:3]], ids=len)
@pytest.mark.parametrize("otherwise", OTHERWISE)
@pytest.mark.parametrize("signing", [False, True])
def test_who_is_told_otherwise_cannot_open_shares(
    victims: list[str], otherwise: str, signing: bool
) -> None:
    """So no vector is sent; with signatures not even shares are."""
    told = dict.fromkeys(victims, OTHERWISE[otherwise])
    masked = Sum(about=ABOUT, told=told, signing=signing)
    assert refused(lambda: until_masked(masked))[:4] == ("E985" if signing else "E981")


def with_shares(name: str) -> tuple[Participant, dict[str, bytes]]:
    """Return a participant of a sum, and the shares that the others dealt to it."""
    masked = Sum(about=ABOUT)
    keys = masked.keys()
    dealt = {n: each.shares(keys) for n, each in masked.people.items()}
    return masked.people[name], {n: dealt[n][name] for n in NAMES if n != name}


@plays("model inconsistency")
@pytest.mark.parametrize("name", NAMES)
def test_who_is_sent_other_values_than_it_was_told_refuses(name: str) -> None:
    one, own = with_shares(name)
    one.agree(own, b"the model")
    assert refused(lambda: one.masked(own, vector(0), b"zeros")) == (
        f"E981: {name} takes no further part in a masked sum: it was sent other values than those "
        "that all participants agreed on"
    )
    assert code(lambda: one.masked(own, vector(0), b"the model")) == "E788"


def test_who_agreed_opens_no_other_shares_in_another_process() -> None:
    one, own = with_shares(FIRST)
    one.agree(own, b"the model")
    other = Participant.from_bytes(one.to_bytes())
    damaged = dict.fromkeys(own, b"damaged")
    vectors = [each.masked(damaged, vector(0), b"the model") for each in (one, other)]
    assert [part.tolist() for part in vectors[0]] == [part.tolist() for part in vectors[1]]


@plays("model inconsistency")
@pytest.mark.parametrize("otherwise", OTHERWISE)
@pytest.mark.parametrize("name", [FIRST, LAST])
def test_participants_agree_before_they_compute(name: str, otherwise: str) -> None:
    told = {name: OTHERWISE[otherwise]}
    masked = Sum(about=ABOUT, told=told)
    keys = masked.keys()
    dealt = {n: each.shares(keys) for n, each in masked.people.items()}
    for each in NAMES:
        own = {n: dealt[n][each] for n in NAMES if n != each}
        one = masked.people[each]
        assert code(functools.partial(one.agree, own, one.terms.sent)) == "E981"
        assert code(functools.partial(one.agree, own, one.terms.sent)) == "E788"


@plays("model inconsistency")
@pytest.mark.parametrize("otherwise", OTHERWISE)
def test_a_group_that_is_told_otherwise_is_too_small(otherwise: str) -> None:
    """The server keeps the shares of the victim from the others, and theirs from it."""
    masked = Sum(about=ABOUT, told={FIRST: OTHERWISE[otherwise]})
    people, keys = masked.people, masked.keys()
    dealt = {n: each.shares(keys) for n, each in people.items()}
    assert dealt.keys() == set(NAMES)
    sent = people[FIRST].terms.sent
    own = [np.zeros(s.size, s.dtype) for s in people[FIRST].terms.segments]
    assert code(lambda: people[FIRST].masked({}, own, sent)) == "E980"


@plays("model inconsistency")
@pytest.mark.parametrize("otherwise", [key for key in OTHERWISE if key != "segments"])
@pytest.mark.parametrize("victim", [FIRST, LAST])
def test_masks_of_who_was_told_otherwise_do_not_cancel(
    victim: str, otherwise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Participants that do not check shares at all: the total is noise, not the victim's vector."""
    monkeypatch.setattr(Participant, "_unseal", lambda self, other, dealt: (1, 1))
    zeros = [np.zeros(s.size, s.dtype) for s in SEGMENTS]
    held = {name: vector(0) if name == victim else zeros for name in NAMES}
    masked = Sum(about=ABOUT, told={victim: OTHERWISE[otherwise]}, vectors=held)
    until_masked(masked)
    total = masked.server._total
    for each in masked.people.values():
        total = subtract(total, expand(each._own_seed(), SEGMENTS), SEGMENTS)
    differing = [np.mean(part != expected) for part, expected in zip(total, vector(0), strict=True)]
    assert min(differing) > 0.5


@plays("model inconsistency")
@pytest.mark.parametrize("otherwise", OTHERWISE)
def test_a_participants_own_mask_is_bound_to_what_it_was_told(otherwise: str) -> None:
    one = Participant(FIRST, Terms(b"round 1", 5, SEGMENTS, **ABOUT))
    content = one.to_bytes()
    other = Participant.from_bytes(content)
    assert one._own_seed() == other._own_seed()
    terms = dataclasses.replace(one.terms, **OTHERWISE[otherwise])
    another = Participant(FIRST, terms)
    another._seed = one._seed
    assert another._own_seed() != one._own_seed()


# D2 and D4: one sum in a round, and one sum under a label.


def histories(names: Iterable[str] = NAMES) -> dict[str, History]:
    return {name: History() for name in names}


def attempt(
    remembered: Mapping[str, History], number: int, names: list[str], **about: Any
) -> list[list[int]]:
    """One more sum of those who remember the ones before."""
    threshold = Demands().threshold(len(names))
    label = b"attempt %d" % number
    fields = {"program": "training", "round": 7, **about}
    return Sum(threshold, names, label=label, about=fields, histories=remembered).run()


@plays("differences between sums of one round")
@pytest.mark.parametrize("left_out", NAMES)
@pytest.mark.parametrize("about", [{}, {"sent": b"other"}, {"round": 6}, {"round": 1}], ids=str)
def test_a_second_sum_of_a_round_without_one_participant(
    left_out: str, about: dict[str, Any]
) -> None:
    remembered = histories()
    attempt(remembered, 1, NAMES)
    others = [name for name in NAMES if name != left_out]
    text = refused(lambda: attempt(remembered, 2, others, **about))
    assert text.startswith("E774: ")
    # In the first step, before anything is sent.
    assert ("its last round was 7" if "round" in about else "it gave its part of round 7") in text
    attempt(remembered, 3, others, round=8)


@plays("differences between sums of one round")
@pytest.mark.parametrize("left_out", NAMES)
def test_a_second_sum_that_began_before_the_first_ended(left_out: str) -> None:
    """Both were confirmed, and shares are revealed in one of them."""
    remembered = histories()
    others = [name for name in NAMES if name != left_out]
    first = until_masked(Sum(histories=remembered, label=b"1", about=ABOUT))
    second = until_masked(Sum(4, others, histories=remembered, label=b"2", about=ABOUT))
    confirmed = first.confirmations(), second.confirmations()
    for name in others:
        first.people[name].revealed(confirmed[0])
    for name in others:
        assert code(functools.partial(second.people[name].revealed, confirmed[1])) == "E774"


@plays("differences between sums of one round")
@pytest.mark.parametrize("moved", [False, True])
def test_who_revealed_nothing_takes_part_in_another_attempt(moved: bool) -> None:
    remembered = histories()
    until_masked(Sum(histories=remembered, label=b"1", about=ABOUT)).confirmations()
    if moved:
        remembered = {n: History.from_json(h.to_json()) for n, h in remembered.items()}
    total = attempt(remembered, 2, NAMES)
    assert total == Sum().expected(NAMES)


@plays("differences between sums of one round")
def test_attempts_at_a_round_are_counted() -> None:
    history = History()
    for number in range(MOST_ATTEMPTS):
        assert history.begin("training", 7, b"%d" % number) == ""
    one = Participant(FIRST, Terms(b"new", 5, SEGMENTS, "training", 7), history=history)
    assert refused(one.keys) == (
        "E774: silo-0 takes no further part in a masked sum: it began 100 sums of round 7 before"
    )
    assert history.begin("training", 8, b"new") == ""
    assert history.begin("another", 7, b"new") == ""


@plays("differences between sums of one round")
@pytest.mark.parametrize("left_out", NAMES)
def test_a_signing_key_remembers_sums_that_name_no_round(left_out: str) -> None:
    """Participants that nobody gave a history, in sums of which nobody says what they are."""
    signers = signers_of(NAMES)
    known = {name: key.public() for name, key in signers.items()}

    def people(names: Iterable[str], label: bytes, threshold: int) -> dict[str, Participant]:
        terms = Terms(label, threshold, SEGMENTS)
        return {n: Participant(n, terms, Demands(), signers[n], known) for n in names}

    masked = Sum(signing=True, signers=signers)
    masked.people = people(NAMES, masked.label, 5)
    assert masked.run() == masked.expected(NAMES)
    others = [name for name in NAMES if name != left_out]
    for each in people(others, b"another", 4).values():
        assert code(each.keys) == "E774"


@plays("replays")
@pytest.mark.parametrize("step", ["keys", "shares", "masked", "confirmed", "revealed"])
def test_a_label_is_used_once(step: str) -> None:
    """Whatever became of the sum before."""
    history = History()
    masked = Sum(histories={FIRST: history}, about=ABOUT)
    if step == "keys":
        masked.people[FIRST].keys()
    elif step == "shares":
        masked.people[FIRST].shares(masked.keys())
    else:
        begun = until_masked(masked)
        if step != "masked":
            confirmations = begun.confirmations()
            if step == "revealed":
                begun.people[FIRST].revealed(confirmations)
    again = Participant(FIRST, masked.terms, history=history)
    assert code(again.keys) == "E774"


@plays("replays")
@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("signing", [False, True])
def test_shares_of_an_earlier_sum_do_not_open(moved: bool, signing: bool) -> None:
    signers = signers_of(NAMES)
    old = until_masked(Sum(signing=signing, signers=signers))
    new = Sum(signing=signing, signers=signers)
    keys = new.keys()
    dealt = {name: each.shares(keys) for name, each in new.people.items()}
    own = {name: dealt[name][FIRST] for name in NAMES[1:]}
    stale = dict(old.dealt[FIRST]) if moved else own | {LAST: old.dealt[FIRST][LAST]}
    assert code(lambda: new.people[FIRST].masked(stale, vector(0), b"")) == "E981"


@plays("replays")
@pytest.mark.parametrize("count", [1, 3, 5])
def test_confirmations_of_an_earlier_sum_do_not_count(count: int) -> None:
    """The same label, participants, survivors and signing keys; other public keys."""
    signers = signers_of(NAMES)
    old = until_masked(Sum(signing=True, signers=signers)).confirmations()
    new = until_masked(Sum(signing=True, signers=signers))
    confirmations = new.confirmations() | {name: old[name] for name in NAMES[1 : 1 + count]}
    assert code(lambda: new.people[FIRST].revealed(confirmations)) == "E985"


@plays("replays")
@pytest.mark.parametrize("name", NAMES[1:])
def test_keys_that_were_signed_for_an_earlier_sum_do_not_count(name: str) -> None:
    signers = signers_of(NAMES)
    old = Sum(signing=True, signers=signers, label=b"round 0").keys()
    new = Sum(signing=True, signers=signers)
    assert code(lambda: new.people[FIRST].shares(new.keys() | {name: old[name]})) == "E985"


# D3: who confirms.


@plays("confirmations from outside")
@pytest.mark.parametrize("outside", [1, 3, 6])
@pytest.mark.parametrize("inside", [0, 1, 3])
def test_known_nodes_outside_the_sum_do_not_count(outside: int, inside: int) -> None:
    """They sign exactly what a participant would."""
    strangers = [f"stranger-{n}" for n in range(outside)]
    signers = signers_of([*NAMES, *strangers])
    begun = until_masked(Sum(signing=True, signers=signers))
    confirmations = begun.confirmations()
    one = begun.people[FIRST]
    forged = {
        name: Confirmation(9, signers[name].sign(one._said(name, 9))).to_bytes()
        for name in strangers
    }
    some = {name: confirmations[name] for name in NAMES[1 : 1 + inside]}
    assert refused(lambda: one.revealed(forged | some)).startswith(
        f"E980: silo-0 takes no further part in a masked sum: {inside + 1} participants gave"
    )


@plays("confirmations from outside")
@pytest.mark.parametrize("signing", [False, True])
@pytest.mark.parametrize("name", NAMES[1:])
def test_who_dropped_out_does_not_confirm(signing: bool, name: str) -> None:
    """It is a participant, and its vector is not in the sum."""
    begun = until_masked(Sum(signing=signing, threshold=5), dropped=[name])
    confirmations = begun.confirmations()
    other = next(n for n in NAMES[1:] if n != name)
    one = begun.people[FIRST]
    said = one._said(name, 1)
    signature = begun.sum.signers[name].sign(said) if signing else b""
    confirmations[name] = Confirmation(1, signature).to_bytes()
    del confirmations[other]
    assert code(lambda: one.revealed(confirmations)) == "E980"


@plays("two sets of survivors")
@pytest.mark.parametrize("told", [NAMES[:5], [*NAMES[:4], LAST]])
@pytest.mark.parametrize("victim", [FIRST, NAMES[3]])
def test_others_are_told_of_other_survivors(told: list[str], victim: str) -> None:
    """The confirmations that the server has are of two sets, and none has enough."""
    begun = until_masked(Sum(signing=True))
    people = begun.people
    groups = {name: (told if name in told[:3] else NAMES) for name in NAMES}
    confirmations = {name: people[name].confirmed(groups[name]) for name in NAMES}
    assert code(lambda: people[victim].revealed(confirmations)) == "E985"
    own = {n: each for n, each in confirmations.items() if groups[n] == groups[FIRST]}
    assert code(lambda: people[NAMES[1]].revealed(own)) == "E980"


@plays("two sets of survivors")
@pytest.mark.parametrize("again", [NAMES[:5], NAMES[:4], [FIRST]], ids=len)
def test_one_is_told_of_two_sets_of_survivors(again: list[str]) -> None:
    begun = until_masked(Sum())
    confirmations = begun.confirmations()
    one = begun.people[FIRST]
    assert code(lambda: one.confirmed(again)) == "E981"
    assert code(lambda: one.revealed(confirmations)) == "E788"


@plays("two sets of survivors")
@pytest.mark.parametrize("name", NAMES)
def test_both_secrets_of_one_are_never_revealed(name: str) -> None:
    begun = until_masked(Sum(signing=True), dropped=[NAMES[4]])
    confirmations = begun.confirmations()
    for holder in begun.survivors:
        revealed = begun.people[holder].revealed(confirmations)
        assert (name in revealed.seeds) != (name in revealed.secrets)


# D5: wrong shares.

WRONG: dict[str, Callable[[int], int]] = {
    "another": lambda share: share + 2**100,
    "zero": lambda share: 0,
    "beyond the field": lambda share: share + PRIME + 2**9,
    "negative": lambda share: -share,
    "very long": lambda share: share + 2**4000,
}


def lying(begun: Masked, liars: Iterable[str], kind: str, of: str, wrong: str) -> Aggregator:
    """The server, with what all reveal, some of them a wrong share of one secret."""
    confirmations = begun.confirmations()
    server = begun.sum.server
    for name, each in confirmations.items():
        server.receive_confirmed(name, each)
    server.confirmations()
    for name in begun.survivors:
        revealed = begun.people[name].revealed(confirmations)
        if name in liars:
            shares = dict(getattr(revealed, kind))
            shares[of] = WRONG[wrong](shares[of])
            revealed = dataclasses.replace(revealed, **{kind: shares})
        server.receive_revealed(name, revealed)
    return server


@plays("wrong shares at the end")
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(("kind", "of"), [(SEEDS, NAMES[1]), (SECRETS, NAMES[5])])
@pytest.mark.parametrize("liars", [[FIRST], [NAMES[4]], NAMES[1:3]], ids=len)
def test_a_wrong_share_is_named_and_done_without(
    wrong: str, kind: str, of: str, liars: list[str]
) -> None:
    begun = until_masked(Sum(threshold=3, demands=Demands(3, 0.4)), dropped=[LAST])
    server = lying(begun, liars, kind, of, wrong)
    assert [part.tolist() for part in server.total()] == begun.sum.expected(NAMES[:5])
    if FIRST in liars or len(liars) > 1:
        assert server.wrong == frozenset(liars)
    else:
        assert server.wrong <= frozenset(liars)  # Nobody needed its shares.


@plays("wrong shares at the end")
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("liars", [NAMES[:2], NAMES[2:4], NAMES[3:]], ids=str)
@pytest.mark.parametrize("of", [FIRST, LAST])
def test_too_many_wrong_shares_are_named_and_there_is_no_total(
    wrong: str, liars: list[str], of: str
) -> None:
    begun = until_masked(Sum())
    server = lying(begun, liars, SEEDS, of, wrong)
    assert refused(server.total) == (
        f"E860: the shares of {of} do not give back its secret: wrong shares are from "
        + ", ".join(liars)
    )
    assert server.wrong == frozenset(liars)


@plays("shares that do not belong together")
@pytest.mark.parametrize("kind", [SEEDS, SECRETS])
@pytest.mark.parametrize("holders", [[FIRST], NAMES[1:3], NAMES[:4]], ids=len)
def test_who_dealt_other_shares_than_of_its_secret_is_named(
    kind: str, holders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dealer commits to the wrong shares as well, so the holders cannot see it."""
    dealt = Participant._dealt

    def deal(self: Participant, other: str, seed: int, secret: int) -> bytes:
        if self.name == LAST and other in holders:
            change = 2 ** (100 + NAMES.index(other))
            seed, secret = (seed ^ change, secret) if kind == SEEDS else (seed, secret ^ change)
        return dealt(self, other, seed, secret)

    monkeypatch.setattr(Participant, "_dealt", deal)
    begun = until_masked(Sum(), dropped=[LAST] if kind == SECRETS else [])
    server = lying(begun, [], kind, LAST, "zero")
    assert refused(server.total) == (
        "E860: the shares of silo-5 do not give back its secret: wrong shares are from silo-5"
    )


@plays("damaged shares")
@pytest.mark.parametrize("change", ["seal", "commitment", "short", "empty", "other", "back"])
@pytest.mark.parametrize("dealer", [NAMES[1], LAST])
def test_shares_that_do_not_fit_their_commitment_or_seal(change: str, dealer: str) -> None:
    masked = Sum()
    keys = masked.keys()
    dealt = {name: each.shares(keys) for name, each in masked.people.items()}
    own = {name: dealt[name][FIRST] for name in NAMES[1:]}
    whole = own[dealer]
    changed = {
        "seal": bytes([whole[0] ^ 1]) + whole[1:],
        "commitment": whole[:-1] + bytes([whole[-1] ^ 1]),
        "short": whole[:BOTH],
        "empty": b"",
        "other": dealt[dealer][NAMES[2]],
        "back": dealt[FIRST][dealer],
    }
    one = masked.people[FIRST]
    assert refused(lambda: one.masked(own | {dealer: changed[change]}, vector(0), b"")) == (
        f"E981: silo-0 takes no further part in a masked sum: the shares of {dealer} are damaged"
    )


@plays("damaged shares")
@pytest.mark.parametrize("missing", [[FIRST], [LAST], NAMES[1:3]], ids=str)
def test_shares_for_some_only_are_none(missing: list[str]) -> None:
    """A participant that seals shares for some only would end the sum for the others."""
    masked = Sum(threshold=5)
    for name, each in masked.people.items():
        masked.server.receive_keys(name, each.keys())
    keys = masked.server.all_keys()
    for name, each in masked.people.items():
        shares = each.shares(keys)
        some = {n: s for n, s in shares.items() if n not in missing}
        masked.server.receive_shares(name, some if name == NAMES[3] else shares)
    assert masked.server.all_shares().keys() == set(NAMES) - {NAMES[3]}


# D7: how many take part.


@plays("sums of few")
@pytest.mark.parametrize("least", [4, 5, 6, 7, 100])
def test_a_participant_demands_more_than_three(least: int) -> None:
    names = NAMES[: min(least - 1, 6)]
    threshold = Demands().threshold(len(names))
    masked = Sum(threshold, names, demands=Demands(least))
    assert code(lambda: masked.people[FIRST].shares(masked.keys())) == "E980"


@plays("sums of few")
@pytest.mark.parametrize("dropped", NAMES[1:])
def test_those_who_drop_out_do_not_count(dropped: str) -> None:
    begun = until_masked(Sum(demands=Demands(6)), dropped=[dropped])
    assert refused(lambda: begun.people[FIRST].confirmed(begun.survivors)) == (
        "E980: silo-0 takes no further part in a masked sum: 5 vectors are in the sum, and it "
        "demands 6 participants with a client each, and 0 clients in all"
    )


@plays("sums of few")
@pytest.mark.parametrize("signing", [False, True])
@pytest.mark.parametrize("empty", [[NAMES[1]], NAMES[1:4], NAMES[1:]], ids=len)
def test_those_without_clients_do_not_count(signing: bool, empty: list[str]) -> None:
    """They say so themselves, under their signature."""
    begun = until_masked(Sum(signing=signing, demands=Demands(6)))
    for name in empty:
        begun.people[name]._clients = 0
    confirmations = begun.confirmations()
    assert code(lambda: begun.people[FIRST].revealed(confirmations)) == "E980"


@plays("sums of few")
@pytest.mark.parametrize("name", NAMES)
def test_who_has_no_clients_sends_no_vector(name: str) -> None:
    assert code(lambda: until_masked(Sum(clients={name: 0}))) == "E980"


@plays("sums of few")
@pytest.mark.parametrize(
    ("clients", "least", "is_enough"),
    [(1, 6, True), (1, 7, False), (2, 12, True), (2, 13, False), (50, 1000, False)],
)
def test_all_have_so_many_clients(clients: int, least: int, is_enough: bool) -> None:
    masked = Sum(
        signing=True, demands=Demands(clients=least), clients=dict.fromkeys(NAMES, clients)
    )
    if is_enough:
        assert masked.run() == masked.expected(NAMES)
    else:
        assert code(masked.run) == "E980"


@plays("sums of few")
@pytest.mark.parametrize("claimed", [0, 2, 1000])
def test_the_server_cannot_change_how_many_clients_one_says_it_has(claimed: int) -> None:
    begun = until_masked(Sum(signing=True))
    confirmations = begun.confirmations()
    each = Confirmation.from_bytes(confirmations[LAST])
    confirmations[LAST] = dataclasses.replace(each, clients=claimed).to_bytes()
    assert code(lambda: begun.people[FIRST].revealed(confirmations)) == "E985"


@plays("weaker terms")
@pytest.mark.parametrize("threshold", [-1, 0, 1, 3, 4, 7, 100])
def test_a_threshold_that_is_too_low_or_cannot_be_reached(threshold: int) -> None:
    masked = Sum(threshold=threshold)
    assert code(lambda: masked.people[FIRST].shares(masked.keys())) == "E980"


# D8: keys.


def other_bytes(public: bytes, how: str) -> bytes:
    """The same key in other bytes, or one that agrees on the same secrets."""
    number = int.from_bytes(public, "little")
    changed = {
        "same": number,
        "high bit": number | 2**255,
        "with a point of order two": pow(number, -1, FIELD),
    }[how]
    return changed.to_bytes(32, "little")


@plays("one key twice")
@pytest.mark.parametrize("how", ["same", "high bit", "with a point of order two"])
@pytest.mark.parametrize("field", ["sealing", "masking", "both"])
@pytest.mark.parametrize("of", [FIRST, NAMES[1]])
def test_one_key_under_two_names(how: str, field: str, of: str) -> None:
    """X25519 takes all these for one key."""
    masked = Sum()
    keys = masked.keys()
    changed = {
        name: other_bytes(getattr(keys[of], name), how)
        for name in ("sealing", "masking")
        if field in (name, "both")
    }
    twice = keys | {LAST: dataclasses.replace(keys[LAST], **changed)}
    expected = "E860" if how == "high bit" else "E981"
    assert code(lambda: masked.people[FIRST].shares(twice)) == expected
    one = Agreement()
    for name, public in changed.items():
        assert one.agree(public, b"") == one.agree(getattr(keys[of], name), b"")


@plays("one key twice")
@pytest.mark.parametrize("of", [FIRST, NAMES[1], NAMES[4]])
@pytest.mark.parametrize("by", [NAMES[0], NAMES[2]])
def test_one_signing_key_under_two_names(of: str, by: str) -> None:
    signers = signers_of(NAMES)
    signers[LAST] = signers[of]
    masked = Sum(signing=True, signers=signers)
    assert code(lambda: masked.people[by].shares(masked.keys())) == "E981"


LOW_ORDER = [
    0,
    1,
    FIELD - 1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
]
"""The points of Curve25519 and its twist whose order is at most eight."""


@plays("keys of low order")
@pytest.mark.parametrize("point", LOW_ORDER)
@pytest.mark.parametrize("field", ["sealing", "masking"])
def test_a_key_of_low_order(point: int, field: str) -> None:
    masked = Sum()
    keys = masked.keys()
    public = point.to_bytes(32, "little")
    bad = dataclasses.replace(keys[LAST], **{field: public})
    assert code(lambda: masked.people[FIRST].shares(keys | {LAST: bad})) == "E860"


@plays("keys of low order")
@pytest.mark.parametrize(
    "public",
    [b"", bytes(31), bytes(33), (FIELD + 9).to_bytes(32, "little"), b"\xff" * 32],
    ids=str,
)
def test_bytes_that_are_no_key(public: bytes) -> None:
    masked = Sum()
    keys = masked.keys()
    bad = dataclasses.replace(keys[LAST], masking=public)
    assert code(lambda: masked.people[FIRST].shares(keys | {LAST: bad})) == "E860"


def test_keys_of_honest_participants_differ() -> None:
    publics = [Agreement().public for _ in range(100)]
    assert len(set(distinct_points(publics))) == 100
    assert distinct_points([]) == []


@plays("exchanged keys")
@pytest.mark.parametrize("name", NAMES[1:])
@pytest.mark.parametrize("field", ["sealing", "masking"])
def test_a_key_that_another_signed_nothing_of(name: str, field: str) -> None:
    masked = Sum(signing=True)
    keys = masked.keys()
    forged = dataclasses.replace(keys[name], **{field: Agreement().public})
    assert code(lambda: masked.people[FIRST].shares(keys | {name: forged})) == "E985"


@plays("exchanged keys")
@pytest.mark.parametrize("field", ["sealing", "masking"])
def test_a_participants_own_key_is_among_them(field: str) -> None:
    masked = Sum()
    keys = masked.keys()
    forged = dataclasses.replace(keys[FIRST], **{field: Agreement().public})
    assert code(lambda: masked.people[FIRST].shares(keys | {FIRST: forged})) == "E981"


@plays("invented participants")
@pytest.mark.parametrize("count", [1, 2, 5])
def test_participants_that_nobody_knows(count: int) -> None:
    masked = Sum(signing=True, names=NAMES[:3], threshold=3)
    keys = masked.keys()
    for n in range(count):
        signer = next(iter(signers_of(["x"]).values()))
        name = f"stranger-{n}"
        unknown = Keys(Agreement().public, Agreement().public)
        signature = signer.sign(unknown.said(name, masked.terms.digest()))
        keys[name] = dataclasses.replace(unknown, signature=signature)
    assert code(lambda: masked.people[FIRST].shares(keys)) in ("E985", "E980")


# Steps.

CALLS: dict[str, Callable[[Masked, Participant], Any]] = {
    "keys": lambda begun, one: one.keys(),
    "shares": lambda begun, one: one.shares(begun.keys),
    "masked": lambda begun, one: one.masked(begun.dealt[one.name], vector(9), b""),
    "confirmed": lambda begun, one: one.confirmed(begun.survivors),
    "revealed": lambda begun, one: one.revealed({}),
}


@plays("steps done twice")
@pytest.mark.parametrize("step", ["keys", "shares", "masked", "revealed"])
def test_no_step_is_done_twice_or_out_of_order(step: str) -> None:
    begun = until_masked(Sum())
    one = begun.people[FIRST]
    assert code(lambda: CALLS[step](begun, one)) == "E788"
    for later in CALLS:
        assert code(functools.partial(CALLS[later], begun, one)) == "E788"


@plays("steps done twice")
@pytest.mark.parametrize("step", ["shares", "masked", "confirmed", "revealed"])
def test_no_step_comes_first_but_keys(step: str) -> None:
    begun = until_masked(Sum())
    one = Sum().people[FIRST]
    assert code(lambda: CALLS[step](begun, one)) == "E788"


@plays("steps done twice")
@pytest.mark.parametrize("moved", [False, True])
def test_after_a_refusal_there_is_no_step(moved: bool) -> None:
    masked = Sum()
    keys = masked.keys()
    one = masked.people[FIRST]
    assert code(lambda: one.shares({})) == "E981"
    if moved:
        one = Participant.from_bytes(one.to_bytes())
    assert code(lambda: one.shares(keys)) == "E788"


@plays("vectors of another form")
@pytest.mark.parametrize(
    "change",
    [
        lambda held: held[:2],
        lambda held: [*held, held[0]],
        lambda held: [held[0][:4], *held[1:]],
        lambda held: [held[0].astype("<u8"), *held[1:]],
        lambda held: held[::-1],
    ],
)
def test_a_vector_of_another_size_or_type(change: Callable[[Vector], Vector]) -> None:
    begun = Sum()
    assert code(lambda: begun.server.receive_masked(FIRST, change(vector(0)))) == "E860"
    keys = begun.keys()
    dealt = {name: each.shares(keys) for name, each in begun.people.items()}
    own = {name: dealt[name][FIRST] for name in NAMES[1:]}
    assert code(lambda: begun.people[FIRST].masked(own, change(vector(0)), b"")) == "E788"


def test_who_reveals_shares_of_others_than_the_survivors_is_not_heard() -> None:
    begun = until_masked(Sum())
    confirmations = begun.confirmations()
    server = begun.sum.server
    for name, each in confirmations.items():
        server.receive_confirmed(name, each)
    server.confirmations()
    for name in NAMES:
        revealed = begun.people[name].revealed(confirmations)
        if name in NAMES[:2]:
            revealed = Revealed(revealed.seeds, {"stranger": 1})
        server.receive_revealed(name, revealed)
    assert code(server.total) == "E980"


# The table.

TABLE = pathlib.Path(__file__).parents[3] / "docs" / "secure-sums.md"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| (prevented|detected|not covered)\b[^|]* \|", re.M)


def test_every_attack_that_is_prevented_or_detected_is_played() -> None:
    rows = {attack: verdict for attack, _, verdict in ROW.findall(TABLE.read_text())}
    held = {attack for attack, verdict in rows.items() if verdict != "not covered"}
    assert len(rows) > 20
    assert held == PLAYED
