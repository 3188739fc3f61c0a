"""How many rounds of each program a node has taken part in, in the folder of its memory.

A policy with an ε allows a number of rounds.  So every answer that clients worked for counts, also
in an attempt that came to nothing, for the node cannot know whether the server goes by it.  The
folder holds the digests of programs and numbers, and no secrets.
"""

from __future__ import annotations

import json
import pathlib

from tffc.support.errors import DataError, LanguageValueError, PolicyError, reader
from tffc.support.files import atomic, locks
from tffc.support.files.reading import read_regular
from tffc.support.files.strict_json import NotJsonError, is_count, is_table, read_json

FILE, LOCK = "rounds.json", "rounds.lock"

LONGEST = 2**24


def count_round(folder: pathlib.Path | None, program: str, most: int) -> None:
    """Count a round of a program before clients work for it.

    Raises:
      LanguageValueError: the node has no folder for its memory.
      PolicyError: it has taken part in `most` rounds of the program.
      DataError: the folder cannot be read or written, or holds something else.
    """
    if folder is None:
        raise LanguageValueError(
            "E766",
            "the node's policy has an epsilon for a number of rounds, and the node would forget "
            "how many there were",
            help="give it a folder of its own, as 'memory' in its configuration",
        )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = locks.take(folder / LOCK, wait=True)
    except OSError as error:
        raise _unusable(folder, str(error.strerror)) from error
    try:
        counts = read_counts(folder)
        done = counts.get(program, 0)
        if done >= most:
            raise PolicyError(
                "E777",
                f"the node has taken part in {done:,} rounds of the program, and its policy allows "
                f"{most:,}",
                notes=("attempts at a round that came to nothing count too",),
                help="run no more rounds with the data of this node, or have the policy allow more",
            )
        content = json.dumps(counts | {program: done + 1}, sort_keys=True)
        atomic.replace_file(folder / FILE, content.encode(), is_shared=False)
    except OSError as error:
        raise _unusable(folder, str(error.strerror)) from error
    finally:
        lock.release()


@reader("a node's memory of rounds", DataError)
def read_counts(folder: pathlib.Path) -> dict[str, int]:
    """Return the number of rounds of each program in the folder of a node's memory.

    Raises:
      DataError: its file cannot be read, or holds something else.
    """
    try:
        content = read_json(read_regular(folder / FILE, LONGEST))
    except FileNotFoundError:
        return {}
    except (OSError, NotJsonError) as error:
        raise _unusable(folder, str(error)) from error
    if not is_table(content, is_count):
        raise _unusable(folder, "it is not a number for each program")
    return content


def _unusable(folder: pathlib.Path, reason: str) -> DataError:
    return DataError(
        "E959",
        f"what the node remembers of rounds in {folder} cannot be used: {reason}",
        notes=("without it, the node cannot know how many rounds it took part in",),
        help="let the node's user write the folder; if its file is damaged, mend it from a backup",
    )
