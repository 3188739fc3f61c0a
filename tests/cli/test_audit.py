"""`tffc audit`: its report in every format, and its policies."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Callable

import pytest

from tests.cli.conftest import Run
from tffc.assurance.audit import policy as policies
from tffc.assurance.audit import policy_reading
from tffc.assurance.privacy.question import NEIGHBOURS

ROUND = """\
import collections
import numpy as np
import tensorflow as tf
import tffc as tff

EXAMPLE = collections.OrderedDict(pixels=tff.TensorType(np.float32, [4]), user=np.int32)


@tff.tf_computation(np.float32, tff.SequenceType(EXAMPLE))
def work(threshold, examples):
    total = examples.reduce(0.0, lambda n, e: n + tf.reduce_max(e["pixels"]) - threshold)
    return total, examples.reduce(0, lambda n, e: n + 1)


@tff.tf_computation(np.float32, np.float32)
def noisy(state, total):
    return state + total + tf.random.normal([])


@tff.federated_computation(
    tff.types.at_server(np.float32), tff.types.at_clients(tff.SequenceType(EXAMPLE))
)
def training(state, data):
    sent = tff.federated_broadcast(state)
    worked = tff.federated_map(work, (sent, data))
    total = tff.federated_sum(worked[0])
    count = tff.federated_secure_sum_bitwidth(worked[1], bitwidth=10)
    return tff.federated_map(noisy, (state, total)), count
"""

MARKUP = ROUND.replace('"pixels"', '"<script>"').replace(
    "pixels=tff.TensorType(np.float32, [4]), user=np.int32",
    '[("<script>", tff.TensorType(np.float32, [4])), ("user", np.int32)]',
)
"""The same with markup for a name."""

TEXT = """\
form: mapreduce
type: (<state=float32@SERVER,data={<pixels=float32[4],user=int32>*}@CLIENTS>\
 -> <float32@SERVER,int32@SERVER>)
clients' data: data.pixels, data.user
in no channel: data.user
seen of each client by whoever carries out the aggregation: total
may be in the texts of a client's errors, besides shapes: data.pixels, how many data

channel total
  at: round.py:26
  operator: federated_sum
  protection: aggregated by the system
  type: float32
  bytes from each client: 4
  data: data.pixels
  how many: data
  state: state
  goes to: state
  content: CONTENT

channel count
  at: round.py:27
  operator: federated_secure_sum_bitwidth
  protection: secure sum, bound 10
  type: int32
  bytes from each client: 4
  how many: data
  goes to: output
  content: CONTENT

broadcast sent
  at: round.py:24
  type: float32
  bytes to each client: 4
  state: state

new state
  state: float32
    state: state
    channels: total
    draws: RandomStandardNormal at the server, after the aggregation

output
  output: int32
    channels: count

effects: none
"""


@pytest.fixture(autouse=True)
def module(tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(ROUND)


@pytest.fixture
def policy(tmp_path: pathlib.Path) -> Callable[[str], str]:
    """Writes a policy, and returns its name."""

    def write(text: str) -> str:
        (tmp_path / "policy.yaml").write_text(text)
        return "policy.yaml"

    return write


def test_text(run: Run) -> None:
    ran = run("audit", "round.py:training")
    assert (ran.code, body(ran.stdout), ran.stderr) == (0, TEXT, "")


def body(report: str) -> str:
    """The report without what is said before the audit, and without contents."""
    _, _, text = report.partition("\n\n")
    return re.sub("content: [0-9a-f]{32}", "content: CONTENT", text)


def test_a_bundle_is_audited_as_its_program_is(run: Run) -> None:
    assert run("compile", "round.py:training", "--form", "mapreduce", "-o", "b").code == 0
    ran = run("audit", "b")
    assert ran.stderr == ""
    assert (
        "read: the program of the bundle; its components are proved to compute it\n" in ran.stdout
    )
    for line in ("  protection: secure sum, bound 10", "in no channel: data.user"):
        assert line in TEXT.splitlines()
        assert line in ran.stdout.splitlines()
    contents = re.findall("content: .*", run("audit", "round.py:training").stdout)
    assert re.findall("content: .*", ran.stdout) == contents


BUFFERED = """\
import numpy as np
import tensorflow as tf
import tffc as tff


