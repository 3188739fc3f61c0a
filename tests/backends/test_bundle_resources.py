"""Resources of bundles and messages: their files, and what is refused about them."""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tffc as tff
from tests.frozen_programs import BASE, BIAS, in_tensorflow, resource, results, round_of
from tests.processes import ROOT, run_python
from tests.refusals import refusal
from tffc.api.programs import read_computation
from tffc.backends.bundle.bundle import Bundle, read_bundle, write_bundle
from tffc.cli.application import application
from tffc.graphs.resources import ResourceNode
from tffc.language.dtypes import DType
from tffc.language.values import resources as stored
from tffc.language.values.resources import ResourceStore
from tffc.language.wire.resources import sizes_of
from tffc.support.errors import BundleError, GraphError, LoadError

DIGESTS = [hashlib.sha256(array.tobytes()).hexdigest() for array in (BASE, BIAS)]
HELP = "\n  help: copy the file from where the program was written, or write the program again"


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return tff.compile(round_of("mapreduce", in_tensorflow(resource())), form="mapreduce")


@pytest.fixture
def empty_store(monkeypatch: pytest.MonkeyPatch) -> ResourceStore:
    """A store that knows nothing, as that of another process."""
    monkeypatch.setattr(stored, "STORE", ResourceStore())
    return stored.STORE


def files_in(folder: pathlib.Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_a_bundle_has_each_array_once(bundle: Bundle, tmp_path: pathlib.Path) -> None:
    write_bundle(bundle, tmp_path / "one")
    write_bundle(bundle, tmp_path / "other")
    files = files_in(tmp_path / "one")
    assert files == files_in(tmp_path / "other")
    assert files[f"resources/{DIGESTS[0]}"] == BASE.tobytes()
    assert files[f"resources/{DIGESTS[1]}"] == BIAS.tobytes()
    holding = [path for path, content in files.items() if BASE.tobytes()[:16] in content]
    assert holding == [f"resources/{DIGESTS[0]}"]
    manifest = json.loads(files["manifest.json"])
    assert manifest["format_version"] == "2.0"
    assert manifest["resources"] == dict(sorted(zip(DIGESTS, (48, 12), strict=True)))
    assert {"manifest.json", *manifest["files"]} | {
        f"resources/{digest}" for digest in manifest["resources"]
    } == set(files)


def test_a_bundle_is_read_and_replaced(bundle: Bundle, tmp_path: pathlib.Path) -> None:
    write_bundle(bundle, tmp_path / "b")
    read = read_bundle(tmp_path / "b")
    assert read == Bundle(**{name: getattr(bundle, name) for name in Bundle.__match_args__})
    write_bundle(read, tmp_path / "b", replace=True)
    assert read_bundle(tmp_path / "b") == read


RUN = """
import pathlib, sys
import numpy as np
from tests.frozen_programs import results
from tffc.language.values.resources import STORE
assert not STORE._arrays
for array in results(pathlib.Path(sys.argv[1])):
    print(array.tobytes().hex())
"""


@pytest.mark.slow
def test_another_process_runs_it(bundle: Bundle, tmp_path: pathlib.Path) -> None:
    write_bundle(bundle, tmp_path / "b")
    found = run_python("-c", RUN, str(tmp_path / "b"), cwd=ROOT).stdout.split()
    assert found == [array.tobytes().hex() for array in results(bundle)]


def test_a_file_is_read_when_it_is_first_used(
    bundle: Bundle, tmp_path: pathlib.Path, empty_store: ResourceStore
) -> None:
    file = tmp_path / DIGESTS[0]
    file.write_bytes(BASE.tobytes())
    stored.find_files({DIGESTS[0]: 48}, tmp_path)
    file.write_bytes(bytes(48))
    found = hashlib.sha256(bytes(48)).hexdigest()
    assert refusal(LoadError, empty_store.content, DIGESTS[0]) == (
        f"the resource {DIGESTS[0]} is damaged: the SHA-256 of {file} is {found} [E341]{HELP}"
    )
    file.write_bytes(BASE.tobytes())
    content = empty_store.content(DIGESTS[0])
    assert content.tobytes() == BASE.tobytes()
    assert empty_store.content(DIGESTS[0]) is content
    file.unlink()
    assert empty_store.content(DIGESTS[0]) is content


def test_large_files_are_mapped(tmp_path: pathlib.Path, empty_store: ResourceStore) -> None:
    array = np.arange(stored.LEAST_MAPPED, dtype=np.uint8)
    digest = hashlib.sha256(array.tobytes()).hexdigest()
    (tmp_path / digest).write_bytes(array.tobytes())
    stored.find_files({digest: array.size}, tmp_path)
    content = empty_store.content(digest)
    np.testing.assert_array_equal(content, array)
    assert f"{tmp_path / digest}" in pathlib.Path("/proc/self/maps").read_text()
    assert not content.flags.writeable


def test_a_resource_that_is_nowhere(empty_store: ResourceStore) -> None:
    assert refusal(LoadError, empty_store.content, DIGESTS[0]) == (
        f"the resource {DIGESTS[0]} is not here [E341]{HELP}"
    )


@pytest.mark.parametrize(
    ("content", "dtype", "shape", "said"),
    [
        (bytes(8), DType.FLOAT32, (3,), "has 8 bytes, not the 12 of its type"),
        (b"\x00\x02", DType.BOOL, (2,), "has bytes that are no truth values"),
    ],
)
def test_bytes_that_do_not_fit_a_type(
    empty_store: ResourceStore, content: bytes, dtype: DType, shape: tuple[int, ...], said: str
) -> None:
    digest = hashlib.sha256(content).hexdigest()
    empty_store.add_source(digest, "here", lambda: np.frombuffer(content, np.uint8))
    node = ResourceNode(digest, dtype.number, shape)
    assert refusal(LoadError, empty_store.array, node) == (
        f"the resource {digest} {said} [E341]{HELP}"
    )


def test_threads_read_a_file_once(empty_store: ResourceStore) -> None:
    reads: list[int] = []

    def read() -> Any:
        reads.append(1)
        time.sleep(0.05)
        return np.frombuffer(BASE.tobytes(), np.uint8)

    empty_store.add_source(DIGESTS[0], "here", read)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(empty_store.content, [DIGESTS[0]] * 4))
    assert len(reads) == 1
    assert all(each is found[0] for each in found)
    assert found[0].ctypes.data % stored.ALIGNMENT == 0


