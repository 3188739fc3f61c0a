"""Options without effect are wrong usage.

The table has every option of every command, with command lines in which it has no effect.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import click
import pytest

from tests.cli.conftest import ROUND, Run
from tffc.cli.application import application

CONSTANT = """\
import numpy as np
import tffc as tff


@tff.federated_computation
def constant():
    return tff.federated_value(0, tff.SERVER)
"""

EACH = """\
import numpy as np
import tffc as tff


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.int32))
def each(state, data):
    return data
"""

STOP = "compile r.py --form mapreduce --stop-after call-dominant"
NO_BUNDLE = "has no effect: with --stop-after, no bundle is written"
RUN = "run r.py --data d --rounds 1"
REPLAY = "opt --reproduce x.txt"
NO_CHECKS = "has no effect: a reproducer has its own checks, and is not written again"
TRAINED = "export r.py:count --state s.npz --to"
NO_ARGUMENT = "has no effect: the program takes no argument"
NOT_ASKED = "has no effect: add --privacy"
NO_BUDGET = "has no effect: add --privacy-budget"
ONE_A_CALL = "has no effect: each call computes one client: add --batching N"
NO_TIMES = "'--timing-format' has no effect: add --time-passes"

WithoutEffect = dict[str, str]
"""Command lines, and how their errors end."""

ALWAYS: WithoutEffect = {}
"""The option has its effect with any others, or none that the others could miss: it permits."""

INSTRUMENTS: dict[str, WithoutEffect] = {
    "print_after": ALWAYS,
    "print_dir": ALWAYS,
    "start_from": ALWAYS,
    "stop_after": ALWAYS,
    "time_passes": ALWAYS,
    "max_size": ALWAYS,
}


def asked_with_privacy(command: str) -> dict[str, WithoutEffect]:
    """Return the options of a command that asks how private rounds are."""
    values = {
        "rounds": "2",
        "delta": "0.1",
        "sampling_rate": "0.1",
        "clients_per_round": "2",
        "clients": "3",
        "neighbours": "replace",
        "least_clients": "2",
        "not_released": "output",
        "participations": "2",
        "secret_seeds": "",
    }
    options = {name: "--" + name.replace("_", "-") for name in values}
    asked = "'--privacy' has no effect: the policy asks for an ε of its own"
    rows = {
        name: {f"{command} {option} {values[name]}".rstrip(): f"'{option}' {NOT_ASKED}"}
        for name, option in options.items()
    }
    by_chance = "'--participations' has no effect on rounds whose clients are chosen by chance"
    rows["participations"][f"{command} --privacy --participations 2 --sampling-rate 0.1"] = (
        by_chance
    )
    return {"privacy": {f"{command} --privacy --policy epsilon.yaml": asked}, **rows}


OPTIONS: dict[str, dict[str, WithoutEffect]] = {
    "audit": {
        "tff_source": ALWAYS,
        "as_of": {"audit r.py --as-of 2030-01-31": "'--as-of' has no effect: add --policy"},
        "form": {
            "audit d --form mapreduce": "d is a folder, and a bundle has its own form: omit --form"
        },
        "format": {
            "audit r.py --format sarif": "'--format sarif' has nothing to show: add --policy"
        },
        "max_size": ALWAYS,
        "out": ALWAYS,
        "policy": ALWAYS,
        "initialize": {
            "audit r.py --initialize i.pb": "'--initialize' has no effect: add --privacy"
        },
        **asked_with_privacy("audit r.py"),
    },
    "check": {
        "tff_source": ALWAYS,
        "watch": {
            "check - --form mapreduce --watch": "stdin cannot be watched: give a file or a module"
        },
        "allow_impure_duplicates": ALWAYS,
        "as_json": ALWAYS,
        "form": ALWAYS,
        "max_size": ALWAYS,
    },
    "compile": {
        "tff_source": ALWAYS,
        **INSTRUMENTS,
        "allow_effects": {
            "compile r.py --form mapreduce -o b --allow-effects files": "'--allow-effects' has no "
            "effect: without --verify, nothing is run"
        },
        "allow_impure_duplicates": {
            f"{STOP} --allow-impure-duplicates": f"'--allow-impure-duplicates' {NO_BUNDLE}"
        },
        "force": {f"{STOP} --force": f"'--force' {NO_BUNDLE}"},
        "form": ALWAYS,
        "initialize": {f"{STOP} --initialize i.pb": f"'--initialize' {NO_BUNDLE}"},
        "kernels": {f"{STOP} --kernels 32": f"'--kernels' {NO_BUNDLE}"},
        "out": {
            f"{STOP} -o b": f"'--out' {NO_BUNDLE}",
            f"{STOP} -o b --force": "'--out' and '--force' have no effect: with --stop-after, no "
            "bundle is written",
        },
        "passes": {
            "compile r.py --form mapreduce -o b --passes x --pipeline y": "--pipeline and --passes "
            "exclude each other"
        },
        "pipeline": ALWAYS,
        "reproducer": ALWAYS,
        "timing_format": {"compile r.py --form mapreduce -o b --timing-format table": NO_TIMES},
        "prove": {f"{STOP} --prove": f"'--prove' {NO_BUNDLE}"},
        "verify": {f"{STOP} --verify": f"'--verify' {NO_BUNDLE}"},
        "verify_each": ALWAYS,
        "verify_roundtrip": ALWAYS,
    },
    "data describe": {"tff_source": ALWAYS, "as_json": ALWAYS, "program": ALWAYS},
    "data pack": {"tff_source": ALWAYS, "force": ALWAYS, "out": ALWAYS, "program": ALWAYS},
    "decompile": {"max_size": ALWAYS, "out": ALWAYS},
    "diff": {
        "tff_source": ALWAYS,
        "as_json": {
            "diff r.py c.py --breaking --json --format text": "--json and --format exclude each "
            "other"
        },
        "breaking": ALWAYS,
        "fail_on": {"diff r.py c.py --fail-on wire": "'--fail-on' has no effect: add --breaking"},
        "form": {"diff r.py c.py --form mapreduce": "'--form' has no effect: add --breaking"},
        "format": {"diff r.py c.py --format text": "'--format' has no effect: add --breaking"},
        "max_size": ALWAYS,
    },
    "explain": {},
    "help": {},
    "explore": {
        "tff_source": ALWAYS,
        "watch": {"explore r.py -o - --watch": "'--watch' needs a file: give --out a name"},
        "form": {
            "explore d --form mapreduce": "d is a folder, and a bundle has its own form: "
            "omit --form"
        },
        "is_opened": {"explore r.py -o - --open": "'--open' needs a file: give --out a name"},
        "max_size": ALWAYS,
        "out": ALWAYS,
        "since": ALWAYS,
        "policy": ALWAYS,
        "as_of": {"explore r.py -o x --as-of 2030-01-31": "'--as-of' has no effect: add --policy"},
        **asked_with_privacy("explore r.py -o x"),
    },
    "export": {
        "tff_source": ALWAYS,
        "allow_effects": {
            f"{TRAINED} keras -o x.keras --allow-effects files": "'--allow-effects' has no effect: "
            "nothing of a program is loaded for a Keras model"
        },
        "check": {
            "export b --to keras -o x.keras --check": "a Keras model cannot be checked: it has the "
            "time in it"
        },
        "force": ALWAYS,
        "kind": {
            "export b --to keras -o x.keras": "a Keras model gets the weights of a state: add "
            "--state STATE"
        },
        "out": ALWAYS,
        "part": {
            "export b --to tflite -o x --part y": "--part selects part of a state: add "
            "--state STATE"
        },
        "partial": {
            f"{TRAINED} tflite -o x --partial": "'--partial' has no effect: a trained model has "
            "one component"
        },
        "state": {
            "export d --state s.npz --to tflite -o x": "--state needs a function: give "
            "MODULE:NAME instead of the bundle"
        },
    },
    "golden check": {"tff_source": ALWAYS, "folder": ALWAYS, "style": ALWAYS, "watch": ALWAYS},
    "golden review": {"tff_source": ALWAYS, "folder": ALWAYS},
    "golden update": {"tff_source": ALWAYS, "folder": ALWAYS},
    "opt": {
        "tff_source": ALWAYS,
        **INSTRUMENTS,
        "out": ALWAYS,
        "passes": {f"{REPLAY} --passes x": "a reproducer has its own passes"},
        "pipeline": {f"{REPLAY} --pipeline x.yaml": "a reproducer has its own passes"},
        "reproduce": {"opt r.py --reproduce x.txt": "give a program, or --reproduce with a file"},
        "reproducer": {f"{REPLAY} --reproducer y.txt": f"'--reproducer' {NO_CHECKS}"},
        "sections": dict.fromkeys(
            ("opt r.py -o x.pb --sections s", f"{REPLAY} -o x.pb --sections s"),
            "'--sections' has no effect: sections are read and written with typed texts only",
        ),
        "timing_format": {"opt r.py --timing-format json": NO_TIMES},
        "verify_each": {f"{REPLAY} --verify-each": f"'--verify-each' {NO_CHECKS}"},
        "verify_roundtrip": {f"{REPLAY} --verify-roundtrip": f"'--verify-roundtrip' {NO_CHECKS}"},
    },
    "parse": {"max_size": ALWAYS, "out": ALWAYS, "sections": ALWAYS},
    "doctor": {"as_json": ALWAYS},
    "python": {"tff_source": ALWAYS, "is_module": ALWAYS},
    "init": {},
    "passes": {"as_json": ALWAYS},
    "pipelines": {},
    "pipelines show": {},
    "print": {
        "tff_source": ALWAYS,
        "watch": {"print - --watch": "stdin cannot be watched: give a file or a module"},
        "max_size": ALWAYS,
        "sections": ALWAYS,
        "sexpr": ALWAYS,
        "style": ALWAYS,
    },
    "admit": {
        "approvals": {"admit b --approvals a": "'--approvals' and '--approvers' need each other"},
        "approvers": {"admit b --approvers k": "'--approvals' and '--approvers' need each other"},
        "as_json": ALWAYS,
        "demands": ALWAYS,
        "keys": ALWAYS,
        "policy": ALWAYS,
    },
    "approve": {
        "expires": {
            "approve b --key k --store s --revoke --expires 2030-01-31": "'--expires' has no "
            "effect: with --revoke, approvals end now"
        },
        "key": ALWAYS,
        "name": ALWAYS,
        "reason": ALWAYS,
        "revoke": ALWAYS,
        "store": ALWAYS,
    },
    "rebuild": {
        "allow_impure_duplicates": ALWAYS,
        "initialize": ALWAYS,
        "tff_source": ALWAYS,
        "max_size": ALWAYS,
        "passes": ALWAYS,
        "pipeline": ALWAYS,
    },
    "sign": {"key": ALWAYS, "name": ALWAYS, "policy": ALWAYS},
    "verify-signature": {"as_json": ALWAYS, "keys": ALWAYS, "least": ALWAYS},
    "prove": {"tff_source": ALWAYS, "as_json": ALWAYS, "max_size": ALWAYS},
    "run": {
        "tff_source": ALWAYS,
        "allow_effects": ALWAYS,
        "clients_per_round": ALWAYS,
        "data": ALWAYS,
        "demands": ALWAYS,
        "engine": ALWAYS,
        "engine_options": {
            f"{RUN} --engine-options x": "'--engine-options' has no effect: the engine local takes "
            "no options; add --engine beam or --engine ray"
        },
        "evaluate": {f"{RUN} --evaluate x": "--evaluate and --evaluate-data go together"},
        "evaluate_data": {f"{RUN} --evaluate-data x": "--evaluate and --evaluate-data go together"},
        "every": {f"{RUN} --every 2": "--every says how often to evaluate: add --evaluate PROGRAM"},
        "form": {
            "run d --data d --rounds 1 --form mapreduce": "d is a folder, and a bundle has its "
            "own form: omit --form"
        },
        "log": {
            f"{RUN} --log tensorboard --state-in s.npz": "--log tensorboard needs --out DIR, the "
            "run folder"
        },
        "track": {
            f"{RUN} --track tensorboard": "--track tensorboard needs --out DIR, the run folder"
        },
        "out": ALWAYS,
        "pack": ALWAYS,
        "plot": ALWAYS,
        "report": ALWAYS,
        "require_proof": ALWAYS,
        "privacy_budget": ALWAYS,
        "privacy_delta": {f"{RUN} --privacy-delta 0.1": f"'--privacy-delta' {NO_BUDGET}"},
        "neighbours": {f"{RUN} --neighbours replace": f"'--neighbours' {NO_BUDGET}"},
        "not_released": {f"{RUN} --not-released output": f"'--not-released' {NO_BUDGET}"},
        "resume": {f"{RUN} --resume": "--resume needs --out DIR, the run folder"},
        "rounds": ALWAYS,
        "secure_sums": {
            f"{RUN} --engine beam --secure-sums masked": "'--secure-sums' has no effect: the "
            "engine beam adds secure sums unmasked"
        },
        "seed": {
            f"{RUN} --seed 1": "--seed selects the sampled clients: add --clients-per-round K or "
            "--sampling-rate Q"
        },
        "sampling_rate": {
            f"{RUN} --sampling-rate 0.5 --clients-per-round 2": "--clients-per-round and "
            "--sampling-rate exclude each other",
            f"{RUN} --buffer 2 --in-flight 2 --sampling-rate 0.5": "'--sampling-rate' has no "
            "effect: buffered rounds sample no clients: --in-flight says how many work",
        },
        "skip_bad_clients": ALWAYS,
        "groups": {
            f"{RUN} --groups 2": "'--groups' has no effect: only the form mergeable has groups of "
            "clients"
        },
        "skip_bad_groups": {
            f"{RUN} --form mergeable --skip-bad-groups": "'--skip-bad-groups' has no effect: there "
            "are no groups: add --groups N",
            f"{RUN} --form mergeable --groups 2 --skip-bad-groups --sampling-rate 0.5": "--sampling"
            "-rate and --skip-bad-groups exclude each other: a group that is left out takes "
            "clients with it that were drawn",
        },
        "buffer": {
            f"{RUN} --buffer 2 --in-flight 2 --engine beam": "'--buffer' has no effect: the engine "
            "beam runs no buffered rounds",
        },
        "in_flight": {
            f"{RUN} --in-flight 2": "'--in-flight' has no effect: rounds are not buffered: add "
            "--buffer K",
        },
        "max_age": {
            f"{RUN} --max-age 2": "'--max-age' has no effect: rounds are not buffered: add "
            "--buffer K",
        },
        "delays": {
            f"{RUN} --buffer 2 --in-flight 2 --engine ray --delays constant:1": "'--delays' has no "
            "effect: the engine ray runs buffered rounds in real time, without a model of delays",
        },
        "least_clients": {
            "run e.py --data d --rounds 1 --least-clients 2": "'--least-clients' has no "
            "effect: the round aggregates nothing"
        },
        "show_clients": {
            f"{RUN} --engine beam --show-clients": "'--show-clients' has no effect: the engine "
            "beam shows nothing of clients"
        },
        "state_in": {
            f"{RUN} --out o --resume --state-in s.npz": "--resume continues from the state in "
            "the run folder: omit --state-in"
        },
        "continue_from": {
            f"{RUN} --out o --resume --continue-from r": "--resume continues from the state in the "
            "run folder: omit --continue-from",
            f"{RUN} --state-in s.npz --continue-from r": "--state-in and --continue-from exclude "
            "each other",
        },
        "state_out": ALWAYS,
        "batching": ALWAYS,
        "compiler": {f"{RUN} --compiler pjrt": f"'--compiler' {ONE_A_CALL}"},
        "precision": {f"{RUN} --precision fast": f"'--precision' {ONE_A_CALL}"},
        "device": {
            f"{RUN} --device CPU:0": "'--device' has no effect: sections by themselves are "
            "computed there anyway"
        },
        "explain_speed": ALWAYS,
        "workers": {
            f"{RUN} --engine beam --workers 2": "'--workers' has no effect: the engine beam takes "
            "no number of workers, but options of its own, such as --engine-options "
            "'--direct_num_workers=2 --direct_running_mode=multi_processing'"
        },
    },
    "report": {"out": ALWAYS},
    "show": {
        "format": ALWAYS,
        "is_whole": {
            "show s.npz --all --part x": "'--all' has no effect: parts that are named are shown "
            "whole, and no others"
        },
        "names": ALWAYS,
        "out": ALWAYS,
        "bundle": {
            "show r --privacy b --all": "'--privacy' has no effect: tensors alone are shown",
            "show r --privacy b --to csv": "'--privacy' has no effect: tensors alone are shown",
            "show s.npz --privacy b": "'--privacy' has no effect: s.npz is not the folder of a run",
        },
        "delta": {"show s.npz --delta 0.1": "'--delta' has no effect: add --privacy"},
    },
    "trace": {"tff_source": ALWAYS, "max_size": ALWAYS, "out": ALWAYS},
    "verify": {
        "tff_source": ALWAYS,
        "allow_effects": ALWAYS,
        "allow_impure_duplicates": {
            "verify r.py --allow-impure-duplicates": "'--allow-impure-duplicates' has no effect: "
            "without --form, nothing is compiled"
        },
        "as_json": ALWAYS,
        "data": {"verify c.py --data d": f"'--data' {NO_ARGUMENT}"},
        "form": ALWAYS,
        "max_size": ALWAYS,
        "passes": ALWAYS,
        "pipeline": {
            "verify r.py --pipeline x --passes y": "--pipeline and --passes exclude each other"
        },
        "initialize": {"verify c.py --initialize x": f"'--initialize' {NO_ARGUMENT}"},
        "seed": {"verify c.py --seed 0": f"'--seed' {NO_ARGUMENT}"},
        "trials": {"verify c.py --trials 20": f"'--trials' {NO_ARGUMENT}"},
    },
}

LINES = {
    line: message
    for options in OPTIONS.values()
    for lines in options.values()
    for line, message in lines.items()
}


def options_of(group: click.Group, prefix: str = "") -> dict[str, set[str]]:
    """Return the options of all commands, by the names of their parameters."""
    found: dict[str, set[str]] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        # What takes no value that the command gets, as --max-size, has a name of its own too.
        options = {p.name for p in command.params if isinstance(p, click.Option)}
        if isinstance(command, click.Group):
            found.update(options_of(command, f"{prefix}{name} "))
            if not command.invoke_without_command:
                continue
        found[prefix + name] = {each for each in options if each is not None}
    return found


def test_the_table_has_every_option_of_every_command() -> None:
    assert {name: set(options) for name, options in OPTIONS.items()} == options_of(application)


@pytest.mark.parametrize("line", LINES)
def test_options_without_effect_are_refused(
    run: Run, write: Callable[[str, str], pathlib.Path], line: str
) -> None:
    write("r.py", ROUND)
    write("c.py", CONSTANT)
    write("e.py", EACH)
    write("epsilon.yaml", "epsilon: {at-most: 2, delta: 1e-6, rounds: 1}\n")
    pathlib.Path("d").mkdir()
    ran = run(*line.replace("'", "").split(" "))
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.endswith(f"Error: {LINES[line]}\n")
    assert sorted(path.name for path in pathlib.Path().iterdir()) == [
        "c.py",
        "d",
        "e.py",
        "epsilon.yaml",
        "r.py",
    ]


def test_stopping_tells_of_effects(run: Run, write: Callable[[str, str], pathlib.Path]) -> None:
    write(
        "e.py",
        "import numpy as np\nimport tensorflow as tf\nimport tffc as tff\n\n\n"
        "@tff.tf_computation(np.int32)\ndef read(x):\n"
        "    return x + tf.strings.length(tf.io.read_file('secret'))\n\n\n"
        "@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.int32))\n"
        "def total(state, data):\n"
        "    return state, tff.federated_sum(tff.federated_map(read, data))\n",
    )
    ran = run("compile", "e.py", "--form", "mapreduce", "--stop-after", "call-dominant")
    assert ran.code == 0
    assert "note: to run this needs consent to files: ReadFile 'secret'\n" in ran.stderr


def test_every_command_that_loads_a_module_takes_the_folder_of_tffs_libraries() -> None:
    missing: list[str] = []
    waiting: list[tuple[str, click.Command]] = [("", application)]
    while waiting:
        name, command = waiting.pop()
        if isinstance(command, click.Group):
            context = click.Context(command)
            for inner in command.list_commands(context):
                member = command.get_command(context, inner)
                assert member is not None
                waiting.append((f"{name} {inner}".strip(), member))
        shown = " ".join(str(parameter.metavar) for parameter in command.params)
        names = {parameter.name for parameter in command.params}
        if "MODULE" in shown and "tff_source" not in names:
            missing.append(name)
    assert missing == []
