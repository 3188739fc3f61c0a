"""The rounds that a federation's server is configured for, kept in the folder of a run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator

from tffc.deploy.demands import check_admitted
from tffc.deploy.federation.buffered import run_buffered_federation
from tffc.deploy.federation.client_states import RECEIPT
from tffc.deploy.federation.engine import FederationEngine
from tffc.deploy.federation.messages import MASKED
from tffc.deploy.federation.rounds import run_federation
from tffc.deploy.federation.settings import RunSettings
from tffc.runtime.data.identity import SourceIdentity
from tffc.runtime.engines.client_states import ClientStates
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import Round
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.state import State
from tffc.runtime.operations.json_log import logged_as
from tffc.runtime.runs.metrics import row_of
from tffc.runtime.runs.run_folder import RunFolder
from tffc.runtime.runs.run_identity import RunIdentity, Timing
from tffc.support.errors import TffcError


def serve_rounds(
    engine: FederationEngine,
    settings: RunSettings,
    tell: Callable[[str], None],
    kind: str,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Round]:
    """Run the configured rounds; save, log and yield each.

    `kind` names the federation in the folder of the run, and `sleep` waits for seconds.

    Raises:
      TrustError: the demands of the server's machine, if it has any, do not admit the bundle.
      TffcError: the folder is refused, or rounds cannot be run.
    """
    process = engine.process
    is_masked = settings.secure_sums == MASKED
    check_admitted(process.bundle, "the bundle of the run", are_masked=is_masked)
    with _outputs(process, settings, kind) as (state, receipts, save):
        buffering = settings.buffering
        if buffering is None:
            rounds = run_federation(engine, state, settings, tell, sleep, receipts)
        else:
            rounds = run_buffered_federation(engine, state, settings, buffering, sleep)
        for finished in rounds:
            save(finished)
            with logged_as(round=finished.number):
                tell(row_of(finished, process.output_type).to_json().rstrip())
            yield finished


@contextlib.contextmanager
def _outputs(
    process: Process, settings: RunSettings, kind: str
) -> Generator[tuple[State, ClientStates | None, Callable[[Round], None]]]:
    """Yield the state to continue from, which states nodes have of clients that keep some, and a
    function that saves rounds in the run's folder, if there is one."""
    if settings.out is None:
        yield process.first_state(), None, lambda finished: None
        return
    receipt = None if process.client_state_type is None else RECEIPT
    folder = RunFolder(settings.out, process, client_state=receipt)
    source = SourceIdentity(kind, {"fraction": f"{settings.fraction:g}"}, (), {})
    sampling = Sampling(None, settings.seed)
    timing = settings.buffering and Timing(settings.buffering, None)
    identity = RunIdentity.of(process, sampling, source, skip_bad_clients=False, timing=timing)
    state = folder.begin(identity, None, resume=settings.resume)
    try:
        yield state or process.first_state(), folder.client_states, folder.save
    except TffcError:
        folder.abandon()
        raise
    finally:
        folder.close()