@tff.buffered(discount=lambda age: 1 / (1 + tf.cast(age, tf.float32)))
@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.float32))
def mean(state, data):
    return state, tff.federated_mean(data)
"""


def test_what_buffered_rounds_change(run: Run, write: Callable[[str, str], pathlib.Path]) -> None:
    write("b.py", BUFFERED)
    said = (
        "buffered rounds: allowed: whoever merges then sees the contribution of each client alone, "
        "on an older state, and multiplies its floating-point sums by a discount for its age; the "
        "server steps after as many clients as the run says\n"
    )
    assert run("compile", "b.py", "--form", "mergeable", "--prove", "-o", "b").code == 0
    assert said in run("audit", "b").stdout
    assert said in run("audit", "b.py", "--form", "mergeable").stdout
    assert "buffered" not in run("audit", "b.py", "--form", "mapreduce").stdout
    assert "buffered" in json.loads(run("audit", "b", "--format", "json").stdout)["audit"]
    assert "Buffered rounds" in run("audit", "b", "--format", "html").stdout


POLICIES = {
    "operators: [federated_mean]": (
        "error: round.py:26: operators: total: federated_sum is used; allowed: federated_mean\n"
        "error: round.py:27: operators: count: federated_secure_sum_bitwidth is used; allowed: "
        "federated_mean\n"
    ),
    "never-leave: ['data.*']": (
        "error: round.py:26: never-leave: total: may depend on data.pixels\n"
    ),
    "largest-bytes: 3": (
        "error: round.py:26: largest-bytes: total: has 4 bytes from each client; allowed: 3\n"
        "error: round.py:27: largest-bytes: count: has 4 bytes from each client; allowed: 3\n"
    ),
    "protection: secure": (
        "error: round.py:26: protection: total: aggregated by the system; required: secure sum\n"
    ),
    "never-leave: [how many data]": (
        "error: round.py:26: never-leave: total: may depend on how many data\n"
        "error: round.py:27: never-leave: count: may depend on how many data\n"
    ),
    "never-leave: [shape of data.pixels]": (
        "error: round.py:26: never-leave: total: may depend on shape of data.pixels\n"
    ),
    "operators: [federated_sum, federated_secure_sum_bitwidth]\nnever-leave: [data.user]\n"
    "largest-bytes: 4\nprotection: system\neffects: {clients: [], server: []}": "",
    "": "",
}


@pytest.mark.parametrize("text", POLICIES)
def test_policy(run: Run, policy: Callable[[str], str], text: str) -> None:
    ran = run("audit", "round.py:training", "--policy", policy(text))
    assert body(ran.stdout) == TEXT
    verdict = "violates the policy: " if POLICIES[text] else "passes the policy\n"
    assert ran.stdout.startswith(f"verdict: {verdict}")
    assert ran.stderr == POLICIES[text]
    assert ran.code == (1 if POLICIES[text] else 0)


EXCEPTED = """\
protection: secure
exceptions:
  - channel: total
    content: CONTENT
    rule: protection
    reason: reviewed
    expires: 2030-01-31
