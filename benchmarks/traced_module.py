"""A module as a user writes it, for `tffc trace`."""

import tffc
from benchmarks import averaging

training = averaging.build(tffc)
