"""A run, described once: `tffc run` fills the plan from its options, `tffc.run` from keywords."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from tffc.runtime.data.identity import SourceIdentity
from tffc.runtime.data.source import ClientSource, Progress, no_progress
from tffc.runtime.engines.buffered import run_buffered
from tffc.runtime.engines.buffering import Buffering
from tffc.runtime.engines.client_states import ClientStates
from tffc.runtime.engines.engine import Deliver, Engine
from tffc.runtime.engines.evaluation import Evaluation
from tffc.runtime.engines.kind import EngineChoice
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import Round, run_rounds
from tffc.runtime.engines.sampling import ALL, Sampling
from tffc.runtime.engines.state import State
from tffc.runtime.runs.privacy_record import PrivacyRecord
from tffc.runtime.runs.run_identity import RunIdentity, Timing
from tffc.support.errors import LanguageValueError


@dataclasses.dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run does.

    Rounds of `process` run on `engine` with the clients of `source`, a sample of them in each
    round. The state is evaluated as `evaluation` says.  With `skip_bad_clients`, clients whose data
    cannot be read are left out; a round that would aggregate fewer than `least_clients` is refused.
    `privacy` is the budget that the rounds have, with what was shown of them.
    """

    process: Process
    source: ClientSource
    engine: EngineChoice
    sampling: Sampling = ALL
    evaluation: Evaluation | None = None
    skip_bad_clients: bool = False
    least_clients: int = 0
    privacy: PrivacyRecord | None = None

    @property
    def buffering(self) -> Buffering | None:
        """How rounds are buffered: each is a step of the server after some contributions."""
        return self.engine.buffering

    @property
    def timing(self) -> Timing | None:
        """How rounds are buffered and simulated; None if they are not."""
        text = self.engine.delays and self.engine.delays.text
        return Timing(self.buffering, text) if self.buffering or text else None

    def identity(self, source: SourceIdentity) -> RunIdentity:
        """Return the identity of the run, whose source has this one."""
        return RunIdentity.of(
            self.process,
            self.sampling,
            source,
            skip_bad_clients=self.skip_bad_clients,
            groups=self.engine.groups,
            timing=self.timing,
            privacy=self.privacy,
        )

    def check(self) -> None:
        """Check that rounds may be buffered as they are to be, and that nothing keeps clients from
        taking part independently of each other where they are to.

        Raises:
          TffcError: they may not, see `run_buffered`; or a group of clients may be left out.
        """
        groups = self.engine.groups
        if self.sampling.rate is not None and groups is not None and groups.skip_bad:
            raise LanguageValueError(
                "E706",
                "a group that is left out takes clients with it that were drawn by a sampling rate",
                help="let a bad group fail its round, or sample a number of clients",
            )
        if self.buffering is not None:
            self.buffering.check(len(self.source.clients), self.least_clients)
            self.process.buffered_steps  # noqa: B018 (it is refused here)

    def run(
        self,
        engine: Engine,
        state: State,
        rounds: int,
        deliver: Deliver,
        progress: Progress = no_progress,
        client_states: ClientStates | None = None,
    ) -> Iterator[Round]:
        """Run rounds from states on an engine that `self.engine` gives, and yield each.

        Raises:
          TffcError: as `run_rounds` does.
        """
        if self.buffering is not None:
            return run_buffered(
                engine,
                state,
                self.source,
                rounds,
                self.buffering,
                self.sampling.seed,
                delays=self.engine.delays,
                skip_bad_clients=self.skip_bad_clients,
                progress=progress,
                evaluation=self.evaluation,
                least_clients=self.least_clients,
            )
        return run_rounds(
            engine,
            state,
            self.source,
            rounds,
            self.sampling,
            skip_bad_clients=self.skip_bad_clients,
            deliver=deliver,
            progress=progress,
            evaluation=self.evaluation,
            least_clients=self.least_clients,
            client_states=client_states,
            delays=self.engine.delays,
        )


def evaluation_of(
    process: Process, engine: EngineChoice, source: ClientSource, every: int, least_clients: int
) -> Evaluation:
    """Return an evaluation by rounds of a process, on the engine of the run.

    Raises:
      LanguageValueError: `every` is not positive.
      FormError: the round's output is at the clients.
    """
    on = dataclasses.replace(engine, masks_sums=False, groups=None, buffering=None).engine(process)
    return Evaluation(on, source, every, least_clients)
