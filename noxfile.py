"""Every combination of Python and libraries that tffc runs with: `nox -l` lists them.

Needs uv (`pip install nox uv`), which also fetches the Pythons that are not there.
"""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "uv"
nox.options.sessions = ["core"]

PYTHONS = ("3.11", "3.12", "3.13")

TENSORFLOW = {"2.19": "5", "2.20": "567", "2.21": "67"}
"""The releases of TensorFlow with those of protobuf that they resolve with."""

COMBINATIONS = [
    (python, tensorflow, protobuf, numpy)
    for python in PYTHONS
    for tensorflow, protobufs in TENSORFLOW.items()
    for protobuf in protobufs
    for numpy in ("1.26", "2")
    # Neither TensorFlow 2.19 nor NumPy 1.26 has wheels for Python 3.13.
    if python != "3.13" or (tensorflow != "2.19" and numpy != "1.26")
]

CORNERS = [COMBINATIONS[0], COMBINATIONS[-1]]
"""The oldest of everything and the newest, which the whole tests run on."""

SAMPLE = [CORNERS[0], COMBINATIONS[len(COMBINATIONS) // 2], CORNERS[1]]
"""The corners and one in the middle, which each pull request runs on."""

BY = ("python", "tensorflow", "protobuf", "numpy")

CORE = (
    "tests/language",
    "tests/passes",
    "tests/backends",
    "tests/linking",
    "tests/runtime/interpreter",
    "tests/cli",
)

PARALLEL = ("-n", "auto", "--dist", "worksteal")


def install(session: nox.Session, tensorflow: str, protobuf: str, numpy: str) -> None:
    """Install tffc and what its tests need beside these releases."""
    extras = nox.project.load_toml("pyproject.toml")["project"]["optional-dependencies"]
    # JAX needs NumPy 2; its tests skip without it.
    needed = [each for each in extras["test"] if numpy == "2" or not each.startswith("jax")]
    libraries = {"tensorflow": tensorflow, "protobuf": protobuf, "numpy": numpy}
    releases = [f"{name}=={each}.*" for name, each in libraries.items()]
    # Newer ones need NumPy 2, which their packages do not say.
    releases += [] if numpy == "2" else ["pyarrow<26"]
    session.install(".", *needed, *releases)


@nox.session
@nox.parametrize(BY, COMBINATIONS)
def core(session: nox.Session, tensorflow: str, protobuf: str, numpy: str) -> None:
    """Run the quick tests of the core."""
    install(session, tensorflow, protobuf, numpy)
    session.run("pytest", *PARALLEL, *(session.posargs or CORE))


@nox.session
@nox.parametrize(BY, SAMPLE)
def sample(session: nox.Session, tensorflow: str, protobuf: str, numpy: str) -> None:
    """Run the quick tests of the core with few combinations."""
    core(session, tensorflow, protobuf, numpy)


@nox.session
@nox.parametrize(BY, CORNERS)
def whole(session: nox.Session, tensorflow: str, protobuf: str, numpy: str) -> None:
    """Run all tests but the long ones."""
    install(session, tensorflow, protobuf, numpy)
    session.run("pytest", *PARALLEL, "-m", "not long", *session.posargs)


@nox.session(python="3.11")
def lowest(session: nox.Session) -> None:
    """Run the quick tests with the lowest releases that tffc says it runs with."""
    session.install(".[test]", "--resolution", "lowest-direct")
    session.run("pytest", *PARALLEL, *session.posargs)


@nox.session(python=PYTHONS)
def packages(session: nox.Session) -> None:
    """Build what is published, check it, and try it from the wheels alone."""
    session.install(".[test]", "build", "twine", "check-wheel-contents")
    session.run("python", "-m", "build", "--outdir", "dist", silent=True)
    session.run("python", "-m", "build", "--wheel", "--outdir", "dist", "reader", silent=True)
    session.run("bash", "-c", "twine check --strict dist/* && check-wheel-contents dist/*.whl")
    session.run("pytest", "-m", "long or not long", "tests/test_packages.py")


@nox.session(python="3.11")
def extras(session: nox.Session) -> None:
    """Try each extra in an environment of its own."""
    session.install(".[test]")
    session.run("pytest", "-m", "long", "tests/test_extras.py")