def missing(file: pathlib.Path) -> str:
    file.unlink()
    return f"cannot be read from {file}: No such file or directory"


def short(file: pathlib.Path) -> str:
    file.write_bytes(bytes(47))
    return f"has 48 bytes, and {file} has 47"


def folder(file: pathlib.Path) -> str:
    file.unlink()
    file.mkdir()
    return f"cannot be read from {file}: Is a directory"


def link(file: pathlib.Path) -> str:
    file.unlink()
    file.symlink_to("/dev/zero")
    return f"cannot be read from {file}: it is a device, expected a regular file"


def outside(file: pathlib.Path) -> str:
    elsewhere = file.parents[1] / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    return f"cannot be read from {file}: it is a link to {elsewhere}, outside of its folder"


DAMAGE = pytest.mark.parametrize("damage", [missing, short, folder, link, outside])


@DAMAGE
def test_a_bundle_with_another_file(
    bundle: Bundle, tmp_path: pathlib.Path, damage: Callable[[pathlib.Path], str]
) -> None:
    write_bundle(bundle, tmp_path / "b")
    said = damage(tmp_path / "b" / "resources" / DIGESTS[0])
    assert refusal(LoadError, read_bundle, tmp_path / "b") == (
        f"the resource {DIGESTS[0]} {said} [E341]{HELP}"
    )


def change(path: pathlib.Path, sizes: Any) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "resources": sizes}))


@pytest.mark.parametrize(
    "sizes", [{"../x": 48}, {DIGESTS[0].upper(): 48}, {DIGESTS[0]: -1}, {DIGESTS[0]: "48"}, [], 1]
)
def test_a_manifest_that_is_not_right(bundle: Bundle, tmp_path: pathlib.Path, sizes: Any) -> None:
    write_bundle(bundle, tmp_path)
    change(tmp_path, sizes)
    assert refusal(BundleError, read_bundle, tmp_path) == (
        f"{tmp_path}/manifest.json is not a manifest: its 'resources' are not right [E606]\n"
        "  help: compile the program again"
    )


@pytest.mark.parametrize(
    ("sizes", "which", "said"),
    [
        ({DIGESTS[1]: 12}, 0, "none, and the programs 48 bytes"),
        ({DIGESTS[0]: 47, DIGESTS[1]: 12}, 0, "47 bytes, and the programs 48 bytes"),
        ({DIGESTS[0]: 48, DIGESTS[1]: 12, "f" * 64: 1}, None, "1 bytes, and the programs none"),
    ],
)
def test_a_manifest_of_other_resources(
    bundle: Bundle, tmp_path: pathlib.Path, sizes: Any, which: int | None, said: str
) -> None:
    write_bundle(bundle, tmp_path)
    change(tmp_path, sizes)
    assert refusal(BundleError, read_bundle, tmp_path) == (
        f"the bundle {tmp_path} lists other resources than its programs use [E606]\n"
        f"  note: of {'f' * 64 if which is None else DIGESTS[which]}, the manifest has {said}\n"
        "  help: compile the program again"
    )


