"""The identity of a run: the program, the sampling of clients and the data.

A run can only be continued with the same identity.  Options of engines and of printing are not part
of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from tffc.runtime.data.identity import SourceIdentity, source_differences
from tffc.runtime.engines.buffering import Buffering
from tffc.runtime.engines.client_groups import ClientGroups
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.runs.privacy_record import PRIVACY, PrivacyRecord

GROUPS = "groups"
"""The key of the groups in the record of a run."""

TIMING = "timing"
"""The key of `Timing` in the record of a run that has one."""

POISSON = "poisson"
"""The key of the rate, and of the secret seed, in the record of a run that samples by a rate."""


NO_BUDGET = "no privacy budget"


@dataclasses.dataclass(frozen=True, slots=True)
class Timing:
    """How rounds are buffered, and the text of the model of delays; None for what there is not."""

    buffering: Buffering | None
    delays: str | None

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        buffering = None if self.buffering is None else dataclasses.asdict(self.buffering)
        return {"buffering": buffering, "delays": self.delays}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Timing:
        """Return it from a JSON object that was checked."""
        buffering = fields["buffering"]
        return cls(None if buffering is None else Buffering(**buffering), fields["delays"])

    def __str__(self) -> str:
        parts: list[str] = []
        if self.buffering is not None:
            parts.append(f"a buffer of {self.buffering.size}, {self.buffering.in_flight} in flight")
            if self.buffering.max_age is not None:
                parts.append(f"ages up to {self.buffering.max_age}")
        if self.delays is not None:
            parts.append(f"delays {self.delays}")
        return ", ".join(parts)


@dataclasses.dataclass(frozen=True, slots=True)
class RunIdentity:
    """The form, the SHA-256 of each program of the bundle, the sampling, the source, the groups of
    each round's clients, if there are any, how rounds are buffered and simulated, if they are, and
    the budget of privacy, if there is one."""

    form: str
    programs: Mapping[str, str]
    sampling: Sampling
    skip_bad_clients: bool
    source: SourceIdentity
    groups: ClientGroups | None = None
    timing: Timing | None = None
    privacy: PrivacyRecord | None = None

    @classmethod
    def of(
        cls,
        process: Process,
        sampling: Sampling,
        source: SourceIdentity,
        *,
        skip_bad_clients: bool,
        groups: ClientGroups | None = None,
        timing: Timing | None = None,
        privacy: PrivacyRecord | None = None,
    ) -> RunIdentity:
        """Return the identity of a run of a process."""
        form, digests = process.bundle.form, process.digests
        return cls(form, digests, sampling, skip_bad_clients, source, groups, timing, privacy)

    def as_json(self) -> dict[str, Any]:
        """Return the identity as a JSON object, without the source."""
        return {
            "form": self.form,
            "programs": dict(self.programs),
            **sampling_as_json(self.sampling),
            "skip_bad_clients": self.skip_bad_clients,
            **({} if self.groups is None else {GROUPS: dataclasses.asdict(self.groups)}),
            **({} if self.timing is None else {TIMING: self.timing.as_json()}),
            **({} if self.privacy is None else {PRIVACY: self.privacy.as_json()}),
        }


def differences(begun: RunIdentity, now: RunIdentity) -> list[str]:
    """Describe how a run's identity differs from `now`, the one it would be continued with."""
    changes: list[str] = []
    if begun.programs["computation"] != now.programs["computation"]:
        changes.append("the bundle is that of another program")
    if begun.form != now.form:
        changes.append(f"its form is {begun.form}, and here {now.form}")
    else:
        parts = {*begun.programs, *now.programs} - {"computation"}
        other = sorted(p for p in parts if begun.programs.get(p) != now.programs.get(p))
        changes += [f"{part}.pb of the bundle is another one" for part in other]
        if "initialize" in other and begun.programs["computation"] == now.programs["computation"]:
            changes.append(
                "the program begins with another state, as where weights are drawn without a seed"
            )
    return [*changes, *_sampling(begun, now), *source_differences(begun.source, now.source)]


def _sampling(begun: RunIdentity, now: RunIdentity) -> Iterable[str]:
    old, new = begun.sampling, now.sampling
    if (old.clients, old.rate) != (new.clients, new.rate):
        yield f"a round takes {old}, and here {new}"
    if (old.seed, old.seed_is_secret) != (new.seed, new.seed_is_secret):
        yield f"its seed is {seed_text(old)}, and here {seed_text(new)}"
    if begun.skip_bad_clients != now.skip_bad_clients:
        words = ("fails its round", "is left out")
        yield (
            f"a client whose data cannot be read {words[begun.skip_bad_clients]}, "
            f"and here {words[now.skip_bad_clients]}"
        )
    if begun.groups != now.groups:
        yield f"its clients come in {_groups(begun)}, and here in {_groups(now)}"

    if begun.timing != now.timing:
        nothing = "no buffer and no delays"
        yield f"it has {begun.timing or nothing}, and here {now.timing or nothing}"
    if begun.privacy != now.privacy:
        yield f"it has {begun.privacy or NO_BUDGET}, and here {now.privacy or NO_BUDGET}"


def _groups(identity: RunIdentity) -> str:
    groups = identity.groups
    if groups is None:
        return "no groups"
    return f"{groups.count} groups" + (", of which bad ones are left out" * groups.skip_bad)


def sampling_as_json(sampling: Sampling) -> dict[str, Any]:
    """Return the fields of a sampling in the record of a run.

    A seed that is secret is a text there, in hex, for it has more bits than numbers of records.
    """
    is_secret, seed = sampling.seed_is_secret, sampling.seed
    poisson = {"rate": sampling.rate, "secret_seed": f"{seed:032x}" if is_secret else None}
    return {
        "clients_per_round": sampling.clients,
        "seed": None if is_secret else seed,
        **({} if sampling.rate is None else {POISSON: poisson}),
    }


def sampling_from_json(fields: Mapping[str, Any]) -> Sampling:
    """Return a sampling from the fields of a record that were checked."""
    rate = secret = None
    if POISSON in fields:
        rate, secret = fields[POISSON]["rate"], fields[POISSON]["secret_seed"]
    seed = fields["seed"] if secret is None else int(secret, 16)
    return Sampling(fields["clients_per_round"], seed, rate, secret is not None)


def seed_text(sampling: Sampling) -> str:
    """Return the seed for people, who are not told one that is secret."""
    return "secret" if sampling.seed_is_secret else str(sampling.seed)
