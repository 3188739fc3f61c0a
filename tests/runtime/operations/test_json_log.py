"""A log is one JSON object a line, whatever is logged."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from tffc.runtime.operations.json_log import VARIABLE, logged_as, write_as_configured
from tffc.support.errors import LanguageValueError


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """A logger without handlers, of this test alone."""
    found = logging.getLogger("tests.operations")
    found.setLevel(logging.INFO)
    yield found
    found.handlers.clear()
    found.propagate = True


@pytest.fixture
def written(logger: logging.Logger) -> io.StringIO:
    """What the only handler of the logger has written."""
    stream = io.StringIO()
    logger.addHandler(logging.StreamHandler(stream))
    return stream


def test_a_line_says_to_what_it_belongs(
    logger: logging.Logger, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "json")
    write_as_configured(logger)
    with logged_as(run="digits", node="silo-0"):
        with logged_as(round=3):
            logger.info("round %d of %d", 3, 20)
        logger.warning("late")
    logger.error("alone")
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert all(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time")) for line in lines
    )
    assert lines == [
        {
            "level": "info",
            "run": "digits",
            "node": "silo-0",
            "round": 3,
            "message": "round 3 of 20",
        },
        {"level": "warning", "run": "digits", "node": "silo-0", "message": "late"},
        {"level": "error", "message": "alone"},
    ]


def test_a_line_is_a_line_whatever_it_says(
    logger: logging.Logger, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "json")
    write_as_configured(logger)
    text = 'two\nlines, "quoted", \x1b[31mred\u2028\u202eturned'
    logger.info("%s", text)
    try:
        raise ValueError("defect")
    except ValueError:
        logger.exception("failed")
    first, second, end = written.getvalue().split("\n")
    assert first.isprintable()
    assert json.loads(first)["message"] == text
    assert json.loads(second)["traceback"].endswith("ValueError: defect")
    assert end == ""


def test_logs_stay_as_they_are_where_nobody_asks(
    logger: logging.Logger, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    write_as_configured(logger)
    logger.info("plain")
    assert written.getvalue() == "plain\n"


def test_a_logger_without_handlers_gets_one_for_stderr(
    logger: logging.Logger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, "json")
    write_as_configured(logger)
    logger.info("to stderr")
    assert json.loads(capsys.readouterr().err)["message"] == "to stderr"


class Coloured(logging.StreamHandler[io.StringIO]):
    """A handler that minds no formatter."""

    def format(self, record: logging.LogRecord) -> str:
        return f"\x1b[92m{record.getMessage()}"


def test_handlers_with_a_format_of_their_own(
    logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "json")
    stream = io.StringIO()
    logger.addHandler(Coloured(stream))
    write_as_configured(logger)
    logger.info("plain")
    assert json.loads(stream.getvalue())["message"] == "plain"


def test_another_format_is_refused(logger: logging.Logger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "xml")
    with pytest.raises(LanguageValueError) as refused:
        write_as_configured(logger)
    assert refused.value.code == "E895"
    assert refused.value.message == "TFFC_LOG is 'xml', expected 'json' or nothing"