def test_one_digest_of_two_sizes() -> None:
    nodes = [ResourceNode(DIGESTS[0], 1, (2,)), ResourceNode(DIGESTS[0], 1, (3,))]
    assert refusal(GraphError, sizes_of, nodes) == (
        f"the resource {DIGESTS[0]} has both 8 and 12 bytes [E340]\n"
        "  help: trace the computation again"
    )


PROGRAM = """
from tests.frozen_programs import in_tensorflow, resource, round_of
frozen = round_of("mapreduce", in_tensorflow(resource()))
"""


def run(*words: str) -> str:
    outcome = CliRunner().invoke(application, words, catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome.stdout


@pytest.fixture
def message(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "frozen_program.py").write_text(PROGRAM)
    run("trace", "frozen_program.py:frozen", "-o", "x.pb")
    return tmp_path / "x.pb"


@pytest.mark.slow
def test_a_message_has_its_resources_beside_it(message: pathlib.Path) -> None:
    folder = message.parent / "x.resources"
    assert files_in(folder) == {DIGESTS[0]: BASE.tobytes(), DIGESTS[1]: BIAS.tobytes()}
    assert BASE.tobytes()[:16] not in message.read_bytes()
    run("compile", "x.pb", "--form", "mapreduce", "--prove", "-o", "b")
    assert files_in(message.parent / "b" / "resources") == files_in(folder)
    assert run("verify", "x.pb", "--form", "mapreduce").startswith("x.pb")
    assert run("diff", "x.pb", "b/computation.pb") == ""
    run("prove", "b")
    assert read_computation(message.parent / "b" / "computation.pb") == read_computation(message)


@DAMAGE
def test_a_message_with_another_file(
    message: pathlib.Path, damage: Callable[[pathlib.Path], str]
) -> None:
    said = damage(message.parent / "x.resources" / DIGESTS[0])
    assert refusal(LoadError, read_computation, message) == (
        f"the resource {DIGESTS[0]} {said} [E341]{HELP}"
    )


def test_a_message_without_its_folder(message: pathlib.Path) -> None:
    shutil.rmtree(message.parent / "x.resources")
    outcome = CliRunner().invoke(application, ["print", "x.pb"])
    assert outcome.exit_code == 1
    assert f"x.resources/{DIGESTS[0]}: No such file or directory" in outcome.stderr


def test_typed_texts_have_resources_beside_their_sections(message: pathlib.Path) -> None:
    text = run("print", "x.pb", "--style", "typed", "--sections", "sections")
    (message.parent / "t.sexpr").write_text(text)
    assert sorted(files_in(message.parent / "sections" / "resources")) == sorted(DIGESTS)
    run("parse", "t.sexpr", "-o", "y.pb")
    assert files_in(message.parent / "y.resources") == files_in(message.parent / "x.resources")
    assert message.read_bytes() == (message.parent / "y.pb").read_bytes()


def test_stdout_has_no_resources(message: pathlib.Path) -> None:
    outcome = CliRunner().invoke(application, ["trace", "frozen_program.py:frozen"])
    assert DIGESTS[0].encode() in outcome.stdout_bytes
    assert BASE.tobytes()[:16] not in outcome.stdout_bytes
    assert outcome.stderr.endswith(
        "left out 2 resources, which the message names; -o FILE.pb writes them\n"
    )


LIGHT = """
import sys
from click.testing import CliRunner
from tffc.cli.application import application
from tffc.language.values.resources import STORE
for words in (["print", "x.pb"], ["compile", "x.pb", "--form", "mapreduce", "-o", "b"],
              ["print", "b"], ["prove", "b"], ["audit", "b"], ["diff", "x.pb", "b/computation.pb"]):
    assert CliRunner().invoke(application, words, catch_exceptions=False).exit_code == 0, words
    print(words[0], len(STORE._arrays))
assert not {"tensorflow", "jax", "torch"} & sys.modules.keys()
"""


def test_commands_that_run_nothing_read_no_array(message: pathlib.Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", LIGHT], cwd=message.parent, capture_output=True, text=True
    )
    assert told.stdout.split() == ["print", "0", "compile", "2", "print", "2"] + [
        word for name in ("prove", "audit", "diff") for word in (name, "2")
    ], told.stderr