"""


@pytest.fixture
def excepted(run: Run) -> str:
    """A policy with an exception for the channel `total`."""
    report = json.loads(run("audit", "round.py:training", "--format", "json").stdout)
    return EXCEPTED.replace("CONTENT", report["audit"]["channels"][0]["content"])


def test_an_exception_holds_until_its_day_ends(
    run: Run, policy: Callable[[str], str], excepted: str
) -> None:
    args = ("audit", "round.py:training", "--policy", policy(excepted), "--as-of")
    found = "round.py:26: protection: total: aggregated by the system; required: secure sum"
    ran = run(*args, "2030-01-31")
    assert (ran.code, ran.stderr) == (0, f"note: {found} (excepted: reviewed)\n")
    assert ran.stdout.startswith(
        "verdict: passes the policy, with 1 exception until 2030-01-31\nas of: 2030-01-31\n"
    )
    ran = run(*args, "2030-02-01")
    assert ran.code == 1
    assert ran.stderr == f"error: {found} (the exception ended on 2030-01-31)\n"


READING = (ROUND.replace("return total,", "return total + len_of(tf.io.read_file('x')),")).replace(
    "@tff.tf_computation(np.float32, tff.Seq",
    "def len_of(text):\n    return tf.cast(tf.strings.length(text), tf.float32)\n\n\n"
    "@tff.tf_computation(np.float32, tff.Seq",
    1,
)
"""A round whose clients read a file."""


def test_effects_on_a_side(run: Run, policy: Callable[[str], str], tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(READING)
    ran = run("audit", "round.py:training", "--policy", policy("effects: {clients: [network]}"))
    assert ran.code == 1
    assert ran.stderr == "error: effects: ReadFile 'x': reads or writes files at the clients\n"
    assert "  at the clients: ReadFile 'x', files" in ran.stdout


def test_the_content_of_an_effect(run: Run, tmp_path: pathlib.Path) -> None:
    def content(text: str) -> str:
        # AutoGraph reads a file once in a process.
        name = f"round_{len(list(tmp_path.iterdir()))}.py"
        (tmp_path / name).write_text(text)
        ran = run("audit", f"{name}:training", "--format", "json")
        assert ran.code == 0, ran.stderr
        report = json.loads(ran.stdout)
        (effect,) = report["audit"]["effects"]
        return effect["content"]

    same = content(READING)
    assert (
        content(
            "# A line more.\n"
            + READING.replace("total = tff", "all_of = tff").replace(
                "(state, total)), count", "(state, all_of)), count"
            )
        )
        == same
    )
    assert content(READING.replace("- threshold", "- 2.0 * threshold")) != same


def test_json(run: Run, policy: Callable[[str], str]) -> None:
    ran = run(
        "audit",
        "round.py:training",
        "--format",
        "json",
        "--policy",
        policy("operators: [federated_sum]"),
    )
    found = json.loads(ran.stdout)
    total, count = found["audit"]["channels"]
    assert (count["protection"], count["bound"], count["size"]) == ("secure", "10", 4)
    assert total["depends"]["elements"] == ["data.pixels"]
    assert total["span"] == {"file": "round.py", "line": 26}
    assert [each["rule"] for each in found["violations"]] == ["operators"]


def test_sarif(run: Run, policy: Callable[[str], str], excepted: str) -> None:
    name = policy(excepted.replace("2030", "1999") + "operators: [federated_sum]\n")
    ran = run("audit", "round.py:training", "--format", "sarif", "--policy", name)
    found = json.loads(ran.stdout)["runs"][0]
    known = {rule["id"] for rule in found["tool"]["driver"]["rules"]}
    places = [
        (each["ruleId"], each["locations"][0]["physicalLocation"]) for each in found["results"]
    ]
    assert {rule for rule, _ in places} == {"operators", "protection"} <= known
    for rule, place in places:
        assert place["artifactLocation"] == {"uri": "round.py"}
        assert place["region"]["startLine"] == {"operators": 27, "protection": 26}[rule]
    assert ran.code == 1


def test_html_runs_nothing_and_escapes(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.py").write_text(MARKUP)
    ran = run("audit", "round.py:training", "--format", "html", "-o", "audit.html")
    assert (ran.code, ran.stdout, ran.stderr) == (0, "", "wrote audit.html\n")
    page = (tmp_path / "audit.html").read_text()
    assert "<script" not in page
    assert "data.&lt;script&gt;" in page
    assert "default-src 'none'" in page


def test_a_broadcast_form_releases_its_output(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "share.py").write_text(
        "import numpy as np\nimport tffc as tff\n\n\n"
        "@tff.federated_computation(\n"
        "    tff.types.at_server(np.int32), tff.types.at_clients(np.int32)\n"
        ")\n"
        "def share(state, data):\n"
        "    return tff.federated_map(\n"
        "        tff.tf_computation(lambda a, b: a + b), (tff.federated_broadcast(state), data)\n"
        "    )\n"
    )
    ran = run("audit", "share.py:share")
    assert body(ran.stdout).startswith("form: broadcast\n")
    assert "channel output\n  operator: output\n  protection: released by itself\n" in ran.stdout
    assert "  data: data\n  state: state\n" in ran.stdout


REFUSED = {
    "x: 1": "error[E971]: the policy cannot have the key 'x'",
    "protecton: secure": "did you mean 'protection'?",
    "operators: a": "error[E971]: operators must be a list of names",
    "operators: [federated_summ]": "did you mean 'federated_sum'?",
    "operators: [federated_broadcast]": "error[E971]: 'federated_broadcast' is not an operator",
    "never-leave: data": "error[E971]: never-leave must be a list of patterns",
    "never-leave: [3]": "error[E971]: a pattern must be a mapping",
    "never-leave: [{optional: true}]": "error[E971]: a pattern has no text",
    "never-leave: [how many ]": "error[E977]: never-leave has the pattern 'how many'",
    "never-leave: [{pattern: data.user, maybe: true}]": "a pattern cannot have the key 'maybe'",
    "largest-bytes: 99999999999999999999": "error[E971]: largest-bytes must be a number of bytes",
    "single-client: 1": "error[E971]: single-client must be true or false",
    "exceptions: [{content: abc}]": "error[E971]: content must be 32 hexadecimal digits",
    "largest-bytes: -1": "error[E971]: largest-bytes must be a number of bytes",
    "noise: true": "error[E971]: the key 'noise' is not a rule",
    "noise: false": "error[E971]: the key 'noise' is not a rule",
    "exceptions: [{rule: noise}]": "error[E971]: 'noise' is not a rule",
    "protection: strong": "error[E971]: protection must be one of secure, system, program, none",
    "effects: {clients: [fire]}": "error[E971]: 'fire' is not a kind of effect",
    "effects: {devices: []}": "error[E971]: effects cannot have the key 'devices'",
    "exceptions: {}": "error[E971]: exceptions must be a list",
    "exceptions: [{channel: a}]": "an exception has no content and no rule and no reason and no",
    "exceptions: [{rule: sound}]": "error[E971]: 'sound' is not a rule",
    "exceptions: [{expires: soon}]": "error[E971]: expires must be a date, such as 2030-01-31",
    "exceptions: [{reason: ' '}]": "error[E971]: reason must be text",
    "exceptions: [a]": "error[E971]: an exception must be a mapping",
    "[a]": "error[E971]: the policy must be a mapping",
    "protection: none\nprotection: none": "error[E971]: the key 'protection' occurs twice",
    "a: [": "error[E971]: the policy policy.yaml is not YAML",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_a_policy(run: Run, policy: Callable[[str], str], text: str) -> None:
    assert REFUSED[text] in run("audit", "round.py:training", "--policy", policy(text)).refusal


def test_a_policy_that_is_not_there(run: Run) -> None:
    ran = run("audit", "round.py:training", "--policy", "none.yaml")
    assert ran.code == 1
    assert ran.stderr.startswith("error[E850]: cannot read the policy none.yaml: No such file")


def test_the_schema_has_what_a_policy_has() -> None:
    path = pathlib.Path(policies.__file__).with_name("policy.schema.json")
    schema = json.loads(path.read_text(encoding="utf-8"))
    fields = schema["properties"]
    assert list(fields) == list(policy_reading.FIELDS)
    assert fields["protection"]["enum"] == list(policies.PROTECTIONS)
    exception = fields["exceptions"]["items"]
    assert list(exception["properties"]) == list(policy_reading.EXCEPTION)
    assert exception["required"] == policy_reading.REQUIRED
    assert sorted(fields["operators"]["items"]["enum"]) == sorted(policies.OPERATORS)
    pattern = fields["never-leave"]["items"]["anyOf"][1]
    assert list(pattern["properties"]) == list(policy_reading.PATTERN)
    assert exception["properties"]["rule"]["enum"] == list(policy_reading.WAIVED)
    epsilon = fields["epsilon"]["properties"]
    assert list(epsilon) == list(policy_reading.EPSILON)
    assert epsilon["neighbours"]["enum"] == list(NEIGHBOURS)
    assert schema["$defs"]["decimal"]["pattern"] == f"^{policy_reading.DECIMAL.pattern}$"
    assert schema["$defs"]["kinds"]["items"]["enum"] == list(policies.EFFECTS)
