"""Messages of programs and types, as classes of protobuf.

tffc itself reads and writes them without, which goes deeper; these are for code that takes messages
apart.
"""

from __future__ import annotations

from tffc.proto import message

Computation = message("tffc.v0.Computation")
Type = message("tffc.v0.Type")
