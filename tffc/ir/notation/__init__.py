"""The printed forms of programs.

    compact     (x -> (let y=f(x) in <y,a=1>))     on one line
    formatted   the same, with the locals of blocks and the elements of structs on their own lines
    structural  the tree, drawn

All three are byte for byte what TensorFlow Federated 0.87 prints, except that compiled sections
are named by the fingerprint of their content and data by a hash of theirs.  The text depends on
the program alone.  A node that is shared between places is printed at each of them; a program
whose text would be longer than `MAX_TEXT` characters is refused.
"""

from tffc.ir.notation.labels import MAX_TEXT, section_name
from tffc.ir.notation.lines import compact, formatted
from tffc.ir.notation.structural import structural

__all__ = ["MAX_TEXT", "compact", "formatted", "section_name", "structural"]
