"""A run, described once: `tffc run` fills the plan from its options, `tffc.run` from keywords."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from tffc.runtime.data.source import ClientSource, Progress, no_progress
from tffc.runtime.engines.client_states import ClientStates
from tffc.runtime.engines.engine import Deliver, Engine
from tffc.runtime.engines.evaluation import Evaluation
from tffc.runtime.engines.kind import EngineChoice
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import ALL, Round, Sampling, run_rounds
from tffc.runtime.engines.state import State


@dataclasses.dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run does.

    Rounds of `process` run on `engine` with the clients of `source`, a sample of them in each
    round. The state is evaluated as `evaluation` says.  With `skip_bad_clients`, clients whose data
    cannot be read are left out; a round that would aggregate fewer than `least_clients` is refused.
    """

    process: Process
    source: ClientSource
    engine: EngineChoice
    sampling: Sampling = ALL
    evaluation: Evaluation | None = None
    skip_bad_clients: bool = False
    least_clients: int = 0

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
        )


def evaluation_of(
    process: Process, engine: EngineChoice, source: ClientSource, every: int, least_clients: int
) -> Evaluation:
    """Return an evaluation by rounds of a process, on the engine of the run.

    Raises:
      LanguageValueError: `every` is not positive.
      FormError: the round's output is at the clients.
    """
    on = dataclasses.replace(engine, masks_sums=False, groups=None).engine(process)
    return Evaluation(on, source, every, least_clients)
