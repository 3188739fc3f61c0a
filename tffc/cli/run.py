"""`tffc run`: rounds of a bundle on clients' data."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tffc.engines.engine import Round
    from tffc.ir.types import Type

_path = click.Path(path_type=pathlib.Path)


@click.command("run", short_help="Run rounds of a bundle on clients' data.")
@click.argument("bundle", metavar="BUNDLE", type=_path)
@click.option("--data", required=True, metavar="DIR", type=_path, help="One .npz file a client.")
@click.option("--rounds", required=True, type=click.IntRange(1), help="How many rounds to run.")
@click.option(
    "--clients-per-round",
    metavar="K",
    type=click.IntRange(1),
    help="How many clients to sample for each round; all of them if not given.",
)
@click.option(
    "--seed", default=0, show_default=True, type=int, help="Decides which clients are sampled."
)
@click.option(
    "--state-out", metavar="FILE", type=_path, help="Save the state here after every round."
)
@click.option("--state-in", metavar="FILE", type=_path, help="Start from the state saved here.")
def run_command(
    bundle: pathlib.Path,
    data: pathlib.Path,
    rounds: int,
    clients_per_round: int | None,
    seed: int,
    state_out: pathlib.Path | None,
    state_in: pathlib.Path | None,
) -> None:
    """Runs rounds in this process and prints the server output of each, one line a round.

    Rounds that start from a saved state go on where those before it ended: they have the numbers,
    and with the same seed the clients, that the next rounds of that run would have had.

    \b
      tffc run build/training --data examples/digits/train --rounds 20 \\
          --clients-per-round 20 --state-out build/model.npz
    """
    from tffc.backends.bundle import read_bundle
    from tffc.backends.data import ClientFolder
    from tffc.cli.progress import round_display
    from tffc.engines.engine import Sampling, run_rounds
    from tffc.engines.local import LocalEngine
    from tffc.engines.process import Process
    from tffc.engines.state import read_state, write_state
    from tffc.execution.chatter import quiet_start

    process = Process(read_bundle(bundle))
    folder = ClientFolder(data, process.data_type)
    folder.check()
    state = None if state_in is None else read_state(state_in, process.state_type, process.program)
    quiet_start()
    state = state or process.first_state()
    finished = state.rounds
    last = finished + rounds
    try:
        with round_display() as display:
            for each in run_rounds(
                LocalEngine(process),
                state,
                folder,
                rounds,
                Sampling(clients_per_round, seed),
                progress=display.progress,
            ):
                if state_out is not None:
                    write_state(state_out, each.state, process.state_type)
                finished = each.number
                display.line(_line(each, last, process.output_type))
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted in round {finished + 1}", err=True)
        if finished == state.rounds:
            click.echo("no round was finished", err=True)
        elif state_out is None:
            click.echo("the state is lost; --state-out would have kept it", err=True)
        else:
            click.echo(f"the state after round {finished} is in {state_out}", err=True)
        raise click.exceptions.Exit(130) from None


def _line(finished: Round, last: int, type: Type) -> str:
    """A round's number and its server output, such as `round  7  loss=0.3121 accuracy=0.9012`."""
    number = str(finished.number).rjust(len(str(last)))
    shown = " ".join(_shown(name, value) for name, value in _outputs(finished.output, type))
    return f"round {number}  {shown}".rstrip()


def _outputs(output: Any, type: Type) -> list[tuple[str, Any]]:
    """The tensors and sequences of a server output, with the paths to them."""
    from tffc.ir.types import StructType

    found: list[tuple[str, Any]] = []
    stack: list[tuple[str, Any, Type]] = [("", output, type)]
    while stack:
        path, value, part = stack.pop()
        if not isinstance(part, StructType):
            found.append((path, value))
            continue
        names = [str(i) if name is None else name for i, name in enumerate(part.names)]
        paths = [f"{path}.{name}" if path else name for name in names]
        stack.extend(reversed(list(zip(paths, value, part, strict=True))))
    return found


def _shown(name: str, value: Any) -> str:
    text = _text(value)
    return f"{name}={text}" if name else text


def _text(value: Any) -> str:
    """A tensor in few characters: floats to four digits, long ones by their shape."""
    import numpy as np

    array = np.asarray(value)
    if array.size > 8:
        return f"{array.dtype}{list(array.shape)}"
    if array.dtype.kind == "f":
        return np.array2string(array, formatter={"float_kind": "{:.4g}".format})
    return str(value)
