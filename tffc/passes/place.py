"""Where in the text of a pipeline something stands."""

from __future__ import annotations

import dataclasses

from tffc.errors import PipelineError, Span


@dataclasses.dataclass(frozen=True, slots=True)
class TextPlace:
    """Where in the text something stands: in a line of a file, or in the one line of `text`."""

    source: str
    span: Span | None = None
    text: str = ""
    start: int = 0
    end: int = 0

    def error(self, code: str, message: str, help: str | None = None) -> PipelineError:
        """Return the refusal of what stands here."""
        notes = ()
        if self.text:
            carets = " " * self.start + "^" * max(1, self.end - self.start)
            notes = (f"in the text:\n    {self.text}\n    {carets}",)
        return PipelineError(
            code, f"in {self.source}, {message}", notes=notes, help=help, span=self.span
        )
