"""TensorBoard: scalars in the folder of the run, written by TensorFlow's writer."""

from __future__ import annotations

from collections.abc import Mapping

from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.runtime.runs.run_folder import TENSORBOARD as FOLDER
from tffc.runtime.tracking.kind import Ending, RunFacts


class TensorBoard:
    """The events of a run, in a file of their own each time that it is resumed."""

    run = ""

    def __init__(self, facts: RunFacts, run: str | None) -> None:
        assert facts.folder is not None
        self.place = str(facts.folder / FOLDER)
        self._tf = load_tensorflow()
        self._writer = self._tf.summary.create_file_writer(self.place)

    def add(self, round: int, numbers: Mapping[str, float]) -> None:
        with self._writer.as_default(step=round):
            for name, number in numbers.items():
                self._tf.summary.scalar(name, number)
        self._writer.flush()

    def end(self, ending: Ending, report: str | None) -> None:
        self._writer.close()
